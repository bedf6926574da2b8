"""Products of Householder reflections, as QR decompositions are made of."""

from collections import namedtuple

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    TAKEN, matrices, refused_matrices, require_matrices, require_one_dtype,
)
from tensorlib.linalg.factors import unit_lower
from tensorlib.linalg.inverses import tensors
from tensorlib.linalg.spectra import NO_MATRIX
from tensorlib.ops.declare import composite, op
from tensorlib.ops.pointwise.comparison import with_no_slope
from tensorlib.ops.shape.joining import cat

Reflections = namedtuple("geqrf", "a tau")


def reflections(x):
    """The reference of `geqrf`."""
    flat = x.reshape((-1,) + x.shape[-2:])
    found = [np.linalg.qr(matrix.astype(np.result_type(x, np.float64)), "raw") for matrix in flat]
    h, tau = (np.array([pair[i] for pair in found]) for i in (0, 1))
    return (h.reshape(x.shape[:-2] + h.shape[1:]).swapaxes(-1, -2),
            tau.reshape(x.shape[:-2] + tau.shape[1:]))


@op(out=True, outputs=("a", "tau"), differentiable=False, dtypes=TAKEN, tolerance="product",
    complex=True, samples=matrices((3, 3), (3, 2), (2, 3), (2, 2, 2)), errors=NO_MATRIX,
    reference=reflections, reads_values=True)
def geqrf(input: Tensor):
    """R and the Householder vectors of a QR decomposition below it, as a named tuple (a, tau).

    Shapes: (*, M, N) -> (*, M, N), (*, K) with K = min(M, N).
    Raises: RuntimeError for less than two dims and for integers and half types.
    """
    require_matrices("geqrf", input)
    columns, tau = lapack.geqrf(input.numpy(force=True))
    batch = tuple(input.shape[:-2])
    return Reflections(*tensors(columns.reshape(batch + columns.shape[1:]).swapaxes(-1, -2),
                                tau.reshape(batch + tau.shape[1:])))


def reflected(a, tau):
    """The reference of `linalg_householder_product`."""
    out = np.broadcast_to(np.eye(a.shape[-2]), a.shape[:-2] + (a.shape[-2],) * 2)
    for i in range(tau.shape[-1]):
        v = np.tril(a, -1)[..., i] + np.eye(a.shape[-2])[i]
        turned = tau[..., i, None, None] * v[..., None] * v[..., None, :].conj()
        out = out @ (np.eye(a.shape[-2]) - turned)
    return out[..., :a.shape[-1]]


def reflecting(rng):
    """Householder vectors and their factors."""
    for a, tau in (((3, 3), (3,)), ((3, 2), (1,)), ((2, 3, 2), (2, 2))):
        yield (rng.uniform(-1, 1, a), rng.uniform(0.5, 1.5, tau)), {}


@composite(public=False, method=False, out=True, dtypes=TAKEN, complex=True, tolerance="product",
           samples=reflecting, reference=reflected,
           errors=refused_matrices((RuntimeError, (2, 3), np.ones(2)),
                                   (RuntimeError, (3, 2), np.ones(3))))
def linalg_householder_product(A: Tensor, tau: Tensor):
    """The first columns of the product of reflections 1 - tau[i] * v @ v.mH, in this order.

    v is column i of A below its diagonal, with 1 on it and 0 above.

    Shapes: (*, M, N), (*, K) -> (*, M, N) with K <= N <= M.
    Raises: RuntimeError for other shapes and for dtypes other than float32 and float64.
    """
    require_matrices("linalg.householder_product", A)
    require_one_dtype("linalg.householder_product", A, tau)
    m, n = A.shape[-2:]
    if m < n or tau.ndim != A.ndim - 1 or tau.shape[-1] > n or tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError("linalg.householder_product: expected shapes (*, M, N) and (*, K) with "
                           f"K <= N <= M, got {tuple(A.shape)} and {tuple(tau.shape)}")
    vectors = unit_lower(A)
    out = with_no_slope(from_numpy(np.eye(m, n)).to(A.dtype).expand(A.shape), A)
    for i in reversed(range(tau.shape[-1])):
        v = vectors.narrow(-1, i, 1)
        out = out - tau.narrow(-1, i, 1).unsqueeze(-1) * (v @ (v.mH @ out))
    return out


@composite(out=True, dtypes=TAKEN, tolerance="product", samples=reflecting, reference=reflected,
           complex=True)
def orgqr(input, input2: Tensor):
    """The product of Householder reflections: `linalg.householder_product`."""
    return linalg_householder_product(input, input2)


@composite(out=True, dtypes=TAKEN, tolerance="product", reference=lambda a, tau, c: reflected(
    np.concatenate([a, np.zeros(a.shape[:-1] + (a.shape[-2] - a.shape[-1],))], -1), tau) @ c,
           samples=lambda rng: (((*args, rng.uniform(-1, 1, (3, 2))), {})
                                for args, _ in list(reflecting(rng))[:2]), complex=True)
def ormqr(input, input2: Tensor, input3: Tensor, left=True, transpose=False):
    """The product of all Householder reflections, a square matrix, with the matrix input3.

    input2: the factors of the reflections. left: Q @ input3, else input3 @ Q. transpose: with Q.mH.
    See `linalg.householder_product`.
    """
    require_matrices("ormqr", input)
    m, n = input.shape[-2:]
    if m > n:
        input = cat([input, input.new_zeros(tuple(input.shape[:-1]) + (m - n,))], -1)
    q = linalg_householder_product(input[..., :m], input2)
    q = q.mH if transpose else q
    return q @ input3 if left else input3 @ q
