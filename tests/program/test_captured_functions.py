"""An `autograd.Function` in a captured function runs as in the eager call, between replays.

So its gradient, which is asked for after the call, reads what is there then, and each run of its
code is one of the eager call.
"""

import gc
import warnings
import weakref

import numpy as np
import pytest
from cases import each
from beside_eager import agrees, raised, seen

import tensorlib as tl
from tensorlib import Tensor, library
from tensorlib.program import CaptureError

SCALE = {"forward": 2.0, "backward": 3.0}


class Scaled(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.scale = SCALE["forward"]
        return x * ctx.scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale * SCALE["backward"]


class Exp(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Keeper(tl.autograd.Function):
    """Keeps what it is given, and gives, without versions."""

    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.y = x, x * 3
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.x.sin() * ctx.y


class Both(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.set_materialize_grads(False)
        return x * y, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        by_x = [each for each in (None if g is None else g * y, h) if each is not None]
        return sum(by_x), None if g is None else g * x


class Once(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @tl.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class Reversed(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


class ByElements(tl.autograd.Function):
    """What it gives, and of which shape, depends on elements."""

    @staticmethod
    def forward(ctx, x):
        ctx.total = x.sum().item()
        ctx.save_for_backward(x > 0)
        return x[x > 0] * ctx.total

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        full = tl.zeros(mask.shape)
        full[mask] = g * ctx.total
        return full


def leaf(*values):
    return tl.tensor([*map(float, values)], requires_grad=True)


def dropped(x, w):
    first = tl.nn.functional.dropout(Exp.apply(tl.nn.functional.dropout(x * w, 0.4)), 0.3)
    return Once.apply(first) + tl.rand(3)


WHOLE = {
    "one": lambda x, w: Exp.apply(x * w).sin() + w,
    "of a leaf": lambda x, w: Exp.apply(w) * x,
    "several": lambda x, w: Once.apply(Exp.apply(x * w).cos() + w) * w,
    "several results": lambda x, w: (lambda a, b: (a * b, a))(*Both.apply(x * w, w)),
    "a result that is not used": lambda x, w: Both.apply(x * w, w)[1] * x,
    "without a gradient": lambda x, w: Exp.apply(x * w).detach() + Exp.apply(x) * w,
    "views": lambda x, w: (Reversed.apply(x * w)[1:], Reversed.apply(w) * x),
    "overlapping arguments": lambda x, w: (lambda a: Both.apply(a[:2], a[1:])[0])(x * w),
    "by elements": lambda x, w: ByElements.apply(x * w + 3).sin(),
    "what it is given is returned": lambda x, w: (lambda a: (a, Keeper.apply(a)))(x * w),
    "what is no other tensor": lambda x, w: Exp.apply(x * w).to(tl.float32).contiguous() * w,
    "drawn numbers": dropped,
}


@each("name", WHOLE)
def test_a_function_is_captured_whole(name):
    def build():
        w = leaf(0.5, -0.25, 1.5)
        return WHOLE[name], [(tl.tensor([k, 1.0, -1.0]), w) for k in (1.0, 2.0, 0.5, -20.0)]

    assert not agrees(build)
    tl.compile(WHOLE[name], fullgraph=True)(tl.ones(3), leaf(1, 2, 3))


@pytest.mark.parametrize("write", [
    lambda x: x.add_(1), lambda x: x[1:].mul_(2), lambda x: x.detach().add_(1)])
@pytest.mark.parametrize("what", ["given", "made"])
def test_a_function_whose_values_are_written_runs_in_parts(write, what):
    def function(x, w):
        given = x * w
        made = Keeper.apply(given)
        write(given if what == "given" else made)
        return made * 2 + given

    assert agrees(lambda: (function, [(tl.tensor([k, 1.0]), leaf(1, 2)) for k in (1.0, 2.0, 3.0)]))


def sweeps(wrap, function, sweep):
    """What sweeps give after calls of a function."""
    found, f = [], wrap(function)
    for k in range(4):
        x, w = leaf(k, 1, -1), leaf(0.5, k, 2)
        results = f(x, w)
        found.append((raised(sweep, results, x, w)[1],
                      [None if y.grad is None else seen(y.grad) for y in (x, w)]))
    return found


def twice(results, x, w):
    sum(y.sum() for y in results).backward()
    sum(y.sum() for y in results).backward()


def retained(results, x, w):
    for _ in range(2):
        sum(y.sum() for y in results).backward(retain_graph=True)


def second(results, x, w):
    first = tl.autograd.grad(sum(y.sin().sum() for y in results), [x, w], create_graph=True)
    sum(y.sum() for y in first).backward()


def after_a_write(results, x, w):
    with tl.no_grad():
        results[0].mul_(2)
    results[1].sum().backward()


def with_hooks(results, x, w):
    for k, y in enumerate((*results, x, w)):
        y.register_hook(lambda g, k=k: g * (k + 2))
    (results[0] * results[1]).sum().backward()


@each("sweep", [twice, retained, second, after_a_write, with_hooks])
@each("function", [
    lambda x, w: (lambda a: (a, Exp.apply(a) * w))(x * w),
    lambda x, w: (lambda a: (Once.apply(a), Exp.apply(a + w)))(x.tanh() * w),
    lambda x, w: (lambda a: (a.sin(), Reversed.apply(a)))(x + w),
])
def test_sweeps_of_any_kind_follow(function, sweep):
    assert sweeps(tl.compile, function, sweep) == sweeps(lambda f: f, function, sweep)


def test_a_backward_reads_what_is_there_in_the_sweep(monkeypatch):
    f = tl.compile(lambda x: Scaled.apply(x * 2).sin(), fullgraph=True)
    for k in range(1, 5):
        x = tl.zeros(2, requires_grad=True)
        with monkeypatch.context() as patch:
            patch.setitem(SCALE, "forward", 2.0 + (k > 2))
            y = f(x)
        with monkeypatch.context() as patch:
            patch.setitem(SCALE, "forward", 50.0)
            patch.setitem(SCALE, "backward", float(k))
            y.sum().backward()
        assert x.grad.tolist() == [2 * k * (2 + (k > 2))] * 2


def test_the_graph_of_the_captured_call_is_let_go_of():
    f = tl.compile(lambda x: Exp.apply(x * 2).sin(), fullgraph=True)
    for _ in range(2):
        x = leaf(1, 2)
        y = f(x)
        y.sum().backward()
        alive = weakref.ref(x), weakref.ref(y)
        del x, y
        gc.collect()
        assert [ref() for ref in alive] == [None, None]


@pytest.mark.parametrize("result", [None, 5])
def test_a_function_that_gives_something_else_runs_eagerly(result):
    class Beside(Exp):
        forward = staticmethod(lambda ctx, x: (Exp.forward(ctx, x), result))
        backward = staticmethod(lambda ctx, g, _: Exp.backward(ctx, g))

    def function(x, w):
        y, other = Beside.apply(x * w)
        return y * (other or 1) + w

    [warned] = agrees(lambda: (function, [(tl.ones(2) * k, leaf(1, 2)) for k in (1.0, 2.0)]))
    assert "a result that is no tensor" in warned


@pytest.mark.parametrize("rule", ["generate_vmap_rule", "vmap"])
def test_a_backward_for_a_batch_does_so_too(rule, monkeypatch):
    class OfEach(Scaled):
        forward = staticmethod(lambda x: x * 2)
        setup_context = staticmethod(lambda ctx, inputs, output: setattr(ctx, "scale", 2.0))
        generate_vmap_rule = rule != "vmap"

    if rule == "vmap":
        OfEach.vmap = staticmethod(lambda info, dims, x: (OfEach.apply(x), 0))
    f = tl.compile(lambda x: tl.vmap(OfEach.apply)(x) * 3, fullgraph=True)
    for k in range(4):
        x = tl.ones(2, 2, requires_grad=True)
        y = f(x)
        with monkeypatch.context() as patch:
            patch.setitem(SCALE, "backward", float(k))
            y.sum().backward()
        assert x.grad.tolist() == [[6 * k] * 2] * 2


class Asks(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * (2 if ctx.needs_input_grad == (True, False) else 3) + y.requires_grad

    @staticmethod
    def backward(ctx, g):
        return g * 7, None


@pytest.mark.parametrize("swept", [False, True])
def test_a_forward_is_told_what_requires_a_gradient(swept):
    def results(wrap):
        w = leaf(1, 2)

        def function(x):
            w.grad = None
            y = Asks.apply(w * x, x)
            if swept:
                y.sum().backward()
            return y.detach()

        f = wrap(function)
        return [(f(tl.ones(2) * k).tolist(), None if w.grad is None else w.grad.tolist())
                for k in range(3)]

    assert results(tl.compile) == results(lambda f: f)


# ---- operations of the user's

def sine(name, gradient=True):
    @library.custom_op(f"captured::{name}", mutates_args=())
    def op(x: Tensor, k: float = 1.0) -> Tensor:
        return tl.from_numpy(np.sin(x.numpy() * np.float32(k)))

    def keep(ctx, inputs, output):
        ctx.x, ctx.k = inputs

    if gradient:
        op.register_autograd(lambda ctx, g: (g * (ctx.x * ctx.k).cos() * ctx.k, None),
                             setup_context=keep)
    return op


@pytest.mark.parametrize("gradient", [False, True])
def test_an_operation_of_the_users_is_captured_with_what_is_around_it(gradient):
    op = sine(f"sine_{gradient}", gradient)
    f = tl.compile(lambda x, w: op(x * w, 2.0).exp() + w, fullgraph=True)
    for k in range(4):
        x, w = tl.tensor([k, 1.0]), leaf(0.5, 2)
        y, wanted = f(x, w), op(x * w, 2.0).exp() + w
        assert seen(y) == seen(wanted)
        found = [raised(lambda z=z: tl.autograd.grad(z.sum(), w)[0].tolist()) for z in (y, wanted)]
        assert found[0] == found[1]
        with tl.no_grad():
            assert seen(f(x, w)) == seen(wanted)


@pytest.mark.parametrize("change", [
    lambda op: op.register_kernel("cpu", lambda x, k: x * 5),
    lambda op: op.register_autograd(lambda ctx, g: (g * 5, None)),
    lambda op: library.impl(op._name, "Autograd", lambda x, k=1.0: x * 5),
])
def test_what_is_registered_later_counts(change):
    op = sine(f"changed_{id(change)}")
    f = tl.compile(lambda x: op(x * 2) + 1)
    for k in range(6):
        if k == 3:
            change(op)
        x, other = leaf(k, 1), leaf(k, 1)
        y, wanted = f(x), op(other * 2) + 1
        y.sum().backward()
        wanted.sum().backward()
        assert (seen(y), seen(x.grad)) == (seen(wanted), seen(other.grad))


def test_an_operation_that_writes_is_not_captured():
    @library.custom_op("captured::writes", mutates_args=["x"])
    def writes(x: Tensor) -> None:
        x.mul_(2)

    def function(x):
        y = x + 1
        writes(y)
        return y

    with pytest.raises(CaptureError, match="captured::writes writes to its arguments"):
        tl.compile(function, fullgraph=True)(tl.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = tl.compile(function)
        assert [f(tl.ones(2) * k).tolist() for k in range(3)] == [[2, 2], [4, 4], [6, 6]]
