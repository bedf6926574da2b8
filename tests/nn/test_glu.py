"""glu: halves along any dim, of all sizes and layouts, and where a gradient is zero."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.nn import functional as F
from tensorlib.nn.functional.activations import gated_backward, gated_halves
from tensorlib.testing import gradcheck, gradgradcheck


def by_formula(x, dim):
    first, second = x.chunk(2, dim)
    return first * second.sigmoid()


@each("dtype, tolerance", [
    (tl.float64, 1e-13), (tl.float32, 1e-6), (tl.float16, 2e-3), (tl.bfloat16, 2e-2)])
@each("shape, dim", [
    ((2,), 0), ((3, 14), 1), ((6, 5), 0), ((2, 34, 3), 1), ((2, 20000), 1), ((40000, 1), 0),
    ((300, 66), -1), ((0, 4), 1), ((4, 0), 1), ((3, 0), 1)])
def test_values_and_gradients(shape, dim, dtype, tolerance):
    x = tl.tensor(np.random.default_rng(0).uniform(-3, 3, shape)).to(dtype).requires_grad_()
    wide = x.detach().double().requires_grad_()
    out, wanted = F.glu(x, dim), by_formula(wide, dim)
    assert out.dtype == dtype and out.double().allclose(wanted, tolerance, tolerance)
    g = tl.tensor(np.random.default_rng(1).uniform(-1, 1, wanted.shape)).to(dtype)
    found = tl.autograd.grad(out, x, g)[0].double()
    assert found.allclose(tl.autograd.grad(wanted, wide, g.double())[0], tolerance, tolerance)


def test_layouts_and_threads_give_the_same_bits():
    x, before = tl.randn(60, 700), tl.get_num_threads()
    others = [x.t().contiguous().t(), tl.from_numpy(x.numpy()[::-1].copy()[::-1])]
    try:
        for n_threads in (1, 2, 3):
            tl.set_num_threads(n_threads)
            others.append(x)
            for dim in (0, 1):
                assert all(F.glu(y, dim).equal(F.glu(x, dim)) for y in others)
    finally:
        tl.set_num_threads(before)


def test_derivatives_of_all_kinds():
    x = tl.tensor(np.random.default_rng(0).uniform(-2, 2, (2, 4, 3)), requires_grad=True)
    assert gradcheck(lambda x: F.glu(x, 1), x) and gradgradcheck(lambda x: F.glu(x, 1), x)
    assert func.vmap(F.glu)(x.transpose(1, 2)).allclose(F.glu(x.transpose(1, 2)))
    tangent = func.jvp(lambda x: F.glu(x, 1), (x.detach(),), (x.detach(),))[1]
    assert tangent.allclose(func.jvp(lambda x: by_formula(x, 1), (x.detach(),), (x.detach(),))[1])


def test_what_is_not_finite():
    x = tl.tensor([math.inf, math.nan, 1.0, 1.0, math.inf, -math.inf], requires_grad=True)
    out = F.glu(x)
    assert str(out.tolist()) == "[inf, nan, 0.0]"
    assert tl.autograd.grad(out, x, tl.zeros(3))[0].tolist() == [0.0] * 6


def test_one_operation_is_recorded_and_refuses_what_does_not_fit():
    x = tl.ones(2, 4, requires_grad=True)
    out = F.glu(x)
    assert out.grad_fn.operation == "gated_halves" and set(out.grad_fn.saved_values) == {"input"}
    for call in (lambda: gated_halves(tl.ones(3), 0), lambda: gated_halves(tl.ones(2).int(), 0),
                 lambda: gated_backward(tl.ones(2), tl.ones(2, 2), 1),
                 lambda: gated_backward(tl.ones(2, 2), tl.ones(2, 2), 1)):
        with pytest.raises(RuntimeError, match="glu"):
            call()
    with pytest.raises(IndexError):
        gated_halves(tl.ones(2), 1)
