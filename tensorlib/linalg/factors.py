"""LU decompositions, and solving by factors."""

import numpy as np

from tensorlib._core.base.results import result_type
from tensorlib._core.create.ranges import eye
from tensorlib._core.products import elimination, lapack as products, small_matrices, triangles
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    DTYPES, NO_MATRIX, NOT_SQUARE, SQUARES, TAKEN, adjoint_rule, first, matrices, refusing, regular,
    require_matrices, require_no_failure, require_one_dtype, require_square, taken, without_checks,
)
from tensorlib.linalg.inverses import identity, linalg_solve_triangular, on_either_side
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op
from tensorlib.ops.shape.joining import cat

LUFactor = result_type("linalg_lu_factor", "LU pivots")
LUFactorEx = result_type("linalg_lu_factor_ex", "LU pivots info")
PLU = result_type("linalg_lu", "P L U")
Unpacked = result_type("lu_unpack", "P L U")
Triangular = result_type("triangular_solve", "solution cloned_coefficient")


# ---- LU ------------------------------------------------------------------------------------------

def lu_reference(x):
    """The reference of `linalg_lu_factor_ex`, column by column."""
    x = regular(x)
    out = x.copy()
    found = [lapack.lu_of(matrix) for matrix in out.reshape((-1,) + x.shape[-2:])]
    pivots = np.array([p for p, _ in found], np.int32).reshape(x.shape[:-2] + (min(x.shape[-2:]),))
    return out, pivots, np.zeros(x.shape[:-2], np.int32)


@op(out=True, outputs=("LU", "pivots", "info"), public=False, method=False, dtypes=TAKEN,
    tolerance="product", prepare=first(regular), errors=NO_MATRIX,
    reference=without_checks(lu_reference), reads_values=True, checks_values=True,
    samples=refusing(matrices((3, 3), (3, 2), (2, 3), (2, 2, 2)), 1), complex=True)
def linalg_lu_factor_ex(A: Tensor, pivot=True, check_errors=False):
    """The LU decomposition in compact form, as a named tuple (LU, pivots, info).

    LU has U in its upper triangle and L below it, without the ones on its diagonal. pivots has for
    each column the row, from 1, with which that was exchanged; info is 0, or the place of the first
    zero on the diagonal of U.

    Shapes: (*, M, N) -> (*, M, N), (*, K), (*) with K = min(M, N).
    Raises: RuntimeError for less than two dims, dtypes other than float32 and float64, and without
    `pivot`; LinAlgError for a zero on the diagonal with `check_errors`.
    """
    require_matrices("linalg.lu_factor", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented")
    found = small_matrices.lu(A) or elimination.factors(A) or lapack.lu_factor(A)
    if check_errors:
        require_no_failure("linalg.lu_factor", found[2].numpy(), "U[{0},{0}] is zero, and using it "
                           "for solving would divide by zero")
    return LUFactorEx(*found)


def parts(LU):
    """The square part of L and U, and the rest of L below and of U beside it, which may be empty.
    """
    m, n = LU.shape[-2:]
    k = min(m, n)
    square = LU.narrow(-2, 0, k).narrow(-1, 0, k)
    below = LU.narrow(-2, k, m - k).narrow(-1, 0, k)
    beside = LU.narrow(-1, k, n - k).narrow(-2, 0, k)
    return square, below, beside


def after_lower(L, x):
    """x multiplied by the inverse of the unit lower triangle."""
    return linalg_solve_triangular(L, x, upper=False, unitriangular=True)


def after_lower_transposed(L, x):
    """x multiplied by the inverse of the unit lower triangle's transpose."""
    return linalg_solve_triangular(L.mT, x, upper=True, unitriangular=True)


def before_upper(U, x):
    """x multiplied from the right by the inverse of the upper triangle."""
    return linalg_solve_triangular(U, x, upper=True, left=False)


def before_upper_transposed(U, x):
    """x multiplied from the right by the inverse of the upper triangle's transpose."""
    return linalg_solve_triangular(U.mT, x, upper=False, left=False)


@linalg_lu_factor_ex.vjp("A")
@packed_gradient
def lu_vjp(g, LU, pivots):
    """What is below the square part is A2 @ inv(U), what is beside it inv(L) @ A2."""
    square, below, beside = parts(LU)
    g_square, g_below, g_beside = parts(g[0])
    g_below = before_upper_transposed(square, g_below)
    g_beside = after_lower_transposed(square, g_beside)
    g_upper = g_square.triu() - (below.mT @ g_below).triu()
    g_lower = g_square.tril(-1) - (g_beside @ beside.mT).tril(-1)
    inner = (unit_lower(square).mT @ g_lower).tril(-1) + (g_upper @ square.triu().mT).triu()
    inner = after_lower_transposed(square, before_upper_transposed(square, inner))
    return permutation_of(pivots, LU) @ joined(inner, g_below, g_beside)


def joined(square, below, beside):
    """The parts as one matrix."""
    if below.shape[-2]:
        return cat([square, below], -2)
    return cat([square, beside], -1) if beside.shape[-1] else square


@linalg_lu_factor_ex.jvp
def lu_jvp(d_A, LU, pivots):
    """With X = L^-1 @ P.mT @ d_A @ U^-1, dL = L @ tril(X, -1) and dU = triu(X) @ U."""
    square, below, beside = parts(LU)
    d_square, d_below, d_beside = parts(permutation_of(pivots, LU).mT @ d_A)
    inner = before_upper(square, after_lower(square, d_square))
    d_lower, d_upper = unit_lower(square) @ inner.tril(-1), inner.triu() @ square.triu()
    moved = joined(d_lower + d_upper, before_upper(square, d_below - below @ d_upper),
                   after_lower(square, d_beside - d_lower @ beside))
    return moved, None, None


def unit_lower(x):
    """The lower triangle of the first columns, with ones on the diagonal."""
    k = min(x.shape[-2:])
    x = x.narrow(-1, 0, k)
    return x.tril(-1) + eye(x.shape[-2], k, dtype=x.dtype)


def permutation_of(pivots, like):
    """The P of A = P @ L @ U in the dtype and of the rows of `like`."""
    return pivot_matrices(pivots, like.shape[-2]).to(like.dtype)


def exchanged(pivots, n):
    """For references: the permutation matrices that exchanges of rows make."""
    out = np.zeros((*pivots.shape[:-1], n, n), np.int32)
    for place in np.ndindex(pivots.shape[:-1]):
        rows = np.arange(n)
        for j, other in enumerate(pivots[place] - 1):
            rows[[j, other]] = rows[[other, j]]
        out[place][rows, np.arange(n)] = 1
    return out


@op(public=False, method=False, differentiable=False,
    samples=lambda rng: (((np.array(p), 3), {}) for p in ([3, 2, 3], [2, 2], [[3, 3], [1, 2]])),
    takes="integer", dtypes=("int32", "int64"),
    reference=exchanged, reads_values=True, packs=True, checks_values=True)
def pivot_matrices(pivots: Tensor, n):
    """The permutation matrices, of int32, that exchanges of rows make: see `linalg_lu`."""
    places = pivots.numpy(force=True)                     # refuses what has no elements
    if places.dtype.kind != "i" or places.ndim < 1:
        raise RuntimeError(f"lu: pivots must be integers from 1 to {n}")
    return products.permutation_matrices(pivots, n)


@composite(outputs=("LU", "pivots"), public=False, method=False, out=True, dtypes=DTYPES,
           tolerance="product", prepare=first(regular), samples=matrices((3, 3), (2, 3)),
           errors=NO_MATRIX, reference=lambda x: lu_reference(x)[:2], reads_values=True)
def linalg_lu_factor(A: Tensor, *, pivot=True):
    """The LU decomposition in compact form, as a named tuple (LU, pivots).

    LU has U in its upper triangle and L below it, without the ones on its diagonal. pivots has for
    each column the row, from 1, with which that was exchanged.

    Shapes: (*, M, N) -> (*, M, N), (*, K) with K = min(M, N).
    Raises: LinAlgError for a zero on the diagonal of U, RuntimeError as `linalg.lu_factor_ex`.
    """
    return LUFactor(*linalg_lu_factor_ex(A, pivot, True)[:2])


def unpacked(LU, pivots):
    """P, L and U of a compact decomposition."""
    k = min(LU.shape[-2:])
    return PLU(permutation_of(pivots, LU), unit_lower(LU), LU.narrow(-2, 0, k).triu())


def plu_reference(x):
    """The reference of `linalg_lu`."""
    lu, pivots, _ = lu_reference(x)
    k, order = min(x.shape[-2:]), exchanged(pivots, x.shape[-2]).astype(x.dtype)
    return order, np.tril(lu[..., :k], -1) + np.eye(x.shape[-2], k), np.triu(lu[..., :k, :])


@composite(outputs=("P", "L", "U"), public=False, method=False, out=True, dtypes=DTYPES,
           tolerance="product", prepare=first(regular), samples=matrices((3, 2), (2, 3), (2, 2, 2)),
           errors=NO_MATRIX, reference=plu_reference, reads_values=True)
def linalg_lu(A: Tensor, *, pivot=True):
    """The LU decomposition A = P @ L @ U, as a named tuple (P, L, U).

    P is a permutation, L lower triangular with ones on its diagonal, U upper triangular.

    Shapes: (*, M, N) -> (*, M, M), (*, M, K), (*, K, N) with K = min(M, N).
    Raises: RuntimeError as `linalg.lu_factor_ex`.
    """
    return unpacked(*linalg_lu_factor_ex(A, pivot)[:2])


@composite(outputs=("LU", "pivots"), dtypes=TAKEN, tolerance="product", prepare=first(regular),
           samples=matrices((3, 3), (2, 3)), errors=NO_MATRIX,
           reference=lambda x: lu_reference(x)[:2], reads_values=True, complex=True)
def lu(input, pivot=True, get_infos=False):
    """The LU decomposition in compact form: (LU, pivots), and infos with `get_infos`."""
    found = tuple(linalg_lu_factor_ex(input, pivot))
    return found if get_infos else found[:2]


def lu_given(lu, pivots, *_, **__):
    """The reference of `lu_unpack`."""
    k, order = min(lu.shape[-2:]), exchanged(pivots, lu.shape[-2]).astype(lu.dtype)
    return order, np.tril(lu[..., :k], -1) + np.eye(lu.shape[-2], k), np.triu(lu[..., :k, :])


def factored(rng):
    """A compact decomposition of a regular matrix, and its pivots."""
    lu, pivots, _ = lu_reference(rng.uniform(-1, 1, (3, 3)))
    return lu, pivots


@composite(out=True, tensors=("LU_data",), outputs=("P", "L", "U"), method=False, dtypes=TAKEN,
           samples=lambda rng: ((factored(rng), {}) for _ in range(1)),
           reference=lambda lu, pivots: tuple(x.astype(lu.dtype) for x in lu_given(lu, pivots)),
           reads_values=True, checks_values=True, complex=True)
def lu_unpack(LU_data: Tensor, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U of a compact LU decomposition, as a named tuple; empty what is not asked for."""
    require_matrices("lu_unpack", LU_data, "LU_data")
    p, lower, upper = unpacked(LU_data, LU_pivots)
    none = LU_data.new_zeros((0,))
    return Unpacked(p if unpack_pivots else none,
                    *((lower, upper) if unpack_data else (none, none)))


def solved_by_lu(lu, pivots, b, left=True, adjoint=False):
    """The reference of `linalg_lu_solve`."""
    p, lower, upper = lu_given(lu, pivots)
    a = p @ lower @ upper
    return on_either_side(a.swapaxes(-1, -2) if adjoint else a, b, left)


def factored_systems(rng):
    """Compact decompositions and right-hand sides."""
    for keywords, shape in (({}, (3, 2)), ({"adjoint": True}, (3, 1)), ({"left": False}, (2, 3))):
        yield (*factored(rng), rng.uniform(-1, 1, shape)), keywords


@composite(out=True, tensors=("LU", "B"), public=False, method=False, dtypes=DTYPES,
           tolerance="product",
           samples=factored_systems, reference=solved_by_lu, reads_values=True, checks_values=True)
def linalg_lu_solve(LU: Tensor, pivots, B: Tensor, *, left=True, adjoint=False):
    """The X of A @ X = B for the A that LU and pivots decompose: see `linalg.lu_factor`.

    left: else of X @ A = B. adjoint: A.mH stands for A.

    Shapes: (*, N, N), (*, N), (*, N, K) -> (*, N, K), with * broadcast.
    Raises: RuntimeError for shapes and pivots that do not fit, and for dtypes other than float32
    and float64.
    """
    require_square("linalg.lu_solve", LU, "LU")
    require_matrices("linalg.lu_solve", B, "B")
    require_one_dtype("linalg.lu_solve", LU, B)
    n = LU.shape[-1]
    if B.shape[-2 if left else -1] != n:
        raise RuntimeError("linalg.lu_solve: Incompatible shapes of A and B for the equation "
                           f"{'AX' if left else 'XA'} = B: {tuple(LU.shape)} and {tuple(B.shape)}")
    if tuple(pivots.shape[-1:]) != (n,):
        raise RuntimeError(f"linalg.lu_solve: takes a pivot for each of the {n} columns, got "
                           f"pivots of shape {tuple(pivots.shape)}")
    if not left:
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    order = pivot_matrices(pivots, n)
    if adjoint:
        inner = linalg_solve_triangular(LU.mH, B, upper=False)
        inner = linalg_solve_triangular(LU.mH, inner, upper=True, unitriangular=True)
        return permuted(order, inner)
    return linalg_solve_triangular(LU, after_lower(LU, permuted(order.mT, B)), upper=True)


def permuted(order, x):
    """order @ x for permutation matrices, without a product."""
    if not order.shape[-1]:
        return x
    rows = order.argmax(-1).unsqueeze(-1)
    while rows.ndim < x.ndim:
        rows = rows.unsqueeze(0)
    while x.ndim < rows.ndim:
        x = x.unsqueeze(0)
    return x.take_along_dim(rows, -2)


@composite(out=True, tensors=("input", "LU_data"), dtypes=TAKEN, tolerance="product",
           samples=lambda rng: (((b, lu, p), {}) for (lu, p, b), _ in list(
               factored_systems(rng))[:1]),
           reference=lambda b, lu, p: solved_by_lu(lu, p, b), reads_values=True, checks_values=True,
           complex=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots):
    """The X of A @ X = input for the A that LU_data and LU_pivots decompose."""
    return linalg_lu_solve(LU_data, LU_pivots, input)


# ---- by Cholesky factors and triangles -----------------------------------------------------------

def of_factor(function):
    """The reference of a function of a right-hand side and a Cholesky factor."""
    def reference(b, x, upper=False):
        x = np.triu(regular(x)) if upper else np.tril(regular(x))
        adjoint = x.swapaxes(-1, -2).conj()
        return function(b, adjoint @ x if upper else x @ adjoint)
    return reference


def sides_first(*cases):
    """Right-hand sides and matrices of the shapes in each case, then keywords."""
    def generate(rng):
        for b, a, *keywords in cases:
            yield (rng.uniform(-1, 1, b), taken(rng, a)), keywords[0] if keywords else {}
    return generate


@composite(out=True, dtypes=TAKEN, tolerance="product", prepare=lambda b, a: (b, regular(a)),
           samples=sides_first(((3, 2), (3, 3)), ((2, 2, 1), (2, 2), {"upper": True})),
           reference=of_factor(lambda b, a: np.linalg.solve(a, b)), reads_values=True, complex=True)
def cholesky_solve(input, input2: Tensor, upper=False):
    """The X of A @ X = input for the A whose Cholesky factor is input2 (with `upper`, input2.mH).

    Shapes: (*, N, K), (*, N, N) -> (*, N, K), with * broadcast.
    Raises: RuntimeError for shapes that do not fit and for dtypes other than float32 and float64.
    """
    require_square("cholesky_solve", input2, "L")
    require_matrices("cholesky_solve", input, "B")
    lower = input2.mH if upper else input2
    inner = linalg_solve_triangular(lower, input, upper=False)
    return linalg_solve_triangular(lower.mH, inner, upper=True)


@composite(out=True, dtypes=TAKEN, tolerance="product", prepare=first(regular), samples=SQUARES,
           errors=NOT_SQUARE,
           reference=lambda x: np.linalg.inv(np.tril(regular(x)) @ np.tril(
               regular(x)).swapaxes(-1, -2).conj()), reads_values=True, complex=True)
def cholesky_inverse(input, upper=False):
    """The inverse of the A whose Cholesky factor is `input` (with `upper`, its transpose)."""
    require_square("cholesky_inverse", input, "L")
    lower = input.mH if upper else input
    if lower.shape[-1] > SMALL or lower.dtype.is_complex:
        return inverse_by_factor(lower)
    inner = linalg_solve_triangular(lower, identity(lower), upper=False)
    return inner.mT @ inner


SMALL = 32                   # rows up to which two operations take no longer than one


@op(public=False, method=False, dtypes=TAKEN, tolerance="product", prepare=first(regular),
    samples=SQUARES, reads_values=True, packs=True, complex=True,
    reference=lambda x: np.linalg.inv(np.tril(regular(x)) @ np.tril(
        regular(x)).swapaxes(-1, -2).conj()))
def inverse_by_factor(A: Tensor):
    """The inverse of L @ L.mH for the lower triangle L of A."""
    require_square("cholesky_inverse", A, "L")
    return triangles.inverse_by_factor(A)


@inverse_by_factor.vjp("A")
@packed_gradient
@adjoint_rule
def inverse_by_factor_vjp(g, A, out):
    """-tril(out @ (g + g.mH) @ out @ L), where out @ L is the inverse of L.mH"""
    moved = out @ (g + g.mH)
    return -linalg_solve_triangular(A.mH, moved, upper=True, left=False).tril()


@inverse_by_factor.jvp
def inverse_by_factor_jvp(d_A, A, out):
    """-(W + W.mH) with W = out @ dL @ inverse(L)"""
    moved = linalg_solve_triangular(A, out @ d_A.tril(), upper=False, left=False)
    return -(moved + moved.mH)


@composite(out=True, outputs=("solution", "cloned_coefficient"), dtypes=TAKEN, tolerance="product",
           prepare=lambda b, a: (b, regular(a)), samples=sides_first(((3, 2), (3, 3))),
           reference=lambda b, a: (np.linalg.solve(np.triu(regular(a)), b), regular(a)),
           reads_values=True, complex=True)
def triangular_solve(input, A: Tensor, upper=True, transpose=False, unitriangular=False):
    """The X of A @ X = input for a triangle of A, as a named tuple with a copy of A.

    transpose: A.mT @ X = input. See `linalg.solve_triangular`.
    """
    a, upper = (A.mT, not upper) if transpose else (A, upper)
    return Triangular(linalg_solve_triangular(a, input, upper=upper, unitriangular=unitriangular),
                      A.clone())
