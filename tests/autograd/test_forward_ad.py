"""Dual tensors: `autograd.forward_ad` as in PyTorch."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import forward_ad as fwd
from tensorlib.testing import assert_close


def double(*values, **kwargs):
    return tl.tensor(values, dtype=tl.float64, **kwargs)


X, V = double(0.5, -1.5), double(1.0, 2.0)


def test_a_tangent_is_that_of_jvp():
    def f(x):
        return (x * x).exp() @ x.sin()

    with fwd.dual_level():
        out, tangent = fwd.unpack_dual(f(fwd.make_dual(X, V)))
    wanted, moved = func.jvp(f, (X,), (V,))
    assert_close(out, wanted)
    assert_close(tangent, moved)
    assert not out.requires_grad and not tangent.requires_grad


def test_a_tangent_of_a_smaller_dtype_has_that_of_the_tensor():
    with fwd.dual_level():
        x = fwd.make_dual(X, V.float())
        assert fwd.unpack_dual(x).tangent.dtype is tl.float64
        assert_close(fwd.unpack_dual(x * X).tangent, V * X)


def test_several_duals_add_up_and_values_without_have_none():
    y = double(3.0, 4.0)
    with fwd.dual_level():
        a, b = fwd.make_dual(X, V), fwd.make_dual(y, 2 * V)
        assert_close(fwd.unpack_dual(a * b).tangent, V * y + 2 * V * X)
        assert_close(fwd.unpack_dual(b).tangent, 2 * V)
        assert fwd.unpack_dual(y * 2).tangent is None
        assert fwd.unpack_dual(a > 0).tangent is None
        assert fwd.unpack_dual(a.detach()).tangent is None
    out, tangent = fwd.unpack_dual(a * b)
    assert tangent is None and out.tolist() == (X * y).tolist()


def test_writes_in_place_move_tangents():
    with fwd.dual_level():
        x = fwd.make_dual(X.clone(), V)
        y = tl.zeros(3, dtype=tl.float64)
        y[1:].copy_(x)
        x.mul_(3)
        y[0] = x[1]
        assert fwd.unpack_dual(y).tangent.tolist() == [6.0, 1.0, 2.0]
        assert fwd.unpack_dual(x).tangent.tolist() == [3.0, 6.0]


def test_the_tangent_can_be_differentiated_in_reverse():
    """d/dx of cos(x) v is -sin(x) v."""
    x = double(0.5, -1.5, requires_grad=True)
    with fwd.dual_level():
        out, tangent = fwd.unpack_dual(fwd.make_dual(x, V).sin())
    assert out.requires_grad
    tangent.sum().backward()
    assert_close(x.grad, -x.detach().sin() * V)
    w = double(2.0, 3.0, requires_grad=True)
    with fwd.dual_level():
        tangent = fwd.unpack_dual((fwd.make_dual(X, V) * w).exp()).tangent
    (found,) = tl.autograd.grad(tangent.sum(), w)
    assert_close(found, V * (X * w.detach()).exp() * (1 + w.detach() * X))


def test_transforms_work_inside():
    with fwd.dual_level():
        x = fwd.make_dual(double(2.0)[0], double(1.0)[0])
        assert fwd.unpack_dual(func.grad(lambda x: x ** 3)(x)).tangent.item() == 12.0
        assert func.jvp(tl.square, (double(3.0),), (double(1.0),))[1].tolist() == [6.0]


def test_levels_end_also_by_an_error():
    with pytest.raises(ZeroDivisionError), fwd.dual_level():
        1 / 0
    with pytest.raises(RuntimeError, match="exit_dual_level: no level exists"):
        fwd.exit_dual_level()
    with tl.no_grad():
        with fwd.dual_level():
            assert fwd.unpack_dual(fwd.make_dual(X, V) * 2).tangent.tolist() == [2.0, 4.0]
        assert not tl.is_grad_enabled()
    assert fwd.enter_dual_level() == 0
    fwd.exit_dual_level(level=0)


@each("call, error, message", [
    (lambda: fwd.make_dual(3.0, V), TypeError, "make_dual: tensor must be a Tensor, got float"),
    (lambda: fwd.make_dual(X, None), TypeError, "make_dual: tangent must be a Tensor"),
    (lambda: fwd.make_dual(tl.arange(2), V), ValueError, "tensor to be floating point"),
    (lambda: fwd.make_dual(X, tl.arange(2)), ValueError, "tangent to be floating point"),
    (lambda: fwd.make_dual(X, V[:1]), RuntimeError, r"of shape \(2,\) .* tangent of shape \(1,\)"),
    (lambda: fwd.make_dual(X.float(), V), RuntimeError, "float32, but its tangent .*float64"),
    (lambda: fwd.make_dual(fwd.make_dual(X, V), V), RuntimeError, "already has a forward gradient"),
    (lambda: fwd.make_dual(X, V, level=1), RuntimeError, "level must be 0 or None, got 1"),
    (lambda: fwd.unpack_dual(3.0), TypeError, "unpack_dual: tensor must be a Tensor, got float"),
    (fwd.enter_dual_level, RuntimeError, "Nested forward mode AD is not supported"),
])
def test_bad_input(call, error, message):
    with fwd.dual_level():
        with pytest.raises(error, match=message):
            call()
        assert fwd.unpack_dual(fwd.make_dual(X, V)).tangent.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="make_dual: no level exists"):
        fwd.make_dual(X, V)
