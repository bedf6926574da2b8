"""Products of matrices of integers, on every level."""

import ctypes

import numpy as np
import pytest
from cases import each
from tensorlib import _kernels

RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
SHAPES = ((1, 1, 1), (3, 5, 7), (4, 16, 256), (5, 17, 257), (2, 33, 600), (3, 0, 4), (0, 3, 2),
          (9, 300, 70), (8, 129, 128), (13, 40, 12))


@pytest.fixture(scope="module", params=["uint8", "int8", "int16", "int32", "int64"])
def product(request, level):
    table = _kernels.load("integer_product", level).table()
    (address,) = [address for _, _, dtype, address in table if dtype == request.param]

    def run(a, b):
        y = np.empty((len(a), a.shape[1], b.shape[2]), request.param)
        operands = (ctypes.c_void_p * 3)(a.ctypes.data, b.ctypes.data, y.ctypes.data)
        sizes = (ctypes.c_ssize_t * 4)(len(a), a.shape[1], a.shape[2], b.shape[2])
        strides = (ctypes.c_ssize_t * 9)(
            a.strides[0], b.strides[0], y.strides[0], *a.strides[1:], *b.strides[1:],
            *y.strides[1:])
        RUN(address)(operands, sizes, strides, None)
        return y
    return request.param, run


@each("m, k, n", SHAPES)
def test_as_numpy(product, m, k, n):
    dtype, run = product
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, shape, dtype) for shape in ((2, m, k), (2, k, n)))
    wanted = a @ b                                # wraps as well
    turned = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (a, b)]
    for left in (a, turned[0], np.repeat(a, 2, 2)[:, :, ::2]):
        for right in (b, turned[1], np.repeat(b, 2, 2)[:, :, ::2]):
            np.testing.assert_array_equal(run(left, right), wanted)
