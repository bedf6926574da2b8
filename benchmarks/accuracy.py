"""Measures the largest error of every function, in ulp, and writes docs/accuracy.md.

    python benchmarks/accuracy.py [--exhaustive] [--functions NAME ...] [--level v3] [--no-write]

float64 is measured against long double (64 digits or more) on random bit patterns, stratified
ranges and the hard regions (thresholds, near 1, near multiples of pi/2); the functions of
SLOW_REFERENCES against mpmath. float32 is measured against the float64 loop, which is some 2**28
times as exact, on a dense sample of all bit patterns, or on all 2**32 of them with `--exhaustive`.
The unit, 1 ulp, is the distance of the two neighbours of the exact result in the dtype; a result
that rounds correctly errs by 0.5 at most.
"""

import argparse
import ctypes
import math
import statistics
from pathlib import Path

import accuracy_of_complex
import accuracy_of_sums
import mpmath
import numpy as np
from hard_angles import hard_angles

import tensorlib
from tensorlib import _kernels

MODULES = ("exponential", "trigonometric", "unary", "binary", "gamma", "normal", "bessel",
           "activations")
UNARY = ("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos",
         "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid", "erf", "erfc", "asinh",
         "acosh", "atanh", "logit", "entr", "sinc", "lgamma", "digamma", "trigamma", "erfinv",
         "erfcx", "ndtr", "log_ndtr", "ndtri", "i0", "i0e", "i1", "i1e", "logsigmoid", "silu",
         "mish")
BINARY = ("pow", "atan2", "hypot", "logaddexp", "logaddexp2", "xlogy", "xlog1py", "polygamma",
          "zeta")
LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")


def exact_sinc(x):
    rest = x - np.rint(x)
    sine = np.sin(PI * rest) * np.where(np.rint(x) % 2, -1, 1)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, sine / (PI * x)))


def exact_mish(x):
    e = np.exp(np.minimum(x, 50))
    return x * (e * (e + 2)) / (e * (e + 2) + 2)


def exact_ndtri(p):
    """by Newton's method from a start with some 16 digits"""
    if not 0 < p < 1:
        return mpmath.mpf({0: "-inf", 1: "inf"}.get(p, "nan"))
    with mpmath.workprec(160):
        x = mpmath.mpf(statistics.NormalDist().inv_cdf(float(p)))
        for _ in range(2):
            x -= (mpmath.ncdf(x) - p) / mpmath.npdf(x)
        return +x


def exact_trigamma(x):
    return mpmath.psi(1, x)


def exact_zeta(s, q):
    """with digits to spare, as mpmath's error is not relative to a small result"""
    with mpmath.workprec(80 + int(mpmath.log(q + 2, 2) * s)):
        return mpmath.zeta(s, q)


def positive_product(x, y, logarithm):
    """x * logarithm(y), where 0 * logarithm(y) is 0 unless y is NaN"""
    return np.where((x == 0) & ~np.isnan(y), 0, x * logarithm(y))


REFERENCES = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x), "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "logit": lambda x: np.where(
        x < 0.25, np.log(x / (1 - x)), np.log1p((2 * x - 1) / (1 - x))),
    "entr": lambda x: np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x))),
    "sinc": exact_sinc, "mish": exact_mish,
    "logsigmoid": lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    "silu": lambda x: np.where(x < 0, x * np.exp(np.minimum(x, 0)), x) / (1 + np.exp(-np.abs(x))),
    "xlogy": lambda x, y: positive_product(x, y, np.log),
    "xlog1py": lambda x, y: positive_product(x, y, np.log1p),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
}
SLOW_REFERENCES = {
    "erf": mpmath.erf, "erfc": mpmath.erfc,
    "erfinv": lambda x: mpmath.erfinv(x) if abs(x) <= 1 else mpmath.nan,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": mpmath.ncdf,
    "log_ndtr": lambda x: mpmath.log1p(-mpmath.ncdf(-x)) if x > 0 else mpmath.log(mpmath.ncdf(x)),
    "ndtri": exact_ndtri,
    "lgamma": mpmath.loggamma, "digamma": mpmath.digamma, "trigamma": exact_trigamma,
    "polygamma": lambda n, x: exact_zeta(n + 1, x) * mpmath.factorial(n) * (-1) ** (int(n) + 1),
    "zeta": exact_zeta,
    "i0": lambda x: mpmath.besseli(0, x), "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "bessel_j0": lambda x: mpmath.besselj(0, x), "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x), "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
    "scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "spherical_bessel_j0": lambda x: mpmath.sinc(x),
}
# Where they are measured in float64. Below 0, lgamma and digamma have zeros that no double is near
# enough to for a small relative error, as Bessel functions that oscillate have.
RANGES = {"erfinv": (-1, 1), "erfcx": (-26.6, 1e4), "log_ndtr": (-1e4, 38), "ndtr": (-38.6, 9),
          "lgamma": (1e-30, 30), "digamma": (1e-30, 30), "trigamma": (1e-30, 30), "ndtri": (0, 1),
          "i0": (-713.9, 713.9), "i1": (-713.9, 713.9), "bessel_j0": (-2, 2), "bessel_j1": (-3, 3),
          "bessel_y0": (1, 3.5), "bessel_y1": (1e-30, 2), "spherical_bessel_j0": (-3, 3),
          **{f"{scaled}modified_bessel_k{n}": (1e-30, 700) for n in (0, 1)
             for scaled in ("", "scaled_")}, "silu": (-87, np.inf),
          "mish": (-87, np.inf)}
DENSE = 8_000_003  # bit patterns of the default sample, a prime: all digits take all values
CHUNK = 1 << 21
INTRODUCTION = """\
# Accuracy

This page says how far the mathematical functions are from the exact result at worst. The first row,
for instance, says that `{name}` of {dtype} is off by at most {worst:.3f} ulp, and the last column
has the input at which that was found. An ulp, a unit in the last place, is the distance between the
two neighbours of the exact result in the dtype; a result that is rounded correctly is off by at
most 0.5.

The page is written by `python benchmarks/accuracy.py`; the figures are of the kernels of level
{level}. float32 was measured on {sample},
against the float64 loop. float64 was measured on random and on hard numbers, against long double;
`erf` and its like, the gamma and the Bessel functions against mpmath. The hard numbers of `sin`,
`cos` and `tan` are those nearest to multiples of pi/2, three for each exponent; no argument is too
large for these functions.

Most are within 2 ulp. Beyond that are

- `lgamma` and `digamma`, which have zeros. Those below 0 are near no double, and were not measured;
- `silu` and `mish`, quotients of exponentials in which a last digit more would cost time.

`silu` and `mish` were measured from -87 on: further below they fade to 0 as `exp` overflows, or
underflows, as in PyTorch. `logaddexp` and `logaddexp2` were measured for numbers above 0, as
elsewhere they have zeros.
`gelu` is x times the normal distribution function, so that its error is small beside x and not
beside the result. So is that of `log_softmax`, `logsumexp` and `logcumsumexp` beside the largest
of what they sum.

Convolutions of float32 with windows of 3 x 3 and 16 channels or more go by fewer multiplications.
Their mean error is 2.6e-7 of the mean result with 64 channels, where sums as they are defined have
2.3e-7 and PyTorch's 2.0e-7, and 3.6e-7 with 256 channels (2.4e-7 and 2.2e-7), for normal numbers.

Sums add in a tree, so that the error grows with the logarithm of their length; `cumsum` adds
float32 and half types in float64, and float64 with the errors of its additions. Which bits are
the same when is in [conventions.md](conventions.md#determinism).
"""

SUMS = """
## Sums of awkward numbers
The largest relative error of 7 rows of 4,096 float32 each, by
`python benchmarks/accuracy_of_sums.py` (with `torch` at the end it measures PyTorch); that of
`softmax` and `layer_norm` is relative to the largest element of the result. Where the squares of
deviations overflow or underflow, or the mean is so large that its rounding would count, variances
and norms are taken again in double. So equal elements have a variance of 0. The sums of normal
numbers cancel, so that they are small beside their terms.
"""


def loops(level):
    """{(name, dtype): ctypes function} of one instruction-set level"""
    found = {}
    for module in MODULES:
        loaded = _kernels.load(module, level)
        for name, inputs, output, address in loaded.table():
            if name not in (*UNARY, *BINARY) or output != inputs[0]:
                continue
            kinds = [ctypes.c_void_p] * (len(inputs) + 1) + [ctypes.c_ssize_t]
            found[name, inputs[0]] = ctypes.CFUNCTYPE(None, *kinds)(address)
    return found


def run(loop, *inputs):
    out = np.empty_like(inputs[0])
    if isinstance(loop, np.ufunc):
        with np.errstate(all="ignore"):
            return loop(*inputs)
    loop(*(x.ctypes.data for x in inputs), out.ctypes.data, out.size)
    return out


def ulps(got, exact):
    """|got - exact| in units of the last place of got's dtype; inf where one of them is special"""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        _, exponent = np.frexp(np.abs(exact))
        unit = np.ldexp(LONG(1) if exact.dtype == LONG else 1.0,
                        np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant))
        error = np.abs(got - exact) / unit
    same = (got == nearest) & ~np.isfinite(nearest) | np.isnan(got) & np.isnan(exact)
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error).astype(np.float64))


def reference(name, *inputs):
    with np.errstate(all="ignore"):
        if name in SLOW_REFERENCES:
            function = SLOW_REFERENCES[name]
            with mpmath.workprec(80):
                parts = [function(*map(mpmath.mpf, map(float, x))) for x in zip(*inputs)]
                high = [float(p) for p in parts]
                low = [float(p - h) if math.isfinite(h) else 0.0 for p, h in zip(parts, high)]
            return np.array(high, LONG) + np.array(low, LONG)
        function = REFERENCES.get(name) or getattr(np, name)
        return function(*(x.astype(LONG) for x in inputs))


def doubles(rng, n):
    """n numbers for each of the strata and hard regions"""
    yield rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.float64)
    for scale in (1e-3, 1.0, 3.0, 8.0, 40.0, 760.0, 1e6):
        yield rng.uniform(-scale, scale, n)
    yield 1 + rng.choice([-1, 1], n) * np.exp2(rng.uniform(-52, 0, n))
    yield rng.choice([-1, 1], n) * np.exp2(rng.uniform(-60, 4, n))
    turns = np.rint(np.exp2(rng.uniform(0, 40, n))) * (np.pi / 2)
    yield turns * rng.choice([-1, 1], n)
    yield turns + rng.integers(-3, 4, n) * np.spacing(turns)
    yield hard_angles("float64")
    for border in (709.78, -708.4, -745.13, 26.5, 0.5, 0.55, -1.0, 2.4375, 0.4375):
        yield border + rng.normal(0, 0.02, n // 8)


def orders(name, rng, n):
    """arguments of polygamma and zeta"""
    x = [rng.uniform(0, s, n) for s in (1, 4, 40)] + [np.exp2(rng.uniform(-20, 9, n))]
    x = np.concatenate(x)
    if name == "polygamma":
        return rng.integers(2, 9, x.size).astype(float), x
    return 1 + np.exp2(rng.uniform(-10, 5, x.size)), x


def samples_64(name, rng, n):
    if name in ("polygamma", "zeta"):
        yield orders(name, rng, n // 250)
        return
    if name in SLOW_REFERENCES:
        low, high = RANGES.get(name, (-30, 30))
        yield from ((np.clip(x, low, high),) for x in doubles(rng, n // 60))
        return
    if name not in BINARY:
        yield from ((np.clip(x, *RANGES.get(name, (-np.inf, np.inf))),) for x in doubles(rng, n))
        return
    for x in doubles(rng, n):
        x = np.abs(x) if name.startswith("logaddexp") else x
        yield x, rng.permutation(x)
        with np.errstate(all="ignore"):
            if name == "pow":  # every size of result, down to the subnormal and up to overflow
                pair = np.abs(x), rng.uniform(-746, 711, x.size) / np.log(np.abs(x))
            else:
                pair = x, x * rng.uniform(0 if name.startswith("logaddexp") else -3, 3, x.size)
        yield pair


def samples_32(name, rng, exhaustive):
    if name in ("polygamma", "zeta"):
        yield tuple(x.astype(np.float32) for x in orders(name, rng, 300_000))
        return
    if name in BINARY:
        for x, y in samples_64(name, rng, 300_000):
            with np.errstate(all="ignore"):
                yield x.astype(np.float32), y.astype(np.float32)
        if name == "pow":
            base = np.exp2(rng.uniform(-126, 128, CHUNK)).astype(np.float32)
            yield base, (rng.uniform(-104, 89, CHUNK) / np.log(base)).astype(np.float32)
        bits = rng.integers(0, 1 << 32, (2, CHUNK), dtype=np.uint32).view(np.float32)
        yield np.abs(bits) if name.startswith("logaddexp") else bits
        return
    step = 1 if exhaustive else (1 << 32) // DENSE
    for start in range(0, 1 << 32, CHUNK * step):
        stop = min(start + CHUNK * step, 1 << 32)
        x = np.arange(start, stop, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        yield (np.maximum(x, -87, dtype=np.float32) if name in ("silu", "mish") else x,)


def measure(name, dtype, table, exhaustive):
    """(largest error, the inputs it is at)"""
    rng = np.random.default_rng(20)
    loop, worst, where = table.get((name, dtype)) or getattr(np, name), -1.0, None
    batches = (samples_32(name, rng, exhaustive) if dtype == "float32"
               else samples_64(name, rng, 1_000_000))
    for inputs in batches:
        inputs = [np.ascontiguousarray(x) for x in inputs]
        if dtype == "float32":
            with np.errstate(all="ignore"):
                wide = table.get((name, "float64")) or getattr(np, name)
                exact = run(wide, *(x.astype(np.float64) for x in inputs))
        else:
            exact = reference(name, *inputs)
        error = ulps(run(loop, *inputs), exact)
        k = int(np.argmax(error))
        if error[k] > worst:
            worst, where = float(error[k]), tuple(float(x[k]) for x in inputs)
    return worst, where


def markdown(rows, exhaustive, level):
    sample = "all bit patterns" if exhaustive else f"{DENSE:,} of the bit patterns"
    name, dtype, worst, _ = rows[0]
    yield INTRODUCTION.format(name=name, dtype=dtype, worst=worst, level=level, sample=sample)
    yield "| function | dtype | ulp | at |"
    yield "|---|---|---|---|"
    for name, dtype, worst, where in rows:
        at = ", ".join(f"{x:.17g}" if dtype == "float64" else f"{x:.9g}" for x in where)
        yield f"| `{name}` | {dtype} | {worst:.3f} | {at} |"
    yield from accuracy_of_complex.table()
    yield SUMS
    yield from accuracy_of_sums.table(tensorlib)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exhaustive", action="store_true", help="all 2**32 float32")
    parser.add_argument("--functions", nargs="+", default=[*UNARY, *BINARY], metavar="NAME")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--level", default=_kernels.level)
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    if np.finfo(LONG).nmant < 63:
        parser.error("long double is no wider than double here: there is nothing to compare with")
    table, rows = loops(options.level), []
    for name in options.functions:
        for dtype in options.dtypes:
            rows.append((name, dtype, *measure(name, dtype, table, options.exhaustive)))
            print(f"{name:9} {dtype} {rows[-1][2]:8.3f} at {rows[-1][3]}", flush=True)
    if not options.no_write:
        target = Path(__file__).parent.parent / "docs" / "accuracy.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n".join(markdown(rows, options.exhaustive, options.level)) + "\n")


if __name__ == "__main__":
    main()
