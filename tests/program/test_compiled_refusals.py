"""What compiled functions can't capture: eager results and a warning, or an error."""

import contextlib
import warnings
from functools import cache

import pytest

import tensorlib as tl
from tensorlib import ops, program
from tensorlib.program import CaptureError, Program
from tensorlib.program.run import schedule


def leaf(*values):
    return tl.tensor(list(values), requires_grad=True)


def with_a_set_left_out(w):
    def step(x):
        y = x * w
        (y.sum() + w.sum()).backward(no_grad_set=[y])
        return x * 2
    return step


def with_a_closure(w):
    optimizer = tl.optim.SGD([w], lr=0.5)

    def step(x):
        def closure():
            optimizer.zero_grad()
            loss = (x * w).sum()
            loss.backward()
            return loss
        optimizer.step(closure)
        return x * 2
    return step


@pytest.mark.parametrize("make, words", [
    (with_a_set_left_out, "no_grad_set can't be captured, test_compiled_refusals.py"),
    (with_a_closure, "step: a closure can't be captured, test_compiled_refusals.py"),
])
def test_what_is_not_captured_runs_eagerly(make, words):
    w, twin = leaf(1.0, 2.0), leaf(1.0, 2.0)
    step, eager = tl.compile(make(w)), make(twin)
    for x in (tl.tensor([3.0, 4.0]), tl.tensor([5.0, 6.0])):
        with pytest.warns(RuntimeWarning, match=f"compile: .*step runs in parts: .*{words}") if (
                x[0] == 3) else contextlib.nullcontext():
            found = step(x)
        assert found.tolist() == eager(x).tolist()
        assert w.tolist() == twin.tolist() and w.grad.tolist() == twin.grad.tolist()
    with pytest.raises(CaptureError, match=words):
        tl.compile(make(leaf(1.0, 2.0)), fullgraph=True)(tl.ones(2))


@pytest.mark.parametrize("f", [
    lambda x: tl.nn.functional.mse_loss(x, tl.ones(1, 2)), tl.nn.functional.softmax])
def test_what_a_call_warns_of_each_call_warns_of(f):
    compiled, x = tl.compile(f), tl.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert tl.equal(compiled(x), f(x))
    told = [str(w.message).startswith("compile: ") for w in caught]
    assert len(told) == 7 and sum(told) == 1
    with warnings.catch_warnings(), pytest.raises(UserWarning):
        warnings.simplefilter("error")
        compiled(x)


def appends(x, told):
    told.append(len(told))
    return x * 2


def test_arguments_that_the_function_changes():
    with pytest.warns(RuntimeWarning, match="appends runs in parts: it changes its arguments in"):
        assert tl.compile(appends)(tl.ones(2), [1]).tolist() == [2, 2]
    with pytest.raises(CaptureError, match="compile: appends: it changes its arguments in Python"):
        tl.compile(appends, fullgraph=True)(tl.ones(2), [1])


class Never:
    """A number that is never the one that it was."""
    factor = 2.0

    def __eq__(self, other):
        return False

    __hash__ = None


def test_an_argument_that_differs_from_itself_runs_eagerly():
    @tl.compile
    def f(x, scale):
        return x * getattr(scale, "factor", scale)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert f(tl.ones(2), float("nan")).isnan().all()
            assert f(tl.ones(2), Never()).tolist() == [2, 2]
        assert f(tl.ones(2), 3.0).tolist() == [3, 3]
    assert repr(f) == f"compile({f._f!r})" and "test_compiled_refusals" in f._f.__module__


def test_a_value_changed_after_the_call_has_a_second_derivative_if_no_gradient_needs_it():
    x = leaf(1.0, 2.0)
    shift = tl.tensor([1.0, 1.0])
    f = tl.compile(lambda x, y: (x * x * y).sum())
    loss = f(x, shift)
    shift.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        tl.autograd.grad(loss, x, create_graph=True)
    function, found = lambda x: x.exp().tanh().sum(), []
    compiled = tl.compile(function)
    compiled(x * 1)
    for f in (function, compiled):                # the replay computes from `moved` again
        moved = x * 1
        loss = f(moved)
        with tl.no_grad():
            moved.add_(1)
        first, = tl.autograd.grad(loss, x, create_graph=True)
        found.append([first.tolist(), tl.autograd.grad(first.sum(), x)[0].tolist()])
    assert found[0] == found[1]


def test_lines_of_many_fetches_are_kept_within_a_bound():
    with Program() as p:
        found = [program.data("x", (2,))]
        for _ in range(schedule.MOST_KEPT + 2):
            found.append(found[-1] + 1)
    for _ in range(2):
        for steps, x in enumerate(found):
            assert p.run({"x": tl.zeros(2)}, x).tolist() == [steps, steps]
        assert 0 < len(p._lines) <= schedule.MOST_KEPT


def test_a_pruned_backward_part_forgets_the_loop_it_went_with():
    p = program.trace(lambda x: tl.while_loop(lambda a: a.sum() < 9, lambda a: a * a, (x,))[0],
                      tl.full((2,), 2.0))
    (g,) = program.gradients(p.outputs, p.inputs)
    both, forward = p.prune([p.outputs, g]), p.prune(p.outputs)
    assert any(block.forward is not None for block in both.blocks)
    assert all(block.forward is None for block in forward.blocks)
    x = tl.full((2,), 2.0)
    assert forward(x).tolist() == p.run({p.inputs[0].name: x}, p.outputs).tolist() == [16, 16]
    assert p.run({p.inputs[0].name: x}, g).tolist() == [32, 32]


KEPT = [1.0], {"a": 1}


@pytest.mark.parametrize("f", [lambda x: KEPT[0], lambda x: (x, KEPT[1]), lambda x: {"a": KEPT[0]}])
def test_a_container_that_was_there_is_returned_itself(f):
    f = tl.compile(f)
    with pytest.warns(RuntimeWarning, match="runs eagerly: it returns a .* that was there before"):
        f(tl.ones(2))
    found = f(tl.ones(2))
    inside = [found, *(found.values() if isinstance(found, dict) else found)]
    assert any(x is y for x in inside for y in KEPT)


def test_draws_for_each_example_of_a_batch():
    def f(x):
        return tl.vmap(lambda row: row + tl.rand(3), randomness="different")(x)

    compiled = tl.compile(f)
    with pytest.warns(RuntimeWarning, match="each example of a batch"):
        found = []
        for g in (f, compiled):
            tl.manual_seed(1)
            found.append([g(tl.ones(2, 3)).tolist() for _ in range(3)])
    assert found[0] == found[1]
    with pytest.raises(tl.program.CaptureError, match="each example of a batch"):
        tl.program.trace(f, tl.ones(2, 3))


@pytest.mark.parametrize("where", ["leaf", "leaf argument", "argument", "outside"])
@pytest.mark.filterwarnings("ignore:compile")
def test_hooks_on_what_a_gradient_is_asked_of(where):
    """Be they there before the capture, or put on later."""
    def seen(wrap, first):
        w = leaf(1.0, 2.0)
        outside = w if where == "leaf" else w * 2

        def f(x):
            y = outside if where in ("leaf", "outside") else x
            return tl.autograd.grad((y * y).exp().sum(), y)[0]

        compiled, found = wrap(f), []
        for k in range(6):
            x = leaf(1.0, 2.0)
            x = x if where == "leaf argument" else x * 2
            handle = (outside if where in ("leaf", "outside") else x).register_hook(
                lambda g: g * 3) if k // 2 == 1 - first else None
            found.append(compiled(x).tolist())
            if handle is not None:
                handle.remove()
        return found

    for first in (0, 1):
        assert seen(tl.compile, first) == seen(lambda f: f, first)


class Doubled(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Incremented(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize("function", [Doubled, Incremented])
def test_a_function_of_inference_tensors_runs_eagerly(function):
    with tl.inference_mode(), pytest.warns(RuntimeWarning, match="runs eagerly"):
        f, x = tl.compile(lambda x: function.apply(x) + 1), tl.ones(2)
        assert [f(x).tolist() for _ in range(3)] == [
            (function.apply(y) + 1).tolist() for y in [tl.ones(2)] * 3]


@cache                           # not on import: the tests of all operations are made of those then
def composed():
    return ops.compose("halved_in_refusals", lambda x: x.tanh() / 2)


@pytest.mark.parametrize("f", [
    lambda x: Doubled.apply(x * 2) + float(x.sum()),
    lambda x: Doubled.apply(x * 2 + float(x.sum())),
    lambda x: Doubled.apply(x + tl.from_numpy(x.numpy().copy())),
    lambda x: Incremented.apply(x.clone()) + 1,
    lambda x: composed()(x * 2 + float(x.sum())),
    lambda x: composed()(x + tl.from_numpy(x.numpy().copy())),
])
def test_functions_and_composed_operations_run_eagerly_where_nothing_is_captured(f):
    composed()
    compiled = tl.compile(f)
    with pytest.warns(RuntimeWarning, match="runs eagerly|runs in parts"):
        first = compiled(tl.ones(2))
    assert first.tolist() == compiled(tl.ones(2)).tolist() == f(tl.ones(2)).tolist()
    with pytest.raises(CaptureError):
        tl.compile(f, fullgraph=True)(tl.ones(2))
