"""Eigenvalues by rotations, beside LAPACK: all kinds of matrices, sizes and layouts."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib._core.products import small_matrices
from tensorlib.testing import assert_close

SIZES = (17, 31, 32, 33, 64, 100, 160)
EPS = {"float32": 1.2e-7, "float64": 2.3e-16}


def symmetric(n, dtype, seed=0, scale=1.0):
    a = np.random.default_rng(seed).normal(size=(n, n)) * scale
    return tl.tensor((a + a.T).astype(dtype))


def check(a, dtype):
    """Residual, orthogonality, order and signs of vectors, and values beside LAPACK's."""
    values, vectors = tl.linalg.eigh(a)
    b, v, w = (x.numpy().astype(np.float64) for x in (a, vectors, values))
    size = np.abs(b).sum(-1).max()
    bound = 8 * len(b) * EPS[dtype]
    assert np.abs(b @ v - v * w).max() <= bound * size
    assert np.abs(v.T @ v - np.eye(len(b))).max() <= bound
    assert np.abs(w - np.linalg.eigvalsh(b)).max() <= bound * size
    assert (np.diff(w) >= 0).all()
    assert tl.equal(tl.linalg.eigvalsh(a), values)
    large = np.abs(v) >= 0.6 * np.abs(v).max(0)
    assert (v[large.argmax(0), np.arange(len(b))] > 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", EPS)
def test_residuals_and_values(n, dtype):
    assert small_matrices.eigen(tl.ones(n, n), True) is not None
    check(symmetric(n, dtype), dtype)


@pytest.mark.parametrize("dtype", EPS)
def test_matrices_of_all_kinds(dtype):
    n = 40
    x = np.random.default_rng(1).normal(size=(n, n))
    q = np.linalg.qr(x)[0]
    i = np.arange(n)
    band = np.zeros((n, n))
    band[i[1:], i[:-1]] = band[i[:-1], i[1:]] = 1
    wilkinson = np.diag(np.abs(i - n // 2).astype(float)) + band
    graded = 10.0 ** (-(i[:, None] + i) / 4)
    blocks = np.zeros((n, n))
    blocks[:20, :20], blocks[20:, 20:] = x[:20, :20] + x[:20, :20].T, 1e-20 * x[20:, 20:]
    few = (q * np.where(i < 20, 1.0, 2.0)) @ q.T
    for a in (np.zeros((n, n)), np.eye(n), np.diag(i - 3.0), np.ones((n, n)), band, wilkinson,
              graded, blocks, few, x[:, :3] @ x[:, :3].T, -np.ones((n, n)),
              1.0 / (1 + i[:, None] + i)):
        check(tl.tensor((np.tril(a) + np.tril(a, -1).T).astype(dtype)), dtype)


@pytest.mark.parametrize("dtype, scales", [
    ("float32", (1e-40, 1e-30, 1e-15, 1e15, 1e36)),
    ("float64", (1e-310, 1e-300, 1e-160, 1e160, 1e306))])
def test_scales(dtype, scales):
    for scale in scales:
        a = symmetric(24, dtype, scale=scale)
        values, vectors = tl.linalg.eigh(a)
        wanted = np.linalg.eigvalsh(a.numpy().astype(np.longdouble).astype(np.float64) / scale)
        step = np.finfo(dtype).smallest_subnormal / scale
        assert_close(values.numpy().astype(np.float64) / scale, wanted, rtol=0,
                     atol=200 * EPS[dtype] + 30 * step)
        assert_close(vectors.mT @ vectors, tl.eye(24, dtype=a.dtype), rtol=0,
                     atol=200 * EPS[dtype])


@pytest.mark.parametrize("dtype", EPS)
def test_bits_depend_on_the_matrix_alone(dtype):
    a = symmetric(33, dtype)
    batch = tl.stack([symmetric(33, dtype, seed) for seed in range(1, 4)] + [a])
    wanted = tl.linalg.eigh(a)
    spread = tl.zeros(66, 99, dtype=a.dtype)[::2, ::3]
    spread.copy_(a)
    noise = tl.randn(33, 33, dtype=a.dtype)
    for found in (tl.linalg.eigh(batch), tl.linalg.eigh(spread), tl.linalg.eigh(a.mT),
                  tl.linalg.eigh(a.tril() + noise.triu(1)),
                  tl.linalg.eigh(a.triu() + noise.tril(-1), UPLO="U"),
                  tl.linalg.eigh(a.flip(0, 1).flip(0, 1))):
        for x, y in zip(found, wanted):
            assert tl.equal(x[-1] if x.ndim > y.ndim else x, y)


def test_what_is_not_finite_is_refused_and_left_as_it_is():
    for wrong in (float("nan"), float("inf"), -float("inf")):
        a = symmetric(20, "float32")
        a[5, 3] = wrong
        kept = a.clone()
        with pytest.raises(tl.linalg.LinAlgError, match="eigh"):
            tl.linalg.eigh(a)
        assert tl.equal(a.nan_to_num(1.5), kept.nan_to_num(1.5))
    a[5, 3], a[3, 5] = 0, float("nan")               # the upper triangle is not read
    assert bool(tl.linalg.eigh(a).eigenvalues.isfinite().all())
