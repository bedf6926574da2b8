"""The loops of half types that sum and compare without float32 in memory."""

import numpy as np
import pytest
import tensorlib as tl
from cases import each

from tensorlib._core.base import pool

# Rows and columns about the least size of the loops, of their blocks and of their pieces.
SHAPES = [(63,), (64,), (65,), (4096,), (4097,), (300_001,), (7, 100), (5, 5000), (64, 3),
          (100, 64), (33, 65), (129, 511), (5, 1023), (400, 1030), (40, 20000), (3, 50, 70)]
DTYPES = ["float16", "bfloat16"]
INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}

pytestmark = pytest.mark.usefixtures("restore_threads")


def sample(shape, dtype, *patterns):
    """Random numbers, and every 37th of these patterns of bits."""
    x = tl.tensor(np.random.default_rng(0).standard_normal(shape)).to(getattr(tl, dtype))
    bits = x.view(tl.int16).numpy().reshape(-1)
    for k, pattern in enumerate(patterns):
        bits[k * 5::37] = np.uint16(pattern).view(np.int16)
    return x


def dims(shape):
    return [tuple(range(len(shape))), *range(len(shape))]


@each("shape", SHAPES)
@each("dtype", DTYPES)
def test_extremes_are_those_of_float64(shape, dtype):
    infinity, minus = INFINITY[dtype], 0x8000
    for patterns in [(), (infinity, infinity | minus), (infinity + 1,), (0xFFFF,), (0x7FFF,),
                     (0x0001, minus)]:
        x = sample(shape, dtype, *patterns)
        wide = x.double()
        for dim in dims(shape):
            for name in ("amax", "amin"):
                found, wanted = getattr(x, name)(dim), getattr(wide, name)(dim)
                np.testing.assert_array_equal(found.double().numpy(), wanted.numpy())


@each("dtype", DTYPES)
def test_one_nan_is_found_anywhere(dtype):
    for size in [64, 100, 5000]:
        for at in [0, size // 2, size - 1]:
            for pattern in [INFINITY[dtype] + 1, 0xFFFF]:
                x = tl.ones(size, dtype=getattr(tl, dtype))
                x.view(tl.int16)[at] = int(np.uint16(pattern).view(np.int16))
                for y in [x, x[:, None].expand(-1, 64).contiguous()]:
                    assert y.amax(0).isnan().all() and y.amin(0).isnan().all()


@each("dtype", DTYPES)
def test_zero_is_above_minus_zero(dtype):
    x = tl.tensor([0.0, -0.0] * 100, dtype=getattr(tl, dtype))
    assert not x.amax().signbit() and x.amin().signbit()


@each("shape", SHAPES)
@each("dtype", DTYPES)
def test_sums_are_exact_to_a_rounding(shape, dtype):
    x = sample(shape, dtype)
    for dim in dims(shape):
        found = x.sum(dim, dtype=tl.float32).double().numpy()
        exact, room = x.double().sum(dim).numpy(), x.double().abs().sum(dim).numpy()
        assert (np.abs(found - exact) <= 1e-5 * room).all()
        rounded = x.sum(dim)
        np.testing.assert_allclose(rounded.double().numpy(), exact, rtol=2.0**-8,
                                   atol=1e-5 * room.max())


@each("dtype", DTYPES)
def test_sums_of_infinities_and_subnormals(dtype):
    infinity, least = INFINITY[dtype], 2.0**-24 if dtype == "float16" else 2.0**-133
    for n in [64, 70]:
        for y in [sample((n,), dtype), sample((9, n), dtype)]:
            y.view(tl.int16)[...] = 1
            np.testing.assert_array_equal(y.double().sum(0).numpy(),
                                          np.full(y.shape[1:], least * len(y)))
            assert (y.sum(0).double() == least * len(y)).all()
            y.view(tl.int16)[3] = infinity
            assert (y.sum(0) == float("inf")).all()
            y.view(tl.int16)[5] = infinity - 0x8000
            assert y.sum(0).isnan().all()


@each("shape", [(300_001,), (400, 1030), (40, 20000), (5, 100_000)])
@each("dtype", DTYPES)
def test_threads_change_no_bit(shape, dtype):
    x = sample(shape, dtype)
    for dim in dims(shape):
        for name in ["sum", "amax", "amin"]:
            results = []
            for threads in [1, 2]:
                pool.set_num_threads(threads)
                results.append(getattr(x, name)(dim).view(tl.int16).numpy())
            np.testing.assert_array_equal(*results)
