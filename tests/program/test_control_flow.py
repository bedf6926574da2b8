"""Branches and loops: eager, traced and by hand; values, and gradients to second order."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program import Program

X, Y = [0.3, -0.7, 1.1], [1.0, 2.0, 0.5]


def values():
    return [tl.tensor(v, dtype=tl.float64, requires_grad=True) for v in (X, Y)]


def zero():
    return tl.tensor(0)


def branch(x, y):
    return tl.cond(x.sum() > 0, lambda: (x * y).tanh() * x, lambda: (x / y).sin())


def other_branch(x, y):
    return tl.cond(x.sum() > 10, lambda a, b: (a * b).tanh() * a, lambda a, b: (a / b).sin(),
                   (x, y))


def loop(x, y):
    return tl.while_loop(lambda n, a: n < 4, lambda n, a: (n + 1, (a * y).sin() * a),
                         (zero(), x))[1]


def no_step(x, y):
    return tl.while_loop(lambda n, a: n < 0, lambda n, a: (n + 1, a * a * y), (zero(), x))[1] * y


def scanned(x, y):
    last, ys = tl.scan(lambda c, t: ((c * t).sin() + y.sum(), {"y": c * c * t}), x, y)
    return last.sum() + ys["y"]


def branch_in_loop(x, y):
    def body(n, a):
        return n + 1, tl.cond(a.sum() > 0.5, lambda: (a * y).sin() * a, lambda: a.exp() * y)
    return tl.while_loop(lambda n, a: n < 4, body, (zero(), x))[1]


def loop_in_loop(x, y):
    def body(n, a):
        inner = tl.while_loop(lambda k, b: k < n + 1, lambda k, b: (k + 1, (b * y).sin() + a * b),
                              (zero(), a))
        return n + 1, inner[1].tanh()
    return tl.while_loop(lambda n, a: n < 3, body, (zero(), x))[1]


def loop_in_branch(x, y):
    return tl.cond(y.sum() > 0, lambda: loop(x, y) * y, lambda: x)


def scan_in_scan(x, y):
    def step(c, t):
        return tl.scan(lambda d, u: (d * u.cos() + t, d), c, y)
    return tl.scan(step, x[0], x)[1].sum(0)


def overwritten(x, y):
    """The body overwrites a variable before it reads it."""
    return tl.while_loop(lambda n, a, b: n < 3, lambda n, a, b: (n + 1, a * b, y * 2),
                         (zero(), x, x * 5))[1]


def switched(x, y):
    number = (x.sum() * 3).floor().long()
    return tl.switch_case(number, [lambda: x, lambda: x * y, lambda: (x * y).sin()], lambda: x * 0)


def tree(x, y):
    """A decision tree of branches."""
    return tl.cond(x[0] > 0,
                   lambda: tl.cond(x[1] > 0, lambda: x * 2, lambda: tl.cond(
                       x[2] > 1, lambda: x * y * y, lambda: x.exp())),
                   lambda: -x)


def first_of(x, y):
    return tl.case([(x.sum() < 0, lambda: x), (y.sum() > 3, lambda: x * y),
                    (y.sum() > 2, lambda: y)])


PROGRAMS = [branch, other_branch, loop, no_step, scanned, branch_in_loop, loop_in_loop,
            loop_in_branch, scan_in_scan, overwritten, switched, tree, first_of]


@each("function", PROGRAMS)
def test_captured_control_flow_is_as_eager(function):
    x, y = values()
    made = program.trace(function, x, y)
    expected = function(x, y)
    assert (made(x, y) == expected).all()
    feed = {"x": x, "y": y}
    slopes = tl.autograd.grad(expected.sum(), [x, y], create_graph=True, materialize_grads=True)
    found = program.gradients(made.outputs, made.inputs)
    check(made, feed, found, slopes)
    total = sum((s * s).sum() for s in slopes) + 0 * (x.sum() + y.sum())
    curvatures = tl.autograd.grad(total, [x, y])
    with made:
        square = sum((g * g).sum() for g in found if g is not None)
    check(made, feed, program.gradients(square, made.inputs), curvatures)
    again = program.parse(str(made), made.values())
    assert str(again) == str(made)
    check(again, feed, [None if g is None else g.name for g in found], slopes)
    check(made.clone(), feed, [None if g is None else g.name for g in found], slopes)


def check(made, feed, found, expected):
    for g, x in zip(found, expected):
        value = tl.zeros_like(x) if g is None else made.run(feed, g)
        assert tl.allclose(value, x.detach(), rtol=1e-9, atol=1e-12)


@each("function", PROGRAMS)
def test_the_same_program_takes_the_other_way_too(function):
    x, y = values()
    made = program.trace(function, x, y)
    other = tl.tensor([-0.4, 0.2, 0.1], dtype=tl.float64)
    assert tl.allclose(made(other, y), function(other, y))


# ---- three programs in which an early implementation of loops was wrong --------------------------

def gradients_of(function, *inputs):
    made = program.trace(function, *inputs)
    return made.run({x.name: value for x, value in zip(made.inputs, inputs)},
                    program.gradients(made.outputs, made.inputs))


def test_a_variable_that_the_loop_reads_and_writes_has_its_gradient():
    (slope,) = gradients_of(lambda x: tl.while_loop(
        lambda n, a: n < 3, lambda n, a: (n + 1, a + 1), (zero(), x))[1], tl.tensor(2.0))
    assert slope == 1


def test_each_step_has_its_own_value():
    (slope,) = gradients_of(lambda x: tl.while_loop(
        lambda n, a: n < 3, lambda n, a: (n + 1, a * a), (zero(), x))[1], tl.tensor(1.5))
    assert slope == 8 * 1.5 ** 7


def test_what_a_loop_carries_is_replaced_and_not_accumulated():
    slopes = gradients_of(lambda x, w: tl.while_loop(
        lambda n, a: n < 4, lambda n, a: (n + 1, a * w), (zero(), x))[1],
        tl.tensor(3.0), tl.tensor(2.0))
    assert slopes == [tl.tensor(16.0), tl.tensor(96.0)]


# ---- what is refused -----------------------------------------------------------------------------

def test_branches_return_the_same_things():
    x = tl.ones(3)
    with pytest.raises(program.BranchMismatch, match=r"float32\[3\].*float32\[\]"):
        program.trace(lambda x: tl.cond(x.sum() > 0, lambda: x, lambda: x.sum()), x)
    with pytest.raises(program.BranchMismatch, match=r"\(\*, \*\).*\*"):
        program.trace(lambda x: tl.cond(x.sum() > 0, lambda: (x, x), lambda: x), x)
    with pytest.raises(program.BranchMismatch, match=r"int64.*float32|float32.*int64"):
        program.trace(lambda x: tl.cond(x.sum() > 0, lambda: x, lambda: x.long()), x)


def test_a_loop_keeps_shapes_in_programs_and_eagerly():
    x = tl.ones(3)

    def function(x):
        return tl.while_loop(lambda a: a.sum() < 9, lambda a: (tl.cat([a, a]),), (x,))

    with pytest.raises(program.BranchMismatch, match=r"\[3\].*\[6\]"):
        function(x)
    with pytest.raises(program.BranchMismatch, match=r"\[3\].*\[6\]"):
        program.trace(function, x)
    with pytest.raises(program.BranchMismatch, match="init"):
        tl.scan(lambda c, t: ((c, c), t), x, x)


@pytest.mark.parametrize("pred, error", [
    (lambda x: x > 0, RuntimeError), (lambda x: x.sum(), TypeError), (lambda x: 3, TypeError)])
def test_a_predicate_is_one_bool(pred, error):
    x = tl.ones(3)

    def function(x):
        return tl.cond(pred(x), lambda: x, lambda: x)

    for run in (function, lambda x: program.trace(function, x)):
        with pytest.raises(error, match="predicate"):
            run(x)


@pytest.mark.parametrize("function", [
    lambda x: 1 if x.sum() > 0 else 2, lambda x: x.sum().item(), lambda x: float(x.sum()),
    lambda x: x.numpy(), lambda x: x.tolist(), lambda x: [1, 2, 3, 4][x.sum().long()]])
def test_python_that_looks_at_elements_is_an_error_with_the_line(function):
    with pytest.raises(program.CaptureError, match=r"test_control_flow.py:\d+.*while_loop"):
        program.trace(function, tl.ones(3))
    with Program():
        x = program.data("x", (3,))
        with pytest.raises(program.CaptureError, match=r"test_control_flow.py:\d+.*while_loop"):
            function(x)


@pytest.mark.parametrize("call", [
    lambda: tl.cond(True, 1, lambda: 2), lambda: tl.while_loop(1, 2, (tl.ones(1),)),
    lambda: tl.while_loop(lambda x: x, lambda x: x, tl.ones(1)), lambda: tl.scan(3, 0, tl.ones(1))])
def test_wrong_kinds(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("call", [
    lambda: tl.scan(lambda c, x: (c, x), 0, 3), lambda: tl.case([]), lambda: tl.switch_case(0, []),
    lambda: tl.scan(lambda c, x: (c, x), 0, (tl.ones(2), tl.ones(3)))])
def test_wrong_values(call):
    with pytest.raises(ValueError):
        call()


def test_a_loop_without_gradient_runs_in_flat_memory():
    made = program.trace(lambda x: tl.while_loop(
        lambda n, a: n < 2000, lambda n, a: (n + 1, a * 0.5 + 1), (zero(), x))[1], tl.ones(3))
    tl.memory.empty_cache()
    before = tl.memory.stats()["in_use"] if "in_use" in tl.memory.stats() else None
    assert tl.allclose(made(tl.ones(3)), tl.full((3,), 2.0))
    if before is not None:
        assert tl.memory.stats()["in_use"] <= before + 4096
