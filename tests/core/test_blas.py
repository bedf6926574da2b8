"""Matrix products, by the BLAS that NumPy has or by panels: any strides, and the same bits for any
number of threads."""

import ctypes
import itertools
import os
from functools import cache

import numpy as np
import pytest
from capi import c_function
from cases import each

import tensorlib as tl
from tensorlib._core.base import pool
from tensorlib._core.products import blas, panel_products

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
          "uint64", "float16", "bfloat16", "float32", "float64")


class MatmulArgs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in "aby"] + [
        (name, ctypes.c_ssize_t)
        for name in ("batch", "m", "k", "n", "a_batch", "b_batch", "y_batch",
                     "a_row", "a_col", "b_row", "b_col", "y_row", "y_col")]


matmul_run = c_function(blas, "matmul_run", ctypes.c_int, ctypes.c_int, ctypes.POINTER(MatmulArgs))

pytestmark = pytest.mark.usefixtures("restore_threads")


@pytest.fixture(params=panel_products.WAYS)
def way(request):
    """Products of any size by the BLAS, or by panels of ours."""
    before = panel_products.use_way(request.param)
    yield request.param
    panel_products.use_way(before)


def product(a, b):
    """a @ b for stacks of matrices (B, M, K) and (B, K, N)."""
    y = np.full((len(a), a.shape[1], b.shape[2]), 77, a.dtype)
    args = MatmulArgs(a.ctypes.data, b.ctypes.data, y.ctypes.data, len(a), *a.shape[1:],
                      b.shape[2], a.strides[0], b.strides[0], y.strides[0],
                      *a.strides[1:], *b.strides[1:], *y.strides[1:])
    assert matmul_run(DTYPES.index(a.dtype.name), ctypes.byref(args)) == 0
    return y


def operand(rng, dtype, *shape):
    x = rng.integers(-5, 5, shape) if np.dtype(dtype).kind in "iu" else rng.standard_normal(shape)
    return x.astype(dtype)


def both_ways(a, b):
    """Stacks of matrices, of which none, one or both lie by columns in memory."""
    return itertools.product(*[
        (x, np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)) for x in (a, b)])


@cache
def factors_and_product(dtype, batch, m, k, n):
    """Two stacks of matrices and their product, which NumPy computes slowly for integers."""
    rng = np.random.default_rng(0)
    a, b = operand(rng, dtype, batch, m, k), operand(rng, dtype, batch, k, n)
    wide = "float64" if np.dtype(dtype).kind == "f" else dtype
    return a, b, np.matmul(a.astype(wide), b.astype(wide))


SHAPES = [(1, 1, 1, 1), (3, 8, 8, 8), (2, 0, 3, 4), (2, 3, 0, 4),
          (0, 3, 3, 3), (1, 1, 300, 400), (1, 400, 300, 1),
          (1, 1, 20000, 1), (500, 16, 16, 16), (2, 130, 20, 530),
          (1, 260, 300, 600), (3, 7, 900, 33),
          (900, 3, 3, 3), (7, 1, 5, 1), (5, 16, 16, 2), (6, 4, 1, 4),
          (3, 2, 0, 2), (5, 17, 3, 4),
          (1, 300, 1, 400), (90, 33, 1, 65), (3, 0, 1, 4), (3, 4, 1, 0),
          (2, 20, 300, 530), (1, 7, 520, 330),
          (1, 1050, 530, 100), (1, 100, 1300, 60)]


@each("dtype", ["float32", "float64"])
@each("shape", SHAPES)
def test_products_equal_numpy(dtype, shape, way):
    assert_equals_numpy(dtype, shape, {"float32": 1e-3, "float64": 1e-11}[dtype])


@each("dtype", ["int64", "int8", "uint16"])
@each("shape", SHAPES)
def test_products_of_integers_equal_numpy(dtype, shape):
    """Which have one way alone."""
    assert_equals_numpy(dtype, shape, 0)


def assert_equals_numpy(dtype, shape, tolerance):
    a, b, wanted = factors_and_product(dtype, *shape)
    for x, y in both_ways(a, b):
        np.testing.assert_allclose(product(x, y), wanted, atol=tolerance, rtol=0,
                                   err_msg=f"by strides {x.strides} and {y.strides}")


def test_a_broadcast_operand_has_batch_stride_0():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((70, 30, 40)), rng.standard_normal((40, 50))
    np.testing.assert_allclose(product(a, np.broadcast_to(b, (70, 40, 50))), a @ b,
                               rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_outer_products_of_broadcast_and_strided_operands(dtype):
    rng = np.random.default_rng(3)
    columns = rng.standard_normal((70, 30, 4)).astype(dtype)
    rows = rng.standard_normal((1, 1, 50)).astype(dtype)
    b = np.broadcast_to(rows, (70, 1, 50))
    for a in (columns[:, :, 1:2], np.broadcast_to(columns[:, :1, :1], (70, 30, 1))):
        np.testing.assert_array_equal(product(a, b), a * b)
    np.testing.assert_array_equal(product(columns[:, :, :1], b[:, :, ::-1]),
                                  columns[:, :, :1] * b[:, :, ::-1])


def test_an_outer_product_has_no_negative_zeros():
    a, b = np.full((1, 40, 1), -1.0), np.zeros((1, 1, 40))
    assert not np.signbit(product(a, b)).any()


# Among them shapes where OpenBLAS gives other bits with two threads of its own than with one.
@each("shape", [(1, 2, 1000, 2000), (1, 7, 1000, 257), (1, 33, 64, 257),
                (1, 2000, 1000, 1), (1, 1, 1000, 2000), (1, 16, 257, 257),
                (1, 640, 300, 700), (1, 1, 50000, 1), (40, 64, 64, 64),
                (1, 300, 1, 400), (90, 33, 1, 65), (1, 20, 300, 530)])
@each("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_threads(shape, dtype, way):
    batch, m, k, n = shape
    rng = np.random.default_rng(2)
    for a, b in both_ways(operand(rng, dtype, batch, m, k), operand(rng, dtype, batch, k, n)):
        results = []
        for threads in (1, 2, 5):
            pool.set_num_threads(threads)
            results.append(product(a, b).tobytes())
        assert len(set(results)) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_element_by_panels_does_not_depend_on_its_place(dtype):
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((1, 270, 1300)).astype(dtype), rng.standard_normal((1, 1300, 75))
    b = b.astype(dtype)
    before = panel_products.use_way("panels")
    try:
        whole = product(a, b)
        for rows, cols in itertools.product(
                [slice(0, 4), slice(3, 262), slice(251, 258), slice(20, 34)],
                [slice(0, 10), slice(7, 75), slice(40, 57)]):
            left, right = a[:, rows], b[:, :, cols]
            for x in (left, left.transpose(0, 2, 1).copy().transpose(0, 2, 1), left[:, ::-1]):
                for y in (right, right.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
                    part = product(x, y)
                    part = part[:, ::-1] if x.strides[1] < 0 else part
                    np.testing.assert_array_equal(part, whole[:, rows, cols])
    finally:
        panel_products.use_way(before)


@pytest.mark.parametrize("dtype", [tl.float32, tl.float64])
@pytest.mark.parametrize("sizes", [(20, 90, 130), (12, 600, 300), (40, 250, 700), (90, 130, 120),
                                   (110, 1000, 150), (110, 600, 50)])
def test_a_row_is_added_to_a_product_with_its_bits(sizes, dtype, way):
    m, k, n = sizes
    x, weight, bias = (tl.randn(*shape, dtype=dtype) for shape in ((m, k), (n, k), (n,)))
    assert tl.equal(tl.nn.functional.linear(x, weight, bias), x @ weight.T + bias)


@pytest.mark.parametrize("strides", [(2, 3), (-1, 1), (0, 1), (1, 0)])
def test_any_strides(strides, way):
    rng = np.random.default_rng(5)
    down, across = strides
    base = np.resize(rng.standard_normal(9973), (1, 2100, 2000))
    a = np.lib.stride_tricks.as_strided(
        base[:, 800:], (1, 300, 310), (0, down * base.strides[1], across * 8))
    for b in (base[:, :930:3, :700:2], base[:, :100, :310].transpose(0, 2, 1)[..., ::-1]):
        np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("step", [530, 700, -530, 0, 1, 17])
def test_a_few_rows_read_a_matrix_whose_rows_lie_anywhere(step, way):
    rng = np.random.default_rng(6)
    base = rng.standard_normal(300 * 700)
    first = 299 * 530 if step < 0 else 0
    b = np.lib.stride_tricks.as_strided(base[first:], (1, 300, 530), (0, 8 * step, 8))
    for m in (6, 13, 95):
        a = rng.standard_normal((1, m, 300))
        np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-11, atol=1e-11)


@each("dtype", ["complex64", "complex128"])
@each("sizes", [(1, 2, 2), (2, 2, 2), (2, 0, 3), (3, 4, 2), (4, 4, 1), (5, 3, 9), (8, 16, 17),
                (31, 32, 32), (33, 64, 32)])
def test_small_complex_products_of_batches(sizes, dtype):
    """They fit on the stack as real numbers; rows and columns may lie in any order."""
    m, k, n = sizes
    rng = np.random.default_rng(0)
    a, b = ((rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
            for shape in ((3, m, k), (3, k, n)))
    tolerance = dict.fromkeys(("rtol", "atol"), 1e-5 if dtype == "complex64" else 1e-13)
    x, y = tl.tensor(a), tl.tensor(b)
    if min(m, n) > 1:        # by panels: the same bits in any layout; vectors go to the BLAS
        assert tl.equal(x.mT.contiguous().mT @ y.mT.contiguous().mT, x @ y)
    for left, right in itertools.product(
            (x, x.mT.contiguous().mT, x[:1].expand(3, m, k), x.flip(1)),
            (y, y.mT.contiguous().mT, y[0], y[:, :1].expand(3, k, n) if k else y)):
        wanted = left.numpy() @ right.numpy()
        np.testing.assert_allclose((left @ right).numpy(), wanted, **tolerance)


def test_a_dtype_without_a_loop_is_refused():
    args = MatmulArgs(batch=1, m=1, k=1, n=1)
    assert matmul_run(DTYPES.index("bfloat16"), ctypes.byref(args)) == -1


def test_the_blas_is_found_and_gets_its_threads_back():
    info = blas.blas_info()
    if info["threads"] is None:
        pytest.skip("NumPy's BLAS is not one that can be asked")
    assert os.path.exists(info["path"]) and info["name"] in ("openblas", "mkl")
    pool.set_num_threads(2)
    assert blas.blas_info()["threads"] == 2
    product(np.ones((1, 300, 300), "f"), np.ones((1, 300, 300), "f"))
    assert blas.blas_info()["threads"] == 2
