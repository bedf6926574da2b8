"""LAPACK, by the loops of `numpy.linalg`: arrays in, arrays out, batches in the dims in front.

These loops take any strides and need no GIL. They mark a matrix that they fail at with NaN and by
the floating-point flag `invalid`, which `failed` turns into the number that LAPACK would give. The
BLAS runs with one thread, so that results have the same bits for any number of threads.
"""

import numpy as np
from numpy.linalg import _umath_linalg as loops

from tensorlib._core.products.blas import one_blas_thread
from tensorlib.linalg.checks import LinAlgError

quiet = {"all": "ignore"}


def call(loop, *arrays):
    """What a loop of NumPy gives, without warnings."""
    with np.errstate(all="ignore"), one_blas_thread():
        return loop(*arrays)


def marked(result):
    """Which matrices of a batch were marked as failures: those with NaN."""
    return np.isnan(result).any(axis=(-2, -1))


def infos(a, result, number):
    """The int32 number of each matrix: 0, or what `number` finds for one that is marked."""
    info = np.zeros(a.shape[:-2], np.int32)
    if result.size and np.isnan(result.sum()):
        for place in np.argwhere(marked(result)):
            info[tuple(place)] = number(a[tuple(place)])
    return info


# ---- Cholesky ------------------------------------------------------------------------------------

def cholesky(a):
    """The lower factors, and the order of the first minor that is not positive, or 0."""
    factors = call(loops.cholesky_lo, a)
    info = infos(a, factors, failing_minor)
    return factors, info


def failing_minor(a):
    """The order of the first leading minor that is not positive definite, by Cholesky's rows."""
    factor = np.zeros_like(a)
    for j in range(len(a)):
        rest = a[j, j] - factor[j, :j] @ factor[j, :j]
        if not rest > 0:
            return j + 1
        factor[j, j] = np.sqrt(rest)
        factor[j + 1:, j] = (a[j + 1:, j] - factor[j + 1:, :j] @ factor[j, :j]) / factor[j, j]
    return 0


# ---- LU ------------------------------------------------------------------------------------------

def solve(a, b):
    """x of a @ x = b, and the place of the first zero on the diagonal of U, or 0."""
    x = call(loops.solve, a, b)
    return x, infos(a, x, zero_pivot) if b.shape[-1] else infos(a, call(loops.inv, a), zero_pivot)


def inv(a):
    """The inverses, and the place of the first zero on the diagonal of U, or 0."""
    inverse = call(loops.inv, a)
    return inverse, infos(a, inverse, zero_pivot)


def zero_pivot(a):
    """The place, from 1, of the first zero on the diagonal of U; 0 where there is none."""
    u = a.astype(np.float64)
    with np.errstate(all="ignore"):
        for j in range(len(u)):
            row = j + np.argmax(np.abs(u[j:, j]))
            u[[j, row]] = u[[row, j]]
            if u[j, j] == 0:
                return j + 1
            u[j + 1:] -= np.outer(u[j + 1:, j] / u[j, j], u[j])
    return 0


def solve_triangular(a, b, upper, unitriangular):
    """x of a @ x = b for triangles of a."""
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        places = np.arange(a.shape[-1])
        a[..., places, places] = 1
    return call(loops.solve, a, b)


def cofactors(a):
    """det(a) times the inverse transposed, or its limit where there is no inverse."""
    inverse, info = inv(a)
    with np.errstate(all="ignore"):
        found = call(loops.det, a)[..., None, None] * inverse.swapaxes(-1, -2)
    for place in map(tuple, np.argwhere(info)):
        if np.isfinite(a[place]).all():
            found[place] = cofactors_by_svd(a[place])
    return found


def cofactors_by_svd(a):
    """The same of one matrix, which may be singular: U (products of all other s) V."""
    u, s, vh = call(loops.svd_f, a)
    others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))], a.dtype)
    return call(loops.det, u) * call(loops.det, vh) * (u * others) @ vh


def regularized(a):
    """What to add to the singular matrices of a batch to make them regular; None without these."""
    info = inv(a)[1]
    if not info.any():
        return None
    added = np.zeros_like(a)
    for place in map(tuple, np.argwhere(info)):
        if np.isfinite(a[place]).all():
            u, s, vh = call(loops.svd_f, a[place])
            least = np.sqrt(np.finfo(a.dtype).eps) * (s[0] or 1)
            added[place] = u * (np.maximum(s, least) - s) @ vh
    return added


# ---- spectra -------------------------------------------------------------------------------------

def require_convergence(name, values):
    """Raises LinAlgError where LAPACK marked values as not found."""
    if values.size and np.isnan(values.sum()):
        place = int(np.flatnonzero(np.isnan(values).any(-1).reshape(-1))[0])
        batch = f"(Batch element {place}): " if values.ndim > 1 else ""
        raise LinAlgError(f"{name}: {batch}the algorithm failed to converge because the input "
                          "matrix is ill-conditioned, has too many repeated values, or has NaN or "
                          "infinite elements")


# The first element of a vector that is at least this part of its largest one is made positive.
# No common ratio of elements, such as 1, 1/2 or the root of 1/2, is near it.
LARGE = 0.6


def signs(vectors):
    """1 or -1 for each column, such that it has the sign that vectors of ours have."""
    magnitudes = np.abs(vectors)
    large = magnitudes >= LARGE * magnitudes.max(-2, keepdims=True, initial=0)
    first = np.take_along_axis(vectors, large.argmax(-2)[..., None, :], -2)
    return np.where(first < 0, -1, 1).astype(vectors.dtype)


def eigh(name, a, upper):
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    values, vectors = call(loops.eigh_up if upper else loops.eigh_lo, a)
    require_convergence(name, values)
    if vectors.size:
        vectors *= signs(vectors)
    return values, vectors


def eigvalsh(name, a, upper):
    """Eigenvalues in ascending order."""
    values = call(loops.eigvalsh_up if upper else loops.eigvalsh_lo, a)
    require_convergence(name, values)
    return values


def svd(name, a, full):
    """U, the singular values in descending order, and V transposed."""
    u, values, vh = call(loops.svd_f if full else loops.svd_s, a)
    require_convergence(name, values)
    if u.size and vh.size:
        found = signs(u)
        u *= found
        rank = values.shape[-1]
        vh[..., :rank, :] *= found.swapaxes(-1, -2)[..., :rank, :]
        if full and vh.shape[-1] > rank:
            vh[..., rank:, :] *= signs(vh[..., rank:, :].swapaxes(-1, -2)).swapaxes(-1, -2)
    return u, values, vh


def svdvals(name, a):
    """The singular values in descending order."""
    values = call(loops.svd, a)
    require_convergence(name, values)
    return values


# ---- QR ------------------------------------------------------------------------------------------

def qr(a, complete):
    """Q and R of matrices that are not wide; NumPy's loops know float64 alone."""
    dtype = a.dtype
    q, r = np.linalg.qr(a.astype(np.float64), "complete" if complete else "reduced")
    return q.astype(dtype), r.astype(dtype)
