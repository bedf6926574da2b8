"""Inverses, systems of equations, and the Cholesky factor."""

import math

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.create.ranges import eye
from tensorlib._core.layout.views import zeros
from tensorlib._core.products import elimination, small_matrices, triangles
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg.checks import (
    DTYPES, NOT_SQUARE, SQUARES, TAKEN, adjoint_rule, definite, first,
    prepared_by, refused_matrices, refusing, regular, require_matrices, require_no_failure,
    require_one_dtype, require_square, taken, with_info, without_checks,
)
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op

Factor = result_type("linalg_cholesky_ex", "L info")
Inverse = result_type("linalg_inv_ex", "inverse info")
Solution = result_type("linalg_solve_ex", "result info")

FEW_COLUMNS = 16         # of right-hand sides that a matrix is read for: with more, it matters less
MANY_ROWS = 1000         # of all of them, which are worth a copy
INT32 = BY_NAME["int32"]
NOT_DEFINITE = ("the factorization could not be completed because the input is not "
                "positive-definite (the leading minor of order {} is not positive-definite)")
SINGULAR = ("the diagonal element {} is zero, the {} could not be completed because the input "
            "matrix is singular")


def tensors(*arrays):
    """New arrays as Tensors."""
    return tuple(from_numpy(np.asarray(x)) for x in arrays)


def no_failures(A):
    """The info of matrices with which all is well."""
    return zeros(A.shape[:-2], INT32)


# ---- Cholesky ------------------------------------------------------------------------------------

@op(out=True, outputs=("L", "info"), public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=first(definite), samples=refusing(SQUARES), errors=NOT_SQUARE, reads_values=True,
    checks_values=True, reference=with_info(definite, np.linalg.cholesky), complex=True)
def linalg_cholesky_ex(A: Tensor, upper=False, check_errors=False):
    """The Cholesky factor of positive definite matrices, as a named tuple (L, info).

    L @ L.mH is A, of which one triangle is read. With `upper` it is L.mH that is returned. info is
    0, or the order of the first leading minor that is not positive; then L is NaN.

    Shapes: (*, N, N) -> (*, N, N), (*).
    Gradient: symmetric.
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64; LinAlgError for failures with `check_errors`.
    """
    require_square("linalg.cholesky", A)
    A = A.detach().mH if upper else A
    factor = small_matrices.cholesky(A)
    if factor is not None and not small_matrices.has_nan(factor):
        return Factor(factor.mH if upper else factor, no_failures(A))
    factor, info, failed = triangles.cholesky(A)
    if failed and check_errors:
        require_no_failure("linalg.cholesky", info.numpy(), NOT_DEFINITE)
    return Factor(factor.mH if upper else factor, info)


def lower_half(x):
    """The lower triangle with half of the diagonal."""
    return x.tril() - x * 0.5 * identity(x)


def identity(x):
    """The identity matrix of the size of the matrices of `x`."""
    return eye(x.shape[-1], dtype=x.dtype)


@linalg_cholesky_ex.vjp("A")
@packed_gradient
@adjoint_rule
def cholesky_vjp(g, L, upper):
    """Source: Murray, "Differentiation of the Cholesky decomposition", arXiv 1602.07527, 2016."""
    g, L = (g[0].mH, L.mH) if upper else (g[0], L)
    inner = lower_half(L.mH @ g)
    inner = inner + inner.mH
    outer = linalg_solve_triangular(L.mH, inner, upper=True)
    return linalg_solve_triangular(L, outer, upper=False, left=False) * 0.5


@linalg_cholesky_ex.jvp
def cholesky_jvp(d_A, L, upper):
    """L @ half(L^-1 @ d_A @ L^-H), half being the lower triangle with half of the diagonal."""
    L = L.mH if upper else L
    d_A = (d_A + d_A.mH) * 0.5
    inner = linalg_solve_triangular(L, linalg_solve_triangular(L, d_A, upper=False).mH, upper=False)
    moved = L @ lower_half(inner)
    return moved.mH if upper else moved, None


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           prepare=first(definite), samples=SQUARES, errors=NOT_SQUARE, reads_values=True,
           checks_values=True, reference=prepared_by(definite, np.linalg.cholesky))
def linalg_cholesky(A: Tensor, *, upper=False):
    """The Cholesky factor of positive definite matrices: the L with L @ L.mH = A, or L.mH.

    One triangle of A is read.

    Shapes: (*, N, N) -> (*, N, N).
    Gradient: symmetric.
    Raises: LinAlgError for what is not positive definite, RuntimeError for other than square
    matrices and for dtypes other than float32 and float64.

    >>> tensorlib.linalg.cholesky(tensorlib.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return linalg_cholesky_ex(A, upper, True)[0]


@composite(out=True, dtypes=TAKEN, tolerance="product", prepare=first(definite), samples=SQUARES,
           errors=NOT_SQUARE, reference=prepared_by(definite, np.linalg.cholesky),
           reads_values=True, checks_values=True, complex=True)
def cholesky(input, upper=False):
    """The Cholesky factor of positive definite matrices: see `linalg.cholesky`."""
    return linalg_cholesky_ex(input, upper, True)[0]


# ---- inverses ------------------------------------------------------------------------------------

@op(out=True, outputs=("inverse", "info"), public=False, method=False, dtypes=TAKEN,
    tolerance="product", prepare=first(regular), samples=refusing(SQUARES, 1), errors=NOT_SQUARE,
    reads_values=True, checks_values=True, reference=with_info(regular, np.linalg.inv),
    complex=True)
def linalg_inv_ex(A: Tensor, check_errors=False):
    """The inverse of square matrices, as a named tuple (inverse, info).

    info is 0, or the place of the first zero on the diagonal of U in the LU decomposition of a
    singular matrix, whose inverse is NaN.

    Shapes: (*, N, N) -> (*, N, N), (*).
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64; LinAlgError for singular matrices with `check_errors`.
    """
    require_square("linalg.inv", A)
    inverse = small_matrices.inverse(A)
    if inverse is not None and not small_matrices.has_nan(inverse):
        return Inverse(inverse, no_failures(A))
    inverse, info, failed = elimination.solve(
        A, eye(A.shape[-1], dtype=A.dtype).expand(A.shape))
    if failed and check_errors:
        require_no_failure("linalg.inv", info.numpy(), SINGULAR.format("{}", "inversion"))
    return Inverse(inverse, info)


@linalg_inv_ex.vjp("A")
def inv_vjp(g, inverse):
    """-X' g X', where X is the inverse."""
    return -(inverse.mT @ g[0] @ inverse.mT)


@linalg_inv_ex.jvp
def inv_jvp(d_A, inverse):
    """-X d_A X, where X is the inverse."""
    return -(inverse @ d_A @ inverse), None


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           prepare=first(regular), samples=SQUARES,
           errors=refused_matrices((RuntimeError, (2, 3)), (RuntimeError, (2, 2))),
           reference=prepared_by(regular, np.linalg.inv), reads_values=True, checks_values=True)
def linalg_inv(A: Tensor):
    """The inverse of square matrices.

    Shapes: (*, N, N) -> (*, N, N).
    Raises: LinAlgError for singular matrices, RuntimeError for other than square ones and for
    dtypes other than float32 and float64.

    >>> tensorlib.linalg.inv(tensorlib.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return linalg_inv_ex(A, True)[0]


@composite(out=True, dtypes=TAKEN, tolerance="product", prepare=first(regular), samples=SQUARES,
           errors=NOT_SQUARE, reference=prepared_by(regular, np.linalg.inv), reads_values=True,
           checks_values=True, complex=True)
def inverse(input):
    """The inverse of square matrices: see `linalg.inv`."""
    return linalg_inv_ex(input, True)[0]


# ---- systems of equations ------------------------------------------------------------------------

def systems(*cases):
    """Matrices and right-hand sides of the shapes in each case, then keywords."""
    def generate(rng):
        for a, b, *keywords in cases:
            yield (taken(rng, a), rng.uniform(-1, 1, b)), keywords[0] if keywords else {}
    return generate


def on_either_side(a, b, left):
    """For references: the X of a @ X = b, or of X @ a = b."""
    if left:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def solved(a, b, left=True):
    """The reference of `linalg_solve`."""
    a = regular(a)
    if b.ndim == 1 or a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return on_either_side(a, b, left)


@op(outputs=("result", "info"), public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=lambda a, b: (regular(a), b),
    samples=refusing(systems(((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1)), ((0, 0), (0, 2))), 1),
    reference=without_checks(lambda a, b: (solved(a, b), np.zeros(a.shape[:-2], np.int32))),
    reads_values=True, checks_values=True, complex=True)
def solve_matrices(A: Tensor, B: Tensor, check_errors=False):
    """X of A @ X = B for matrices of one batch shape, and info: see `linalg_solve_ex`."""
    result = small_matrices.solve(A, B)
    if result is not None and not small_matrices.has_nan(result):
        return Solution(result, no_failures(A))
    result, info, failed = elimination.solve(A, B)
    if failed and check_errors:
        require_no_failure("linalg.solve", info.numpy(), SINGULAR.format("{}", "solution"))
    return Solution(result, info)


@solve_matrices.vjp("A")
def solve_vjp_a(g, A, result):
    """-(A^-T @ g) @ X.mT, from A @ dX = dB - dA @ X."""
    return -(solve_matrices(A.mT, g[0])[0] @ result.mT)


@solve_matrices.vjp("B")
def solve_vjp_b(g, A):
    """The solution of A' x = g."""
    return solve_matrices(A.mT, g[0])[0]


@solve_matrices.jvp
def solve_jvp(d_A, d_B, A, result):
    """dX from A @ dX = dB - dA @ X."""
    return solve_matrices(A, d_B - d_A @ result)[0], None


def is_vector(A, B):
    """Whether the right-hand side is a vector, or a batch of these, one for each matrix."""
    return B.ndim == 1 or A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape


def one_batch(name, A, B, left):
    """Both matrices of A @ X = B, or their transposes where it is X @ A = B, with the batch of
    both; and the dims that went apart, for `put_back`, or None.

    Where B has few columns for each of some matrices of A, those of leading dims that A does not
    have go beside each other, so that a matrix is read and factored once. Raises: RuntimeError.
    """
    if not left:
        A, B = A.mT, B.mT
    if B.size(-2) != A.size(-1):
        raise RuntimeError(f"{name}: incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'}: {tuple((A if left else A.mT).shape)}"
                           f" and {tuple((B if left else B.mT).shape)}")
    if A.ndim == B.ndim == 2:
        return A, B, None
    batch = broadcast_shapes(name, A.shape[:-2], B.shape[:-2])
    count = dims_of_one_matrix(A, B)
    if count:
        sizes = B.shape[:count]
        A = A.reshape(A.shape[max(0, count - (B.ndim - A.ndim)):])
        B = B.movedim(tuple(range(count)), tuple(range(-1 - count, -1))).flatten(-1 - count)
        batch = batch[count:]
    return A.expand(batch + A.shape[-2:]), B.expand(batch + B.shape[-2:]), sizes if count else None


def put_back(X, sizes, left):
    """The solution with the dims that `one_batch` put beside each other."""
    if sizes is not None:
        count = len(sizes)
        X = X.unflatten(-1, (*sizes, -1))
        X = X.movedim(tuple(range(-1 - count, -1)), tuple(range(count)))
    return X if left else X.mT


def dims_of_one_matrix(A, B):
    """How many leading dims B has for the same matrices of A, if that is worth a copy."""
    columns = B.size(-1)
    if columns > FEW_COLUMNS or B.numel() < MANY_ROWS * columns:
        return 0
    sides, matrices = B.shape[:-2], A.shape[:-2]
    missing = len(sides) - len(matrices)
    count = 0
    while count < len(sides) and (count < missing or matrices[count - missing] == 1):
        count += 1
    return count if math.prod(sides[:count]) * B.size(-2) >= MANY_ROWS else 0


def solve_checked(A, B, left, check_errors):
    """The solution and info for any right-hand side."""
    require_square("linalg.solve", A)
    require_one_dtype("linalg.solve", A, B)
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError("linalg.solve: vectors on the right take left=True, got left=False")
    if B.ndim == 0:
        raise RuntimeError("linalg.solve: B must have at least 1 dimension, got a number")
    A, B, sizes = one_batch("linalg.solve", A, B.unsqueeze(-1) if vector else B, left)
    result, info = solve_matrices(A, B, check_errors)
    result = put_back(result, sizes, left)
    return result.squeeze(-1) if vector else result, info


SYSTEMS = systems(((3, 3), (3,)), ((2, 2, 2), (2, 2, 3)), ((2, 2, 2), (2, 2)),
                  ((2, 2), (3, 2, 1)), ((2, 2), (3, 2), {"left": False}))


@composite(public=False, method=False, outputs=("result", "info"), dtypes=DTYPES, out=True,
           tolerance="product", prepare=lambda a, b: (regular(a), b),
           samples=systems(((3, 3), (3,)), ((2, 2, 2), (2, 2, 3)), ((2, 2), (3, 2),
                                                                  {"left": False})),
           reference=lambda a, b, left=True: (solved(a, b, left),
                                              np.zeros(a.shape[:-2], np.int32)))
def linalg_solve_ex(A: Tensor, B: Tensor, *, left=True, check_errors=False):
    """The solution of linear equations as a named tuple (result, info).

    info is 0, or for a singular matrix the place of the first zero on the diagonal of U.

    Shapes and errors are those of `linalg.solve`; info has a number for each matrix of A.
    """
    result, info = solve_checked(A, B, left, check_errors)
    if info.numel() != math.prod(A.shape[:-2]):
        info = linalg_inv_ex(A.detach()).info
    return Solution(result, info.reshape(A.shape[:-2]))


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           prepare=lambda a, b: (regular(a), b), samples=SYSTEMS, reference=solved,
           errors=refused_matrices((RuntimeError, (2, 2), np.ones((3, 1))),
                                   (RuntimeError, (2, 2), np.ones((2, 1)))))
def linalg_solve(A: Tensor, B: Tensor, *, left=True):
    """The X of A @ X = B, or of X @ A = B where `left` is False.

    B is a vector, or a batch of these, where it has one dim or the shape of A without the last dim.

    Shapes: (*, N, N), (*, N, K) -> (*, N, K), with * broadcast; (*, N, N), (*, N) -> (*, N).
    Raises: LinAlgError for singular matrices, RuntimeError for shapes that do not fit and for
    dtypes other than float32 and float64.

    >>> tensorlib.linalg.solve(tensorlib.tensor([[2., 0.], [0., 4.]]), tensorlib.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    return solve_checked(A, B, left, True)[0]


def triangle(a, upper, unitriangular):
    """The triangle of NumPy's matrices that a solver reads."""
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return a


def triangle_solved(a, b, *, upper, left=True, unitriangular=False):
    """The reference of `linalg_solve_triangular`."""
    return on_either_side(triangle(regular(a), upper, unitriangular), b, left)


@op(public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=lambda a, b: (regular(a), b),
    samples=systems(((3, 3), (3, 2), {"upper": True}),
                    ((2, 2, 2), (2, 2, 1), {"upper": False, "unitriangular": True})),
    reference=triangle_solved, reads_values=True, packs=True, complex=True)
def solve_triangles(A: Tensor, B: Tensor, upper, unitriangular=False):
    """X of A @ X = B for triangular matrices of one batch shape."""
    return triangles.solve(A, B, upper, unitriangular)


@solve_triangles.vjp("A")
def triangles_vjp_a(g, A, out, upper, unitriangular):
    """As of `solve`, for the triangle that is read; a diagonal of ones has no gradient."""
    whole = -(solve_triangles(A.mT, g, not upper, unitriangular) @ out.mT)
    return whole.triu(int(unitriangular)) if upper else whole.tril(-int(unitriangular))


@solve_triangles.vjp("B")
def triangles_vjp_b(g, A, upper, unitriangular):
    """The solution of A' x = g."""
    return solve_triangles(A.mT, g, not upper, unitriangular)


@solve_triangles.jvp
def triangles_jvp(d_A, d_B, A, out, upper, unitriangular):
    """dX from A @ dX = dB - dA @ X, with the triangle of dA that is read."""
    d_A = d_A.triu(int(unitriangular)) if upper else d_A.tril(-int(unitriangular))
    return solve_triangles(A, d_B - d_A @ out, upper, unitriangular)


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           prepare=lambda a, b: (regular(a), b), reference=triangle_solved, reads_values=True,
           samples=systems(((3, 3), (3, 2), {"upper": True}),
                           ((2, 2), (3, 2, 2), {"upper": False, "left": False}),
                           ((2, 2, 2), (2, 1), {"upper": True, "unitriangular": True})))
def linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left=True, unitriangular=False):
    """The X of A @ X = B, or of X @ A = B where `left` is False, for triangular matrices.

    The other triangle is not read; the diagonal is taken as ones with `unitriangular`. A zero on
    it gives infinite and NaN elements.

    Shapes: (*, N, N), (*, N, K) -> (*, N, K), with * broadcast.
    Raises: RuntimeError for shapes that do not fit and for dtypes other than float32 and float64.
    """
    require_square("linalg.solve_triangular", A)
    require_matrices("linalg.solve_triangular", B, "B")
    require_one_dtype("linalg.solve_triangular", A, B)
    A, B, sizes = one_batch("linalg.solve_triangular", A, B, left)
    X = solve_triangles(A, B, bool(upper) == bool(left), bool(unitriangular))
    return put_back(X, sizes, left)
