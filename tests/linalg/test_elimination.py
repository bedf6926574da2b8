"""Systems, inverses and LU factors of larger matrices: beside LAPACK, in batches, by other numbers
of threads, and where matrices are singular or have NaN."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.products import elimination

SIZES = [17, 31, 64, 65, 130, 331]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def drawn(*shape, dtype="float64"):
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


@each("n", SIZES)
@each("dtype", DTYPES)
def test_factors_solutions_and_inverses_are_near(n, dtype):
    a, b = drawn(n, n, dtype=dtype), drawn(n, 150, dtype=dtype)
    eps = np.finfo(dtype).eps * (2 if "complex" in dtype else 1)     # a product is four of them
    wider = np.result_type(dtype, np.float64)
    p, lower, upper = (x.numpy().astype(wider) for x in tl.linalg.lu(tl.tensor(a)))
    assert 1 <= np.abs(lower).max() <= (1.5 if wider.kind == "c" else 1)
    assert not np.triu(lower, 1).any() and not np.tril(upper, -1).any()
    assert np.abs(p @ lower @ upper - a).max() < 0.2 * n * eps * np.abs(a).max()
    lu, pivots = tl.linalg.lu_factor(tl.tensor(a))
    assert (np.tril(lu.numpy(), -1) + np.eye(n) == lower).all()
    assert pivots.dtype == tl.int32 and (pivots >= tl.arange(1, n + 1)).all() and pivots.max() <= n
    for found, sides in ((tl.linalg.solve(tl.tensor(a), tl.tensor(b)), b),
                         (tl.linalg.solve(tl.tensor(a.T.copy()).mT, tl.tensor(b)), b),
                         (tl.linalg.inv(tl.tensor(a)), np.eye(n))):
        x = found.numpy().astype(wider)
        assert np.abs(a @ x - sides).max() < n * eps * np.abs(a).max() * np.abs(x).max()


@each("dtype", DTYPES)
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


@each("place", [0, 3, 31, 32, 63, 64, 69])
@each("dtype", ["float64", "complex128"])
def test_the_first_zero_on_the_diagonal_is_named(place, dtype):
    a = drawn(3, 70, 70, dtype=dtype)
    a[1, :, place] = 0
    a[2, :, place] = np.nan
    result, info = tl.linalg.solve_ex(tl.tensor(a), tl.ones(3, 70, 2, dtype=getattr(tl, dtype)))
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
@each("dtype", ["float64", "complex128"])
def test_logarithms_of_determinants(n, dtype):
    a = drawn(2, 2, n, n, dtype=dtype)
    a[1, 0, 3] = 0
    sign, size = tl.linalg.slogdet(tl.tensor(a))
    wanted = np.linalg.slogdet(a)
    np.testing.assert_allclose(sign.numpy(), wanted[0], rtol=1e-11)
    assert sign[1, 0] == 0 and size[1, 0] == -np.inf and size.dtype == tl.float64
    np.testing.assert_allclose(size.numpy(), wanted[1], rtol=1e-12)
    assert tl.linalg.slogdet(tl.ones(0, n, n)).sign.shape == (0,)
    assert tl.linalg.slogdet(tl.ones(2, 0, 0)).logabsdet.tolist() == [0, 0]


def test_what_log_determinants_refuse():
    lu, pivots = tl.linalg.lu_factor(tl.tensor(drawn(20, 20)))
    for given in ((lu[:10], pivots), (lu, pivots[:3]), (lu, pivots.long()), (lu, pivots[None]),
                  (lu.mT, pivots), (lu.half(), pivots)):
        with pytest.raises(ValueError, match="linalg.slogdet"):
            elimination.log_determinants(*given)


@each("n", [20, 100])
@each("dtype", ["float64", "complex128"])
def test_determinants_keep_their_exponents_apart(n, dtype):
    a = drawn(3, n, n, dtype=dtype)
    a[1] *= np.where(np.arange(n) < n // 2, 1e-30, 1e30)[:, None]     # no product of halves fits
    a[2, 3] = 0
    found = tl.linalg.det(tl.tensor(a)).numpy()
    sign, size = np.linalg.slogdet(a[:2])
    np.testing.assert_allclose(found[:2], sign * np.exp(size), rtol=1e-9)
    assert found[2] == 0
    assert tl.linalg.det(tl.ones(0, n, n)).shape == (0,)
    x = tl.tensor(a[0], requires_grad=True)
    tl.linalg.det(x).backward(tl.ones((), dtype=x.dtype))
    np.testing.assert_allclose(x.grad.numpy(), (found[0] * np.linalg.inv(a[0])).conj().T, rtol=1e-8)


@each("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_complex_pivots_whose_squares_or_inverses_do_not_fit(scale):
    a, b = drawn(40, 40, dtype="complex64"), drawn(40, 3, dtype="complex64")
    wanted = tl.linalg.solve(tl.tensor(a), tl.tensor(b)).numpy()
    scaled = tl.linalg.solve(tl.tensor(a * np.float32(scale)), tl.tensor(b * np.float32(scale)))
    np.testing.assert_allclose(scaled.numpy(), wanted, rtol=1e-3, atol=1e-4)


@each("dtype", ["float64", "complex128"])
@each("matrices, sides", [((), ()), ((2,), ()), ((), (3,)), ((2, 1), (3,)), ((0,), ())])
@each("left", [False, True])
@each("adjoint", [False, True])
def test_systems_of_factors(dtype, matrices, sides, left, adjoint):
    a = drawn(*matrices, 20, 20, dtype=dtype)
    b = drawn(*sides, *((20, 3) if left else (3, 20)), dtype=dtype)
    x = tl.linalg.lu_solve(*tl.linalg.lu_factor(tl.tensor(a)), tl.tensor(b), left=left,
                           adjoint=adjoint).numpy()
    a = a.swapaxes(-1, -2).conj() if adjoint else a
    assert x.shape == np.broadcast_shapes(matrices, sides) + b.shape[-2:]
    np.testing.assert_allclose(a @ x if left else x @ a, np.broadcast_to(b, x.shape), atol=1e-10)


@each("adjoint", [False, True])
def test_right_hand_sides_and_pivots_that_do_not_fit_factors(adjoint):
    lu, pivots = tl.linalg.lu_factor(tl.eye(3) + 1)
    for rows in (0, 1, 2, 4):                       # more rows are not left out
        for left in (True, False):
            b = tl.ones(rows, 2) if left else tl.ones(2, rows)
            with pytest.raises(RuntimeError, match="linalg.lu_solve: Incompatible shapes"):
                tl.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)
    for few in (pivots[:2], pivots[:0], pivots[0]):
        with pytest.raises(RuntimeError, match="a pivot for each of the 3 columns"):
            tl.linalg.lu_solve(lu, few, tl.ones(3, 1), adjoint=adjoint)


@each("left", [False, True])
def test_systems_of_no_rows_by_their_factors(left):
    b = tl.ones(2, 0, 3) if left else tl.ones(2, 3, 0)
    for adjoint in (False, True):
        solved = tl.linalg.lu_solve(*tl.linalg.lu_factor(tl.ones(0, 0)), b, left=left,
                                    adjoint=adjoint)
        assert solved.shape == b.shape
