"""The arguments at which sin, cos and tan are hardest: those nearest to multiples of pi/2.

Their remainders lose most digits in the reduction. They are the denominators of convergents of
2**e * 2 / pi.

Source: Muller et al., Handbook of Floating-Point Arithmetic, section "Worst cases for range
reduction"; W. Kahan, "Minimizing q * m - n", 1983.
"""

import math

import numpy as np

DIGITS = 1400           # binary digits of pi: 1024 go into the multiple


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


def hard_angles(dtype):
    """Three of the hardest numbers for each exponent, and others beside them."""
    digits, last = (53, 971) if dtype == "float64" else (24, 104)
    found = {x for e in range(-40, last + 1) for x in nearest_to_quarters(e, digits)}
    found |= {float.fromhex("0x1.69eab0985179bp+246"),   # glibc 2.36 has cos of it 136,921 ulp off
              math.ldexp(6381956970095103, 797),         # the nearest of all
              2.0**20, 2.0**23, 1e22, float(np.finfo("float64").max)}
    rng = np.random.default_rng(6)
    found |= set(np.exp2(rng.uniform(10, last + digits, 2000)).tolist())
    x = np.array(sorted(v for v in found if v <= float(np.finfo(dtype).max)), dtype)
    return np.concatenate([x, -x[::7]])
