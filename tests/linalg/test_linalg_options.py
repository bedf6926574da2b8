"""Options and edges of functions of matrices, beside NumPy and numbers known beforehand."""

import math

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import linalg
from tensorlib.linalg import lapack
from tensorlib.linalg.products import series
from tensorlib.testing import assert_close

RNG = np.random.default_rng(9)
SYMMETRIC = np.array([[2.0, 1.0, 0.0], [1.0, -3.0, 1.0], [0.0, 1.0, 0.5]])


def assert_same(found, wanted, atol=1e-10):
    """The numbers of an array, up to rounding."""
    assert_close(found, tl.tensor(np.array(wanted), dtype=found.dtype), atol=atol, rtol=1e-10)


def of_rank(n, rank):
    """A symmetric matrix with the eigenvalues -1, 2, -3, ..., as many as its rank, then zeros."""
    q = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    values = [(-1) ** (i + 1) * (i + 1) if i < rank else 0 for i in range(n)]
    return q * values @ q.T


def test_pivots_may_lie_in_any_order_in_memory():
    x = tl.tensor(np.stack([SYMMETRIC, SYMMETRIC * 2]))
    factors, pivots = linalg.ldl_factor(x)
    turned = pivots.t().contiguous().t()
    assert_same(x @ linalg.ldl_solve(factors, turned, tl.eye(3, dtype=x.dtype)),
                np.stack([np.eye(3)] * 2))


# ---- ranks, inverses, condition ------------------------------------------------------------------

@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ranks_and_inverses_of_symmetric_matrices(rank, hermitian):
    x = of_rank(3, rank)
    assert linalg.matrix_rank(tl.tensor(x), atol=1e-9, hermitian=hermitian).item() == rank
    assert_same(linalg.pinv(tl.tensor(x), atol=1e-9, hermitian=hermitian),
                np.linalg.pinv(x, 1e-9) if rank else np.zeros((3, 3)))


def test_hermitian_functions_look_at_the_lower_triangle_alone():
    lower = tl.tensor(np.tril(SYMMETRIC))
    assert_same(linalg.pinv(lower, hermitian=True), np.linalg.inv(SYMMETRIC))
    x = tl.tensor([[1.0, 5.0], [0.0, 0.0]])
    assert linalg.matrix_rank(x, hermitian=True) == 1


def test_a_hermitian_matrix_is_square():
    for function in (linalg.matrix_rank, linalg.pinv):
        name = f"linalg.{function.__name__.removeprefix('linalg_')}"
        with pytest.raises(RuntimeError, match=f"{name}.*square"):
            function(tl.ones(2, 3), hermitian=True)


def test_a_tolerance_of_rank_is_absolute():
    x = tl.diag(tl.tensor([8.0, 1.0, 0.5, 0.0]))
    found = [linalg.matrix_rank(x, tol).item() for tol in (0.25, 0.5, 2.0, 8.0)]
    assert found == [3, 2, 1, 0]
    assert linalg.matrix_rank(x, rtol=0.1).item() == 2       # of the largest


def test_each_matrix_has_a_tolerance_of_its_own():
    x = tl.diag(tl.tensor([8.0, 1.0, 1e-7, 0.0])).expand(3, 4, 4)
    for atol, ranks in ((tl.tensor([0.0, 1e-8, 2.0]), [2, 3, 1]), (tl.tensor([0.5]), [2, 2, 2])):
        assert linalg.matrix_rank(x, atol=atol).tolist() == ranks      # 0 is the default, relative
        found = linalg.pinv(x, atol=atol)
        assert [linalg.matrix_rank(y, tol=1e-9).item() for y in found] == ranks


@pytest.mark.parametrize("p, wanted", [(None, 8.0), (2, 8.0), (-2, 0.125), (1, 8.0), ("fro", None)])
def test_condition_numbers(p, wanted):
    x = tl.tensor([[0.0, 4.0], [0.5, 0.0]], dtype=tl.float64)
    wanted = np.linalg.cond(x.numpy(), p) if wanted is None else wanted
    assert_same(linalg.cond(x, p), wanted)


def test_condition_numbers_of_no_elements_are_zero():
    for p in (None, 2, -2, 1, "fro", math.inf):
        assert linalg.cond(tl.ones(3, 0, 0), p).tolist() == [0.0] * 3
        assert linalg.cond(tl.ones(3, 0, 0, dtype=tl.complex64), p).dtype is tl.float32
    assert linalg.cond(tl.ones(0, 0)).shape == ()


# ---- singular values, roots of squares -----------------------------------------------------------

def test_singular_values_alone_come_with_zeros():
    x = RNG.normal(size=(4, 3, 5))
    u, s, v = tl.svd(tl.tensor(x), compute_uv=False)
    assert_same(s, np.linalg.svd(x, compute_uv=False))
    assert (u.shape, v.shape) == ((4, 3, 3), (4, 5, 5)) and not u.any() and not v.any()


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss", "gels"])
def test_least_squares_of_one_matrix_and_several_sides(driver):
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 5, 2))
    found = linalg.lstsq(tl.tensor(a), tl.tensor(b), driver=driver)
    known = [np.linalg.lstsq(a, side, None) for side in b]
    assert_same(found.solution, [x[0] for x in known])
    assert found.rank.tolist() == ([] if driver == "gels" else 3)
    if driver != "gelsy":
        assert_same(found.residuals, [x[1] for x in known])


def test_least_squares_of_a_vector_for_each_matrix():
    a, b = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 4))
    found = linalg.lstsq(tl.tensor(a), tl.tensor(b)).solution
    assert found.shape == (2, 3)
    assert_same(found, [np.linalg.lstsq(*pair, None)[0] for pair in zip(a, b)])


@pytest.mark.parametrize("angle", [0.1, 3.0, 40.0, -200.0])
def test_exponentials_of_large_matrices_are_squared_often_enough(angle):
    turn = tl.tensor([[0.0, -angle], [angle, 0.0]], dtype=tl.float64)
    cos, sin = math.cos(angle), math.sin(angle)
    assert_same(linalg.matrix_exp(turn), [[cos, -sin], [sin, cos]], atol=1e-9)
    assert_same(linalg.matrix_exp(tl.diag(tl.tensor([angle, -1.0], dtype=tl.float64)) / 20),
                [[math.exp(angle / 20), 0.0], [0.0, math.exp(-0.05)]])


@pytest.mark.parametrize("dtype, eps", [("float32", 2.0**-23), ("float64", 2.0**-52)])
def test_exponentials_are_exact_at_the_norms_where_the_order_changes(dtype, eps):
    rng = np.random.default_rng(0)
    for norm in (0.01, 0.0107, 0.0109, 0.19, 0.21, 0.33, 0.35, 0.78, 0.79, 1.4, 1.6, 1.9, 3.1, 3.2,
                 4.8, 7):
        x, towards = rng.normal(size=(2, 5, 5))
        x = (x / np.abs(x).sum(0).max() * norm).astype(dtype)
        given = tl.tensor(x, requires_grad=True)
        found = linalg.matrix_exp(given)
        wanted = series(x.astype(np.longdouble))
        assert np.abs(found.detach().numpy() - wanted).max() < 40 * eps * np.abs(wanted).max()
        found.backward(tl.tensor(towards.astype(dtype)))
        # exp of [[A, E], [0, A]] has the derivative of exp(A) towards E in its upper right
        both = np.block([[x.T, towards.astype(dtype)], [np.zeros_like(x), x.T]])
        wanted = series(both.astype(np.longdouble))[:5, 5:]
        assert np.abs(given.grad.numpy() - wanted).max() < 40 * eps * np.abs(wanted).max()


# ---- derivatives at singular matrices ------------------------------------------------------------

def minors(x):
    """The derivative of the determinant, from its definition."""
    n = len(x)
    return np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
                      for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("n, rank", [(2, 1), (2, 0), (3, 2), (3, 1), (12, 11), (12, 10)])
def test_the_gradient_of_a_determinant_that_is_zero(n, rank):
    x = np.zeros((n, n))
    x[:rank, :rank] = np.eye(rank) + np.tri(rank) / 4         # exactly singular
    x[:, -1] = x[:, 0]
    wanted = minors(x)
    leaf = tl.tensor(np.stack([x, np.eye(n)]), requires_grad=True)
    linalg.det(leaf).sum().backward()
    assert_same(leaf.grad, [wanted, np.eye(n)])


def test_the_gradient_of_a_determinant_that_is_not_finite():
    x = tl.tensor([[1.0, math.nan], [1.0, 1.0]], requires_grad=True)
    linalg.det(x).backward()
    assert x.grad.isnan().any()


@pytest.mark.parametrize("x", [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 4.0]],
                               [[1.0, 2.0], [3.0, 4.0]]])
def test_the_second_derivative_of_a_determinant(x):
    """a d - b c has the same one everywhere."""
    found = tl.func.hessian(linalg.det)(tl.tensor(x, dtype=tl.float64)).reshape(4, 4)
    assert_same(found, [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]], atol=1e-6)
    batch = tl.tensor([x, x], dtype=tl.float64)
    rows = tl.vmap(tl.func.hessian(linalg.det))(batch)
    assert_same(rows.reshape(2, 16)[1], found.flatten().tolist(), atol=1e-6)


# ---- without the functions of LAPACK that NumPy lacks --------------------------------------------

@pytest.mark.parametrize("x, pivots, info", [
    ([[1.0, 2.0], [3.0, 4.0]], [2, 2], 0), ([[0.0, 2.0], [0.0, 4.0]], [1, 2], 1),
    ([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [1, 3, 3], 1),
    ([[2.0, 1.0], [4.0, 2.0], [1.0, 5.0]], [2, 3], 0), ([[1.0, 1.0], [1.0, 1.0]], [1, 2], 2),
    ([[0.0, 0.0], [0.0, 0.0]], [1, 2], 1)])
def test_triangles_found_column_by_column(x, pivots, info):
    """As by LAPACK: of its rows exchanged, L @ U is the matrix."""
    a = np.array(x)
    found = lapack.lu_of(a)
    assert found == (pivots, info)
    m, n = a.shape
    k = min(m, n)
    lower, upper = np.tril(a[:, :k], -1) + np.eye(m, k), np.triu(a[:k])
    rows = np.array(x)
    for j, p in enumerate(pivots):
        rows[[j, p - 1]] = rows[[p - 1, j]]
    np.testing.assert_allclose(lower @ upper, rows, atol=1e-12)
    packed, own_pivots, own_info = linalg.lu_factor_ex(tl.tensor(x))
    assert (own_pivots.tolist(), own_info.item()) == (pivots, info)
    np.testing.assert_allclose(packed.numpy(), a, atol=1e-6)


@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_of_complex_matrices_with_blocks_of_two(hermitian):
    """A diagonal of zeros has no pivot of one number."""
    a = tl.tensor(RNG.normal(size=(2, 5, 5)) + 1j * RNG.normal(size=(2, 5, 5)))
    a = (a + (a.mH if hermitian else a.mT)) * (1 - np.eye(5))
    b = tl.tensor(RNG.normal(size=(5, 3)) + 1j * RNG.normal(size=(5, 3)))
    ld, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    assert (pivots < 0).any() and ld.dtype == tl.complex128
    x = linalg.ldl_solve(ld, pivots, b, hermitian=hermitian)
    assert_close(a @ x, b.expand(x.shape), rtol=1e-9, atol=1e-9)
    lower = a.tril() + RNG.normal(size=(5, 5)) * np.triu(np.ones((5, 5)), 1)     # is not read
    assert tl.equal(linalg.ldl_factor(lower, hermitian=hermitian)[0], ld)


# ---- gradients of values -------------------------------------------------------------------------

@pytest.mark.parametrize("name, beside", [("eigvalsh", "linalg_eigh"), ("svdvals", "linalg_svd")])
def test_values_in_a_graph_come_with_the_vectors_of_their_gradient(name, beside):
    """A second decomposition in the sweep took longer than one with vectors at once."""
    values, a = getattr(linalg, name), tl.tensor(SYMMETRIC, requires_grad=True)
    found = values(a)
    assert found.grad_fn.operation == beside
    assert_same(found.detach(), values(a.detach()))
    rows = tl.stack([a.detach(), 2 * a.detach()])
    along = tl.func.vmap(tl.func.grad(lambda x: (values(x) ** 2).sum()))(rows)
    assert_same(along, [2 * SYMMETRIC, 4 * SYMMETRIC])


def test_an_older_word_for_the_tolerance_of_pinv():
    x = tl.tensor([[4.0, 0.0], [0.0, 1.0]])
    for found in (linalg.pinv(x, 0.5), linalg.pinv(x, rcond=0.5), linalg.pinv(x, tl.tensor(0.5)),
                  linalg.pinv(x, 0.5, True), linalg.pinv(x, rtol=0.5)):
        assert found.tolist() == [[0.25, 0.0], [0.0, 0.0]]
    assert linalg.pinv(x, 0.1).tolist() == [[0.25, 0.0], [0.0, 1.0]]
    for more in ({"atol": 0.1}, {"rtol": 0.1}):
        with pytest.raises(RuntimeError, match="linalg.pinv: takes rcond, or atol and rtol"):
            linalg.pinv(x, 0.5, **more)


@pytest.mark.parametrize("function", [linalg.svd, linalg.svdvals])
def test_a_driver_is_of_other_devices(function):
    x = tl.tensor([[3.0, 0.0], [0.0, 4.0]])
    values = function(x, driver=None)
    assert (values if isinstance(values, tl.Tensor) else values.S).tolist() == [4.0, 3.0]
    with pytest.raises(RuntimeError, match=f"{function.__name__[7:]}: driver is only .* 'gesvd'"):
        function(x, driver="gesvd")
