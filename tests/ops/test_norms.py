"""Euclidean norms: rows of all lengths, layouts, half types, and points without a slope."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import gradcheck, gradgradcheck


@each("n", [0, 1, 15, 16, 17, 63, 64, 65, 127, 129, 2047, 2048, 2049, 70001])
@each("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14)])
def test_rows_and_columns_of_every_length(n, dtype, tolerance):
    array = np.random.default_rng(n).standard_normal((3, n)).astype(dtype)
    wanted = np.sqrt(np.square(array.astype(np.longdouble)).sum(1))
    for found in (tl.tensor(array).norm(dim=1), tl.tensor(array.T.copy()).norm(dim=0),
                  tl.from_numpy(array[:, ::-1]).norm(dim=1),
                  tl.linalg.vector_norm(tl.tensor(array), dim=1)):
        np.testing.assert_allclose(found.numpy(), wanted.astype(dtype), rtol=tolerance)


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16])
def test_half_types_are_summed_in_float32(dtype):
    x = tl.full((100,), 300.0).to(dtype).requires_grad_()      # 300 * 300 is beyond float16
    out = x.norm()
    assert out.dtype == dtype and abs(out.item() / 3000 - 1) < 0.01
    assert tl.autograd.grad(out, x)[0].float().sub(0.1).abs().max() < 1e-3


def test_any_number_of_threads():
    x, before = tl.randn(64, 4096), tl.get_num_threads()
    try:
        found = []
        for n_threads in (1, 2, 3):
            tl.set_num_threads(n_threads)
            found.append((x.norm(dim=1), x.norm(dim=0), x.norm()))
    finally:
        tl.set_num_threads(before)
    assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other))


def test_what_is_not_finite():
    x = tl.tensor([[1.0, math.inf], [math.nan, 1.0], [0.0, -math.inf], [3.0, 4.0]])
    assert str(x.norm(dim=1).tolist()) == "[inf, nan, inf, 5.0]"
    x.requires_grad_()
    out = x.norm(dim=1)
    g, = tl.autograd.grad(out, x, tl.tensor([1.0, 0.0, 1.0, 5.0]))
    assert g.tolist() == [[0, 0], [0, 0], [0, 0], [3, 4]]        # zero times anything is zero


def test_at_zero_all_derivatives_are_zero():
    x = tl.zeros(2, 3, dtype=tl.float64, requires_grad=True)
    g, = tl.autograd.grad(x.norm(dim=1).sum(), x, create_graph=True)
    second, = tl.autograd.grad(g.sum(), x)
    assert not g.any() and not second.any()
    assert func.jvp(lambda x: x.norm(dim=1), (x.detach(),), (tl.ones(2, 3, dtype=tl.float64),))[
        1].tolist() == [0, 0]


@each("dim, keepdim", [(None, False), (0, True), ((0, 2), False), (-1, False)])
def test_derivatives(dim, keepdim):
    x = tl.tensor(np.random.default_rng(0).uniform(0.5, 2, (2, 3, 2)), requires_grad=True)

    def norm(x):
        return x.norm(dim=dim, keepdim=keepdim)

    assert gradcheck(norm, x) and gradgradcheck(norm, x)
    several = tl.stack([x.detach(), 2 * x.detach()])
    assert func.vmap(norm)(several).allclose(tl.stack([norm(several[0]), norm(several[1])]))


def test_one_operation_is_recorded():
    out = tl.ones(3, requires_grad=True).norm()
    assert out.grad_fn.operation == "euclidean_norm"
    assert set(out.grad_fn.saved_values) == {"input", "out"}
