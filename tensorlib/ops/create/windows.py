"""Windows: weights of the samples of a signal, for spectra and filters.

All of them begin with the length. `periodic`, the default, leaves out the last of the symmetric
window of one sample more, as a Fourier transform wants it. Each has a 1 in its middle.
"""

import math
from functools import lru_cache

import numpy as np

from tensorlib.ops.arguments import integer
from tensorlib.ops.create.creation import made
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.special import i0
from tensorlib.ops.samples import calls, refused_calls

from_numpy = FUNCTIONS["from_numpy"]
ones, zeros = FUNCTIONS["ones"], FUNCTIONS["zeros"]

KEPT_LENGTH = 4096                                     # of windows whose values are kept
LENGTHS = calls((0,), (1,), (1, False), (2,), (6,), (7, False), (5, True))
BAD_LENGTHS = refused_calls((RuntimeError, -1), (TypeError, 2.5), (RuntimeError, 2**62),
                            (RuntimeError, 4, {"dtype": ones(1).long().dtype}))


def weights(name, length, periodic, formula, parameters, dtype, layout, device, pin_memory,
            requires_grad):
    """The window `formula(x, *parameters)` for places x that go from -1 to 1.

    Raises: RuntimeError for a negative length, one beyond memory and a dtype of integers;
    TypeError.
    """
    if (type(length) is int and 0 <= length <= 1 and dtype is layout is device is None
            and pin_memory is requires_grad is False):
        return ones(1) if length else zeros(0)
    n = integer(name, "window_length", length)
    if n < 0:
        raise RuntimeError(f"{name}: window_length must be >= 0, got {n}")
    options = {}
    if not (layout is device is None and pin_memory is False):
        options = {"layout": layout, "device": device, "pin_memory": pin_memory}
        options = {k: v for k, v in options.items() if v is not None}
    make = ones if n == 1 else zeros                   # as every window has in its middle
    out = make(n, dtype=dtype, **options)
    if not out.is_floating_point():
        raise RuntimeError(f"{name}: dtype must be a floating one, got {out.dtype}")
    if n > 1:
        values = kept_values if n <= KEPT_LENGTH else values_of
        out.copy_(from_numpy(values(formula, n, bool(periodic), *parameters)))
    return out.requires_grad_(requires_grad) if requires_grad else out


def values_of(formula, n, periodic, *parameters):
    """The values of a window of n > 1 samples, as an array of float64."""
    return formula(2 * np.arange(n) / (n if periodic else n - 1) - 1, *parameters)


kept_values = lru_cache(32)(values_of)                 # who takes spectra asks for one many times


# ---- formulas, of places between -1 and 1 --------------------------------------------------------

def raised_cosine(x, alpha, beta):
    """alpha + beta cos(pi x)"""
    return alpha + beta * np.cos(math.pi * x)


def two_cosines(x):
    """0.42 + 0.5 cos(pi x) + 0.08 cos(2 pi x)"""
    return 0.42 + 0.5 * np.cos(math.pi * x) + 0.08 * np.cos(2 * math.pi * x)


def triangle(x):
    """1 - |x|"""
    return 1 - np.abs(x)


def bell(x, beta):
    """I0(beta sqrt(1 - x^2)) / I0(beta)"""
    return bessel(beta * np.sqrt(1 - x * x)) / bessel(np.array(beta))


def bessel(x):
    """Bessel's function I0 of an array."""
    return i0(from_numpy(x)).numpy()


# ---- the windows ---------------------------------------------------------------------------------


def without_last(make):
    """The reference: NumPy's symmetric window, of which a periodic one lacks the last sample."""
    def reference(window_length, periodic=True, *parameters):
        longer = window_length + (bool(periodic) and window_length > 1)
        return make(longer, *parameters)[:window_length].astype(np.float32)
    return reference


def window(make, samples=LENGTHS):
    """Declares a window, whose reference follows from a symmetric one of NumPy."""
    return lambda function: made(function, reference=without_last(make), samples=samples,
                                 errors=BAD_LENGTHS, reads_values=True)


@window(np.hanning)
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                pin_memory=False, requires_grad=False):
    """Hann's window, a cosine raised to lie between 0 and 1: 0.5 + 0.5 cos(pi x).

    Shapes: (window_length,). Raises: RuntimeError for a negative length, one beyond memory and a
    dtype of integers, TypeError.

    >>> tensorlib.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return weights("hann_window", window_length, periodic, raised_cosine, (0.5, 0.5), dtype, layout,
                   device, pin_memory, requires_grad)


def hamming(n, alpha=0.54, beta=0.46):
    """The symmetric window of Hamming with any coefficients."""
    return np.ones(n) if n == 1 else alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1))


@window(hamming, calls((0,), (1,), (6,), (7, False), (5, True, 0.6), (5, False, 0.5, 0.4)))
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None,
                   device=None, pin_memory=False, requires_grad=False):
    """Hamming's window, which does not reach 0 at its ends: alpha + beta cos(pi x).

    Shapes: (window_length,). Raises: RuntimeError for a negative length, one beyond memory and a
    dtype of integers, TypeError.

    >>> tensorlib.hamming_window(5, periodic=False)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return weights("hamming_window", window_length, periodic, raised_cosine,
                   (float(alpha), float(beta)), dtype, layout, device, pin_memory, requires_grad)


@window(np.blackman)
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    pin_memory=False, requires_grad=False):
    """Blackman's window: 0.42 + 0.5 cos(pi x) + 0.08 cos(2 pi x).

    Shapes: (window_length,). Raises: RuntimeError for a negative length, one beyond memory and a
    dtype of integers, TypeError.
    """
    return weights("blackman_window", window_length, periodic, two_cosines, (), dtype, layout,
                   device, pin_memory, requires_grad)


@window(np.bartlett)
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
                    pin_memory=False, requires_grad=False):
    """Bartlett's window, a triangle: 1 - |x|.

    Shapes: (window_length,). Raises: RuntimeError for a negative length, one beyond memory and a
    dtype of integers, TypeError.
    """
    return weights("bartlett_window", window_length, periodic, triangle, (), dtype, layout,
                   device, pin_memory, requires_grad)


@window(lambda n, beta=12.0: np.kaiser(n, beta),
        calls((0,), (1,), (6,), (7, False), (5, True, 6.0), (5, False, 0.0)))
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None,
                  pin_memory=False, requires_grad=False):
    """Kaiser's window, with I0 Bessel's function: I0(beta sqrt(1 - x^2)) / I0(beta).

    Shapes: (window_length,). Raises: RuntimeError for a negative length, one beyond memory and a
    dtype of integers, TypeError.
    """
    return weights("kaiser_window", window_length, periodic, bell, (float(beta),), dtype, layout,
                   device, pin_memory, requires_grad)


declared(__name__)
