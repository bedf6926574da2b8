"""What programs refuse: texts, files, what the verifier finds, and arguments of their functions."""

import functools
import json

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program import BranchMismatch, CaptureError, Program, ProgramError

GOOD = """program(x) -> y:
    input x: float32[2]
    parameter w: float32[2] = [1.0, 2.0]
    constant e: float32[0, 3] = []

    y: float32[2] = cond(pred=True):  # here.py:7
        true_block 1():
            m: float32[2] (no gradient) = mul(x, w)
            -> m
        false_block 2():
            s: float32[1] = getitem(x, index=slice(1, None))
            a: float32[2] = add(x, s)
            -> a
"""


def test_a_text_with_branches():
    p = program.parse(GOOD)
    assert p(tl.tensor([3.0, 4.0])).tolist() == [3, 8]
    assert p.variable("e").value.shape == (0, 3) and p.variable("e").stop_gradient
    assert p.variable("w").value.requires_grad and p.blocks[1].variables["m"].stop_gradient
    q = program.parse(GOOD.replace("pred=True", "pred=False").replace("slice(1, None)", "slice(1)"))
    assert q(tl.tensor([3.0, 4.0])).tolist() == [6, 7]
    given = program.parse(GOOD.replace(" = [1.0, 2.0]", ""), {"w": [5, 6]})
    assert given(tl.tensor([3.0, 4.0])).tolist() == [15, 24]


@each("old, new, words", [
    ("false_block 2", "false_block 3", "the numbers of blocks have gaps"),
    ("false_block 2", "false_block 1", "line 10: there are two blocks 1"),
    ("            m: ", "    " * 51 + "m: ", "line 8: is nested too deep"),
    ("[1.0, 2.0]", "'a'", "line 3: the value of w is none: "),
    ("parameter w: float32[2] = [1.0, 2.0]", "parameter w: int64[2] = [1, 2]",
     "line 3: w: a parameter has a floating dtype"),
    ("(no gradient)", "(no stack)", "line 8: cannot read 'no stack'"),
    ("(no gradient)", "(gradient gradient)", "line 8: cannot read 'gradient gradient'"),
    ("index=slice(1, None)", "index=1, index=2", "line 11: index is given twice"),
    ("slice(1, None)", "slice()", "line 11: slice has other parts"),
    ("slice(1, None)", "slice(1, 2, 3, 4)", "line 11: slice has other parts"),
    ("slice(1, None)", "{x: 1}", "line 11: cannot read the key 'x'"),
])
def test_texts_that_are_refused(old, new, words):
    assert GOOD.count(old) == 1
    with pytest.raises(ProgramError, match=f"parse: .*{words}"):
        program.parse(GOOD.replace(old, new))


def test_a_text_is_a_str():
    with pytest.raises(TypeError, match="parse: takes a str, got bytes"):
        program.parse(GOOD.encode())


# ---- files ---------------------------------------------------------------------------------------

def changed(path, key, change):
    """Writes a file of a program with another entry in its header."""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header[key] = change(header[key])
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + size:])


@pytest.mark.parametrize("key, change, words", [
    ("__metadata__", lambda x: {"program": 3}, "holds no program$"),
    ("w", lambda x: {**x, "shape": [3]}, "does not have the size that its shape says"),
    ("w", lambda x: {**x, "shape": [-2]}, "a tensor lies outside of the file"),
    ("w", lambda x: {**x, "shape": [2**48]}, "a tensor lies outside of the file"),
    ("w", lambda x: {**x, "shape": 2}, "a tensor lies outside of the file"),
    ("w", lambda x: {**x, "data_offsets": [0, 9]}, "a tensor lies outside of the file"),
    ("w", lambda x: {**x, "data_offsets": [8, 0]}, "a tensor lies outside of the file"),
    ("w", lambda x: {**x, "data_offsets": [0, 4]}, "does not have the size"),
])
def test_files_that_are_refused(key, change, words, tmp_path):
    path = tmp_path / "p"
    program.parse(GOOD).save(path)
    assert program.load(path)(tl.ones(2)).tolist() == [1, 2]
    changed(path, key, change)
    with pytest.raises(ProgramError, match=f"load: '.*p' {words}" if "holds" in words else words):
        program.load(path)


def test_a_parameter_without_a_value_is_not_in_a_file(tmp_path):
    text = GOOD.replace(" = [1.0, 2.0]", "")
    program.parse(text).save(tmp_path / "p")
    again = program.load(tmp_path / "p")
    assert again.values().keys() == {"e"}
    with pytest.raises(RuntimeError, match="program: w has no value"):
        again(tl.ones(2))


# ---- the verifier --------------------------------------------------------------------------------

def other_name(p):
    p.block.variables["x"].name = "z"


def other_home(p):
    p.variable("x").block = p.blocks[1]


def undefined_output(p):
    p.outputs = p.blocks[1].outputs[0]


def other_value(p):
    p.variable("w").value = tl.ones(3)


def other_dtype(p):
    p.variable("w").value = tl.ones(2).double()


def shared_block(p):
    p.block.ops[0].attributes["false_block"] = p.blocks[1]


def foreign_result(p):
    p.blocks[1].outputs = list(p.blocks[2].outputs)


def moved_block(p):
    p.blocks[2].parent = p.blocks[1]


def other_input(p):
    p.blocks[1].ops[0].inputs["third"] = p.variable("x")


@each("change, words", [
    (other_name, "verify: z is not in the block that it says it is in, or shares its name"),
    (other_home, "verify: x is not in the block that it says it is in"),
    (undefined_output, "verify: the output m is not defined"),
    (other_value, r"verify: w is float32\[2\], but its value is float32\[3\]"),
    (other_dtype, r"verify: w is float32\[2\], but its value is float64\[2\]"),
    (shared_block, "verify: block 1 belongs to several calls"),
    (foreign_result, "verify: block 1 gives a, which is not defined in it"),
    (moved_block, r"cond \(here.py:7\): has block 2, which lies elsewhere"),
    (other_input, "mul.*: has no argument 'third'; it takes input, other"),
])
def test_what_the_verifier_finds(change, words):
    p = program.parse(GOOD)
    program.verify(p)
    change(p)
    with pytest.raises(ProgramError, match=words):
        program.verify(p)


def test_a_call_of_no_operation_is_shown_with_the_names_of_its_inputs():
    p = program.parse(GOOD)
    p.blocks[1].ops[0].type = "strange"
    assert "m: float32[2] (no gradient) = strange(input=x, other=w)" in str(p)
    with pytest.raises(ProgramError, match="strange.*no operation 'strange'"):
        program.verify(p)


# ---- functions of programs -----------------------------------------------------------------------

def built():
    with Program() as p:
        x, y = program.data("x", (2,)), program.data("y", (3,))
        w = program.parameter("w", [1.0, 2.0])
        z = x * w
    return p, x, y, w, z


@pytest.mark.parametrize("call, error, words", [
    (lambda p, x, y, w, z: program.gradients([], x), ValueError, "takes at least one target"),
    (lambda p, x, y, w, z: program.gradients([z, x], w, [z]), ValueError,
     "got 2 targets and 1 target_gradients"),
    (lambda p, x, y, w, z: program.gradients(z, w, y), ValueError,
     "the target .*mul.* has the target gradient .*y"),
    (lambda p, x, y, w, z: program.gradients(z, w, [3]), TypeError,
     "target_gradients takes Variables and names of them, got int"),
    (lambda p, x, y, w, z: p.prune(3), TypeError, "takes Variables and names of them, got int"),
    (lambda p, x, y, w, z: p.run({"x": [1.0, 2.0], "y": [1.0] * 3}, [tl.ones(2)]), TypeError,
     "takes Variables and names of them, got Tensor"),
    (lambda p, x, y, w, z: program.trace(3), TypeError, "trace: takes a function, got int"),
])
def test_arguments_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(*built())


def test_a_variable_of_a_branch_has_no_gradient_of_its_own():
    p = program.parse(GOOD)
    inner = p.blocks[1].outputs[0]
    with pytest.raises(ValueError, match="gradients: m is a variable of a branch or a loop"):
        program.gradients(inner, p.inputs)
    p.outputs.block = None
    with pytest.raises(ValueError, match="gradients: y is a variable of a branch or a loop"):
        program.gradients(p.outputs, p.inputs)


def test_a_name_stands_for_its_variable():
    p, x, y, w, z = built()
    by_name, by_itself = program.gradients(z, "w"), program.gradients(z, w, no_grad_set="x")
    feed = {"x": tl.tensor([3.0, 4.0]), "y": tl.ones(3)}
    for (g,) in (by_name, by_itself):
        assert p.run(feed, g).tolist() == [3, 4]
    assert program.gradients(z, ["x", "w"], no_grad_set="x")[0] is None


def test_the_structure_of_inputs_is_that_of_the_examples():
    p = program.trace(lambda d: d["a"] * 2, {"a": tl.ones(2)})
    assert p({"a": tl.ones(2)}).tolist() == [2, 2]
    with pytest.raises(TypeError, match="program: takes inputs of the structure .*a.*, got"):
        p({"b": tl.ones(2)})


def test_where_parameters_and_inputs_may_stand():
    with Program():
        x = program.data("x", (2,))
        with pytest.raises(TypeError, match="the value of w must be a Tensor or numbers, not a"):
            program.parameter("w", x)
        for make in (lambda: program.data("z", (2,)), lambda: program.parameter("z", [1.0, 2.0])):
            with pytest.raises(RuntimeError, match="must stand outside of branches and loops"):
                tl.cond(x.sum() > 0, make, lambda: x)


def test_the_text_of_objects_and_names_of_blocks():
    p = program.parse(GOOD)
    assert repr(p) == "<program of 4 calls in 3 blocks>"
    assert repr(p.blocks[2]) == "<block 2 of 2 operations>"
    for block in p.blocks:
        assert block.find("w") is p.variable("w") and block.find("nothing") is None
    assert p.blocks[1].find("m") is p.blocks[1].outputs[0] and p.block.find("m") is None
    assert p.blocks[2].find("m") is None


def test_a_guard_builds_a_program_on():
    p, x, y, w, z = built()
    with program.program_guard(p):
        total = z.sum() + y.sum()
    feed = {"x": tl.ones(2), "y": tl.ones(3)}
    assert p.run(feed, total) == 6
    with pytest.raises(RuntimeError, match="data: there is no program that is built"):
        program.data("u", (1,))


# ---- control flow --------------------------------------------------------------------------------

def test_predicates_and_numbers_of_python_choose_at_once():
    one, two, three = (lambda: 1), (lambda: 2), (lambda: 3)
    assert tl.cond(True, one, two) == 1 and tl.cond(False, one, two) == 2
    assert tl.cond(False, one, lambda a, b: a - b, (7, 4)) == 3
    assert tl.case([(False, one)]) == 1
    assert tl.case([(False, one), (False, two)]) == 2 and tl.case([(True, one), (True, two)]) == 1
    assert tl.case([(False, one)], two) == 2
    for index, wanted in ((0, 1), (1, 2), (2, 3), (7, 3), (-1, 3)):
        assert tl.switch_case(index, [one, two, three]) == wanted
        assert tl.switch_case(index, {2: three, 0: one, 1: two}) == wanted
        assert tl.switch_case(index, {0: one, 1: two}, three) == (1, 2, 3)[index if index in (
            0, 1) else 2]
    assert tl.switch_case(9, [(4, two)]) == 2


@pytest.mark.parametrize("call, error, words", [
    (lambda: tl.switch_case(0, [(1, abs), (1, abs)]), ValueError, "two functions have the same"),
    (lambda: tl.scan(lambda c, x: c, tl.ones(1), tl.ones(2)), TypeError,
     r"f must return \(carry, y\), got Tensor"),
    (lambda: tl.scan(lambda c, x: (c, c, c), tl.ones(1), tl.ones(2)), TypeError,
     "got a tuple of 3"),
    (lambda: tl.scan(lambda c, x: (c, c), tl.ones(1), tl.ones(0)), ValueError,
     "scan: xs has no steps, so that the shapes of the ys are not known"),
    (lambda: tl.scan(lambda c, x: (c, {"b" if x > 0 else "a": c}), tl.ones(1),
                     tl.tensor([0.0, 1.0])), BranchMismatch, "in one step and .* in another"),
])
def test_control_flow_that_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("call, words", [
    (lambda x: tl.while_loop(lambda a: a.sum() < 3, lambda a: (a, a), (x,)),
     "while_loop: loop_vars are .*, but the body returns"),
    (lambda x: tl.scan(lambda c, t: c, x, x), r"scan: f must return \(carry, y\), got"),
    (lambda x: tl.scan(lambda c, t: ((c, c), c), x, x), "scan: init is .*, but the carry that f"),
])
def test_blocks_that_give_something_else_are_refused(call, words):
    with Program():
        x = program.data("x", (2,))
        with pytest.raises(BranchMismatch, match=words):
            call(x)


def test_loops_over_sequences_of_other_lengths():
    with Program() as p:
        x, y = program.data("x", (None,)), program.data("y", (None,))
        last, ys = tl.scan(lambda c, t: (c + t[0] * t[1], c * 1), tl.tensor(0.0), (x, y))
    p.outputs = (last, ys)
    feed = {"x": tl.tensor([1.0, 2.0]), "y": tl.tensor([3.0, 4.0])}
    assert [v.tolist() for v in p.run(feed, [last, ys])] == [11, [0, 3]]
    with pytest.raises(RuntimeError, match="scan: x has 2 steps, y 3"):
        p.run({**feed, "y": tl.ones(3)}, [last])
    last_, none = p.run({"x": tl.ones(0), "y": tl.ones(0)}, [last, ys])
    assert last_ == 0 and none.shape == (0,) and none.dtype == tl.float32


# ---- what is traced ------------------------------------------------------------------------------

def test_one_tensor_given_twice_is_two_inputs():
    x = tl.tensor([1.0, 2.0])
    p = program.trace(lambda a, b: a * 10 + b, x, x)
    assert len(p.inputs) == 2
    assert p(tl.tensor([1.0, 1.0]), tl.tensor([5.0, 6.0])).tolist() == [15, 16]


class Nameless:
    __signature__ = 3

    def __call__(self, x):
        return x * 2


def test_a_function_without_a_signature_has_inputs_too():
    for function in (Nameless(), functools.partial(tl.mul, other=2.0)):
        p = program.trace(function, tl.ones(2))
        assert p(tl.tensor([1.0, 3.0])).tolist() == [2, 6] and len(p.inputs) == 1


def test_tracing_inside_of_tracing_is_refused():
    with pytest.raises(RuntimeError, match="program: a function is being traced already"):
        program.trace(lambda x: program.trace(lambda y: y * 2, x)(x), tl.ones(2))
    assert program.trace(lambda x: x * 2, tl.ones(2))(tl.ones(2)).tolist() == [2, 2]


def test_a_write_into_what_has_a_gradient_is_refused_where_it_is_not_seen():
    w = tl.ones(2, requires_grad=True)

    def function(x):
        y = x * w
        with tl.no_grad():
            y.add_(1)
        return y

    with pytest.raises(CaptureError, match="add_: a write under no_grad into what has a gradient"):
        program.trace(function, tl.ones(2))


def test_errors_say_which_call_raised():
    p = program.trace(lambda x: tl.linalg.cholesky(x) * 2, tl.eye(2))
    with pytest.raises(Exception) as raised:
        p(-tl.eye(2))
    (note,) = raised.value.__notes__
    assert note.startswith("program: raised in ") and "cholesky" in note
    assert "test_refused_programs.py:" in note


def test_numbers_are_no_paths_and_values_go_by_name():
    made = program.trace(lambda x: x * 2, tl.ones(2))
    for i in (0, 1, True):
        with pytest.raises(TypeError):                 # Python's open() takes these for files
            made.save(i)
        with pytest.raises(TypeError):
            program.load(i)
    for values in (3, 2.5, [tl.ones(2)], "x"):
        with pytest.raises(TypeError, match="parse: values"):
            program.parse(str(made), values)
