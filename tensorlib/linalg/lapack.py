"""Decompositions and solvers: the library's kernels for small matrices, LAPACK for the others.

LAPACK is called by the loops of `numpy.linalg` and, for what these lack, in the library that NumPy
has loaded. Functions take Tensors outside of graphs, or arrays, and give arrays; batches are in the
dims in front.

NumPy's loops take any strides and need no GIL, and mark a matrix that they fail at with NaN. The
BLAS runs with one thread, so that results have the same bits for any number of threads.
"""

import math

import numpy as np
from numpy.linalg import _umath_linalg as loops

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.create.ranges import eye
from tensorlib._core.products import elimination
from tensorlib._core.products import lapack as products
from tensorlib._core.products import small_matrices as small
from tensorlib._core.products.blas import one_blas_thread
from tensorlib.linalg.checks import LinAlgError
from tensorlib.ops.create.creation import triu

LARGE = products.LARGE
LAPACK = products.has()          # whether what NumPy's loops lack is in its library


@np.errstate(all="ignore")
def call(loop, *arrays):
    """What a loop of NumPy gives, without warnings."""
    with one_blas_thread():
        return loop(*arrays)


def product(*matrices):
    """The product of arrays, from the left, with the same bits for any number of threads."""
    out = matrices[0]
    for matrix in matrices[1:]:
        out = call(np.matmul, out, matrix)
    return out


def of_finite(loop, a):
    """What a loop gives for matrices that are finite, and NaN for the others.

    At these LAPACK's `geev` writes outside of its memory, and `gesdd` may iterate for ever.
    """
    if products.all_finite(a):
        return call(loop, a)
    finite = np.isfinite(a).all((-2, -1))
    results = call(loop, np.where(finite[..., None, None], a, 0))
    for result in results if isinstance(results, tuple) else [results]:
        result[~finite] = np.nan
    return results


def as_batch(a):
    """A contiguous array as a batch of matrices with one dim in front."""
    return a[None] if a.ndim == 2 else a.reshape((math.prod(a.shape[:-2]),) + a.shape[-2:])


def upper_triangles(a):
    """A copy with zeros below the diagonal: for small matrices `np.triu` takes 9 us, this 2."""
    return triu(from_numpy(a)).numpy()


def copied_columns(a):
    """A copy of matrices as a batch that is stored by columns."""
    return as_batch(np.array(a.swapaxes(-1, -2), order="C"))


# ---- LU ------------------------------------------------------------------------------------------

def lu_factor(x):
    """L and U in one matrix, the pivots from 1, and the place of the first zero on U's diagonal, as
    Tensors."""
    a, k = x.numpy(force=True), min(x.shape[-2:])         # refuses what has no elements
    if LAPACK:
        columns, pivots, info = products.factors(x.detach().mT)
        return columns.mT, pivots, info
    by_columns = copied_columns(a)
    found = [lu_of(matrix.T) for matrix in by_columns]
    pivots = np.array([pivots for pivots, _ in found], np.int32).reshape(*a.shape[:-2], k)
    info = np.array([info for _, info in found], np.int32).reshape(a.shape[:-2])
    by_columns = by_columns.reshape(a.swapaxes(-1, -2).shape)
    return from_numpy(by_columns.swapaxes(-1, -2)), from_numpy(pivots), from_numpy(info)


def lu_of(a):
    """a := its L and U, column by column; the pivots and info. For libraries without LAPACK's."""
    pivots, info = [], 0
    for j in range(min(a.shape)):
        row = j + int(np.argmax(np.abs(a[j:, j])))
        pivots.append(row + 1)
        if a[row, j] == 0:
            info = info or j + 1
            continue
        a[[j, row]] = a[[row, j]]
        a[j + 1:, j] /= a[j, j]
        a[j + 1:, j + 1:] -= np.outer(a[j + 1:, j], a[j, j + 1:])
    return pivots, info


def inverses(x):
    """The inverses, NaN where there is none, and infos, as arrays."""
    found, info, _ = elimination.solve(x, eye(x.shape[-1], dtype=x.dtype).expand(x.shape))
    return found.numpy(), info.numpy()


def cofactors(x):
    """The determinant times the inverse transposed, or its limit where there is no inverse."""
    a, (inverse, info) = x.numpy(force=True), inverses(x)
    with np.errstate(all="ignore"):
        found = elimination.determinants(x).numpy()[..., None, None] * inverse.swapaxes(-1, -2)
    for place in map(tuple, np.argwhere(info)):
        if np.isfinite(a[place]).all():
            found[place] = cofactors_by_svd(a[place])
    return found


def cofactors_by_svd(a):
    """The same of one matrix, which may be singular: conj U (products of all other s) conj V."""
    u, s, vh = call(loops.svd_f, a)
    others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))], a.dtype)
    return product(call(loops.det, u) * call(loops.det, vh) * (u.conj() * others), vh.conj())


def regularized(x):
    """What to add to the singular matrices of a batch to make them regular; None without these."""
    a, info = x.numpy(force=True), inverses(x)[1]
    if not info.any():
        return None
    added = np.zeros_like(a)
    for place in map(tuple, np.argwhere(info)):
        if np.isfinite(a[place]).all():
            u, s, vh = call(loops.svd_f, a[place])
            least = np.sqrt(np.finfo(a.dtype).eps) * (s[0] or 1)
            added[place] = product(u * (np.maximum(s, least) - s), vh)
    return added


# ---- spectra -------------------------------------------------------------------------------------

def require_convergence(name, values):
    """Raises LinAlgError where LAPACK marked values as not found."""
    if not products.all_finite(values) and np.isnan(values.sum()):
        place = int(np.flatnonzero(np.isnan(values).any(-1).reshape(-1))[0])
        batch = f"(Batch element {place}): " if values.ndim > 1 else ""
        raise LinAlgError(f"{name}: {batch}the algorithm failed to converge because the input "
                          "matrix is ill-conditioned, has too many repeated values, or has NaN or "
                          "infinite elements")


def signs(vectors):
    """1 or -1 for each column, or a complex number of size 1, such that it has the sign that
    vectors of ours have."""
    return products.signs(as_batch(vectors)).reshape(*vectors.shape[:-2], 1, vectors.shape[-1])


def eigh(name, x, upper):
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    a = x.numpy(force=True)
    values, vectors = call(loops.eigh_up if upper else loops.eigh_lo, a)
    require_convergence(name, values)
    if vectors.size:
        vectors *= signs(vectors)
    return values, vectors


def eigvalsh(name, x, upper):
    """Eigenvalues in ascending order."""
    values = call(loops.eigvalsh_up if upper else loops.eigvalsh_lo, x.numpy(force=True))
    require_convergence(name, values)
    return values


def svd(name, x, full):
    """U, the singular values in descending order, and V transposed."""
    a, found = x.numpy(force=True), small.singular(x, True)
    u, values, vh = svd_of(a, full) if found is None else (y.numpy() for y in found)
    if found is not None and np.isnan(values.sum()):    # singular matrices, which the kernel leaves
        places = np.isnan(values).any(-1)
        u[places], values[places], vh[places] = svd_of(a[places], full)
    require_convergence(name, values)
    return u, values, vh


def svd_of(a, full):
    """The same by LAPACK, with signs as the kernel has them, and NaN where it fails."""
    if not a.size:
        return svd_of_nothing(a, full)
    u, values, vh = of_finite(loops.svd_f if full else loops.svd_s, a)
    if u.size and vh.size:
        found = signs(u)
        u *= found
        rank, rows = values.shape[-1], found.swapaxes(-1, -2)
        vh[..., :rank, :] *= (rows.conj() if rows.dtype.kind == "c" else rows)[..., :rank, :]
        if full and vh.shape[-1] > rank:
            vh[..., rank:, :] *= signs(vh[..., rank:, :].swapaxes(-1, -2)).swapaxes(-1, -2)
    return u, values, vh


def svd_of_nothing(a, full):
    """The same of matrices without elements, for which LAPACK would go through all columns."""
    batch, rows, columns = a.shape[:-2], *a.shape[-2:]
    rank = min(rows, columns)
    u = eye(rows, rows if full else rank).numpy().astype(a.dtype, copy=False)
    vh = eye(columns if full else rank, columns).numpy().astype(a.dtype, copy=False)
    return (np.broadcast_to(u, batch + u.shape).copy(), np.empty(batch + (rank,), a.real.dtype),
            np.broadcast_to(vh, batch + vh.shape).copy())


def svdvals(name, x):
    """The singular values in descending order."""
    if not x.numel():
        return np.empty((*x.shape[:-2], min(x.shape[-2:])), x.numpy(force=True).real.dtype)
    found = small.singular(x, False)
    values = of_finite(loops.svd, x.numpy(force=True)) if found is None else found[1].numpy()
    require_convergence(name, values)
    return values


# ---- QR ------------------------------------------------------------------------------------------

def qr(a, complete):
    """Q and R of matrices that are not wide; NumPy's loops know float64 alone."""
    m, n = a.shape[-2:]
    if not LAPACK:
        with one_blas_thread():
            q, r = np.linalg.qr(a.astype(np.result_type(a, np.float64)),
                                "complete" if complete else "reduced")
        return q.astype(a.dtype), r.astype(a.dtype)
    columns, tau = geqrf(a)
    q = columns
    if complete and m > n:
        q = np.zeros((len(columns), m, m), a.dtype)
        q[:, :n] = columns
    r = upper_triangles(columns[:, :, :q.shape[1]].swapaxes(-1, -2))
    products.orgqr(q, tau)
    return (q.reshape(a.shape[:-2] + q.shape[1:]).swapaxes(-1, -2),
            r.reshape(a.shape[:-2] + r.shape[1:]))


def triangle_of_qr(a):
    """R alone of matrices (M, N), min(M, N) rows of it."""
    columns, k = geqrf(a)[0], min(a.shape[-2:])
    r = upper_triangles(columns[:, :, :k].swapaxes(-1, -2))
    return r.reshape(a.shape[:-2] + r.shape[1:])


def geqrf(a):
    """R and the Householder vectors below it as a batch by columns, and their factors."""
    columns = copied_columns(a)
    if LAPACK:
        return columns, products.geqrf(columns)
    found, tau = np.empty_like(columns), []
    for place, matrix in enumerate(columns):
        with one_blas_thread():
            found[place], factors = np.linalg.qr(
                matrix.T.astype(np.result_type(a, np.float64)), "raw")
        tau.append(factors)
    tau = np.array(tau, a.dtype).reshape((len(columns), min(a.shape[-2:])))
    return found, tau


def householder_product(a, tau):
    """The first columns of products of reflections, given by their vectors and factors."""
    if not LAPACK:
        return reflected(a, tau)
    q = copied_columns(a)
    products.orgqr(q, np.array(tau, order="C").reshape(len(q), tau.shape[-1]))
    return q.reshape(a.shape[:-2] + q.shape[1:]).swapaxes(-1, -2)


def reflected(a, tau):
    """The same, one reflection after the other. For libraries without LAPACK's."""
    m, n = a.shape[-2:]
    out = np.broadcast_to(np.eye(m, n), a.shape).astype(a.dtype)
    for i in reversed(range(tau.shape[-1])):
        v = np.tril(a, -1)[..., i:i + 1] + np.eye(m)[:, i:i + 1]
        out = out - tau[..., i, None, None] * v * (v.conj() * out).sum(-2, keepdims=True)
    return out.astype(a.dtype)


# ---- LDL -----------------------------------------------------------------------------------------

def require_lapack(name):
    """Raises NotImplementedError where NumPy's library has not LAPACK's functions."""
    if not LAPACK:
        raise NotImplementedError(f"{name}: the library that NumPy has loaded has no LAPACK that "
                                  "is known")


def ldl_factor(x, hermitian):
    """L and D in one matrix, the pivots, and infos, as Tensors: LAPACK's sytrf, or hetrf."""
    require_lapack("linalg.ldl_factor")
    columns, pivots, info = products.factors(x.detach().mT, True, hermitian)
    return triu(columns).mT, pivots, info


def ldl_solve(ld, pivots, b, hermitian):
    """x of a @ x = b for what `ldl_factor` made of `a`."""
    require_lapack("linalg.ldl_solve")
    (n, k), batch = b.shape[-2:], b.shape[:-2]
    columns, x = copied_columns(ld), copied_columns(b)
    rows = np.array(pivots, np.int64, order="C").reshape((len(columns), n))
    products.sytrs(columns, rows, x, hermitian)
    return x.reshape(batch + (k, n)).swapaxes(-1, -2)


# ---- not symmetric -------------------------------------------------------------------------------

def eig(name, a):
    """Eigenvalues and eigenvectors as columns, complex ones."""
    values, vectors = of_finite(loops.eig, a)
    require_convergence(name, values)
    if vectors.size:
        vectors = vectors * signs(vectors)
    kind = np.result_type(a, np.complex64)
    return values.astype(kind, copy=False), vectors.astype(kind, copy=False)


def eigvals(name, a):
    """Eigenvalues, complex ones."""
    values = of_finite(loops.eigvals, a)
    require_convergence(name, values)
    return values.astype(np.result_type(a, np.complex64), copy=False)
