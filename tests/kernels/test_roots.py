"""Square roots that lie next to the middle between two numbers, where an approximation rounds up
or down by chance: all of them are looked for."""

import numpy as np
import pytest


def roots_modulo(value, bits):
    """All odd m below 2**bits with m * m = value modulo 2**bits, for an odd value."""
    found = {1, 3, 5, 7} if value % 8 == 1 else set()
    for i in range(3, bits):
        found = {m for root in found for m in (root, root + (1 << i - 1), root + (1 << i))
                 if (m * m - value) % (1 << i + 1) == 0}
    return {m % (1 << bits) for m in found}


def hard_roots(digits, most):
    """Numbers x of so many digits for which m * m = x * 2**k + rest, with an odd m of a digit more
    (the middle between two roots) and |rest| up to `most`."""
    found = []
    for bits in (digits + 1, digits + 2):              # of x in [1, 2) and in [2, 4)
        for rest in range(-most, most + 1):
            for m in roots_modulo(rest, bits) if rest % 8 == 1 else ():
                for middle in (m, m + (1 << bits)):
                    x = (middle * middle - rest) >> bits
                    if middle >> digits == 1 and x >> digits - 1 == 1:
                        found.append(x)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_powers_that_are_roots(table, exponent, dtype):
    info = np.finfo(dtype)
    x = np.concatenate([np.random.default_rng(4).random(3000) * 9, 2.0 ** np.arange(
        info.minexp, info.maxexp), [info.smallest_subnormal, info.max]]).astype(dtype)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0], dtype)
    run = table["pow", dtype, dtype, dtype]
    root = np.sqrt(x.astype(np.longdouble))
    wanted = (root if exponent > 0 else 1 / root).astype(dtype)
    np.testing.assert_array_max_ulp(run(x, np.full_like(x, exponent)), wanted, 1)
    found = run(edges, np.full_like(edges, exponent))
    np.testing.assert_array_equal(
        found, [0, 0, np.inf, np.inf, np.nan, np.nan] if exponent > 0 else
        [np.inf, np.inf, 0, 0, np.nan, np.nan])
    assert not np.signbit(found[:4]).any()


@pytest.mark.parametrize("dtype, digits, powers", [
    ("float32", 24, (-148, -127, -101, -100, -23, -22, 50, 103)),
    ("float64", 53, (-1060, -900, -898, -53, -52, 0, 301, 970)),
])
def test_roots_are_rounded_correctly(table, dtype, digits, powers):
    hard = np.array(hard_roots(digits, 1000), dtype)
    assert len(hard) > 300
    x = np.concatenate([np.ldexp(hard, power).astype(dtype) for power in powers]
                       + [np.random.default_rng(3).random(10**6).astype(dtype) * 4])
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, np.finfo(dtype).tiny,
                      np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max], dtype)
    run = table["sqrt", dtype, dtype]
    with np.errstate(invalid="ignore"):
        for values in (x, edges, x[:5], np.append(x[:40], edges[-2:])):
            found, wanted = run(values), np.sqrt(values)
            assert np.array_equal(found, wanted, equal_nan=True)
            assert np.array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))
