"""Texts and files of programs, the verifier, pictures; what is hostile executes nothing."""

import random
import struct

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program import Program


def looped(x, y):
    r = tl.while_loop(lambda n, a: n < 4, lambda n, a: (n + 1, tl.cond(
        a.sum() > 0.5, lambda: (a * y).sin() * a, lambda: a.exp() * y)), (tl.tensor(0), x))[1]
    return [r[1:].sum(), {"k, 'it": r.max(0).values, "n": None}]


def made():
    p = program.trace(looped, tl.tensor([0.3, -0.7, 1.1]), tl.tensor([1.0, 2.0, 0.5]))
    program.gradients(p.outputs[0], p.inputs)
    return p


def bits(x):
    return x.detach().contiguous().numpy().tobytes()


INPUTS = tl.tensor([0.2, -0.5, 0.9]), tl.tensor([1.5, 0.4, 0.8])


def test_a_text_is_read_as_the_program_it_describes():
    p = made()
    text = str(p)
    assert all(len(line) <= 120 for line in text.splitlines())
    q = program.parse(text, p.values())
    assert str(q) == text
    first, second = p(*INPUTS), q(*INPUTS)
    assert bits(first[0]) == bits(second[0]) and bits(first[1]["k, 'it"]) == bits(
        second[1]["k, 'it"])
    assert [block.forward_index for block in q.blocks] == [
        block.forward_index for block in p.blocks]


def test_a_file_has_the_values_too(tmp_path):
    weights = {name: tl.randn(30, 30).to(getattr(tl, name)) for name in (
        "float16", "bfloat16", "float32", "float64", "int64", "uint8")}
    weights["bool"] = weights["float32"] > 0

    def function(x):
        return sum((w.float() * x).sum() for w in weights.values())

    p = program.trace(function, tl.ones(30))
    path = tmp_path / "p.safetensors"
    p.save(path)
    q = program.load(path)
    assert str(q) == str(p)
    assert {name: bits(x.float()) for name, x in q.values().items()} == {
        name: bits(x.float()) for name, x in p.values().items()}
    assert bits(q(tl.ones(30))) == bits(p(tl.ones(30)))


def test_what_has_no_text_is_not_saved(tmp_path):
    with Program() as p:
        w = program.parameter("w", [1.0])
        loss = (w * w).sum()
    program.minimize(loss, tl.optim.SGD(p.parameters(), lr=0.1))
    with pytest.raises(program.ProgramError, match="save"):
        p.save(tmp_path / "p")


def test_complex_numbers_and_what_is_named_like_them():
    def function(x):
        return tl.complex(x, x) * 2.0 * (complex(-0.0, float("nan"))), x[1:] * 2

    p = program.trace(function, tl.ones(2))
    q = program.parse(str(p))
    assert str(q) == str(p) and "complex(-0.0, nan)" in str(p)
    x = tl.tensor([1.0, -2.0])
    for found, wanted in zip(q(x), p(x)):
        assert found.numpy().tobytes() == wanted.numpy().tobytes()


GOOD = """program(x) -> y:
    input x: float32[2]
    parameter w: float32[2] = [1.0, 2.0]

    y: float32[2] = mul(x, w)  # here.py:7
"""


def test_a_text_by_hand():
    p = program.parse(GOOD)
    assert (p(tl.ones(2)) == tl.tensor([1.0, 2.0])).all()
    assert p.block.ops[0].line == "here.py:7"


@each("old, new, message", [
    ("mul(x, w)", "mull(x, w)", "no operation.*mull.*here.py:7"),
    ("mul(x, w)", "mul(y, w)", "y is not defined"),
    ("mul(x, w)", "mul(x)", "mul.*here.py:7"),
    ("mul(x, w)", "mul(x, w, 3)", "takes 2 inputs"),
    ("mul(x, w)", "mul(x, w, fast=True)", "no attribute 'fast'"),
    ("y: float32[2]", "y: float32[3]", r"gives y as float32\[2\], not as float32\[3\].*"),
    ("y: float32[2]", "y: int64[2]", "not as int64"),
    ("y: float32[2]", "y: float32[99999999999999999999]", "sizes"),
    ("y: float32[2]", "x: float32[2]", "defined twice"),
    ("y: float32[2]", "y: float32[2], z: float32[2]", "1 results"),
    ("-> y", "-> z", "z is not defined"),
    ("input x: float32[2]", "input x: float32[3]", "mul"),
    ("[1.0, 2.0]", "[1.0, 2.0, 3.0]", "has a value"),
    ("[1.0, 2.0]", "__import__('os')", "defined|read"),
    ("mul(x, w)", "mul(x, w", "ends too early|expected"),
    ("mul(x, w)", "sum(x, dim=" + "(" * 500 + ")" * 500 + ")", "deep"),
    ("program(x)", "programme(x)", "program"),
    ("program(x)", "program()", "arguments"),
])
def test_what_is_not_well_formed_is_a_clear_error(old, new, message):
    assert old in GOOD
    with pytest.raises(program.ProgramError, match=f"(?s){message}"):
        p = program.parse(GOOD.replace(old, new))
        p(tl.ones(2))


def test_the_verifier_names_operation_variable_and_line():
    p = program.trace(lambda x: (x * 2).tanh(), tl.ones(3))
    p.block.ops.reverse()
    with pytest.raises(program.ProgramError, match=r"tanh \(test_text.py:\d+\): reads mul"):
        program.verify(p)
    p = program.trace(lambda x: (x * 2).tanh(), tl.ones(3))
    p.block.ops.append(p.block.ops[0])
    with pytest.raises(program.ProgramError, match="mul.*is written elsewhere"):
        program.verify(p)
    p = program.trace(lambda x: (x * 2).tanh(), tl.ones(3))
    p.block.ops[1].outputs[0].shape = (4,)
    with pytest.raises(program.ProgramError, match=r"gives tanh as float32\[3\], not as"):
        p(tl.ones(3))


@each("seed", range(12))
def test_texts_with_faults_never_crash(seed):
    """Nothing but a ProgramError, or a program that the verifier passes or refuses."""
    rng = random.Random(seed)
    text, values = str(made()), made().values()
    pieces = ["(", ")", ",", ":", "_", "->", "None", "-1", "x", "@", "[", "]", "=", "sum", "{", "'",
              "cond", "slice(", "9" * 30, "nan", "\n", "    ", "kept=7", "scan", "\0", "float32"]
    for _ in range(25):
        broken = text
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(broken))
            broken = rng.choice([
                broken[:place] + rng.choice(pieces) + broken[place:],
                broken[:place] + broken[place + rng.randint(1, 12):],
                broken[:place] + broken[rng.randrange(len(broken)):]])
        try:
            program.verify(program.parse(broken, values))
        except program.ProgramError:
            pass


@pytest.mark.parametrize("data", [
    b"", b"1234", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 2) + b"{}",
    struct.pack("<Q", 4) + b"null", struct.pack("<Q", 3) + b"{]}",
    b"\x35\0\0\0\0\0\0\0" + b'{"__metadata__": {"program": 3}, "w": {"dtype": "F32"}}'])
def test_files_with_faults(tmp_path, data):
    path = tmp_path / "p"
    path.write_bytes(data)
    with pytest.raises(program.ProgramError, match="load"):
        program.load(path)


def test_a_picture_has_blocks_in_boxes(tmp_path):
    path = tmp_path / "p.dot"
    p = made()
    assert p.draw(path) == str(path)
    text = path.read_text()
    assert text.count("subgraph") == len(p.blocks) - 1 and "backward of block" in text
    assert "while_loop" in text and "input x" in text and text.count("{") == text.count("}")


def test_clones_are_apart():
    p = made()
    q = p.clone()
    text = str(p)
    assert str(q) == text
    q.block.ops.pop()
    assert str(p) == text != str(q)


KEYS = ["it's", 'a"b', "n\nl", "\\", "\x00", "\u2028", "'\"", "", "x # y", "]", 3, -1.5, True, None]


def test_containers_and_keys_of_all_kinds_are_read_again(tmp_path):
    p = program.trace(lambda d: ({"b": [d[KEYS[0]], ({"c": d["\x00"] * 2},)]}, [], {}, d),
                      dict.fromkeys(KEYS, tl.ones(2)))
    assert str(program.parse(str(p), p.values())) == str(p)
    p.save(tmp_path / "p.safetensors")
    found = program.load(tmp_path / "p.safetensors")({key: tl.ones(2) * i for i, key in enumerate(
        KEYS)})
    assert found[0]["b"][1][0]["c"].tolist() == [8, 8] and list(found[3]) == KEYS


def test_a_key_that_no_text_says_is_not_saved(tmp_path):
    with pytest.raises(program.ProgramError, match="has what no text says"):
        program.trace(lambda x: {(1, 2): x * 2}, tl.ones(2)).save(tmp_path / "p.safetensors")


@pytest.mark.parametrize("text", ["{[1]: 2}", "'\\x0'", "{x: 1}"])
def test_a_key_or_a_string_that_is_none_is_refused(text):
    with pytest.raises(program.ProgramError, match="line 1: "):
        program.parse(f"program() -> {text}:\n")


def test_bools_of_other_bytes_are_saved_as_true(tmp_path):
    flags = tl.tensor([0, 2, 255], dtype=tl.uint8).view(tl.bool)
    program.trace(lambda x: x.where(flags, 0), tl.ones(3)).save(tmp_path / "p.safetensors")
    assert program.load(tmp_path / "p.safetensors")(tl.ones(3)).tolist() == [0, 1, 1]


def test_a_named_tuple_is_named_where_a_plain_one_was_traced():
    pair = tl.ones(2).max(0)
    p = program.trace(lambda pair: pair[0] * 2, tuple(pair))
    with pytest.raises(TypeError, match=r"structure \(\(\*, \*\),\), got \(max\(\*, \*\),\)"):
        p(pair)
