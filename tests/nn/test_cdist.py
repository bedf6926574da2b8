"""Distances of rows by kernels, against the differences of all rows and their norms."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

F = tl.nn.functional
INF = math.inf
NEVER = "donot_use_mm_for_euclid_dist"


def rows(*shape, dtype="float64", seed=0):
    drawn = np.random.default_rng(seed).standard_normal(shape).round(1)     # with ties
    return tl.from_numpy(drawn.astype(dtype)).requires_grad_()


def by_differences(x, y, p):
    return tl.norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


def gradients(found, inputs):
    g = tl.linspace(-1, 1, found.numel(), dtype=found.dtype).reshape(found.shape)
    return tl.autograd.grad(found, inputs, g)


@each("dtype", ["float32", "float64"])
@each("p", [1, 2.0, INF])
def test_distances_and_gradients_are_those_of_differences(dtype, p):
    for p_rows, r_rows, m in ((1, 1, 1), (3, 31, 2), (5, 33, 70), (26, 64, 3), (2, 3, 130)):
        x, y = rows(2, p_rows, m, dtype=dtype), rows(2, r_rows, m, dtype=dtype, seed=1)
        found, wanted = tl.cdist(x, y, p, NEVER), by_differences(x, y, p)
        assert_close(found, wanted)
        for one, other in zip(gradients(found, (x, y)), gradients(wanted, (x, y))):
            assert_close(one, other)

        above = tl.ones(r_rows, r_rows, dtype=tl.bool).triu(1)
        z = rows(r_rows, m, dtype=dtype)
        found, wanted = F.pdist(z, p), by_differences(z, z, p)[above]
        assert_close(found, wanted)
        if r_rows > 1:
            assert_close(gradients(found, z)[0], gradients(wanted, z)[0])


@each("p", [1.0, 2.0, INF])
def test_rows_of_any_layout_and_batches_that_broadcast_have_distances(p):
    x, y = rows(3, 1, 4, 5).transpose(-1, -2)[..., ::2, :], rows(2, 6, 8)[..., 1::2]
    assert_close(tl.cdist(x, y, p), by_differences(x, y, p))
    z = rows(9, 7)[::2, ::3]
    assert_close(F.pdist(z, p), F.pdist(z.clone(), p), rtol=0, atol=0)
    assert_close(tl.func.vmap(lambda a: F.pdist(a, p))(x[:, 0]),
                 tl.stack([F.pdist(a, p) for a in x[:, 0]]))
    assert tl.cdist(rows(0, 2), rows(3, 2), p).shape == (0, 3)
    assert tl.cdist(rows(2, 0), rows(3, 0), p).tolist() == [[0.0] * 3] * 2


def test_squares_that_overflow_or_underflow_have_euclidean_distances():
    for dtype, size in (("float32", 1e30), ("float64", 1e250)):
        for scale in (size, 1 / size):
            x = rows(4, 70, dtype=dtype).detach() * scale
            scaled = F.pdist(x / scale) * scale
            assert_close(F.pdist(x), scaled, rtol=1e-5, atol=0)
            assert_close(tl.cdist(x, x, 2, NEVER)[0, 1:], scaled[:3], rtol=1e-5, atol=0)
            assert tl.cdist(x, x, 2, NEVER).diagonal().tolist() == [0.0] * 4


@each("p", [1.0, 2.0, INF])
def test_nan_and_infinity_are_in_distances(p):
    x = tl.tensor([[math.nan, 1.0], [INF, 0.0], [1.0, 2.0]])
    found = F.pdist(x, p).tolist()
    assert math.isnan(found[0]) and math.isnan(found[1]) and found[2] == INF
    assert math.isnan(F.pdist(tl.tensor([[INF], [INF]]), p).item())


@each("p", [1.0, 2.0, INF])
def test_a_gradient_of_zero_and_equal_rows_give_zero(p):
    x = tl.tensor([[1.0, 2.0], [1.0, 2.0], [math.nan, 3.0]], requires_grad=True)
    tl.cdist(x, x, p, NEVER)[:2, :2].sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0]] * 3


@each("p", [1.0, 2.0, INF])
def test_distances_have_derivatives_of_any_kind(p):
    x, y = rows(3, 2, seed=3) * 1.37, rows(4, 2, seed=4)
    assert gradcheck(lambda a, b: tl.cdist(a, b, p), (x, y))
    assert gradgradcheck(lambda a, b: tl.cdist(a, b, p).square(), (x, y))
    assert gradcheck(lambda a: F.pdist(a, p), x) and gradgradcheck(
        lambda a: F.pdist(a, p).square(), x)
    one, tangent = tl.func.jvp(lambda a: F.pdist(a, p), (x.detach(),), (tl.ones(3, 2).double(),))
    assert_close(tangent, tl.zeros(3).double())
    compiled = tl.compile(lambda a, b: gradients(tl.cdist(a, b, p), (a, b)))
    for _ in range(3):
        for found, wanted in zip(compiled(x, y), gradients(tl.cdist(x, y, p), (x, y))):
            assert tl.equal(found, wanted)


def test_threads_give_the_same_distances():
    x, y = rows(300, 40), rows(200, 40, seed=1)
    threads = tl.get_num_threads()
    found = []
    for count in (1, 3):
        tl.set_num_threads(count)
        out = tl.cdist(x, y, 1.0)
        found.append((out, F.pdist(x, 2.0), *gradients(out, (x, y)), *gradients(
            F.pdist(x, INF), x)))
    tl.set_num_threads(threads)
    for one, other in zip(*found):
        assert tl.equal(one, other)


def test_loops_take_what_fits():
    from tensorlib._core.reduce import distances
    x = tl.ones(3, 2)
    for wrong in ((x, tl.ones(3, 4), 1.0), (x, tl.ones(2, 3, 2), 1.0), (x, x.double(), 1.0),
                  (x, x, 5.0), (x.long(), x.long(), 1.0), (tl.ones(3), tl.ones(3), 1.0)):
        with pytest.raises(RuntimeError):
            distances.row_distances(*wrong)
    with pytest.raises(RuntimeError):
        distances.row_distances_backward(x, x, x, x, 1.0)
    with pytest.raises(RuntimeError):
        distances.pair_distances_backward(tl.ones(4), x, tl.ones(4), 1.0)
