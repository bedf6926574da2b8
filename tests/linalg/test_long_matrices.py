"""Matrices with far more rows than columns, or columns than rows, which go by R of A = Q @ R."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import linalg

RNG = np.random.default_rng(4)


def normal(*shape, dtype="float64"):
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


@each("shape", [(100, 20), (20, 100), (3, 50, 20), (64, 20, 8), (50, 1), (1, 50), (2, 40, 20)])
@each("dtype, eps", [("float32", 1e-5), ("float64", 1e-13), ("complex128", 1e-13)])
def test_singular_values_and_vectors(shape, dtype, eps):
    x = normal(*shape, dtype=dtype)
    u, s, vh = linalg.svd(tl.tensor(x), full_matrices=False)
    values = np.linalg.svd(x, compute_uv=False)
    for found in (s, linalg.svdvals(tl.tensor(x))):
        np.testing.assert_allclose(found.numpy(), values, atol=eps * values.max())
    np.testing.assert_allclose((u.numpy() * s.numpy()[..., None, :]) @ vh.numpy(), x,
                               atol=eps * values.max())
    for columns in (u, vh.mH):
        found = (columns.mH @ columns).numpy()
        np.testing.assert_allclose(found, np.broadcast_to(np.eye(s.shape[-1]), found.shape),
                                   atol=eps)
        assert columns.shape == (*shape[:-2], columns.shape[-2], s.shape[-1])
    size = np.abs(u.numpy())
    first = np.argmax(size >= 0.6 * size.max(-2, keepdims=True), -2)
    led = np.take_along_axis(u.numpy(), first[..., None, :], -2)
    assert (led.real > 0).all() and (abs(led.imag) < eps).all()
    assert u.is_contiguous() and vh.is_contiguous()


@each("value", [np.nan, np.inf])
def test_other_than_finite_elements_are_refused(value):
    x = normal(50, 20)
    x[3, 4] = value
    for function in (linalg.svd, linalg.svdvals):
        with pytest.raises(linalg.LinAlgError, match="failed to converge"):
            function(tl.tensor(x), **{"full_matrices": False} if function is linalg.svd else {})


@each("shape", [(40, 30), (40, 40), (3, 60, 20), (30, 40), (2, 20, 8)])
def test_least_squares_are_those_of_numpy(shape):
    a, b = normal(*shape), normal(*shape[:-1], 3)
    found = linalg.lstsq(tl.tensor(a), tl.tensor(b)).solution.numpy()
    np.testing.assert_allclose(found, np.linalg.pinv(a) @ b, atol=1e-10)


def test_least_squares_of_a_lower_rank_have_the_least_solution():
    a = normal(40, 25)
    a[:, 7] = a[:, 3] + a[:, 4]
    b = normal(40, 2)
    solution, _, rank, _ = linalg.lstsq(tl.tensor(a), tl.tensor(b))
    np.testing.assert_allclose(solution.numpy(), np.linalg.pinv(a) @ b, atol=1e-10)
    assert rank.item() == 24


@each("shape", [(5, 5), (30, 30), (7, 4, 4), (3, 40, 40), (0, 3, 3), (2, 0, 0)])
def test_logarithms_of_determinants_are_those_of_numpy(shape):
    x = normal(*shape)
    sign, size = linalg.slogdet(tl.tensor(x))
    wanted = np.linalg.slogdet(x)
    np.testing.assert_array_equal(sign.numpy(), wanted.sign)
    np.testing.assert_allclose(size.numpy(), wanted.logabsdet, rtol=1e-12)


@each("n", [3, 30])
def test_logarithms_of_determinants_that_are_none(n):
    sign, size = linalg.slogdet(tl.ones(n, n))
    assert sign.item() == 0 and size.item() == -np.inf
    sign, size = linalg.slogdet(tl.full((n, n), np.nan))           # as PyTorch has it
    assert sign.item() == 0 and np.isnan(size.item())


@each("shape", [(30, 20), (20, 30), (2, 24, 24)])
@each("full", [True, False])
def test_gradients_of_least_squares_are_those_of_the_pseudo_inverse(shape, full):
    a, b = normal(*shape), normal(*shape[:-1], 2)
    if not full:
        a[..., 1, :] = a[..., 0, :]
        a[..., :, 1] = a[..., :, 0]
    found, wanted = [], []
    for gradients, solve in ((found, lambda a, b: linalg.lstsq(a, b).solution),
                             (wanted, lambda a, b: linalg.pinv(a) @ b)):
        leaves = [tl.tensor(x, requires_grad=True) for x in (a, b)]
        (solve(*leaves) * tl.arange(2.0, dtype=tl.float64)).sum().backward()
        gradients.extend(x.grad.numpy() for x in leaves)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())


@each("name", ["svdvals", "svd", "pinv", "lstsq"])
def test_an_error_names_what_was_called(name):
    x = tl.full((40, 5), float("nan"))
    with pytest.raises(linalg.LinAlgError, match=rf"^linalg\.{name}: the algorithm failed"):
        getattr(linalg, name)(*(x, x)[:1 + (name == "lstsq")])
