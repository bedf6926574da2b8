"""sin, cos and tan of large arguments, held to results computed in Python's integers."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "tensorlib" / "_kernels" / "two_over_pi.h"
sys.path.insert(0, str(ROOT))
from benchmarks.hard_angles import DIGITS, PI, hard_angles, nearest_to_quarters  # noqa: E402

ONE = 1 << 300          # of results in fixed point
NAMES = ("sin", "cos", "tan")


def sine_cosine(x):
    """sin and cos of a double, in fixed point, by their series."""
    numerator, denominator = x.as_integer_ratio()
    angle = (numerator << DIGITS) // denominator
    quadrant = (2 * angle + PI // 2) // PI
    angle = (angle - quadrant * PI // 2) * ONE >> DIGITS
    parts = [0, 0]
    term, k = ONE, 0
    while term and term != -1:
        parts[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term = term * angle // (k * ONE)
    cosine, sine = parts
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][quadrant % 4]


def exact(name, x):
    """The function of a double, in fixed point."""
    sine, cosine = sine_cosine(x)
    return {"sin": sine, "cos": cosine, "tan": sine * ONE // cosine}[name]


def error(got, expected, digits=53):
    """|got - expected| in units of the last of so many digits of `expected`."""
    numerator, denominator = got.as_integer_ratio()
    unit = abs(expected).bit_length() - digits
    return abs(numerator * ONE // denominator - expected) / 2**unit


@pytest.fixture(scope="module")
def results():
    """The numbers of each dtype, with the exact results."""
    return {dtype: (x, {name: [exact(name, float(v)) for v in x] for name in NAMES})
            for dtype in ("float32", "float64") for x in [hard_angles(dtype)]}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype, digits, bound", [("float32", 24, 1.6), ("float64", 53, 1.1)])
def test_far_angles(table, results, name, dtype, digits, bound):
    x, expected = results[dtype]
    got = table[name, dtype, dtype](x)
    errors = [error(float(y), v, digits) for y, v in zip(got, expected[name])]
    worst = int(np.argmax(errors))
    assert errors[worst] < bound, f"{name}({float(x[worst]).hex()}), off by {errors[worst]} ulp"
    np.testing.assert_array_equal(table[name, dtype, dtype].in_place(0, x), got)


def test_the_hard_numbers_are_hard():
    nearest = math.ldexp(6381956970095103, 797)
    assert abs(sine_cosine(nearest)[1]) < ONE >> 60
    assert nearest in nearest_to_quarters(797, 53)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_infinite_angles_have_no_sine(table, name, dtype):
    x = np.array([np.inf, 1e30, -np.inf, np.nan], dtype)
    assert np.isnan(table[name, dtype, dtype](x)).tolist() == [True, False, True, True]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_all_sizes_beside_each_other(table, name, dtype):
    """Each way to reduce one ends somewhere, and is taken element by element, in place too."""
    edges = np.array([2.0**k for k in range(-3, 40)], dtype)
    x = np.concatenate([edges, -np.nextafter(edges, np.zeros_like(edges)), edges * edges[0] * 7])
    run = table[name, dtype, dtype]
    alone = np.concatenate([run(x[i:i + 1]) for i in range(len(x))])
    np.testing.assert_array_equal(run(x), alone)
    np.testing.assert_array_equal(run.in_place(0, x), alone)
    exact = getattr(np, name)(x.astype(np.float64))
    if dtype == "float32":
        assert np.abs(alone - exact).max() < 1e-7


@pytest.mark.skipif(not HEADER.exists(), reason="needs the sources")
def test_the_digits_of_two_over_pi():
    words = [int(word, 16) for word in re.findall(r"0x([0-9A-F]{16})", HEADER.read_text())]
    digits = (2 << DIGITS + 64 * (len(words) - 1)) // PI
    assert words == [digits >> 64 * k & 2**64 - 1 for k in reversed(range(len(words)))]
