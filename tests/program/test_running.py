"""Running a program: which values it keeps and for how long, and that changes of calls are seen."""

import gc

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program

SIZE = 1 << 16                # elements of float32, in each value of a chain


def chain(length):
    """A program of operations in a row, and its variables in order."""
    with program.Program() as p:
        found = [program.data("x", (SIZE,))]
        for i in range(length):
            found.append(found[-1].tanh() if i % 2 else found[-1] * 1.5)
    return p, found


def peak(run):
    """The most bytes that were in use during a second run beyond those before it."""
    run()
    gc.collect()                # what errors of other tests hold is not freed in between
    tl.memory.reset_peak()
    before = tl.memory.stats()["in_use"]
    kept = run()
    most = tl.memory.stats()["peak"] - before
    del kept
    return most


def test_values_are_let_go_of_after_they_were_read():
    p, found = chain(40)
    x = tl.randn(SIZE)
    assert peak(lambda: p.run({"x": x}, found[-1])) <= 3 * x.nbytes


def test_what_is_fetched_is_kept():
    p, found = chain(10)
    x = tl.randn(SIZE)
    for fetch in (found, found[::-1], found[3:5], found[:1], [found[2], found[2]]):
        made = p.run({"x": x}, fetch)
        expected = {found[0]: x}
        for i, (a, b) in enumerate(zip(found, found[1:])):
            expected[b] = expected[a].tanh() if i % 2 else expected[a] * 1.5
        assert all(tl.equal(y, expected[v]) for v, y in zip(fetch, made))
    assert x.numel() == SIZE


def stepping(count):
    """A program of a loop, with a gradient if one is asked for."""
    with program.Program() as p:
        x = program.data("x", (SIZE,))
        x.stop_gradient = False
        y = tl.while_loop(lambda i, y: i < count, lambda i, y: (i + 1, (y * 0.9).sin()),
                          (tl.tensor(0), x))[1].sum()
    return p, x, y


def test_a_loop_runs_in_flat_memory_without_its_gradient():
    x = tl.randn(SIZE)
    few, many = (stepping(count) for count in (5, 50))
    most = [peak(lambda p=p, y=y: p.run({"x": x}, y)) for p, _, y in (few, many)]
    assert most[0] == most[1] <= 4 * x.nbytes


def test_the_gradient_of_a_loop_keeps_a_value_for_each_step():
    x = tl.randn(SIZE)
    most = []
    for count in (10, 20):
        p, v, y = stepping(count)
        (g,) = program.gradients(y, v)
        most.append(peak(lambda p=p, g=g: p.run({"x": x}, g)))
    assert most[1] - most[0] >= 10 * x.nbytes


@pytest.mark.parametrize("change", [
    lambda call: call.inputs.__setitem__("other", 3.0),
    lambda call: setattr(call, "inputs", {**call.inputs, "other": 3.0}),
    lambda call: setattr(call, "type", "add"),
])
def test_a_call_that_is_changed_runs_as_it_is_now(change):
    with program.Program() as p:
        x = program.data("x", ())
        a = x * 2
        b = a + x
    assert p.run({"x": 5.0}, b).item() == 15
    change(p.block.ops[0])
    expected = 12 if p.block.ops[0].type == "add" else 20
    assert p.run({"x": 5.0}, b).item() == expected


def test_a_value_is_kept_for_a_call_that_comes_to_read_it():
    with program.Program() as p:
        x = program.data("x", ())
        a = x * 2
        b = a + 1
        c = b * b
    assert p.run({"x": 1.0}, c).item() == 9
    p.block.ops[-1].inputs["other"] = a
    assert p.run({"x": 1.0}, c).item() == 6


def test_values_in_branches_and_loops_can_be_fetched():
    with program.Program() as p:
        x = program.data("x", ())
        y = tl.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2 + 1),
                          (tl.tensor(0), x))[1]
    body = p.block.ops[-1].attributes["body_block"]
    doubled = body.ops[1].outputs[0]
    assert doubled.name == "mul"
    found = p.run({"x": 1.0}, [y, doubled])
    assert [v.item() for v in found] == [15, 14]


def test_an_error_names_the_call_and_what_has_no_value():
    with program.Program() as p:
        x = program.data("x", (2,))
        z = x.sum()
        tl.cond(z > 0, lambda: x * 2, lambda: x * 3)
    inner = p.block.ops[-1].attributes["false_block"].ops[0].outputs[0]
    with pytest.raises(RuntimeError, match="has no value, since what writes it has not run"):
        p.run({"x": [1.0, 2.0]}, inner)


def branch_in_loop(i, y):
    return i + 1, tl.cond(y.sum() > 0, lambda: (y * 0.9).sin(), lambda: y.exp() * 2)


def loop_in_branch(x):
    return tl.cond(x.sum() > 0, lambda: tl.while_loop(
        lambda i, y: i < 3, branch_in_loop, (tl.tensor(0), x))[1] * x, lambda: x)


def scanned(x):
    last, ys = tl.scan(lambda c, t: ((c * t).sin(), c * c * t), x.sum(), x)
    return last + ys


@pytest.mark.parametrize("f", [
    lambda x: tl.while_loop(lambda i, y: i < 3, branch_in_loop, (tl.tensor(0), x))[1],
    loop_in_branch, scanned])
def test_a_pruned_program_keeps_nothing_for_a_gradient_that_is_not_asked_for(f):
    x = tl.tensor([0.5, -0.25, 1.5])
    p = program.trace(f, x)
    before = str(p)
    (g,) = program.gradients(p.outputs, p.inputs)
    y, slope = p.run({"x": x}, [p.outputs, g])
    assert "STACK" in str(p) or "@OUT" in str(p)
    pruned = p.prune(p.outputs)
    assert str(pruned) == before
    assert tl.equal(pruned(x), y)
    both = p.prune((p.outputs, g))
    assert str(both).count("\n") == str(p).count("\n")
    assert all(map(tl.equal, both(x), (y, slope)))


def edited(change):
    """A program that has run, and was changed by a function of it."""
    p = program.trace(lambda x: ((x * W).tanh().sum(0), x.reshape(6)), tl.ones(2, 3))
    p(tl.ones(2, 3))
    change(p)
    return p


W = tl.ones(3, requires_grad=True)


@each("change, message", [
    (lambda p: setattr(p.block.ops[0], "type", "nope"), "no operation 'nope'"),
    (lambda p: p.block.ops[3].attributes.update(shape=(3, 2)), "not as float32.6."),
    (lambda p: p.block.ops[3].attributes.update(nope=2), "has no attribute 'nope'"),
    (lambda p: p.block.ops[0].inputs.update(other=p.block.ops[1].outputs[0]), "not defined before"),
    (lambda p: p.block.ops[0].inputs.pop("other"), "is refused: mul: other must be a Tensor"),
    (lambda p: p.block.ops.reverse(), "not defined before"),
    (lambda p: setattr(p.persistables()[0], "value", tl.ones(4)), "but its value is float32.4."),
    (lambda p: setattr(p.persistables()[0], "value", W.double()), "but its value is float64.3."),
    (lambda p: setattr(p.persistables()[0], "value", [1.0]), "is a list, and no Tensor"),
    (lambda p: setattr(p.block.ops[1].outputs[0], "shape", (2,)), "not as float32.2."),
])
def test_a_program_that_was_changed_is_verified_before_it_runs_again(change, message):
    with pytest.raises(program.ProgramError, match=f"verify: .*{message}"):
        edited(change)(tl.ones(2, 3))


def test_a_change_that_holds_is_run():
    for change in (lambda p: p.block.ops[0].inputs.update(other=0.0),
                   lambda p: setattr(p.persistables()[0], "value", W.detach() * 0)):
        assert edited(change)(tl.ones(2, 3))[0].sum() == 0
