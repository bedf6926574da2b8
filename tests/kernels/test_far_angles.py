"""sin, cos and tan of large arguments, held to results computed in Python's integers.

The doubles that come nearest to multiples of pi/2 are found by continued fractions, as in Muller et
al., Handbook of Floating-Point Arithmetic, section 10.2; their remainders lose most digits.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import tensorlib

DIGITS = 1400           # binary digits of pi: 1024 go into the multiple
ONE = 1 << 300          # of results in fixed point
NAMES = ("sin", "cos", "tan")


def arctangent(n):
    """atan(1 / n) in fixed point."""
    total = power = (1 << DIGITS) // n
    k = 1
    while power:
        power //= -n * n
        k += 2
        total += power // k
    return total


# Machin, 1706
PI = 4 * (4 * arctangent(5) - arctangent(239))


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


def nearest_to_quarters(exponent, digits):
    """Numbers m * 2**exponent near multiples of pi/2, m of at most so many digits."""
    a, b = 2 * 2**max(exponent, 0) << DIGITS, PI * 2**max(-exponent, 0)
    before, m = 0, 1                             # the denominators of convergents of 2/pi * 2**e
    found = []
    while True:
        whole, rest = divmod(a, b)
        if found:
            before, m = m, whole * m + before
        if m >> digits:
            return found[-3:]
        found.append(math.ldexp(m, exponent))
        a, b = b, rest


def hard(dtype):
    """Three of the hardest numbers for each exponent, and others beside them."""
    digits, last = (53, 971) if dtype == "float64" else (24, 104)
    found = {x for e in range(-40, last + 1) for x in nearest_to_quarters(e, digits)}
    found |= {float.fromhex("0x1.69eab0985179bp+246"),        # cos of it from glibc: 1 of 10**5 off
              math.ldexp(6381956970095103, 797),              # the nearest of all (Kahan, 1983)
              2.0**20, 2.0**23, 1e22, np.finfo("float64").max}
    rng = np.random.default_rng(6)
    found |= set(np.exp2(rng.uniform(10, last + digits, 2000)).tolist())
    info = np.finfo(dtype)
    x = np.array(sorted(v for v in found if v <= float(info.max)), dtype)
    return np.concatenate([x, -x[::7]])


@pytest.fixture(scope="module")
def results():
    """The numbers of each dtype, with the exact results."""
    return {dtype: (x, {name: [exact(name, float(v)) for v in x] for name in NAMES})
            for dtype in ("float32", "float64") for x in [hard(dtype)]}


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


def test_the_digits_of_two_over_pi():
    header = Path(tensorlib.__file__).parent / "_kernels" / "two_over_pi.h"
    words = [int(word, 16) for word in re.findall(r"0x([0-9A-F]{16})", header.read_text())]
    digits = (2 << DIGITS + 64 * (len(words) - 1)) // PI
    assert words == [digits >> 64 * k & 2**64 - 1 for k in reversed(range(len(words)))]
