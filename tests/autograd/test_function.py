"""`autograd.Function`: operations with a forward and a backward of one's own."""

import gc
import math
import weakref

import numpy as np
import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import Function
from tensorlib.autograd.function import once_differentiable
from tensorlib.testing import assert_close, gradcheck, gradgradcheck


def function(forward, backward=None, **members):
    """A Function of plain functions."""
    members["forward"] = forward
    if backward is not None:
        members["backward"] = backward
    return type("Mine", (Function,), {k: staticmethod(v) for k, v in members.items()})


class Exp(Function):
    """Keeps its output."""

    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out


class Scaled(Function):
    """Several inputs, of which one is not a tensor; the form with `setup_context`."""

    @staticmethod
    def forward(x, y, k):
        return x * y * k, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, None, y)

    @staticmethod
    def backward(ctx, g, h):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None
        return g * y * ctx.k + h, g * x * ctx.k + h, None


# ---- gradients -----------------------------------------------------------------------------------

def test_gradients_of_any_order():
    x, y = leaf(0.5, -2.0), leaf(1.5, 3.0)
    assert gradcheck(Exp.apply, x) and gradgradcheck(Exp.apply, x)
    assert gradcheck(lambda x, y: Scaled.apply(x, y, 3.0), (x, y))
    assert gradgradcheck(lambda x, y: Scaled.apply(x, y, 3.0), (x, y))


def test_the_third_derivative_of_exp_is_exp():
    x = leaf(0.3)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = tl.autograd.grad(y, x, tl.ones_like(y), create_graph=True)
    assert_close(y, x.exp())


def test_a_backward_put_in_place_of_another_is_used():
    class Doubled(Exp):
        pass

    Doubled.backward = staticmethod(lambda ctx, g: 2 * g)
    x = leaf(1.0)
    (found,) = tl.autograd.grad(Doubled.apply(x), x)
    assert found.tolist() == [2.0]


def test_the_node_is_named_after_the_function():
    y = Exp.apply(leaf(1.0))
    assert y.grad_fn.name() == "ExpBackward" and not y.is_leaf
    assert y.grad_fn.saved_bytes == 8
    named = type("two_words", (Exp,), {})
    assert named.apply(leaf(1.0)).grad_fn.name() == "two_wordsBackward"


def test_the_node_shows_what_is_on_ctx():
    def forward(ctx, x, times):
        ctx.save_for_backward(x, None, x * times)
        ctx.times = times
        return x * times

    x = leaf(1.0, 2.0)
    node = function(forward, lambda ctx, g: (g * ctx.times, None)).apply(x, 3.0).grad_fn
    kept = node.saved_tensors
    assert node.times == 3.0 and node.needs_input_grad == (True, False)
    assert tl.equal(kept[0], x) and kept[1] is None and kept[2].tolist() == [3.0, 6.0]
    for missing, of in (("_node", node), ("other", node), ("times", (x * 2).grad_fn)):
        with pytest.raises(AttributeError, match=f"Backward0? has no attribute '{missing}'"):
            getattr(of, missing)


def test_nothing_is_recorded_where_nothing_requires_grad():
    x = leaf(1.0)
    assert not Exp.apply(x.detach()).requires_grad
    with tl.no_grad():
        assert not Exp.apply(x).requires_grad


def test_it_runs_outside_the_graph():
    seen = []
    Mine = function(lambda ctx, x: seen.append((x * 2).requires_grad) or x * 2, lambda ctx, g: g)
    assert Mine.apply(leaf(1.0)).requires_grad and seen == [False]


def test_broadcast_and_dtype_of_a_gradient_are_brought_to_the_input():
    x = tl.ones(3, requires_grad=True)
    for g in (tl.ones(2, 3), tl.full((2, 3), 1.0, dtype=tl.float64), tl.ones(2, 3, dtype=tl.int64)):
        (grad,) = tl.autograd.grad(
            function(lambda ctx, x: x * 2, lambda ctx, _, g=g: g).apply(x).sum(), x)
        assert grad.dtype == tl.float32 and grad.tolist() == [2.0, 2.0, 2.0]


# ---- what the context says and takes -------------------------------------------------------------

def test_needs_input_grad():
    seen = []

    def forward(ctx, x, k, y):
        seen.append(ctx.needs_input_grad)
        return x * y

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, None, g

    x, y = leaf(1.0), leaf(2.0)
    Mine = function(forward, backward)
    Mine.apply(x, 3, y.detach()).backward()
    assert seen == [(True, False, False)] * 2
    tl.autograd.grad(Mine.apply(x, 3, y), y)         # only what leads to the inputs
    assert seen[2:] == [(True, False, True), (False, False, True)]


def test_gradients_of_unused_outputs_are_zeros_or_none():
    got = []
    for materialize in (True, False):
        def forward(ctx, x, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3, "no tensor"

        Mine = function(forward, lambda ctx, *gs: got.append(gs) or gs[0] * 2)
        out = Mine.apply(leaf(1.0, 2.0))
        assert out[2] == "no tensor"
        out[0].sum().backward()
    (g, zeros, none), (_, missing, _) = got
    assert zeros.tolist() == [0.0, 0.0] and zeros.dtype == tl.float64
    assert none is None and missing is None


def test_non_differentiable_outputs():
    def forward(ctx, x):
        top, where = x * 2, x.argmax()
        fixed = x + 1
        ctx.mark_non_differentiable(fixed)
        return top, fixed, where

    x = leaf(1.0, 2.0)
    top, fixed, where = function(forward, lambda ctx, g, h, w: g * 2).apply(x)
    assert top.requires_grad and not fixed.requires_grad and not where.requires_grad
    top.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_input_that_is_returned_is_another_tensor():
    x = leaf(1.0)
    y = function(lambda ctx, x: x, lambda ctx, g: -g).apply(x)
    assert y is not x
    y.backward()
    assert x.grad.tolist() == [-1.0]


def double_in_place(ctx, x):
    ctx.mark_dirty(x)
    with tl.no_grad():
        x.mul_(2)
    return x


def test_dirty_inputs_get_the_functions_history():
    Double = function(double_in_place, lambda ctx, g: g * 2)
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.grad_fn.name() == "MineBackward"
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_a_dirty_view_rewrites_its_base():
    Double = function(double_in_place, lambda ctx, g: g * 2)
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    Double.apply(base[:2])
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]


def test_dirty_inputs_are_checked():
    Double = function(double_in_place, lambda ctx, g: g * 2)
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(leaf(1.0))
    Lost = function(lambda ctx, x: double_in_place(ctx, x) * 1, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="dirty .* not returned"):
        Lost.apply(leaf(1.0) * 1)


def test_a_saved_value_that_was_dirty_is_noticed():
    x = leaf(1.0) * 1
    kept = x * x
    function(double_in_place, lambda ctx, g: g * 2).apply(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.backward()


# ---- saved tensors -------------------------------------------------------------------------------

class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def test_saved_tensors_are_checked_for_writes():
    x = leaf(2.0) * 1
    y = Square.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation: saved tensor 0"):
        y.backward()


def test_saved_tensors_are_released_by_the_sweep():
    x = leaf(2.0)
    y = Square.apply(x * 1)
    saved = weakref.ref(x)
    y.backward(retain_graph=True)
    y.backward()
    assert y.grad_fn.saved_bytes == 0 and saved() is x
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_a_graph_with_a_saved_output_is_freed_without_the_collector():
    gc.disable()
    try:
        y = Exp.apply(leaf(1.0) * 1)
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_what_is_saved_must_be_tensors():
    with pytest.raises(TypeError, match="argument 1 is of type int"):
        function(lambda ctx, x: ctx.save_for_backward(x, 3)).apply(leaf(1.0))
    for name in ("mark_dirty", "mark_non_differentiable"):
        with pytest.raises(RuntimeError, match=f"{name}: takes Tensors"):
            function(lambda ctx, x, name=name: getattr(ctx, name)(3)).apply(leaf(1.0))


# ---- once_differentiable -------------------------------------------------------------------------

class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


def test_once_differentiable():
    x = leaf(3.0)
    (first,) = tl.autograd.grad(Once.apply(x), x)
    assert first.tolist() == [6.0] and not first.requires_grad
    (first,) = tl.autograd.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice .*once_differentiable"):
        first.backward()


# ---- forward mode --------------------------------------------------------------------------------

class ScaledProduct(Function):
    """x * y * k, with a forward-mode rule that uses an input and the output."""

    @staticmethod
    def forward(ctx, x, y, k):
        out = x * y * k
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(y, out)
        ctx.k = k
        return out

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.k, g * x * ctx.k, None

    @staticmethod
    def jvp(ctx, dx, dy, dk):
        assert dk is None
        y, out = ctx.saved_tensors
        return dx * y * ctx.k + dy * out / y


def test_jvp_gets_tangents_and_what_was_saved_for_it():
    x, y, dx, dy = (tl.tensor([v], dtype=tl.float64) for v in (3.0, 2.0, 1.0, 5.0))
    out, moved = func.jvp(lambda x, y: ScaledProduct.apply(x, y, 4), (x, y), (dx, dy))
    assert out.tolist() == [24.0] and moved.tolist() == [1 * 2 * 4 + 5 * 3 * 4]
    _, moved = func.jvp(lambda x: ScaledProduct.apply(x, y, 4).sin(), (x,), (dx,))
    assert moved.item() == pytest.approx(8 * math.cos(24.0))


def test_forward_mode_through_a_function_agrees_with_reverse_mode():
    """To second order, in every nesting."""
    def f(x):
        return ScaledProduct.apply(x.exp(), x.sin() + 2, 3)

    def plain(x):
        return x.exp() * (x.sin() + 2) * 3

    x = tl.tensor([0.3, -0.7, 1.1], dtype=tl.float64)
    ones = tl.ones_like(x)
    for first, other in ((func.jacfwd, func.jacrev), (func.jacrev, func.jacfwd),
                         (func.jacfwd, func.jacfwd)):
        assert_close(first(f)(x), other(plain)(x), rtol=1e-12, atol=1e-12)
        assert_close(first(other(f))(x), first(other(plain))(x), rtol=1e-12, atol=1e-12)
    _, jvp_fn = func.linearize(f, x)
    assert_close(jvp_fn(2 * ones), jvp_fn(ones) * 2)
    assert_close(jvp_fn(ones), func.jvp(plain, (x,), (ones,))[1])


def test_forward_mode_with_several_outputs_and_without_tangents():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x, y, n):
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(n)
            return x * 2, y * 3, n + 0

        @staticmethod
        def jvp(ctx, dx, dy, dn):
            assert dy is None and dn is None
            return 2 * dx, None, None

    x, y, n = tl.ones(2), tl.ones(3), tl.arange(2)
    outs, moved = func.jvp(lambda x: Pair.apply(x, y, n), (x,), (tl.ones(2),))
    assert [t.tolist() for t in moved] == [[2.0, 2.0], [0.0, 0.0, 0.0], [0, 0]]

    class Zeros(Pair):
        @staticmethod
        def forward(ctx, x, y, n):
            return x * 2, y * 3

        @staticmethod
        def jvp(ctx, dx, dy, dn):
            assert dn is None and dy.tolist() == [0.0, 0.0, 0.0]
            return 2 * dx, dy

    _, moved = func.jvp(lambda x: Zeros.apply(x, y, n), (x,), (tl.ones(2),))
    assert [t.tolist() for t in moved] == [[2.0, 2.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("result, message", [
    (lambda dx: (dx, dx), r"Bad's jvp returned an invalid number of forward gradients "
                          r"\(expected 1 but got 2\)"),
    (lambda dx: 3.0, "Bad's jvp: expected a Tensor or None for output 0, got float"),
    (lambda dx: dx.sum(), r"expected a tangent of shape \(2,\) for output 0, got .* shape \(\)"),
])
def test_what_a_jvp_returns_is_checked(result, message):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, dx):
            return result(dx)

    with pytest.raises(RuntimeError, match=message):
        func.jvp(Bad.apply, (tl.ones(2),), (tl.ones(2),))


def test_a_tangent_is_brought_to_the_outputs_dtype():
    class Wide(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, dx):
            return dx.double() * 2

    _, moved = func.jvp(Wide.apply, (tl.ones(2),), (tl.ones(2),))
    assert moved.dtype == tl.float32 and moved.tolist() == [2.0, 2.0]


def test_a_function_without_jvp_says_so_where_a_tangent_reaches_it():
    x = tl.ones(2)
    assert func.jvp(lambda y: Exp.apply(x) + y, (x,), (x,))[1].tolist() == [1.0, 1.0]
    with pytest.raises(NotImplementedError, match="Exp: .*implement the jvp function"):
        func.jvp(Exp.apply, (x,), (x,))


# ---- bad rules -----------------------------------------------------------------------------------

def backward_of(result, *more):
    """A sweep through a Function whose backward returns `result`."""
    x = tl.ones(3, requires_grad=True)
    y = function(lambda ctx, x, *more: x * 2, lambda ctx, g: result).apply(x, *more)
    y.sum().backward()
    return x.grad


@pytest.mark.parametrize("result, more, message", [
    ((tl.ones(3), tl.ones(3)), (), r"MineBackward returned an incorrect .*expected 1, got 2"),
    (tl.ones(3), (4,), r"incorrect number of gradients \(expected 2, got 1\)"),
    ((tl.ones(3), tl.ones(3)), (4,), "different than None at position 2"),
    (3.0, (), r"rule of Mine returned float for its argument 'inputs\[0\]'"),
    (np.ones(3), (), r"returned numpy\.ndarray"),
    (tl.ones(2), (), r"Mine returned shape \(2,\) .* does not reduce to the argument's \(3,\)"),
    (tl.ones(()), (), r"shape \(\)"),
], ids=["many", "few", "not none", "number", "array", "shape", "scalar"])
def test_what_a_backward_returns_is_checked(result, more, message):
    with pytest.raises(RuntimeError, match=message):
        backward_of(result, *more)


def test_none_and_more_nones_are_fine():
    assert backward_of(None) is None
    assert backward_of((tl.ones(3), None)).tolist() == [1.0, 1.0, 1.0]


def test_a_backward_that_raises_is_named_and_leaves_the_graph_usable():
    broken = [True]

    def backward(ctx, g):
        if broken:
            raise ZeroDivisionError("mine")
        return g * 5

    x = leaf(1.0)
    y = function(lambda ctx, x: x * 5, backward).apply(x * 2) * 1
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        y.backward(retain_graph=True)
    assert caught.value.__notes__ == [
        "backward: raised in the gradient rule of Mine for all its arguments"]
    assert x.grad is None and tl.is_grad_enabled()
    broken.clear()
    y.backward()
    assert x.grad.tolist() == [10.0]


def test_what_is_missing_is_said():
    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match="forward function"):
        type("F", (Function,), {}).apply(x)
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        function(lambda ctx, x: x * 2).apply(x).backward()
    with pytest.warns(DeprecationWarning, match="needs no instance") as told:
        made = Exp()
    assert told[0].filename == __file__ and made.apply(tl.zeros(1)).item() == 1
    with pytest.raises(RuntimeError, match=r"Exp: a Function is not called; call Exp\.apply"):
        made(x)


def test_vjp_is_another_name_for_backward():
    x = leaf(1.0)
    function(lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2).apply(x).backward()
    assert x.grad.tolist() == [2.0]
