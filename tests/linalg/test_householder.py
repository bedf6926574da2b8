"""QR decompositions and products of reflections of larger matrices: beside LAPACK, in batches, by
other numbers of threads, and of columns that are zero, very large or very small."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.base.scratch import refuse_scratch
from tensorlib._core.products import householder

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(1, 1), (4, 4), (17, 17), (33, 31), (31, 33), (64, 40), (130, 130), (40, 100), (700, 65)]


def drawn(*shape, dtype="float64"):
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


@each("shape", SHAPES)
@each("dtype", DTYPES)
def test_decompositions_are_near(shape, dtype):
    a, k = drawn(*shape, dtype=dtype), min(shape)
    eps = np.finfo(dtype).eps * (2 if "complex" in dtype else 1)     # a product is four of them
    h, tau = tl.geqrf(tl.tensor(a))
    wider = np.result_type(dtype, np.float64)
    raw, factors = np.linalg.qr(a.astype(wider), "raw")
    assert np.abs(h.numpy() - raw.T).max() < 50 * k * eps
    assert np.abs(tau.numpy() - factors).max() < 50 * k * eps
    q = tl.linalg.householder_product(h[:, :k], tau).numpy().astype(wider)
    r = np.triu(h.numpy()[:k])
    assert np.abs(q @ r - a).max() < (4 + 0.1 * k) * eps * np.abs(a).max()
    assert np.abs(q.conj().T @ q - np.eye(k)).max() < 20 * eps
    for mode in ("reduced", "complete"):
        q, r = (x.numpy() for x in tl.linalg.qr(tl.tensor(a), mode))
        assert np.abs(q.astype(wider) @ r - a).max() < (4 + 0.1 * k) * eps * np.abs(a).max()
        assert not np.tril(r, -1).any() and q.shape[-1] == r.shape[-2]
        assert np.abs(q.conj().T @ q - np.eye(q.shape[-1])).max() < 30 * eps


@each("dtype", DTYPES)
def test_bits_are_the_same_in_a_batch_and_by_any_number_of_threads(dtype):
    a = tl.tensor(drawn(2, 3, 300, 200, dtype=dtype))
    found, threads = [], tl.get_num_threads()
    try:
        for count in (1, 2, 3):
            tl.set_num_threads(count)
            h, tau = tl.geqrf(a)
            q = tl.linalg.householder_product(h, tau)
            assert all((x == y).all() for x, y in zip(tl.geqrf(a[1, 2]), (h[1, 2], tau[1, 2])))
            assert (tl.linalg.householder_product(h[1, 2], tau[1, 2]) == q[1, 2]).all()
            assert (tl.linalg.qr(a[0, 1])[0] == q[0, 1]).all()
            found.append((h, tau, q, *tl.linalg.qr(a, "complete")))
    finally:
        tl.set_num_threads(threads)
    for others in found[1:]:
        assert all((x == y).all() for x, y in zip(found[0], others, strict=True))


@each("layout", [lambda x: x.mT.contiguous().mT, lambda x: tl.cat([x, x], -1)[:, :50],
                 lambda x: x.flip(0)])
def test_layouts_have_the_same_bits(layout):
    x = tl.tensor(drawn(70, 50))
    laid_out = layout(x)
    for function in (tl.geqrf, tl.linalg.qr):
        assert all((a == b).all() for a, b in zip(function(laid_out),
                                                  function(laid_out.contiguous())))
    h, tau = tl.geqrf(x)
    assert (tl.orgqr(layout(h), tau) == tl.orgqr(layout(h).contiguous(), tau)).all()


@each("dtype, sizes", [("float32", [1e-38, 1e-25, 1e-15, 1e15, 1e25, 1e37]),
                       ("float64", [1e-300, 1e-160, 1e-100, 1e100, 1e160, 1e300]),
                       ("complex64", [1e-25, 1e-15, 1e15, 1e25, 1e36]),
                       ("complex128", [1e-300, 1e-160, 1e-100, 1e100, 1e160, 1e300])])
def test_very_large_and_very_small_columns(dtype, sizes):
    a = drawn(40, 40, dtype="complex128" if "complex" in dtype else "float64")
    q, r = (x.numpy() for x in tl.linalg.qr(tl.tensor(a.astype(dtype))))
    for size in sizes:
        other, scaled = (x.numpy() for x in tl.linalg.qr(tl.tensor((a * size).astype(dtype))))
        eps = 2e-5 if size == 1e-38 else 1000 * np.finfo(dtype).eps     # these are subnormal
        assert np.abs(other - q).max() < eps
        assert np.abs(scaled / np.array(size, dtype) - r).max() < eps * 10


def test_columns_without_anything_below_are_left_as_they_are():
    a = drawn(40, 20)
    a[:, 3] = 0
    a[1:, 0] = 0
    h, tau = tl.geqrf(tl.tensor(a))
    raw, factors = np.linalg.qr(a, "raw")
    assert tau[0] == tau[3] == 0 and not h[4:, 3].any() and not h[1:, 0].any()
    np.testing.assert_allclose(h.numpy(), raw.T, atol=1e-12)
    np.testing.assert_allclose(tau.numpy(), factors, atol=1e-12)
    assert tl.geqrf(tl.eye(33))[1].tolist() == [0] * 33


@each("value", [np.nan, np.inf])
def test_what_is_not_finite_gives_nan(value):
    a = drawn(40, 40)
    a[5, 5] = value
    q, r = tl.linalg.qr(tl.tensor(a))
    assert q.isnan().any() and r[5:, 5].isnan().any() and r[:, :5].isfinite().all()


@each("k", [0, 5, 32, 50])
@each("dtype", ["float64", "complex128"])
def test_products_of_some_reflections_with_any_factors(k, dtype):
    a, tau = drawn(60, 50, dtype=dtype) / 8, drawn(k, dtype=dtype)
    wanted = np.eye(60)
    for i in range(k):
        v = np.tril(a, -1)[:, i] + np.eye(60)[i]
        wanted = wanted @ (np.eye(60) - tau[i] * np.outer(v, v.conj()))
    found = tl.linalg.householder_product(tl.tensor(a), tl.tensor(tau)).numpy()
    np.testing.assert_allclose(found, wanted[:, :50], rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_matrices_without_elements():
    for shape in ((0, 3), (20, 0), (0, 20, 20), (2, 0, 0)):
        h, tau = tl.geqrf(tl.ones(shape))
        assert h.shape == shape and tau.shape == (*shape[:-2], min(shape[-2:]))
    assert tl.linalg.householder_product(tl.ones(20, 0), tl.ones(0)).shape == (20, 0)
    q, r = tl.linalg.qr(tl.ones(20, 0), "complete")
    assert (q == tl.eye(20)).all() and r.shape == (20, 0)


@each("shapes", [((3, 2), (3,)), ((2, 3), (2,)), ((3, 2), (1, 2)), ((2, 3, 2), (3, 2))])
def test_factors_of_other_shapes_are_refused(shapes):
    a, tau = map(tl.ones, shapes)
    for function in (tl.linalg.householder_product, householder.product):
        with pytest.raises((RuntimeError, ValueError)):
            function(a, tau)
    with pytest.raises(ValueError, match="not wide"):
        householder.qr(tl.ones(20, 30), False)


def test_without_memory_for_a_block():
    a = tl.tensor(drawn(40, 40))
    refuse_scratch(True)
    try:
        for call in (lambda: tl.geqrf(a), lambda: tl.orgqr(a, a[0]), lambda: tl.linalg.qr(a)):
            with pytest.raises(MemoryError, match="no memory for a block"):
                call()
    finally:
        refuse_scratch(False)
