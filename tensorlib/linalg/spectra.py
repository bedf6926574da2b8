"""Eigenvalues and singular values, and functions computed from these."""

import numpy as np

from tensorlib._core.base.results import result_type
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.products import small_matrices
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    NO_MATRIX, NOT_SQUARE, SQUARES, TAKEN, adjoint_rule, first, matrices, prepared_by, regular,
    require_matrices, require_square, symmetric,
)
from tensorlib.linalg.inverses import identity, tensors
from tensorlib.linalg.orthogonal import qr_tall, triangle_of
from tensorlib.linalg.phases import turned, with_phases
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import composite, op
from tensorlib.ops.shape.joining import cat

Eigen = result_type("linalg_eigh", "eigenvalues eigenvectors")
Singular = result_type("linalg_svd", "U S Vh")
OldSingular = result_type("svd", "U S V")


def wants_vectors(A):
    """Whether a graph is recorded: the gradient of values needs the vectors that come with them."""
    return A.requires_grad and is_grad_enabled()


# ---- symmetric matrices --------------------------------------------------------------------------

def is_upper(name, UPLO):
    """Whether the upper triangle is meant. Raises: RuntimeError."""
    if not isinstance(UPLO, str) or UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"{name}: expected UPLO to be 'L' or 'U', got {UPLO!r}")
    return UPLO in "Uu"


def eigen_reference(x):
    """The reference of `linalg_eigh`: NumPy's, with the signs that vectors of ours have."""
    values, vectors = np.linalg.eigh(symmetric(x))
    return values, vectors * lapack.signs(vectors) if vectors.size else vectors


@op(out=True, outputs=("eigenvalues", "eigenvectors"), public=False, method=False, dtypes=TAKEN,
    tolerance="product", prepare=first(symmetric), samples=SQUARES, errors=NOT_SQUARE,
    reference=eigen_reference, reads_values=True, checks_values=True, complex=True, packs=True)
def linalg_eigh(A: Tensor, UPLO="L"):
    """The eigenvalues of symmetric matrices in ascending order and their eigenvectors, as columns.

    Complex matrices are Hermitian, and their eigenvalues real. One triangle of A is read. The first
    element of an eigenvector that is at least 0.6 times its largest one is positive.

    Shapes: (*, N, N) -> (*, N), (*, N, N).
    Gradient: infinite or NaN for eigenvectors of equal eigenvalues.
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64; LinAlgError where the algorithm does not converge.

    >>> tensorlib.linalg.eigh(tensorlib.tensor([[2., 1.], [1., 2.]])).eigenvalues
    tensor([1., 3.])
    """
    require_square("linalg.eigh", A)
    found = small_matrices.eigen(A.detach().mT if is_upper("linalg.eigh", UPLO) else A, True)
    if found is not None and not small_matrices.has_nan(found[0]):
        return Eigen(*found)
    return Eigen(*tensors(*lapack.eigh("linalg.eigh", A, is_upper("linalg.eigh", UPLO))))


def gaps(values):
    """values[j] - values[i], and 1 on the diagonal."""
    return values.unsqueeze(-2) - values.unsqueeze(-1) + identity(values)


def without_diagonal(x):
    """x with zeros on the diagonal."""
    return x * (1 - identity(x))


def divided(x, gaps):
    """x / gaps off the diagonal; 0 where x is, also between equal values."""
    return without_diagonal(x / gaps.where(x != 0, 1))


def on_diagonal(x):
    """Diagonal matrices of the vectors of `x`."""
    return x.unsqueeze(-1) * identity(x)


@linalg_eigh.vjp("A")
@adjoint_rule
def eigh_vjp(g, eigenvalues, eigenvectors):
    """Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation", 2008."""
    g_values, g_vectors = g
    if g_vectors is None:
        return (eigenvectors * g_values.unsqueeze(-2)) @ eigenvectors.mH
    along = eigenvectors.mH @ with_phases(eigenvectors, g_vectors)
    inner = divided((along - along.mH) * 0.5, gaps(eigenvalues))
    if g_values is not None:
        inner = inner + on_diagonal(g_values.to(eigenvectors.dtype))
    return eigenvectors @ inner @ eigenvectors.mH


@linalg_eigh.jvp
def eigh_jvp(d_A, eigenvalues, eigenvectors):
    """With P = V.mH @ d_A @ V, diag(P) and V @ (P / (l_j - l_i)), of d_A's Hermitian part."""
    inner = eigenvectors.mH @ ((d_A + d_A.mH) * 0.5) @ eigenvectors
    return (inner.diagonal(0, -2, -1).real,
            *turned(eigenvectors, eigenvectors @ divided(inner, gaps(eigenvalues))))


OF_SYMMETRIC = dict(
    public=False, method=False, dtypes=TAKEN, tolerance="product", prepare=first(symmetric),
    samples=SQUARES, errors=NOT_SQUARE, reference=prepared_by(symmetric, np.linalg.eigvalsh),
    reads_values=True, checks_values=True, complex=True)


@composite(out=True, **OF_SYMMETRIC)
def linalg_eigvalsh(A: Tensor, UPLO="L"):
    """The eigenvalues of symmetric matrices in ascending order.

    Shapes: (*, N, N) -> (*, N).
    Raises: as `linalg.eigh`.
    """
    require_square("linalg.eigvalsh", A)
    return linalg_eigh(A, UPLO)[0] if wants_vectors(A) else eigenvalues_alone(A, UPLO)


@op(**OF_SYMMETRIC)
def eigenvalues_alone(A: Tensor, UPLO="L"):
    """The eigenvalues of symmetric matrices, found without vectors."""
    require_square("linalg.eigvalsh", A)
    upper = is_upper("linalg.eigvalsh", UPLO)
    found = small_matrices.eigen(A.detach().mT if upper else A, False)
    if found is not None and not small_matrices.has_nan(found[0]):
        return found[0]
    return tensors(lapack.eigvalsh("linalg.eigvalsh", A, upper))[0]


@eigenvalues_alone.vjp("A")
@packed_gradient
@adjoint_rule
def eigvalsh_vjp(g, A, UPLO):
    """V @ diag(g) @ V.mH, since each eigenvalue changes by v.mH @ dA @ v."""
    vectors = linalg_eigh(A, UPLO)[1]
    return (vectors * g.unsqueeze(-2)) @ vectors.mH


@eigenvalues_alone.jvp
def eigvalsh_jvp(d_A, A, UPLO):
    """v.mH @ d_A @ v for each eigenvector v, of d_A's Hermitian part."""
    vectors = linalg_eigh(A, UPLO)[1]
    return (vectors.conj() * (((d_A + d_A.mH) * 0.5) @ vectors)).sum(-2).real


# ---- singular values -----------------------------------------------------------------------------

ANY_SHAPE = matrices((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2))


def singular_reference(x, full_matrices=True):
    """The reference of `linalg_svd`: NumPy's, with the signs that vectors of ours have."""
    return lapack.svd_of(regular(x), full_matrices)


@op(out=True, outputs=("U", "S", "Vh"), public=False, method=False, dtypes=TAKEN,
    tolerance="product",
    prepare=first(regular), reference=singular_reference, errors=NO_MATRIX,
    samples=lambda rng: (((x,), {"full_matrices": full}) for full in (True, False)
                         for (x,), _ in matrices((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 1))(rng)),
    reads_values=True, checks_values=True, complex=True, packs=True)
def linalg_svd(A: Tensor, full_matrices=True, *, driver=None):
    """The singular value decomposition A = U @ diag(S) @ Vh, as a named tuple (U, S, Vh).

    S is in descending order. Without `full_matrices` U and Vh have as many vectors as there are
    singular values. The first element of a column of U that is at least 0.6 times its largest one
    is positive.

    Shapes: (*, M, N) -> (*, M, M), (*, K), (*, N, N) with K = min(M, N); or (*, M, K), (*, K),
    (*, K, N).
    Gradient: infinite or NaN for singular vectors of equal singular values, or of 0 where M and N
    differ.
    Raises: RuntimeError for less than two dims, for dtypes other than float32 and float64 and for a
    `driver`, which only other devices have; LinAlgError where the algorithm does not converge.
    """
    require_matrices("linalg.svd", A)
    refuse_driver("linalg.svd", driver)
    return Singular(*decomposed("linalg.svd", A, full_matrices))


def refuse_driver(name, driver):
    """Raises: RuntimeError for a driver, of which there is one on CPUs."""
    if driver is not None:
        raise RuntimeError(f"{name}: driver is only supported on CUDA, got {driver!r}")


def decomposed(name, A, full):
    """U, the singular values and V transposed, of matrices outside of graphs."""
    found = small_matrices.singular(A, True)
    if found is not None and not small_matrices.has_nan(found[1]):
        return found
    if not full and is_long(A):
        return long_svd(name, A.detach())
    return tensors(*lapack.svd(name, A, bool(full)))


SMALL, LONG = 16, 1 << 13        # columns for which there is a kernel; elements from which on
FEW = 8                          # columns for which that is faster than LAPACK also at one matrix


def is_long(A):
    """Whether matrices have so many more rows than columns, or the reverse, that R is faster."""
    least, most = sorted(A.shape[-2:])
    if least <= FEW and not A.is_complex():          # there is a kernel for R, but not for these
        return A.numel() > 0 and least < most
    return A.numel() > 0 and 2 * least <= most and (least <= SMALL or least * most >= LONG)


def long_svd(name, A):
    """The decomposition of long matrices by that of R, of A = Q @ R or of its adjoint."""
    wide = A.shape[-2] < A.shape[-1]
    q, r = qr_tall(A.mH if wide else A)
    u, values, vh = decomposed(name, r, False)
    u, vh = (vh.mH, (q @ u).mH) if wide else (q @ u, vh)
    turn = tensors(lapack.signs(u.numpy()))[0]
    return (u * turn).contiguous(), values, (turn.mH * vh).contiguous()


def split(vectors, k):
    """The columns that belong to singular values, and the rest, None where there are none."""
    if vectors.shape[-1] == k:
        return vectors, None
    return vectors.narrow(-1, 0, k), vectors.narrow(-1, k, vectors.shape[-1] - k)


def gradients_with_phases(vectors, gradients, k):
    """Gradients of complex U and V that do not depend on phases: the first k columns of both turn
    together, others alone."""
    (u, u_rest), (v, v_rest) = (split(x, k) for x in vectors)
    (g_u, g_u_rest), (g_v, g_v_rest) = (
        (None, None) if g is None else split(g, k) for g in gradients)
    g_u = with_phases(u, g_u, (v, g_v))
    found = []
    for own, rest, g, g_rest in ((u, u_rest, g_u, g_u_rest), (v, v_rest, g_v, g_v_rest)):
        if g is None or rest is None:
            found.append(g)
            continue
        g_rest = rest * 0 if g_rest is None else with_phases(rest, g_rest)
        found.append(cat([g, g_rest], -1))
    return found


def gradient_of_columns(g, vectors, rest, k):
    """The gradient of the columns that belong to singular values, to which the rest is normal."""
    if g is None or rest is None:
        return g
    g, g_rest = split(g, k)
    return g - rest @ (g_rest.mH @ vectors)


@linalg_svd.vjp("A")
@adjoint_rule
def svd_vjp(g, U, S, Vh):
    """Source: Townsend, "Differentiating the singular value decomposition", 2016."""
    g_u, g_s, g_vh = g
    k = S.shape[-1]
    u, u_rest = split(U, k)
    v, v_rest = split(Vh.mH, k)
    if g_u is None and g_vh is None:
        return (u * g_s.unsqueeze(-2)) @ v.mH
    g_v = None if g_vh is None else g_vh.mH
    if U.is_complex():
        g_u, g_v = gradients_with_phases((U, Vh.mH), (g_u, g_v), k)
    g_u = gradient_of_columns(g_u, u, u_rest, k)
    g_v = gradient_of_columns(g_v, v, v_rest, k)
    squares = gaps(S.square())
    inner = 0 if g_s is None else on_diagonal(g_s.to(U.dtype))
    beside = 0
    if g_u is not None:
        along = u.mH @ g_u
        skew = along - along.mH
        inner = inner + divided(skew, squares) * S.unsqueeze(-2)
        if U.is_complex():                   # the phase that U and V have in common is free
            inner = inner + on_diagonal(skew.diagonal(0, -2, -1) / (2 * S))
        if u.shape[-2] > k:
            scaled = g_u / S.unsqueeze(-2)
            beside = (scaled - u @ (u.mH @ scaled)) @ v.mH
    if g_v is not None:
        along = v.mH @ g_v
        inner = inner + S.unsqueeze(-1) * divided(along - along.mH, squares)
        if v.shape[-2] > k:
            scaled = g_v / S.unsqueeze(-2)
            beside = beside + u @ (scaled - v @ (v.mH @ scaled)).mH
    return u @ inner @ v.mH + beside


def moved_columns(vectors, rest, inner, outside, S):
    """The tangent of singular vectors, whose part among themselves is `inner`."""
    moved = vectors @ inner
    if vectors.shape[-2] > S.shape[-1]:
        outside = outside / S.unsqueeze(-2)
        moved = moved + outside - vectors @ (vectors.mH @ outside)
    return moved if rest is None else cat([moved, -vectors @ (moved.mH @ rest)], -1)


@linalg_svd.jvp
def svd_jvp(d_A, U, S, Vh):
    """diag(P), U @ ((P * s_j + s_i * P.mH) / (s_j^2 - s_i^2)), V alike: P = U.mH @ d_A @ V."""
    k = S.shape[-1]
    u, u_rest = split(U, k)
    v, v_rest = split(Vh.mH, k)
    inner = u.mH @ d_A @ v
    squares = gaps(S.square())
    columns, rows = S.unsqueeze(-2), S.unsqueeze(-1)
    d_u = divided(inner * columns + rows * inner.mH, squares)
    d_v = divided(rows * inner + inner.mH * columns, squares)
    if U.is_complex():                       # half of the turn of the phases is in each
        diagonal = inner.diagonal(0, -2, -1)
        turn = on_diagonal((diagonal - diagonal.conj()) / (4 * S))
        d_u, d_v = d_u + turn, d_v - turn
    d_u = moved_columns(u, u_rest, d_u, d_A @ v, S)
    d_v = moved_columns(v, v_rest, d_v, d_A.mH @ u, S)
    if U.is_complex():
        first, second = turned(u, d_u.narrow(-1, 0, k), (v, d_v.narrow(-1, 0, k)))
        d_u, d_v = (
            own if rest is None else cat([own, *turned(rest, d.narrow(-1, k, rest.shape[-1]))], -1)
            for own, rest, d in ((first, u_rest, d_u), (second, v_rest, d_v)))
    return d_u, inner.diagonal(0, -2, -1).real, d_v.mH


OF_ANY = dict(
    public=False, method=False, dtypes=TAKEN, tolerance="product", prepare=first(regular),
    samples=ANY_SHAPE, errors=NO_MATRIX,
    reference=prepared_by(regular, lambda x: np.linalg.svd(x, compute_uv=False)),
    reads_values=True, checks_values=True, complex=True)


@composite(out=True, **OF_ANY)
def linalg_svdvals(A: Tensor, *, driver=None):
    """The singular values in descending order.

    Shapes: (*, M, N) -> (*, K) with K = min(M, N).
    Raises: as `linalg.svd`, also for a `driver`.
    """
    require_matrices("linalg.svdvals", A)
    refuse_driver("linalg.svdvals", driver)
    return linalg_svd(A, False)[1] if wants_vectors(A) else singular_values_alone(A)


@op(**OF_ANY)
def singular_values_alone(A: Tensor):
    """The singular values, found without vectors."""
    require_matrices("linalg.svdvals", A)
    return singular_values("linalg.svdvals", A.detach())


def singular_values(name, A):
    """The singular values of matrices outside of graphs."""
    found = small_matrices.singular(A, False)
    if found is not None and not small_matrices.has_nan(found[1]):
        return found[1]
    if is_long(A):
        return singular_values(name, triangle_of(A.mH if A.shape[-2] < A.shape[-1] else A))
    return tensors(lapack.svdvals(name, A))[0]


@singular_values_alone.vjp("A")
@packed_gradient
@adjoint_rule
def svdvals_vjp(g, A):
    """U @ diag(g) @ V.mH, since each singular value changes by the real part of u.mH @ dA @ v."""
    u, _, vh = linalg_svd(A, False)
    return (u * g.unsqueeze(-2)) @ vh


@singular_values_alone.jvp
def svdvals_jvp(d_A, A):
    """The real part of u.mH @ d_A @ v for each pair of singular vectors."""
    u, _, vh = linalg_svd(A, False)
    return (u.conj() * (d_A @ vh.mH)).sum(-2).real


def old_svd(x, some=True, compute_uv=True):
    """The reference of `svd`."""
    u, s, vh = singular_reference(x, not some)
    return u, s, vh.swapaxes(-1, -2).conj()


@composite(out=True, outputs=("U", "S", "V"), dtypes=TAKEN, tolerance="product",
           prepare=first(regular),
           samples=matrices((3, 3), (3, 2)), errors=NO_MATRIX, reference=old_svd,
           reads_values=True, checks_values=True, complex=True)
def svd(input, some=True, compute_uv=True):
    """The singular value decomposition as a named tuple (U, S, V): `linalg.svd` with V for V.mH.

    Without `compute_uv` U and V are zeros.
    """
    if compute_uv:
        u, s, vh = linalg_svd(input, not some)
        return OldSingular(u, s, vh.mH)
    s = linalg_svdvals(input)
    batch, (m, n) = tuple(input.shape[:-2]), input.shape[-2:]
    return OldSingular(input.new_zeros(batch + (m, m)), s, input.new_zeros(batch + (n, n)))


# ---- pseudo-inverse ------------------------------------------------------------------------------

def cutoff(values, atol, rtol, shape):
    """The least singular value that counts as one: PyTorch's rule for both tolerances."""
    if atol is None and (rtol is None or isinstance(rtol, float)):
        rtol = np.finfo(values.dtype).eps * max(shape[-2:]) if rtol is None else max(rtol, 0.0)
        return (values.max(-1, initial=0) * values.dtype.type(rtol))[..., None]
    atol = np.asarray(0.0 if atol is None else atol, values.dtype)
    if rtol is None:
        rtol = np.where(atol > 0, 0.0, np.finfo(values.dtype).eps * max(shape[-2:]))
    rtol = np.asarray(rtol, values.dtype)
    largest = values.max(-1, initial=0)
    return np.maximum(atol, rtol * largest)[..., None]


def tolerances(atol, rtol):
    """Numbers or arrays of tolerances that may be Tensors. Raises: TypeError for all else.

    NumPy is given no list: it crashes where one changes while it is read.
    """
    return [x.numpy(force=True) if isinstance(x, Tensor) else
            x if x is None else float(x) for x in (atol, rtol)]


@op(out=True, public=False, method=False, dtypes=TAKEN, tolerance="product",
    prepare=first(regular),
    samples=matrices((3, 3), (3, 2), (2, 3), (2, 2, 2), (0, 2)), errors=NO_MATRIX,
    reference=prepared_by(regular, np.linalg.pinv), reads_values=True, packs=True,
    checks_values=True, complex=True)
def linalg_pinv(A: Tensor, rcond=None, hermitian=False, atol=None, rtol=None):
    """The pseudo-inverse of Moore and Penrose, by singular values.

    Those up to max(atol, rtol * the largest) are taken as 0. rtol is by default the step of the
    dtype times the larger size, or 0 where `atol` is given. rcond is an older word for `rtol`.
    hermitian: A is symmetric.

    Shapes: (*, M, N) -> (*, N, M).
    Raises: RuntimeError for less than two dims, for `rcond` beside the others and for dtypes other
    than float32 and float64.
    """
    require_matrices("linalg.pinv", A)
    if rcond is not None:
        if not atol is rtol is None:
            raise RuntimeError("linalg.pinv: takes rcond, or atol and rtol, not both")
        rtol = rcond
    if hermitian:
        require_square("linalg.pinv", A)
        values, u = tensors(*lapack.eigh("linalg.pinv", A, False))
        vh = u.mH
    else:
        u, values, vh = decomposed("linalg.pinv", A, False)
    values = values.numpy()
    sizes = np.abs(values)
    kept = sizes > cutoff(sizes, *tolerances(atol, rtol), A.shape)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=kept)
    return (vh.mH * tensors(inverse[..., None, :])[0]) @ u.mH


@linalg_pinv.vjp("A")
@adjoint_rule
def pinv_vjp(g, A, out):
    """Source: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least
    squares problems whose variables separate", SIAM Journal on Numerical Analysis 10(2), 1973."""
    right = (g.mH - A @ (out @ g.mH)) @ (out @ out.mH)
    left = (out.mH @ out) @ (g.mH - (g.mH @ out) @ A)
    return right + left - out.mH @ g @ out.mH


@linalg_pinv.jvp
def pinv_jvp(d_A, A, out):
    """P @ P.mH @ dA.mH @ (1 - A @ P) + (1 - P @ A) @ dA.mH @ P.mH @ P - P @ dA @ P, of P = out."""
    right = (out @ out.mH) @ (d_A.mH - (d_A.mH @ A) @ out)
    left = (d_A.mH - out @ (A @ d_A.mH)) @ (out.mH @ out)
    return right + left - out @ d_A @ out


@composite(dtypes=TAKEN, tolerance="product", prepare=first(regular), samples=ANY_SHAPE,
           errors=NO_MATRIX, reference=prepared_by(regular, np.linalg.pinv),
           reads_values=True, checks_values=True, complex=True)
def pinverse(input, rcond=1e-15):
    """The pseudo-inverse; singular values up to rcond times the largest are taken as 0."""
    return linalg_pinv(input, rcond)
