"""Loops of reductions beside NumPy's: sums, products, extremes, counts, and what nothing gives."""

import ctypes
import math

import numpy as np
import pytest
import tensorlib as tl
from capi import c_function
from cases import each

from tensorlib._core.base import pool
from tensorlib._core.reduce import schedule

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
          "uint64", "float16", "bfloat16", "float32", "float64")
WITHOUT_LOOPS = ("uint16", "uint32", "uint64", "float16", "bfloat16")
KINDS = ("sum", "prod", "squares", "any", "all", "max", "min", "argmax", "argmin")
POINTER = ctypes.c_void_p
reduce_run = c_function(schedule, "reduce_run", ctypes.c_int, ctypes.c_int, ctypes.c_int,
                        POINTER, POINTER, POINTER, POINTER)
index_run = c_function(schedule, "index_run", ctypes.c_int, ctypes.c_int, ctypes.c_int,
                       POINTER, POINTER, POINTER, POINTER)

SHAPES = [(1, 1, 1), (1, 7, 1), (5, 3, 1), (3, 64, 1), (2, 65, 1), (3, 1000, 1), (2, 9000, 1),
          (1, 5, 3), (2, 40, 3), (1, 1000, 7), (3, 33, 64), (2, 70, 65), (1, 100, 130),
          (1, 65, 600), (2, 5, 1100), (1, 1, 5000), (0, 4, 4), (4, 4, 0)]
# Large enough to be cut along outer, inner and n.
LARGE = [(40, 9000, 1), (1, 20, 20000), (1, 300_001, 1), (2, 150_003, 1), (1, 60_001, 5),
         (3, 1000, 100), (3, 10, 9000)]

pytestmark = pytest.mark.usefixtures("restore_threads")


def reduced(kind, x, c=None):
    outer, n, inner = x.shape
    sizes = np.array([outer, n, inner, n * inner, inner], np.intp)      # the last two are steps
    y = np.zeros((outer, inner), x.dtype)
    dtype = DTYPES.index(x.dtype.name)
    if kind.startswith("arg"):
        at = np.full((outer, inner), -1, np.int64)
        code = index_run(KINDS.index(kind), dtype, x.ctypes.data, y.ctypes.data, at.ctypes.data,
                         sizes.ctypes.data)
        assert code == 0
        return y, at
    else:
        code = reduce_run(KINDS.index(kind), dtype, x.ctypes.data,
                          None if c is None else c.ctypes.data, y.ctypes.data, sizes.ctypes.data)
    assert code == 0
    return y


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -1000), min(info.max, 1000), shape, endpoint=True).astype(
        dtype)


@each("shape", SHAPES + LARGE)
def test_sums_of_integers(shape):
    x = sample(shape, "int64")
    np.testing.assert_array_equal(reduced("sum", x), x.sum(1))


@each("shape", SHAPES + LARGE)
@each("dtype", ["float32", "float64"])
def test_sum_and_squares(shape, dtype):
    x = sample(shape, dtype)
    exact = x.astype("longdouble")
    eps = np.finfo(dtype).eps
    bound = (math.log2(max(2, shape[1])) + 32) * eps
    error = np.abs(reduced("sum", x) - exact.sum(1))
    assert (error <= bound * np.abs(exact).sum(1)).all()
    c = np.ascontiguousarray(x.mean(1))
    wanted = ((exact - c[:, None]) ** 2).sum(1)
    assert (np.abs(reduced("squares", x, c) - wanted) <= 2 * bound * wanted).all()


@each("shape", SHAPES)
@each("dtype", ["float32", "float64", "int64"])
def test_prod(shape, dtype):
    signs = np.where(sample(shape, "bool"), 1, -1)
    x = (signs * (np.exp(sample(shape, "float64") / 16) if dtype != "int64" else 3)).astype(dtype)
    wanted = x.prod(1)
    np.testing.assert_allclose(reduced("prod", x), wanted, rtol=0 if dtype == "int64" else 1e-3)


@each("shape", SHAPES + LARGE[:4])
@each("dtype", [d for d in DTYPES if d not in WITHOUT_LOOPS])
@each("kind", ["max", "min"])
def test_extremes_and_their_first_index(shape, dtype, kind):
    x = sample(shape, dtype)
    np.testing.assert_array_equal(reduced(kind, x), getattr(x, kind)(1))
    value, at = reduced("arg" + kind, x)
    np.testing.assert_array_equal(value, getattr(x, kind)(1))
    np.testing.assert_array_equal(at, getattr(x, "arg" + kind)(1))


@each("shape", [s for s in SHAPES if s[0] * s[2]] + LARGE)
@each("kind", ["max", "min"])
@each("dtype", ["float32", "float64"])
def test_nan_is_the_greatest_and_the_least(shape, kind, dtype):
    x = sample(shape, dtype)
    x[:, [shape[1] // 2, -1], :: 2] = np.nan
    np.testing.assert_array_equal(reduced(kind, x), getattr(x, kind)(1))
    value, at = reduced("arg" + kind, x)
    np.testing.assert_array_equal(value, getattr(x, kind)(1))
    np.testing.assert_array_equal(at, getattr(x, "arg" + kind)(1))


@each("shape", SHAPES)
def test_any_and_all(shape):
    for likely in (0.0, 0.02, 0.98, 1.0):
        x = np.random.default_rng(1).random(shape) < likely
        np.testing.assert_array_equal(reduced("any", x), x.any(1))
        np.testing.assert_array_equal(reduced("all", x), x.all(1))


@pytest.mark.parametrize("kind, dtype, identity", [
    ("sum", "float32", 0), ("sum", "int64", 0), ("prod", "float32", 1), ("prod", "float64", 1),
    ("prod", "int64", 1), ("any", "bool", False), ("all", "bool", True)])
def test_nothing_reduces_to_the_identity(kind, dtype, identity):
    x = np.empty((3, 0, 4), dtype)
    np.testing.assert_array_equal(reduced(kind, x), np.full((3, 4), identity, dtype))


@each("shape", LARGE)
@each("dtype", ["float32", "float64"])
def test_bits_do_not_depend_on_threads(shape, dtype):
    x = sample(shape, dtype)
    c = np.ascontiguousarray(x[:, 0])
    results = []
    for threads in (1, 2, 5):
        pool.set_num_threads(threads)
        results.append((reduced("sum", x).tobytes(), reduced("squares", x, c).tobytes(),
                        reduced("argmin", x)[1].tobytes()))
    assert len(set(results)) == 1


def test_errors_of_a_long_float32_sum_grow_with_the_logarithm():
    x = np.full((1, 3_000_000, 1), 0.1, "float32")
    exact = float(x[0, 0, 0]) * x.size
    assert abs(float(reduced("sum", x)[0, 0]) - exact) <= 1e-6 * exact


def test_integer_sums_wrap_around():
    x = np.full((1, 2, 1), np.iinfo("int64").max)
    assert reduced("sum", x)[0, 0] == -2


def test_a_dtype_without_a_loop_is_refused():
    ones = np.ones(5, np.intp)
    assert reduce_run(KINDS.index("squares"), DTYPES.index("int8"), None, None, None,
                      ones.ctypes.data) == -1


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "uint64", "float16", "float32",
                                   "float64"])
def test_counts_at_the_ends_of_blocks_and_words(dtype):
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 8, 9, 2039, 2040, 2041, 4095, 4096, 4097, 70_001):
        for x in ((rng.random(n) * 3).astype(dtype), np.ones(n, dtype)):
            assert tl.count_nonzero(tl.from_numpy(x)).item() == np.count_nonzero(x)
            assert tl.from_numpy(x)[tl.from_numpy(x) != 0].numel() == np.count_nonzero(x)


def test_what_counts_as_zero():
    assert tl.count_nonzero(tl.tensor([0.0, -0.0, np.nan, 1e-45])).item() == 2
    borrowed = np.array([0, 2, 255], np.uint8).view(bool)
    assert tl.count_nonzero(tl.from_numpy(borrowed)).item() == 2
