"""The largest errors of functions of complex numbers, as a table of docs/accuracy.md.

    python benchmarks/accuracy_of_complex.py [NAME ...] [--count 4000]

The unit is that of the exact value's length: |found - exact| in units of the last place of |exact|.
Both dtypes are measured against mpmath on numbers of all sizes, and near what is hard: 0, branch
points, the unit circle, and multiples of pi / 2.
"""

import argparse
import math

import mpmath
import numpy as np

import tensorlib
from tensorlib import _kernels

PRECISION = 250               # bits, more than what cancels near branch points
FUNCTIONS = {
    "exp": mpmath.exp, "log": mpmath.log, "sqrt": mpmath.sqrt, "sin": mpmath.sin,
    "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos,
    "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
    "reciprocal": lambda z: 1 / z, "abs": abs, "mul": lambda z, w: z * w,
    "div": lambda z, w: z / w, "pow": lambda z, w: mpmath.exp(w * mpmath.log(z)),
}
BINARY = ("mul", "div", "pow")
TEXT = """
## Complex numbers
Here the error is that of both parts together: the distance from the exact number, in units of the
last place of that number's absolute value. A part that is small beside the other may have fewer
digits. The table is `python benchmarks/accuracy_of_complex.py`'s, measured against mpmath with
{count:,} numbers of each of {kinds} kinds, of all sizes, near branch points and the unit circle,
and near multiples of pi / 2; the kernels were of level {level}. `pow` was measured where the
exponent times the logarithm is at most 1,000 in length: beyond that an error of the angle counts.
What has no loop of the library's own is computed by the C library.

| function | dtype | ulp | at |
|---|---|---|---|"""


def parts(rng, n, dtype):
    """Real numbers of several kinds, n of each."""
    signs = rng.choice([-1, 1], n)
    range_of = 30 if dtype == "complex64" else 200
    yield from (rng.uniform(-scale, scale, n) for scale in (1, 4, 30))
    yield signs * np.exp2(rng.uniform(-range_of, range_of, n))
    yield signs * np.exp2(rng.uniform(-10, 6, n))


def numbers(rng, n, dtype):
    """Complex numbers of several kinds, n of each."""
    one = list(parts(rng, n, dtype))
    other = list(parts(rng, n, dtype))
    yield from (x + 1j * y for x, y in zip(one, other))
    yield one[1] + 1j * other[4] * 2.0 ** -20
    yield one[4] * 2.0 ** -20 + 1j * other[1]
    digits = np.finfo(dtype).nmant
    near = np.exp2(rng.uniform(-digits, -1, n)) * np.exp(1j * rng.uniform(-math.pi, math.pi, n))
    for center in (1, -1, 1j, -1j):
        yield center + near
    yield np.exp(1j * rng.uniform(-math.pi, math.pi, n)) * (1 + near.real)
    turns = rng.integers(-40, 41, n) * (math.pi / 2)
    yield turns + near
    yield 1j * turns + near


def pairs(name, rng, n, dtype):
    """Two arguments, whose result is in range."""
    for z in numbers(rng, n, dtype):
        w = rng.permutation(z)
        if name == "pow":
            largest = 80 if dtype == "complex64" else 700
            size = np.exp2(rng.uniform(-8, math.log2(largest), n))
            away = size * np.exp(1j * rng.uniform(-math.pi, math.pi, n))
            yield z, away / np.log(np.where(z == 1, 2, z))
            w = rng.integers(-20, 21, n) + 0j
        yield z, w


def arguments(name, rng, n, dtype):
    """Arrays of the arguments of calls, rounded to the dtype."""
    found = pairs(name, rng, n, dtype) if name in BINARY else (
        (z,) for z in numbers(rng, n, dtype))
    for group in found:
        with np.errstate(over="ignore", under="ignore"):
            yield tuple(np.asarray(x, dtype) for x in group)


def error(found, exact, digits, least):
    """|found - exact| in units of the last place of |exact|, which is at least 2**least."""
    unit = mpmath.ldexp(1, max(mpmath.mag(abs(exact)) - digits, least))
    return float(abs(mpmath.mpmathify(found) - exact) / unit) if np.isfinite(found) else math.inf


def measure(name, dtype, n):
    """(the largest error, the arguments it is at)"""
    rng, info = np.random.default_rng(9), np.finfo(dtype)
    worst, where = -1.0, None
    for group in arguments(name, rng, n, dtype):
        found = getattr(tensorlib, name)(*map(tensorlib.from_numpy, group)).numpy().tolist()
        for *given, result in zip(*(x.tolist() for x in group), found):
            if name not in ("mul", "abs") and not given[-1]:
                continue
            with mpmath.workprec(PRECISION):
                exact = FUNCTIONS[name](*map(mpmath.mpc, given))
                size = abs(exact)
                if not info.tiny <= size <= float(info.max) / 2:
                    continue
                off = error(result, exact, info.nmant + 1, info.minexp - info.nmant)
            if off > worst:
                worst, where = off, given
    return worst, where


def table(names=FUNCTIONS, n=4000):
    """The lines of the section."""
    kinds = sum(1 for _ in numbers(np.random.default_rng(0), 1, "complex64"))
    yield TEXT.format(count=n, kinds=kinds, level=_kernels.level)
    for name in names:
        for dtype in ("complex64", "complex128"):
            worst, where = measure(name, dtype, n)
            digits = 9 if dtype == "complex64" else 17
            at = ", ".join(f"{z:.{digits}g}" for z in where)
            yield f"| `{name}` | {dtype} | {worst:.3f} | {at} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=FUNCTIONS, metavar="NAME")
    parser.add_argument("--count", type=int, default=4000, help="numbers of each kind")
    given = parser.parse_args()
    for line in table(given.names, given.count):
        print(line, flush=True)


if __name__ == "__main__":
    main()
