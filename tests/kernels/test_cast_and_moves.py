"""Conversions between dtypes, and moves of items with strides."""

import ctypes
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each
from loops import any_bits, edges, numpy_dtype, rows

INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
REALS = (*INTEGERS, "float16", "float32", "float64")
ALL = ("bool", *REALS, "bfloat16")


def numbers(dtype):
    if dtype == "bool":
        return np.array([False, True] * 20)
    x = any_bits(dtype, 4000, 1)
    if dtype.startswith("float") and dtype != "float16":
        halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(dtype)
        with np.errstate(all="ignore"):  # ties between neighbouring halves, and beside them
            above = np.nextafter(halves.astype(np.float16), np.float16(np.inf))
            ties = (halves + above.astype(dtype)) / 2
            up, down = (np.nextafter(ties, np.array(to, dtype)) for to in (np.inf, -np.inf))
        x = np.concatenate([x, edges(dtype), ties, up, down])
    return x


def to_brain(x):
    """bits of the bfloat16 nearest to each number, ties to even, in rational arithmetic"""
    rounded = []
    for value in x.tolist():
        if abs(value) in (0, np.inf):
            rounded.append(value)
            continue
        exponent = max(math.frexp(value)[1] - 1, -126)
        unit = Fraction(2) ** (exponent - 7)
        exact = round(Fraction(value) / unit) * unit
        exact = math.inf if exact >= 2**128 else -math.inf if exact <= -(2**128) else exact
        rounded.append(math.copysign(float(exact), value))
    return (np.array(rounded, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def from_brain(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


@each("source", REALS)
@each("target", ("float16", "float32", "float64"))
def test_to_float_rounds_once(table, source, target):
    x = numbers(source)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    got = table["cast", source, target](x)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@each("source", INTEGERS)
@each("target", INTEGERS)
def test_integers_wrap(table, source, target):
    x = numbers(source)
    np.testing.assert_array_equal(table["cast", source, target](x), x.astype(target))


@each("source", ("float16", "float32", "float64"))
@each("target", INTEGERS)
def test_float_to_integer_truncates(table, source, target):
    rng = np.random.default_rng(2)
    info = np.iinfo(target)
    limit = min(info.max, 60000, 2**31 - 1000)
    x = rng.uniform(max(info.min, -60000), limit, 2000).astype(source)
    np.testing.assert_array_equal(table["cast", source, target](x), np.trunc(x).astype(target))


@pytest.mark.parametrize("source", ("float32", "float64"))
def test_float_to_integer_beyond_the_range_is_the_smallest(table, source):
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], source)
    for target in ("int32", "int64"):
        assert (table["cast", source, target](x) == np.iinfo(target).min).all()
    for target in ("uint8", "int8", "int16"):
        assert (table["cast", source, target](x) == 0).all()
    assert table["cast", source, "uint8"](np.array([-1, 300, -3.7], source)).tolist() == [
        255, 44, 253]
    assert table["cast", source, "uint16"](x).tolist() == [0] * 5
    assert table["cast", source, "uint32"](x).tolist() == [0] * 5
    assert table["cast", source, "uint64"](x).tolist() == [2**63, 0, 2**63, 0, 2**63]


@pytest.mark.parametrize("source", ("float32", "float64"))
def test_float_to_unsigned_is_that_of_c(table, source):
    """Negative numbers wrap, numbers from 2**63 on are there; x86 does so for int64's range."""
    x = np.array([-1, -3.7, 0.9, 2.0**31, 3e9, 2.0**63, 1.5 * 2.0**63, 2.0**62], source)
    exact = [math.trunc(value) for value in x.tolist()]
    assert table["cast", source, "uint32"](x)[:5].tolist() == [v % 2**32 for v in exact[:5]]
    assert table["cast", source, "uint64"](x).tolist() == [v % 2**64 for v in exact]
    below = np.nextafter(np.array([2.0**64], source), np.array(0, source))
    assert table["cast", source, "uint64"](below).tolist() == [int(below[0])]


@each("power", [0, 24, 49, 50, 51, 53, 63])
@each("target", ("float16", "float32", "float64"))
def test_int64_to_floating_rounds_once(table, target, power):
    """Blocks of numbers near 0, blocks with one beyond, and a block that is not whole."""
    x = np.arange(-350, 350)
    x[300:] += np.where(np.arange(400) % 7 == 0, 2**power - 1, 0)
    for given in (x, -x, np.array([2**power - 1, -2**power] * 300)):
        with np.errstate(over="ignore"):
            expected = given.astype(target)
        np.testing.assert_array_equal(table["cast", "int64", target](given), expected)


@each("source", REALS)
def test_to_bool(table, source):
    x = numbers(source)
    np.testing.assert_array_equal(table["cast", source, "bool"](x), x != 0)


@each("target", REALS)
def test_from_bool(table, target):
    x = numbers("bool")
    np.testing.assert_array_equal(table["cast", "bool", target](x), x.astype(target))


@pytest.mark.parametrize("source", ("int64", "int32", "uint16", "uint32", "uint64", "float32",
                                    "float64", "float16"))
def test_to_bfloat16_rounds_once(table, source):
    x = any_bits(source, 3000, 3)
    if source == "int64":
        x = np.concatenate([x, [2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1, 2**54 + 1]])
    if source == "uint64":
        ties = [2**63 + 2**55 + 1, 2**63 + 2**55, 2**63 + 3 * 2**55, 2**64 - 1, 2**54 + 1]
        x = np.concatenate([x, np.array(ties, np.uint64)])
    got = table["cast", source, "bfloat16"](x)
    if source.startswith("float"):
        x, got = x[~np.isnan(x)], got[~np.isnan(x)]
    np.testing.assert_array_equal(got, to_brain(x))


def test_bfloat16_keeps_nan_and_goes_back(table):
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = from_brain(bits)
    np.testing.assert_array_equal(table["cast", "bfloat16", "float32"](bits), values)
    back = table["cast", "float32", "bfloat16"](values)
    known = ~np.isnan(values)
    np.testing.assert_array_equal(back[known], bits[known])
    assert np.isnan(from_brain(back[~known])).all()
    assert not table["cast", "bfloat16", "bool"](np.array([0, 0x8000], np.uint16)).any()


def test_float64_to_float16_rounds_once(table):
    """Also next to the middles of float16, which a float in between would round to, and beyond."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([halves, middles, middles * (1 + 1e-12), middles * (1 - 1e-12),
                        [65519.99, 65520, 1e300, np.inf, 5e-324, 1e-40]])
    for given in (x, -x, any_bits("float64", 3000, 4)):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = given.astype(np.float16)
        np.testing.assert_array_equal(table["cast", "float64", "float16"](given), expected)


def test_float16_goes_to_float_and_back(table):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    single = table["cast", "float16", "float32"](values)
    np.testing.assert_array_equal(single, values.astype(np.float32))
    np.testing.assert_array_equal(table["cast", "float32", "float16"](single), values)


def test_every_pair_of_dtypes_has_a_cast(table):
    assert all(("cast", a, b) in table for a in ALL for b in ALL)


@pytest.fixture(scope="module")
def movers(level):
    return {(name, output): address for name, _, output, address in rows(level, ["moves"])}


GATHER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p,
                          ctypes.c_ssize_t)
SCATTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t,
                           ctypes.c_ssize_t)


@each("step", [-3, -1, 1, 2, 7])
@each("spare", range(4))                     # they go by fours
@each("dtype", [*ALL, "complex64", "complex128"])
def test_gather_and_scatter(movers, dtype, step, spare):
    base = any_bits(np.uint8, 16 * 300, 5).view(f"V{numpy_dtype(dtype).itemsize}")
    base = base[:len(base) - spare * abs(step)]
    view = base[::step]
    out = np.empty(view.size, base.dtype)
    GATHER(movers["gather", dtype])(view.ctypes.data, view.strides[0], out.ctypes.data, view.size)
    assert out.tobytes() == view.tobytes()
    target = np.zeros_like(base)
    SCATTER(movers["scatter", dtype])(out.ctypes.data, target[::step].ctypes.data,
                                      view.strides[0], view.size)
    assert target[::step].tobytes() == out.tobytes()
    untouched = np.ones(base.size, bool)
    untouched[::step] = False
    assert not any(target[untouched].tobytes())


@each("dtype", [*ALL, "complex128"])
def test_gather_of_stride_zero_repeats(movers, dtype):
    value = any_bits(np.uint8, numpy_dtype(dtype).itemsize, 6)
    out = np.empty((50, value.size), np.uint8)
    GATHER(movers["gather", dtype])(value.ctypes.data, 0, out.ctypes.data, 50)
    assert (out == value).all()
    GATHER(movers["gather", dtype])(0, 0, out.ctypes.data, 0)  # an empty run reads nothing


TRANSPOSE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p,
                             ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_ssize_t)


@each("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
def test_blocks_of_any_shape_are_turned(movers, dtype):
    """Also into rows with gaps, where nothing is written."""
    whole = any_bits(np.uint8, 16 * 36 * 40, 8).view(f"V{numpy_dtype(dtype).itemsize}")[:36 * 40]
    for height, columns in itertools.product((*range(1, 20), 31, 32, 35), repeat=2):
        x = whole.reshape(36, 40)[:columns, 1:1 + height]       # what becomes columns has gaps
        for gap in (0, 3):
            y = np.zeros((height, columns + gap), whole.dtype)
            TRANSPOSE(movers["transpose", dtype])(x.ctypes.data, x.strides[0], y.ctypes.data,
                                                  y.strides[0], height, columns)
            assert y[:, :columns].tobytes() == x.T.tobytes()
            assert not any(y[:, columns:].tobytes())


@each("dtype", ("bool", *INTEGERS, "float32", "float64", "complex64",
                "complex128"))
def test_where(table, dtype):
    rng = np.random.default_rng(7)
    condition = rng.integers(0, 2, 333).astype(bool)
    a, b = rng.integers(0, 2, (2, 333)).astype(dtype)
    loop = table["where", "bool", dtype, dtype, dtype]
    expected = np.where(condition, a, b)
    np.testing.assert_array_equal(loop(condition, a, b), expected)
    np.testing.assert_array_equal(loop.in_place(1, condition, a, b), expected)
    np.testing.assert_array_equal(loop.in_place(2, condition, a, b), expected)


@each("count", [1, 5, 16, 17, 40])
@each("source", ["float32", "float64"])
def test_nan_in_halves_is_the_usual_one(table, source, count):
    """Wherever it stands: float16 keeps its sign, and bfloat16 has one NaN, as in PyTorch."""
    x = np.full(count, np.nan, source)
    x[::2] = -x[::2]
    signs = np.where(np.signbit(x), 0x8000, 0)
    half = table["cast", source, "float16"](x).view(np.uint16)
    np.testing.assert_array_equal(half, 0x7E00 | signs)
    np.testing.assert_array_equal(table["cast", source, "bfloat16"](x), np.full(count, 0x7FC0))
