"""Cholesky factors and triangular systems of larger matrices: beside LAPACK, in batches, by other
numbers of threads, where matrices lie by columns, and where they are not positive definite."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

SIZES = [7, 17, 31, 64, 65, 130, 331]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def definite(n, dtype, *batch):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(*batch, n, n))
    x = x + 1j * rng.normal(size=x.shape) if "complex" in dtype else x
    return (x @ x.swapaxes(-1, -2).conj() / n + np.eye(n)).astype(dtype)


def backward_error(found, wanted):
    """The largest difference, as a multiple of the largest element and of the dtype's step."""
    return np.abs(found - wanted).max() / np.abs(wanted).max() / np.finfo(wanted.dtype).eps


@each("n", SIZES)
@each("dtype", DTYPES)
def test_factors_are_as_near_as_those_of_lapack(n, dtype):
    a = definite(n, dtype)
    given = a + np.triu(np.full_like(a, np.nan), 1)         # the other triangle is not read
    factor = tl.linalg.cholesky(tl.tensor(given))
    lower = factor.numpy()
    assert not np.triu(lower, 1).any() and factor.dtype == getattr(tl, dtype)
    assert backward_error(lower.astype(np.result_type(dtype, np.float64)) @ lower.conj().T, a) < 4
    upper = tl.linalg.cholesky(tl.tensor(given.conj().T.copy()), upper=True)
    assert (upper.numpy() == lower.conj().T).all()


@each("n", SIZES)
@each("columns", [1, 7, 32, 150])
@each("dtype", DTYPES)
def test_systems_are_solved_as_near_as_by_lapack(n, columns, dtype):
    lower = np.linalg.cholesky(definite(n, dtype))
    b = np.random.default_rng(columns).normal(size=(n, columns)).astype(dtype)
    other = np.triu(np.full_like(lower, np.nan), 1)         # the other triangle is not read
    # residuals in float64 would be rounded by more than what is measured
    single = dtype in ("float32", "complex64")
    wider = np.result_type(dtype, np.float64 if single else np.longdouble)
    bound = 4 if np.finfo(wider).eps < np.finfo(dtype).eps else 40
    for a, given, upper in ((lower, lower + other, False), (lower.T, (lower + other).T, True)):
        for unit in (False, True):
            if unit:
                a = a / np.diag(a)[:, None] / n
                np.fill_diagonal(a, 1)
                given = np.where(np.isnan(given), given, a)
                np.fill_diagonal(given, np.nan)             # nor is this
            found = [tl.linalg.solve_triangular(x, tl.tensor(b), upper=upper, unitriangular=unit)
                     for x in (tl.tensor(np.ascontiguousarray(given)),
                               tl.tensor(np.ascontiguousarray(given.T)).mT)]
            x = found[0].numpy()
            assert (x == found[1].numpy()).all()
            exact = a.astype(wider)
            size = np.abs(a).astype(np.float64) @ np.abs(x)
            assert (np.abs(exact @ x - b) <= bound * np.finfo(dtype).eps * size).all()


@each("dtype", DTYPES)
def test_bits_are_the_same_in_a_batch_and_by_any_number_of_threads(dtype):
    a = definite(200, dtype, 2, 3)
    b = np.random.default_rng(0).normal(size=(2, 3, 200, 300)).astype(dtype)
    found = []
    threads = tl.get_num_threads()
    try:
        for count in (1, 2, 3):
            tl.set_num_threads(count)
            factors = tl.linalg.cholesky(tl.tensor(a))
            sides = tl.linalg.solve_triangular(factors, tl.tensor(b), upper=False)
            turned = tl.linalg.solve_triangular(factors.mT, tl.tensor(b), upper=True)
            alone = tl.linalg.cholesky(tl.tensor(a[1, 2]))
            of_one = tl.linalg.solve_triangular(alone, tl.tensor(b[1, 2, :, 150:]), upper=False)
            assert (alone == factors[1, 2]).all() and (of_one == sides[1, 2, :, 150:]).all()
            found.append([x.numpy() for x in (factors, sides, turned)])
    finally:
        tl.set_num_threads(threads)
    for others in found[1:]:
        assert all((x == y).all() for x, y in zip(found[0], others, strict=True))


@each("dtype", DTYPES)
@each("place", [0, 2, 63, 64, 69])
def test_the_first_minor_that_is_not_positive_is_named(dtype, place):
    a = definite(70, dtype, 3)
    for value, matrix in ((-1.0, 1), (np.nan, 2)):
        a[matrix, place, place] = value
    factors, info = tl.linalg.cholesky_ex(tl.tensor(a))
    assert info.tolist() == [0, place + 1, place + 1]
    assert factors[1:].isnan().all() and factors[0].isfinite().all()
    with pytest.raises(tl.linalg.LinAlgError, match=rf"Batch element 1.*order {place + 1} is not"):
        tl.linalg.cholesky(tl.tensor(a))


def test_zeros_on_the_diagonal_and_empty_systems():
    a = np.eye(40)
    a[20, 20] = 0
    x = tl.linalg.solve_triangular(tl.tensor(a), tl.ones(40, 2, dtype=tl.float64), upper=False)
    assert x.isinf().sum() == 2 and x[20].isinf().all()
    for shape in ((0, 3), (30, 0)):
        n = shape[0]
        assert tl.linalg.solve_triangular(tl.eye(n), tl.ones(*shape), upper=True).shape == shape
    assert tl.linalg.cholesky(tl.eye(40).expand(0, 40, 40)).shape == (0, 40, 40)


@each("n, dtype", [(33, tl.float64), (129, tl.float64), (300, tl.float64), (200, tl.complex128)])
@each("upper", [False, True])
def test_inverses_by_factors_are_those_of_the_whole(n, dtype, upper):
    """By blocks; Hermitian to the bit, with gradients."""
    x = tl.randn(2, n, n, dtype=dtype, generator=tl.Generator().manual_seed(3))
    square = x @ x.mH + n * tl.eye(n, dtype=dtype)
    factor = tl.linalg.cholesky(square, upper=upper).requires_grad_()
    found = tl.cholesky_inverse(factor, upper)
    assert_close(found, tl.linalg.inv(square))
    assert tl.equal(found, found.mH)
    found.abs().square().sum().backward()
    other = factor.detach().requires_grad_()
    product = other.mH @ other if upper else other @ other.mH
    tl.linalg.inv(product).abs().square().sum().backward()
    kept = other.grad.triu() if upper else other.grad.tril()
    assert_close(factor.grad, kept, atol=1e-9, rtol=1e-7)


@each("matrices, sides", [((), (600,)), ((1,), (600,)), ((4,), (300, 4)), ((1, 4), (300, 4)),
                          ((3, 1), (400, 3, 1)), ((4, 1), (4, 300)), ((1, 1), (30, 20))])
@each("solve", ["solve", "solve_triangular"])
@each("left", [False, True])
def test_sides_of_one_matrix_are_solved_as_by_copies_of_it(matrices, sides, solve, left):
    rng = np.random.default_rng(len(sides) + 10 * len(matrices))
    options = {"left": left} | ({"upper": True} if solve == "solve_triangular" else {})
    matrix = rng.standard_normal((*matrices, 2, 2)) + 3 * np.eye(2)
    side = rng.standard_normal((*sides, 2, 1) if left else (*sides, 1, 2))
    batch = np.broadcast_shapes(matrices, sides)
    found, wanted = [], []
    for copies, results in ((False, found), (True, wanted)):
        a, b = (tl.tensor(x, requires_grad=True) for x in (matrix, side))
        whole = a.expand(*batch, 2, 2).contiguous() if copies else a
        x = getattr(tl.linalg, solve)(whole, b, **options)
        x.pow(2).sum().backward()
        results += [x, a.grad, b.grad]
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert_close(one.detach(), other.detach().numpy())
