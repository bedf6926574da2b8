"""Systems, inverses and LU factors of larger matrices: beside LAPACK, in batches, by other numbers
of threads, and where matrices are singular or have NaN."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib._core.products import elimination

each = pytest.mark.parametrize
SIZES = [17, 31, 64, 65, 130, 331]


def drawn(*shape, dtype="float64"):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


@each("n", SIZES)
@each("dtype", ["float32", "float64"])
def test_factors_solutions_and_inverses_are_near(n, dtype):
    a, b = drawn(n, n, dtype=dtype), drawn(n, 150, dtype=dtype)
    eps = np.finfo(dtype).eps
    p, lower, upper = (x.numpy().astype(np.float64) for x in tl.linalg.lu(tl.tensor(a)))
    assert np.abs(lower).max() == 1 and not np.triu(lower, 1).any() and not np.tril(upper, -1).any()
    assert np.abs(p @ lower @ upper - a).max() < 0.2 * n * eps * np.abs(a).max()
    lu, pivots = tl.linalg.lu_factor(tl.tensor(a))
    assert (np.tril(lu.numpy(), -1) + np.eye(n) == lower).all()
    assert pivots.dtype == tl.int32 and (pivots >= tl.arange(1, n + 1)).all() and pivots.max() <= n
    for found, sides in ((tl.linalg.solve(tl.tensor(a), tl.tensor(b)), b),
                         (tl.linalg.solve(tl.tensor(a.T.copy()).mT, tl.tensor(b)), b),
                         (tl.linalg.inv(tl.tensor(a)), np.eye(n))):
        x = found.numpy().astype(np.float64)
        assert np.abs(a @ x - sides).max() < n * eps * np.abs(a).max() * np.abs(x).max()


@each("dtype", ["float32", "float64"])
def test_bits_are_the_same_in_a_batch_and_by_any_number_of_threads(dtype):
    a, b = (tl.tensor(drawn(2, 3, 200, k, dtype=dtype)) for k in (200, 300))
    found = []
    threads = tl.get_num_threads()
    try:
        for count in (1, 2, 3):
            tl.set_num_threads(count)
            x, factors = tl.linalg.solve(a, b), tl.linalg.lu_factor(a)[0]
            assert (tl.linalg.solve(a[1, 2], b[1, 2, :, 150:]) == x[1, 2, :, 150:]).all()
            assert (tl.linalg.lu_factor(a[1, 2])[0] == factors[1, 2]).all()
            found.append((x, factors, tl.linalg.inv(a[0, 1])))
    finally:
        tl.set_num_threads(threads)
    for others in found[1:]:
        assert all((x == y).all() for x, y in zip(found[0], others, strict=True))


@each("place", [0, 3, 63, 64, 69])
def test_the_first_zero_on_the_diagonal_is_named(place):
    a = drawn(3, 70, 70)
    a[1, :, place] = 0
    a[2, :, place] = np.nan
    result, info = tl.linalg.solve_ex(tl.tensor(a), tl.ones(3, 70, 2, dtype=tl.float64))
    assert info.tolist() == [0, place + 1, 0]
    assert result[0].isfinite().all() and result[1:].isnan().all()
    inverse, info = tl.linalg.inv_ex(tl.tensor(a))
    assert info.tolist() == [0, place + 1, 0] and inverse[1].isnan().all()
    assert tl.linalg.lu_factor_ex(tl.tensor(a[:2])).info.tolist() == [0, place + 1]
    with pytest.raises(tl.linalg.LinAlgError, match=rf"Batch element 1.*element {place + 1} is"):
        tl.linalg.inv(tl.tensor(a[:2]))


def test_empty_systems():
    for n, k in ((0, 3), (30, 0)):
        assert tl.linalg.solve(tl.eye(n), tl.ones(n, k)).shape == (n, k)
    assert tl.linalg.inv(tl.eye(40).expand(0, 40, 40)).shape == (0, 40, 40)
    singular = tl.zeros(30, 30)
    assert tl.linalg.solve_ex(singular, tl.ones(30, 0)).info == 1


@each("n", [20, 100, 300])
def test_logarithms_of_determinants(n):
    a = drawn(2, 2, n, n)
    a[1, 0, 3] = 0
    sign, size = tl.linalg.slogdet(tl.tensor(a))
    wanted = np.linalg.slogdet(a)
    assert sign.tolist() == wanted[0].tolist() and size[1, 0] == -np.inf
    np.testing.assert_allclose(size.numpy(), wanted[1], rtol=1e-12)
    assert tl.linalg.slogdet(tl.ones(0, n, n)).sign.shape == (0,)
    assert tl.linalg.slogdet(tl.ones(2, 0, 0)).logabsdet.tolist() == [0, 0]


def test_what_log_determinants_refuse():
    lu, pivots = tl.linalg.lu_factor(tl.tensor(drawn(20, 20)))
    for given in ((lu[:10], pivots), (lu, pivots[:3]), (lu, pivots.long()), (lu, pivots[None]),
                  (lu.mT, pivots), (lu.cfloat(), pivots)):
        with pytest.raises(ValueError, match="linalg.slogdet"):
            elimination.log_determinants(*given)


@each("n", [20, 100])
def test_determinants_keep_their_exponents_apart(n):
    a = drawn(3, n, n)
    a[1] *= np.where(np.arange(n) < n // 2, 1e-30, 1e30)[:, None]     # no product of halves fits
    a[2, 3] = 0
    found = tl.linalg.det(tl.tensor(a)).numpy()
    sign, size = np.linalg.slogdet(a[:2])
    np.testing.assert_allclose(found[:2], sign * np.exp(size), rtol=1e-9)
    assert found[2] == 0
    assert tl.linalg.det(tl.ones(0, n, n)).shape == (0,)
    x = tl.tensor(a[0], requires_grad=True)
    tl.linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), found[0] * np.linalg.inv(a[0]).T, rtol=1e-8)
