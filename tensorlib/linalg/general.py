"""Eigenvalues of matrices that are not symmetric, and least squares."""

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.products import small_matrices
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    DTYPES, NOT_SQUARE, SQUARES, TAKEN, adjoint_rule, first, refused_matrices,
    regular, require_matrices, require_one_dtype, require_square, values_behind,
)
from tensorlib.linalg.inverses import (
    identity, is_vector, linalg_solve_triangular, solve_matrices, systems, tensors,
)
from tensorlib.linalg.norms import linalg_matrix_rank
from tensorlib.linalg.orthogonal import qr_tall, triangle_of
from tensorlib.linalg.phases import turned, with_phases
from tensorlib.linalg.spectra import (
    decomposed, divided, gaps, linalg_pinv, linalg_svdvals, on_diagonal, pinv_jvp, pinv_vjp,
    singular_values,
)
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op
from tensorlib.ops.shape.joining import cat

Eigen = result_type("linalg_eig", "eigenvalues eigenvectors")
LeastSquares = result_type("linalg_lstsq", "solution residuals rank singular_values")
INT64 = BY_NAME["int64"]


# ---- eigenvalues ---------------------------------------------------------------------------------

def eig_reference(x):
    """The reference of `linalg_eig`: NumPy's, with the signs that vectors of ours have."""
    values, vectors = (found.astype(np.complex128) for found in np.linalg.eig(regular(x)))
    return values, vectors * lapack.signs(vectors) if vectors.size else vectors


def moved(d_A, eigenvalues, eigenvectors):
    """The tangents of both, of which the vectors keep their length."""
    inner = solve_matrices(eigenvectors, d_A.to(eigenvectors.dtype) @ eigenvectors)[0]
    vectors = eigenvectors @ divided(inner, gaps(eigenvalues))
    along = (eigenvectors.conj() * vectors).sum(-2, True).real
    return inner.diagonal(0, -2, -1), *turned(eigenvectors, vectors - eigenvectors * along)


@op(out=True, outputs=("eigenvalues", "eigenvectors"), public=False, method=False, dtypes=TAKEN,
    tolerance="product", prepare=first(regular), samples=SQUARES, errors=NOT_SQUARE,
    reference=eig_reference, reads_values=True, packs=True, checks_values=True, complex=True)
def linalg_eig(A: Tensor):
    """The eigenvalues of square matrices and their eigenvectors, as columns of length 1.

    Both are complex, also of a real matrix. They are in no order. The first element of an
    eigenvector whose size is at least 0.6 times that of its largest one is real and positive.

    Shapes: (*, N, N) -> (*, N), (*, N, N).
    Gradient: infinite or NaN for eigenvectors of equal eigenvalues.
    Raises: RuntimeError for other than square matrices and for half types and integers; LinAlgError
    for NaN and infinities, and where the algorithm does not converge.

    >>> tensorlib.linalg.eig(tensorlib.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    require_square("linalg.eig", A)
    return Eigen(*tensors(*lapack.eig("linalg.eig", A.numpy(force=True))))


@linalg_eig.vjp("A")
@packed_gradient
@adjoint_rule
def eig_vjp(g, eigenvalues, eigenvectors):
    """Source: Boeddeker and others, "On the Computation of Complex-valued Gradients", 2017."""
    g_values, g_vectors = g
    inner = 0
    if g_vectors is not None:
        g_vectors = with_phases(eigenvectors, g_vectors)
        along = (eigenvectors.conj() * g_vectors).sum(-2, True).real
        inner = divided(eigenvectors.mH @ (g_vectors - eigenvectors * along),
                        gaps(eigenvalues).conj())
    if g_values is not None:
        inner = inner + on_diagonal(g_values)
    return solve_matrices(eigenvectors.mH, inner @ eigenvectors.mH)[0]


@linalg_eig.jvp
def eig_jvp(d_A, eigenvalues, eigenvectors):
    """With P = V^-1 @ d_A @ V, diag(P) and V @ (P / (l_j - l_i)), the vectors' length kept."""
    return moved(d_A, eigenvalues, eigenvectors)


@op(out=True, public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=first(regular),
    samples=SQUARES, errors=NOT_SQUARE,
    reference=lambda x: np.linalg.eigvals(regular(x)).astype(np.complex128),
    reads_values=True, packs=True, checks_values=True, complex=True)
def linalg_eigvals(A: Tensor):
    """The eigenvalues of square matrices, which are complex: see `linalg.eig`.

    Shapes: (*, N, N) -> (*, N).
    Raises: as `linalg.eig`.
    """
    require_square("linalg.eigvals", A)
    return tensors(lapack.eigvals("linalg.eigvals", A.numpy(force=True)))[0]


@linalg_eigvals.vjp("A")
@packed_gradient
def eigvals_vjp(g, A):
    """V^-T @ diag(g) @ V.mT with V the eigenvectors."""
    vectors = linalg_eig(A)[1]
    return solve_matrices(vectors.mT, g.unsqueeze(-1) * vectors.mT)[0]


@linalg_eigvals.jvp
def eigvals_jvp(d_A, A):
    """The diagonal of V^-1 @ d_A @ V with V the eigenvectors."""
    vectors = linalg_eig(A)[1]
    return solve_matrices(vectors, d_A.to(vectors.dtype) @ vectors)[0].diagonal(0, -2, -1)


# ---- least squares -------------------------------------------------------------------------------

def fitted(a, b):
    """The reference of `least_squares`."""
    return np.linalg.pinv(regular(a)) @ b, np.full(a.shape[:-2], min(a.shape[-2:]))


LONG = systems(((3, 2), (3, 1)), ((2, 3), (2, 2)), ((2, 3, 2), (2, 3, 1)))


@op(outputs=("solution", "rank"), public=False, method=False, dtypes=TAKEN, tolerance="product",
    samples=LONG, reference=fitted, prepare=lambda a, b: (regular(a), b),
    reads_values=True, packs=True, checks_values=True, complex=True)
def least_squares(A: Tensor, B: Tensor, rcond=None):
    """The X of least size that makes A @ X - B smallest, for matrices of one batch shape, and the
    rank of A."""
    A, B = A.detach(), B.detach()
    m, n = A.shape[-2:]
    rcond = rcond if rcond is None else float(rcond)
    if rcond is None:
        rcond = max(m, n) * float(np.finfo(A.dtype.name).eps)
    if m < n or small_matrices.small(A):
        q, r = qr_tall(A.mH if m < n else A)           # so that the other one is small
        triangle, sides = (r.mH, B) if m < n else (r, q.mH @ B)
    else:                                              # of which Q.mH @ B comes without Q
        triangle = triangle_of(cat([A, B], -1)).narrow(-2, 0, n)
        triangle, sides = triangle.narrow(-1, 0, n), triangle.narrow(-1, n, B.shape[-1])
        r = triangle
    both = cat([sides, identity(r).expand(r.shape)], -1)             # solved at once
    both = linalg_solve_triangular(triangle, both, upper=m >= n)
    solution, inverse = both[..., :B.shape[-1]], both[..., B.shape[-1]:]
    if surely_regular(r, inverse, rcond) or has_full_rank(r, rcond):
        solution = q @ solution if m < n else solution.contiguous()
        return solution, A.new_full(A.shape[:-2], min(m, n), dtype=INT64)
    u, values, vh = decomposed("linalg.lstsq", r, False)
    kept = values > rcond * values[..., :1]
    inverse = (1 / values.where(kept, 1)).where(kept, 0).unsqueeze(-1)
    if m < n:
        solution = q @ (u @ (inverse * (vh @ B)))
    else:
        solution = vh.mH @ (inverse * (u.mH @ sides))
    return solution, kept.sum(-1)


def surely_regular(r, inverse, rcond):
    """Whether no singular value of matrices is up to rcond times the largest: by the norms of
    Frobenius of these and of their inverses, which bound both, with room for rounding."""
    squares = [x.abs().square().sum((-2, -1)) for x in (r, inverse)]
    return bool((squares[0] * squares[1] * (rcond * abs(rcond)) < 0.25).all())


def has_full_rank(r, rcond):
    """The same by the singular values, which take a fraction of what the vectors take, too."""
    values = singular_values("linalg.lstsq", r)
    return bool((values[..., -1] > rcond * values[..., 0]).all())


def inverse_of(A, rank, rcond):
    """The pseudo-inverse of a solved system: of full rank by R of A = Q @ R or of its adjoint."""
    m, n = A.shape[-2:]
    if not (values_behind(rank) == min(m, n)).all():
        return linalg_pinv(A, rcond)
    q, r = qr_tall(A.mH if m < n else A)
    inverse = linalg_solve_triangular(r, q.mH, upper=True)
    return inverse.mH if m < n else inverse


@least_squares.vjp("A")
def least_squares_vjp_a(g, A, B, rank, rcond):
    """The result is pinv(A) @ B, so the pseudo-inverse gets g @ B.mT."""
    return pinv_vjp(g[0] @ B.mT, A, inverse_of(A, rank, rcond))


@least_squares.vjp("B")
def least_squares_vjp_b(g, A, rank, rcond):
    """pinv(A)' g."""
    return inverse_of(A, rank, rcond).mT @ g[0]


@least_squares.jvp
def least_squares_jvp(d_A, d_B, A, B, rank, rcond):
    """d(pinv(A)) @ B + pinv(A) @ d_B"""
    inverse = inverse_of(A, rank, rcond)
    return pinv_jvp(d_A, A, inverse) @ B + inverse @ d_B, None


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq_reference(a, b, driver="gelsy"):
    """The reference of `linalg_lstsq`."""
    (x, _), k = fitted(a, b), min(a.shape[-2:])
    residuals = ((regular(a) @ x - b) ** 2).sum(-2)
    values = np.linalg.svd(regular(a), compute_uv=False)
    none = np.zeros(0, a.real.dtype)
    return (x, residuals if driver == "gelsd" and a.shape[-2] > k else none,
            np.full(a.shape[:-2], k), values if driver == "gelsd" else none)


@composite(out=True, outputs=("solution", "residuals", "rank", "singular_values"), public=False,
           method=False,
           dtypes=DTYPES, tolerance="product", prepare=lambda a, b: (regular(a), b),
           samples=systems(((3, 2), (3, 1)), ((2, 3), (2, 2)), ((3, 2), (3, 2), {
               "driver": "gelsd"})),
           reference=lstsq_reference,
           errors=refused_matrices((RuntimeError, (3, 2), np.ones((2, 1))),
                                   (RuntimeError, (3,), np.ones(3))),
           reads_values=True, checks_values=True)
def linalg_lstsq(A: Tensor, B: Tensor, rcond=None, *, driver=None):
    """The X that makes the sum of squares of A @ X - B smallest, and of these the least.

    It is a named tuple (solution, residuals, rank, singular_values). Singular values up to rcond
    times the largest, by default the step of the dtype times the larger size, count as 0. `driver`
    is one of LAPACK's, by default "gelsy". All compute alike here, by singular values where the
    rank may not be full. They differ in what is not empty: the rank except for "gels", residuals of
    full rank with M > N except for "gelsy", the singular values for "gelsd" and "gelss". B is a
    vector, or a batch of these, where it has the shape of A without the last dim.

    Shapes: (*, M, N), (*, M, K) -> (*, N, K), with * broadcast; (*, M, N), (*, M) -> (*, N).
    Raises: RuntimeError for shapes that do not fit, for other drivers, and for dtypes other than
    float32 and float64.
    """
    require_matrices("linalg.lstsq", A)
    require_one_dtype("linalg.lstsq", A, B)
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise RuntimeError(f"linalg.lstsq: driver must be one of {DRIVERS}, got {driver!r}")
    vector = is_vector(A, B)
    if B.ndim == 0 or B.shape[-1 if vector else -2] != A.shape[-2]:
        raise RuntimeError("linalg.lstsq: A and B must have equally many rows, got shapes "
                           f"{tuple(A.shape)} and {tuple(B.shape)}")
    sides = B.unsqueeze(-1) if vector else B
    batch = broadcast_shapes("linalg.lstsq", A.shape[:-2], sides.shape[:-2])
    a, sides = A.expand(batch + A.shape[-2:]), sides.expand(batch + sides.shape[-2:])
    x, rank = least_squares(a, sides, rcond)
    none = A.new_zeros((0,), dtype=A.dtype.to_real())
    if A.shape != a.shape:
        rank = linalg_matrix_rank(A, rtol=rcond)
    residuals = none
    if driver != "gelsy" and A.shape[-2] > A.shape[-1] and (
            values_behind(rank) == A.shape[-1]).all():
        residuals = (a @ x - sides).abs().square().sum(-2)
    values = linalg_svdvals(A) if driver in ("gelsd", "gelss") else none
    if vector:
        x = x.squeeze(-1)
    return LeastSquares(x, residuals, rank.new_zeros((0,)) if driver == "gels" else rank, values)
