"""The largest singular values of matrices and their principal components, by random projections.

Source: Halko, Martinsson and Tropp, "Finding structure with randomness: probabilistic algorithms
for constructing approximate matrix decompositions", SIAM Review 53, 2011, algorithms 4.4 and 5.1.
"""

from tensorlib._core.create.draws import randn
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg.spectra import linalg_qr, linalg_svd
from tensorlib.ops.publish import publish


def basis(A, q, niter):
    """q orthonormal columns that span nearly what the columns of `A` do."""
    Q = linalg_qr(A @ randn(A.shape[-1], q, dtype=A.dtype))[0]
    for _ in range(niter):
        Q = linalg_qr(A @ linalg_qr(A.mT @ Q)[0])[0]
    return Q


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None):
    """The q largest singular values of `A - M`, nearly, with their vectors as columns: U, S, V.

    niter: how often the power of the matrix is taken, which brings them nearer.
    Shapes: (*, M, N) -> (*, M, q), (*, q), (*, N, q).
    Raises: RuntimeError for other than matrices, for more values than there are and for dtypes
    other than float32 and float64.

    >>> U, S, V = tensorlib.svd_lowrank(tensorlib.ones(3, 4), q=1)
    >>> S
    tensor([3.4641])
    """
    if A.ndim < 2:
        raise RuntimeError(f"svd_lowrank: expected matrices, got shape {tuple(A.shape)}")
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if q > min(A.shape[-2:]):
        raise RuntimeError(f"svd_lowrank: q must be at most {min(A.shape[-2:])} for shape "
                           f"{tuple(A.shape)}, got {q}")
    A = A if M is None else A - M
    if A.shape[-2] < A.shape[-1]:
        V, S, U = tall_svd(A.mT, q, niter)
    else:
        U, S, V = tall_svd(A, q, niter)
    return U, S, V


def tall_svd(A, q, niter):
    """`svd_lowrank` of matrices that have as many rows as columns or more."""
    Q = basis(A, q, niter)
    U, S, Vh = linalg_svd(Q.mT @ A, False)
    return Q @ U, S, Vh.mT


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2):
    """The q largest principal components of the rows of `A`, nearly: U, S, V, of which the columns
    of V are the directions.

    q: min(6, M, N) by default. center: takes away the mean of each column first.
    Shapes: as `svd_lowrank`.
    Raises: ValueError for a q beyond the sizes or a negative niter; RuntimeError as `svd_lowrank`.
    """
    if A.ndim < 2:
        raise RuntimeError(f"pca_lowrank: expected matrices, got shape {tuple(A.shape)}")
    most = min(A.shape[-2:])
    if q is None:
        q = min(6, most)
    elif not 0 <= q <= most:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)="
                         f"{most}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


for _function in (svd_lowrank, pca_lowrank):
    publish(_function.__name__, _function, _function.__doc__, method=False)
