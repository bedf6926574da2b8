"""Kernels for small matrices: each beside LAPACK, alone and in a batch, and where matrices fail."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.products import small_matrices as small
from tensorlib.linalg import lapack
from tensorlib.testing import assert_close

CALLS = {
    "cholesky": lambda x: small.cholesky(definite(x)), "inverse": small.inverse,
    "determinant": small.determinant, "solve": lambda x: small.solve(x, x[..., :1] * 2),
    "eigen": lambda x: small.eigen(definite(x), True),
    "singular": lambda x: small.singular(x, True),
    "lu": small.lu, "qr": small.qr,
    "values": lambda x: small.singular(x, False)[1],
}


def drawn(*shape, dtype="float64"):
    return tl.tensor(np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype))


def definite(x):
    return x @ x.mT + tl.tensor(np.eye(x.shape[-1])).to(x.dtype)


def flat(found):
    return [x for x in (found if isinstance(found, tuple) else (found,)) if x is not None]


@each("n", [1, 2, 3, 7, 8, 16])
@each("dtype", ["float32", "float64"])
def test_equal_to_lapack(n, dtype):
    x = drawn(11, n, n, dtype=dtype)
    s = definite(x)
    a, b = x.numpy(), s.numpy()
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == "float64" else {"rtol": 5e-3, "atol": 5e-3}
    assert_close(small.cholesky(s).numpy(), np.linalg.cholesky(b), **close)
    assert_close(small.determinant(x).numpy(), np.linalg.det(a), **close)
    assert_close(small.eigen(s, False)[0].numpy(), np.linalg.eigvalsh(b), **close)
    assert_close(small.singular(x, False)[1].numpy(), np.linalg.svd(a, compute_uv=False), **close)
    lu, pivots, info = small.lu(x)
    wanted, wanted_pivots, _ = lapack.lu_factor(x)
    assert_close(lu, wanted, **close)
    assert pivots.equal(wanted_pivots) and not info.any()
    for found, wanted in zip(small.qr(x), np.linalg.qr(a)):
        assert_close(found.numpy(), wanted, **close)
    u, values, vh = small.singular(x, True)
    assert_close((u * values.unsqueeze(-2)) @ vh, x, **close)
    if dtype == "float64":
        assert_close(small.inverse(x).numpy(), np.linalg.inv(a), rtol=1e-7, atol=1e-7)
        vectors = np.linalg.eigh(b)[1]
        assert_close(small.eigen(s, True)[1].numpy(), vectors * lapack.signs(vectors), rtol=1e-6,
                     atol=1e-6)
        for found, wanted in zip((u, values, vh), lapack.svd_of(a, True)):
            assert_close(found.numpy(), wanted, rtol=1e-6, atol=1e-6)


@each("name", CALLS)
@each("dtype", ["float32", "float64"])
def test_a_matrix_gives_the_same_bits_alone_and_in_a_batch(name, dtype):
    x = drawn(21, 5, 5, dtype=dtype)
    x[3] *= 1e3
    whole = flat(CALLS[name](x))
    for i in (0, 3, 20):
        for one, all_ in zip(flat(CALLS[name](x[i])), whole):
            assert (one == all_[i]).all()


def test_a_failure_leaves_its_neighbours_alone():
    x = drawn(9, 4, 4)
    x[2], x[5] = 0.0, float("nan")
    for name in ("inverse", "solve", "values"):
        found = flat(CALLS[name](x))[0]
        bad = found.isnan().reshape(9, -1).any(1).tolist()
        assert bad == [i in ((5,) if name == "values" else (2, 5)) for i in range(9)]
    assert small.determinant(x)[2] == 0 and small.determinant(x)[5].isnan()


def test_singular_matrices_have_orthogonal_vectors():
    """The kernel leaves them to LAPACK."""
    x = drawn(5, 4, 4)
    x[1] = x[1, :, :1] @ x[1, :1]
    x[3] = 0.0
    u, values, vh = tl.linalg.svd(x)
    eye = np.broadcast_to(np.eye(4), (5, 4, 4))
    assert_close((u.mT @ u).numpy(), eye)
    assert_close((vh @ vh.mT).numpy(), eye)
    assert_close((u * values.unsqueeze(-2)) @ vh, x)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e15, 1e30])
def test_any_scale(scale):
    (q, r), (wanted_q, wanted_r) = (small.qr(drawn(3, 6, 6) * by) for by in (scale, 1.0))
    assert_close(q, wanted_q, rtol=1e-6, atol=1e-9)
    assert_close(r / scale, wanted_r, rtol=1e-6, atol=1e-9)
    x = drawn(3, 6, 6, dtype="float32") * scale
    assert_close(tl.linalg.svdvals(x) / scale, tl.linalg.svdvals(drawn(3, 6, 6, dtype="float32")),
                 rtol=1e-4, atol=1e-5)
    s = drawn(3, 6, 6, dtype="float32")
    s = s + s.mT
    assert_close(tl.linalg.eigvalsh(s * scale) / scale, tl.linalg.eigvalsh(s), rtol=1e-4, atol=1e-5)


def test_equal_eigenvalues_and_zeros():
    eye = tl.tensor(np.eye(5))
    for x in (eye, eye * 0, -eye, tl.ones(5, 5, dtype=tl.float64)):
        values, vectors = tl.linalg.eigh(x)
        assert_close((vectors * values.unsqueeze(-2)) @ vectors.mT, x)
        assert_close(vectors.mT @ vectors, eye)


def test_what_is_not_small_is_left():
    assert small.cholesky(drawn(17, 17)) is None and small.cholesky(drawn(0, 0)) is None
    assert small.inverse(drawn(2, 3)) is None
    assert small.solve(drawn(2, 2), drawn(2, 17)) is None
    assert small.solve(drawn(2, 2), drawn(3, 2)) is None
    assert small.eigen(drawn(2, 2).to(tl.float16), True) is None
    assert small.inverse(drawn(0, 3, 3)).shape == (0, 3, 3)


def test_any_layout():
    x = drawn(3, 8, 8)
    for y in (x.mT, x[:, ::2, ::2], x[:, ::-1, 1:], x[:1].expand(4, 8, 8)):
        y = y[..., :4, :4]
        assert_close(tl.linalg.inv(y), tl.linalg.inv(y.contiguous()))


# ---- complex matrices ----------------------------------------------------------------------------

def drawn_complex(*shape, dtype="complex128"):
    rng = np.random.default_rng(sum(shape))
    return tl.tensor((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype))


@each("n", [1, 2, 3, 5, 8])
@each("dtype", ["complex64", "complex128"])
def test_complex_systems_are_those_of_lapack(n, dtype):
    x, b = drawn_complex(37, n, n, dtype=dtype), drawn_complex(37, n, 3, dtype=dtype)
    x[5, 0] = 0                                              # rows to exchange
    x[5, 0, -1] = 2
    close = {"rtol": 5e-3, "atol": 5e-3} if dtype == "complex64" else {"rtol": 1e-7, "atol": 1e-7}
    a = x.numpy()
    assert_close(small.determinant(x).numpy(), np.linalg.det(a), **close)
    assert_close(small.inverse(x).numpy(), np.linalg.inv(a), **close)
    assert_close(small.solve(x, b).numpy(), np.linalg.solve(a, b.numpy()), **close)
    s = x @ x.mH + tl.eye(n)
    assert_close(small.cholesky(s.tril()).numpy(), np.linalg.cholesky(s.numpy()), **close)
    assert small.has_nan(small.cholesky(-s)) and not small.cholesky(s).triu(1).any()
    assert small.cholesky(s)[7].equal(small.cholesky(s[7]))
    for find in (small.determinant, small.inverse, lambda x: small.solve(x, x)):
        assert find(x)[7].equal(find(x[7])) and find(x.mT).equal(find(x.mT.contiguous()))
    parts = x.abs().sum(-1, keepdim=True) + 0j
    assert_close(small.inverse(x * 1e30).numpy() * 1e30, small.inverse(x).numpy(), **close)
    assert_close((small.inverse(x / parts) / parts.mT).numpy(), np.linalg.inv(a), **close)


def test_singular_complex_matrices():
    x = tl.tensor([[[1, 1j], [1j, -1]], [[2, 0], [0, 4j]], [[0, 0], [0, 0]]], dtype=tl.complex64)
    assert small.determinant(x).tolist() == [0, 8j, 0]
    inverses = small.inverse(x)
    assert inverses[1].tolist() == [[0.5, 0], [0, -0.25j]] and small.has_nan(inverses[2])
    with pytest.raises(tl.linalg.LinAlgError, match="singular"):
        tl.linalg.inv(x)
    assert tl.linalg.inv_ex(x).info.tolist() == [2, 0, 1]
    assert np.isnan(tl.linalg.det(x * float("nan")).numpy()).all()
    hidden = tl.tensor([[0, 1], [0, float("nan")]], dtype=tl.complex64)         # of 0 * NaN
    assert np.isnan(tl.linalg.det(hidden).numpy())
    assert small.inverse(drawn_complex(9, 9)) is None and small.determinant(x[:, :1]) is None
    assert small.inverse(x[:0]).shape == (0, 2, 2)
