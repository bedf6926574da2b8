"""The transcendental loops are within 2 ulp and right at every edge, on every level."""

import math

import numpy as np
import pytest
from cases import each
from loops import any_bits, edges, ulps

LONG = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="no wider type to compare with")

REFERENCES = {
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
}
BINARY = ("pow", "atan2", "hypot", "logaddexp", "logaddexp2")
DTYPES = ("float32", "float64")


def exact(name, *inputs):
    with np.errstate(all="ignore"):
        return REFERENCES[name](*(x.astype(LONG) for x in inputs))


def samples(dtype):
    rng = np.random.default_rng(1)
    ranges = [rng.uniform(-s, s, 4000) for s in (1e-3, 1.0, 4.0, 40.0, 110.0, 800.0, 1e6)]
    near_one = 1 + rng.choice([-1, 1], 4000) * np.exp2(rng.uniform(-52, 0, 4000))
    turns = np.rint(np.exp2(rng.uniform(0, 30, 4000))) * (np.pi / 2)
    x = np.concatenate([*ranges, near_one, turns, -turns]).astype(dtype)
    return np.concatenate([edges(dtype), x, any_bits(dtype, 20000, 2)])


def assert_close(name, got, inputs):
    error = ulps(got, exact(name, *inputs))
    worst = int(np.argmax(error))
    at = [float(x[worst]) for x in inputs]
    assert error[worst] <= 2, f"{name}{at} is {got[worst]}, off by {error[worst]} ulp"


@each("dtype", DTYPES)
@each("name", [n for n in REFERENCES if n not in BINARY])
def test_unary(table, name, dtype):
    x = samples(dtype)
    got = table[name, dtype, dtype](x)
    assert_close(name, got, [x])
    np.testing.assert_array_equal(table[name, dtype, dtype].in_place(0, x), got)


@each("dtype", DTYPES)
@each("name", BINARY)
def test_binary(table, name, dtype):
    loop = table[name, dtype, dtype, dtype]
    rng = np.random.default_rng(3)
    grid = [part.ravel() for part in np.meshgrid(edges(dtype), edges(dtype))]
    x = samples(dtype)
    base = np.abs(x[np.isfinite(x) & (x != 0)])
    with np.errstate(all="ignore"):  # results of every size
        power = (rng.uniform(-760, 720, base.size) / np.log(base.astype(LONG))).astype(dtype)
        near = (base * rng.uniform(-3, 3, base.size)).astype(dtype)
    for pair in (grid, [x, rng.permutation(x)], [base, power], [near, base]):
        if name.startswith("logaddexp"):                # below 0 it has zeros
            pair = [np.abs(part) for part in pair]
        got = loop(*pair)
        assert_close(name, got, pair)
        np.testing.assert_array_equal(loop.in_place(0, *pair), got)
        np.testing.assert_array_equal(loop.in_place(1, *pair), got)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pow_of_negative_base_and_its_exceptions(table, dtype):
    pow_ = table["pow", dtype, dtype, dtype]
    base = np.array([-2, -2, -2, -0.0, -0.0, -np.inf, -np.inf, np.nan, 1, -1, -1, 0, np.inf], dtype)
    power = np.array([3, -2, 0.5, -3, 3, 3, -3, 0, np.nan, np.inf, np.nan, -0.5, 0], dtype)
    expected = np.array([-8, 0.25, np.nan, -np.inf, -0.0, -np.inf, -0.0, 1, 1, 1, np.nan, np.inf,
                         1], dtype)
    got = pow_(base, power)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions(table, name, dtype):
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(4)
    x = np.concatenate([edges(dtype), rng.uniform(-6, 6, 600), rng.uniform(0, 28, 300)])
    x = np.clip(x, -30, 30).astype(dtype)
    with mpmath.workprec(80):
        values = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        high = [float(v) for v in values]
        low = [float(v - h) if math.isfinite(h) else 0.0 for v, h in zip(values, high)]
    got = table[name, dtype, dtype](x)
    error = ulps(got, np.array(high, LONG) + np.array(low, LONG))
    worst = int(np.argmax(error))
    assert error[worst] <= 2, f"{name}({x[worst]}) is {got[worst]}, off by {error[worst]} ulp"
    np.testing.assert_array_equal(table[name, dtype, dtype].in_place(0, x), got)


@each("dtype", DTYPES)
@each(
    "name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "expm1", "log1p", "erf", "sqrt"])
def test_the_sign_of_zero_stays(table, name, dtype):
    got = table[name, dtype, dtype](np.array([-0.0, 0.0], dtype))
    assert (got == 0).all() and np.signbit(got).tolist() == [True, False]


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_values(table, dtype):
    def at(name, *x):
        return table[name, dtype, dtype](np.array(x, dtype)).tolist()

    assert at("exp", 0, -np.inf, np.inf) == [1, 0, np.inf]
    assert at("exp2", -3, 0, 10) == [0.125, 1, 1024]
    assert at("log", 1, 0, np.inf) == [0, -np.inf, np.inf]
    assert at("log2", 0.125, 1024) == [-3, 10]
    assert at("cosh", 0) == [1]
    assert at("sigmoid", 0, -np.inf, np.inf) == [0.5, 0, 1]
    assert at("tanh", np.inf, -np.inf) == [1, -1]
    assert at("acos", 1) == [0]


@each("dtype", DTYPES)
@each("name", ["exp", "tanh", "log", "sin", "erf", "tan"])
def test_a_result_does_not_depend_on_its_neighbours(table, name, dtype):
    x = np.random.default_rng(5).uniform(0.1, 50, 70).astype(dtype)
    x[33] = 1e30  # far from what the fast reduction takes
    whole = table[name, dtype, dtype](x)
    single = np.concatenate([table[name, dtype, dtype](x[i:i + 1]) for i in range(x.size)])
    np.testing.assert_array_equal(whole, single)
