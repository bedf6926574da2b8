"""Loops that are exact: NumPy gives the same bits, except where PyTorch's rule differs."""

import itertools

import numpy as np
import pytest
from cases import each
from loops import any_bits, edges

FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
WHOLE = (*INTEGERS, "uint16", "uint32", "uint64")
NAN, INF = np.nan, np.inf

UNARY = {
    "neg": np.negative, "abs": np.abs, "square": np.square, "reciprocal": lambda x: 1 / x,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "sqrt": np.sqrt,
    "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x)),
    "relu": lambda x: np.where(x < 0, 0, x), "mantissa": lambda x: np.frexp(x)[0],
    "exponent": lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0),
}
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "fmod": np.fmod,
    "copysign": np.copysign, "nextafter": np.nextafter,
    "div_trunc": lambda a, b: np.trunc(a / b),
    "zmul": lambda a, b: np.where(a == 0, 0, a * b),
    "sigmoid_backward": lambda g, y: np.where(g == 0, 0, g * (y * (1 - y))),
    "relu_backward": lambda g, y: np.where(y != 0, g, 0),
}
UNSIGNED_ZEROS = {"maximum", "minimum"}  # NumPy leaves their sign open
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
               "gt": np.greater, "ge": np.greater_equal}


def numbers(dtype):
    return np.concatenate([edges(dtype), any_bits(dtype, 3000, 1)])


def pairs(dtype):
    grid = [part.ravel() for part in np.meshgrid(edges(dtype), edges(dtype))]
    rng = np.random.default_rng(2)
    small = rng.uniform(-9, 9, (2, 3000)).astype(dtype)
    whole = rng.integers(-9, 9, (2, 500)).astype(dtype)
    bits = any_bits(dtype, 3000, 3), any_bits(dtype, 3000, 4)
    return [np.concatenate(parts) for parts in zip(grid, small, whole, bits)]


def assert_same(got, expected):
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@each("dtype", FLOATS)
@each("name", UNARY)
def test_unary(table, name, dtype):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        expected = UNARY[name](x).astype(dtype)
    assert_same(table[name, dtype, dtype](x), expected)
    assert_same(table[name, dtype, dtype].in_place(0, x), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PREDICATES)
def test_predicate(table, name, dtype):
    x = numbers(dtype)
    assert_same(table[name, dtype, "bool"](x), PREDICATES[name](x))


@each("dtype", FLOATS)
@each("name", BINARY)
def test_binary(table, name, dtype):
    a, b = pairs(dtype)
    loop = table[name, dtype, dtype, dtype]
    with np.errstate(all="ignore"):
        expected = BINARY[name](a, b).astype(dtype)
    got = loop(a, b)
    if name in UNSIGNED_ZEROS:
        np.testing.assert_array_equal(got, expected)
    else:
        assert_same(got, expected)
    np.testing.assert_array_equal(loop.in_place(0, a, b), got)
    np.testing.assert_array_equal(loop.in_place(1, a, b), got)


@each("dtype", FLOATS)
@each("name", COMPARISONS)
def test_comparison(table, name, dtype):
    a, b = pairs(dtype)
    assert_same(table[name, dtype, dtype, "bool"](a, b), COMPARISONS[name](a, b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder_and_floor_divide(table, dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        remainder = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
        quotient = np.where(b == 0, a / b, np.floor_divide(a, b))
    assert_same(table["remainder", dtype, dtype, dtype](a, b), remainder)
    got = table["floor_divide", dtype, dtype, dtype](a, b)
    known = np.isfinite(a) & ~np.isnan(quotient)  # of inf NumPy and PyTorch differ
    assert_same(got[known], quotient[known])


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_divide_at_the_edges_is_pytorchs(table, dtype):
    cases = [(1, 0, INF), (-1, 0, -INF), (0, 0, NAN), (0, -1, -0.0), (-0.0, 1, -0.0), (1, INF, 0.0),
             (-1, INF, -1), (INF, 1, NAN), (INF, INF, NAN), (1, -INF, -1), (7, -2, -4)]
    a, b, expected = (np.array(column, dtype) for column in zip(*cases))
    assert_same(table["floor_divide", dtype, dtype, dtype](a, b), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(table, dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    ends = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max], dtype)
    ends = np.concatenate([ends, -ends]) if info.min else ends
    a, b = (np.concatenate([grid.ravel(), rng.integers(info.min, info.max, 500, dtype)])
            for grid in np.meshgrid(ends, ends))
    known = b != 0

    def run(name):
        got = table[name, dtype, dtype, dtype](a, b)
        assert (got[~known] == 0).all(), f"{name} by 0"
        return got[known]

    a_, b_ = a[known].astype(object), b[known].astype(object)
    floor = np.array([p // q for p, q in zip(a_, b_)], object)
    trunc = np.array([abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
                      for p, q in zip(a_, b_)], object)

    def wrapped(values):
        span = info.max - info.min + 1
        return np.array([(v - info.min) % span + info.min for v in values], dtype)

    np.testing.assert_array_equal(run("floor_divide"), wrapped(floor))
    np.testing.assert_array_equal(run("div_trunc"), wrapped(trunc))
    np.testing.assert_array_equal(run("remainder"), wrapped(a_ - floor * b_))
    np.testing.assert_array_equal(run("fmod"), wrapped(a_ - trunc * b_))


@pytest.mark.parametrize("dtype", FLOATS)
def test_tanh_backward(table, dtype):
    loop = table["tanh_backward", dtype, dtype, dtype]
    g, out = np.random.default_rng(8).uniform(-1, 1, (2, 3000)).astype(dtype)
    # 1 - out * out is rounded once or twice, by the level
    np.testing.assert_allclose(loop(g, out), g * (1 - out * out), rtol=0,
                               atol=2 * np.finfo(dtype).eps)
    special = loop(np.array([0, 0, 1, NAN], dtype), np.array([NAN, INF, 1, 0], dtype))
    np.testing.assert_array_equal(special, np.array([0, 0, 0, NAN], dtype))


def test_strong_zero(table):
    for dtype in FLOATS:
        g = np.array([0, -0.0, 0, 1, NAN], dtype)
        d = np.array([INF, NAN, 5, INF, 2], dtype)
        np.testing.assert_array_equal(table["zmul", dtype, dtype, dtype](g, d),
                                      np.array([0, 0, 0, INF, NAN], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_of_floats(table, dtype):
    values = np.array([-INF, -2, -0.5, 0, 0.5, 2, INF, NAN], dtype)
    x, low, high = (part.ravel() for part in np.meshgrid(values, values, values))
    loop = table["clamp", dtype, dtype, dtype, dtype]
    expected = np.minimum(np.maximum(x, low), high)
    np.testing.assert_array_equal(loop(x, low, high), expected)
    for position in range(3):
        np.testing.assert_array_equal(loop.in_place(position, x, low, high), expected)


def test_division_of_integers_near_whole_quotients(table):
    """Doubles divide numbers of 53 bits; one of more sends its block to the integer unit."""
    rng = np.random.default_rng(7)
    for bits in (20, 50, 52.999, 53.001, 62):
        b = rng.integers(1, 2 + 2 ** (rng.random(4000) * bits)) * rng.choice([-1, 1], 4000)
        whole = (2.0 ** bits / np.abs(b) * rng.random(4000)).astype(np.int64)
        a = (whole * np.abs(b) + rng.integers(-1, 2, 4000)) * rng.choice([-1, 1], 4000)
        for name, reference in (("floor_divide", np.floor_divide), ("remainder", np.remainder),
                                ("fmod", np.fmod)):
            got = table[name, "int64", "int64", "int64"](a, b)
            np.testing.assert_array_equal(got, reference(a, b))
        trunc = table["div_trunc", "int64", "int64", "int64"](a, b)
        np.testing.assert_array_equal(a - trunc * b, np.fmod(a, b))


@each("dtype", FLOATS)
@each("name", ["add", "sub", "mul", "div", "pow"])
def test_a_number_as_second_input(table, name, dtype):
    x = numbers(dtype)
    for number in (0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.5, 7.0, 1e30, INF, -INF, NAN):
        y = np.full_like(x, number)
        assert_same(table[name + "_number", dtype, dtype, dtype](x, y),
                    table[name, dtype, dtype, dtype](x, y))


@each("dtype", WHOLE)
def test_powers_of_integers_wrap(table, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    a, b = any_bits(dtype, 700, 7), any_bits(dtype, 700, 8)
    b = np.where(np.arange(700) % 3 == 0, b % 5, np.maximum(b, 0)).astype(dtype)
    b[:300] %= 7                                 # a block of small exponents alone
    a[600:], b[650:] = 0, 0

    def wanted(a, b):
        found = [pow(int(x), int(y), 2**bits) for x, y in zip(a, b)]
        return np.array(found, f"uint{bits}").view(dtype)
    np.testing.assert_array_equal(table["pow", dtype, dtype, dtype](a, b), wanted(a, b))
    for number in (0, 1, 2, 7, np.iinfo(dtype).max):
        y = np.full_like(a, number)
        np.testing.assert_array_equal(
            table["pow_number", dtype, dtype, dtype](a, y), wanted(a, y))


@each("dtype", WHOLE)
def test_sums_with_products_wrap(table, dtype):
    x, a, b, v = (any_bits(dtype, 700, seed) for seed in range(4))
    assert_same(table["addcmul", *[dtype] * 4](x, a, b), x + a * b)
    assert_same(table["addcmul_scaled", *[dtype] * 5](x, a, b, v), x + v * a * b)


OF_PLACES = {"reverse", "transpose"}      # loops that take strides or other facts beside numbers


def test_loops_of_integers_take_any_bits(table):
    """Under sanitizers what overflows ends here; and a vector gives what single numbers give."""
    seen = set()
    for (name, *inputs, output), loop in table.items():
        if not set(inputs) <= set(WHOLE) or name in OF_PLACES or name.endswith("_mixed"):
            continue
        arrays = [any_bits(dtype, 200, seed) for seed, dtype in enumerate(inputs)]
        for place, array in enumerate(arrays):      # the limits, each with each of the other's
            info = np.iinfo(array.dtype)
            limits = np.array([info.min, info.max, 0, 1], array.dtype)
            array[:64] = np.tile(np.repeat(limits, 4**place), 16)[:64]
        got = loop(*arrays)
        if not name.endswith("_number"):
            singles = [loop(*(a[i:i + 1] for a in arrays))[0] for i in range(200)]
            np.testing.assert_array_equal(got, np.array(singles, got.dtype), err_msg=name)
        seen.add(name)
    assert {"addcmul", "pow", "clamp", "floor_divide"} <= seen, seen


@each("dtype", [*FLOATS, *INTEGERS])
def test_clamp_between_two_numbers(table, dtype):
    x = numbers(dtype) if dtype in FLOATS else any_bits(dtype, 300, 6)
    bounds = np.array([-2, 0, 3, INF, -INF, NAN] if dtype in FLOATS else [0, 3, 100]).astype(dtype)
    for low, high in itertools.product(bounds, repeat=2):
        low, high = np.full_like(x, low), np.full_like(x, high)
        assert_same(table["clamp_number", dtype, dtype, dtype, dtype](x, low, high),
                    table["clamp", dtype, dtype, dtype, dtype](x, low, high))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signs_of_half_types(table, dtype):
    x = np.arange(2 ** 16, dtype=np.uint16).view(
        np.float16 if dtype == "float16" else np.uint16)
    for name, wanted in (("neg", x.view(np.uint16) ^ 0x8000), ("abs", x.view(np.uint16) & 0x7FFF)):
        np.testing.assert_array_equal(table[name, dtype, dtype](x).view(np.uint16), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_logic(table, dtype):
    a, b = pairs(dtype)
    true, other = a != 0, b != 0
    for name, wanted in (("logical_and", true & other), ("logical_or", true | other),
                         ("logical_xor", true ^ other)):
        assert_same(table[name, dtype, dtype, "bool"](a, b), wanted)
    assert_same(table["logical_not", dtype, "bool"](a), ~true)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clamp_and_relu_of_integers(table, dtype):
    x, low, high = any_bits(dtype, 900, 6).reshape(3, 300)
    expected = np.minimum(np.maximum(x, low), high)
    np.testing.assert_array_equal(table["clamp", dtype, dtype, dtype, dtype](x, low, high),
                                  expected)
    np.testing.assert_array_equal(table["relu", dtype, dtype](x), np.maximum(x, 0))


def test_relu_keeps_nan(table):
    got = table["relu", "float32", "float32"](np.array([NAN, -1, 2, -INF], "float32"))
    np.testing.assert_array_equal(got, np.array([NAN, 0, 2, 0], "float32"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_bytes_are_moved_left_by_any_number_of_places(table, dtype):
    every = np.arange(256, dtype="uint8").view(dtype)
    x, places = np.meshgrid(every, every)
    np.testing.assert_array_equal(table["bitwise_left_shift", dtype, dtype, dtype](x, places),
                                  np.left_shift(x, places))


def test_bytes_are_moved_right_by_any_number_of_places(table):
    x, places = np.meshgrid(np.arange(256, dtype="uint8"), np.arange(256, dtype="uint8"))
    np.testing.assert_array_equal(
        table["bitwise_right_shift", "uint8", "uint8", "uint8"](x, places),
        np.right_shift(x, places))
