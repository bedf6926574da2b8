"""The largest singular values and principal components, by random projections."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.testing import assert_close


def of_rank(rank, *shape):
    """Random matrices of a rank."""
    rng = np.random.default_rng(0)
    return tl.tensor(rng.normal(size=(*shape[:-1], rank)) @ rng.normal(
        size=(*shape[:-2], rank, shape[-1])))


@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (2, 6, 6)])
def test_matrices_of_low_rank_are_found_again(shape):
    A = of_rank(3, *shape)
    U, S, V = tl.svd_lowrank(A, q=4)
    assert U.shape == (*shape[:-1], 4) and V.shape == (*shape[:-2], shape[-1], 4)
    assert_close((U * S.unsqueeze(-2)) @ V.mT, A)
    assert_close(S, tl.linalg.svdvals(A)[..., :4])
    assert_close(U.mT @ U, tl.eye(4, dtype=tl.float64).expand(*shape[:-2], 4, 4))
    _, S, V = tl.pca_lowrank(A, q=4)
    assert_close(S, tl.linalg.svdvals(A - A.mean(-2, True))[..., :4])
    assert_close(tl.pca_lowrank(A, center=False)[1][..., :3], tl.linalg.svdvals(A)[..., :3])


def test_what_is_taken_away_and_gradients():
    A, M = of_rank(5, 6, 5).requires_grad_(), of_rank(5, 6, 5).flip(0)
    S = tl.svd_lowrank(A, 2, niter=40, M=M)[1]
    g, = tl.autograd.grad(S.sum(), A)
    expected = tl.linalg.svdvals(A - M)[:2]
    assert_close(S, expected)
    assert_close(g, tl.autograd.grad(expected.sum(), A)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("call, error", [
    (lambda: tl.svd_lowrank(tl.ones(3)), RuntimeError),
    (lambda: tl.svd_lowrank(tl.ones(3, 3), q=4), RuntimeError),
    (lambda: tl.pca_lowrank(tl.ones(3)), RuntimeError),
    (lambda: tl.pca_lowrank(tl.ones(3, 3), q=4), ValueError),
    (lambda: tl.pca_lowrank(tl.ones(3, 3), niter=-1), ValueError),
])
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()
