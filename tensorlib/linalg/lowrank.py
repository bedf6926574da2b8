"""Randomized low-rank decompositions: the largest singular values, by few random vectors."""

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib._core.create import draws
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg.checks import TAKEN, first, refused_matrices, regular, require_matrices
from tensorlib.linalg.orthogonal import linalg_qr
from tensorlib.linalg.spectra import linalg_svd
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite
from tensorlib.ops.samples import given_tensors

SHAPES = (((3, 3), {"q": 2}), ((5, 3), {"q": 3}), ((2, 3, 5), {"q": 2}))


def bounds(x, q, **options):
    """The reference of both: vectors have the length 1, and no value is beyond the norm."""
    x = regular(x)
    *batch, m, n = x.shape
    norm = np.sqrt((np.abs(x) ** 2).sum())
    sizes = ((*batch, m, q), (*batch, q), (*batch, n, q))
    of_parts = 1.001 + 1.001j if x.dtype.kind == "c" else 1.001
    limits = (np.full(size, limit) for size, limit in zip(
        sizes, (of_parts, norm * 1.001, of_parts)))
    return tuple(bound for limit in limits for bound in (-limit, limit))


def counts(name, q, niter, shape):
    """How many vectors and how many steps. Raises: TypeError, ValueError."""
    q, niter = integer(name, "q", q), integer(name, "niter", niter)
    if not 0 <= q <= min(shape[-2:]):
        raise ValueError(f"{name}: q must be from 0 to the smaller size {min(shape[-2:])} of the "
                         f"matrix, got {q}")
    if niter < 0:
        raise ValueError(f"{name}: niter must not be negative, got {niter}")
    return q, niter


def largest(A, q, niter):
    """U, S and V of the q largest singular values of matrices."""
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mH if wide else A
    basis = linalg_qr(tall @ draws.randn(tall.shape[-1], q, dtype=A.dtype))[0]
    for _ in range(niter):
        # not tall.mH @ basis: gradients laid out in two ways would take four times as long to add
        basis = linalg_qr((basis.mH @ tall).mH)[0]
        basis = linalg_qr(tall @ basis)[0]
    u, s, vh = linalg_svd(basis.mH @ tall, False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if wide else (u, s, v)


@composite(random=True, tensors=("A",), method=False, outputs=("U", "S", "V"),
           dtypes=TAKEN, prepare=first(regular), reference=bounds,
           samples=given_tensors(*SHAPES), reads_values=True, checks_values=True,
           errors=refused_matrices((RuntimeError, (3,)), (ValueError, (3, 2), {"q": -1}),
                                   (ValueError, (3, 2), {"q": 1, "niter": -1}),
                                   (TypeError, (3, 2), {"M": (1, 0)})), complex=True)
def svd_lowrank(A: Tensor, q=6, niter=2, M=None):
    """The q largest singular values, with their vectors: (U, S, V), A is about U @ diag(S) @ V.mT.

    More than the smaller size of the matrix there are not. niter: how often A and A.mH are applied
    to the random vectors; each time what is small counts for less. M: is subtracted from A first,
    and broadcast to it.

    Shapes: (*, M, N) -> (*, M, q), (*, q), (*, N, q).
    Raises: RuntimeError for less than two dims, ValueError for a negative number of vectors or
    steps, TypeError.
    Source: Halko, Martinsson and Tropp, "Finding structure with randomness", algorithm 5.1,
    arXiv:0909.4061 (2009).

    >>> u, s, v = tensorlib.svd_lowrank(tensorlib.diag(tensorlib.tensor([5., 0., 3.])), q=2)
    >>> s.round()
    tensor([5., 3.])
    """
    require_matrices("svd_lowrank", A)
    q = 6 if q is None else integer("svd_lowrank", "q", q)
    q, niter = counts("svd_lowrank", min(q, *A.shape[-2:]), 2 if niter is None else niter, A.shape)
    if M is not None and not is_tensor(M):
        raise TypeError(f"svd_lowrank: M must be a Tensor, got {type_name(M)}")
    return largest(A if M is None else A - M.broadcast_to(A.shape), q, niter)


@composite(random=True, tensors=("A",), method=False, outputs=("U", "S", "V"),
           dtypes=TAKEN, prepare=first(regular), reference=bounds,
           samples=given_tensors(*SHAPES), reads_values=True, checks_values=True,
           errors=refused_matrices((RuntimeError, (3,)), (ValueError, (3, 2), {"q": 3}),
                                   (ValueError, (3, 2), {"q": 1, "niter": -1})), complex=True)
def pca_lowrank(A: Tensor, q=None, center=True, niter=2):
    """The q main components of rows of data, as (U, S, V): V has their directions as columns.

    q: at first 6, or the smaller size of the matrix. center: the mean of the rows is subtracted.
    The variances along the directions are S ** 2 / (M - 1); niter is as in `svd_lowrank`.

    Shapes: (*, M, N) -> (*, M, q), (*, q), (*, N, q).
    Raises: RuntimeError for less than two dims, ValueError for more vectors than the smaller size
    and for negative numbers, TypeError.

    >>> x = tensorlib.tensor([[1., 2.], [2., 4.], [3., 6.]])
    >>> u, s, v = tensorlib.pca_lowrank(x, q=1)
    >>> (s ** 2 / 2).round()
    tensor([5.])
    """
    require_matrices("pca_lowrank", A)
    q, niter = counts("pca_lowrank", min(6, *A.shape[-2:]) if q is None else q, niter, A.shape)
    return largest(A - A.mean(-2, keepdim=True) if center else A, q, niter)
