"""The three kinds of Fourier transforms, by the types of numbers that they take and give.

Each is linear, and its transpose is one of them in the same direction. They know nothing of
other lengths and of norms: see `functions.py`.
"""

import numpy as np

from tensorlib._core.products import transforms as loops
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, op
from tensorlib.ops.lazy import declared

asarray, ones = FUNCTIONS["asarray"], FUNCTIONS["ones"]


def passed(x, dim, n, forward, factor, real=False, whole=False, inside=False):
    """One pass along one dim: by kernels or loops, or where there are none by NumPy's functions."""
    if loops.has(n, real or not x.dtype.is_complex):
        return loops.transform(x, dim, n, forward, factor, real, whole, inside)
    return asarray(by_numpy(x.numpy(), dim, n, forward, factor, real, whole))


def by_numpy(a, dim, n, forward, factor, real=False, whole=False):
    """The same of an array: what the tests compare with."""
    norm = "backward" if forward else "forward"                  # that without a factor
    if real:
        found = np.fft.hfft(a, n, dim, norm) if forward else np.fft.irfft(a, n, dim, norm)
    elif whole or np.iscomplexobj(a):
        found = np.fft.fft(a, n, dim, norm) if forward else np.fft.ifft(a, n, dim, norm)
    else:
        found = np.fft.rfft(a, n, dim) if forward else np.fft.ihfft(a, n, dim, norm)
    return (found * found.real.dtype.type(factor)).astype(found.dtype, copy=False)


def middle_weights(x, dim, n, weight):
    """The weights of half a spectrum: `weight` for the elements that stand for two, 1 for others.

    These are the first one, which stands for the mean, and the last one of an even length.
    """
    weights = ones(x.shape[dim], dtype=x.dtype.to_real(), device=x.device)
    if n > 2:
        weights[1:(n + 1) // 2] = weight
    return weights.reshape([-1] + [1] * (x.ndim - 1 - dim))


# ---- complex to complex --------------------------------------------------------------------------

def several(x, dims, factor, forward):
    """Transforms along dims one after another, the first into new memory."""
    *others, last = dims
    return in_place(passed(x, last, x.size(last), forward, factor), reversed(others), forward)


def in_place(x, dims, forward):
    """Transforms along dims in the memory of a new tensor."""
    for dim in dims:
        x = passed(x, dim, x.size(dim), forward, 1.0, inside=True)
    return x


def complex_samples(rng):
    """Complex arrays, with dims to transform."""
    for shape, dims in (((5,), (0,)), ((2, 4), (1,)), ((3, 4), (0,)), ((2, 3, 4), (0, 2)),
                        ((0, 3), (1,))):
        x = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
        yield (x,), {"dims": dims, "factor": 0.5, "forward": True}
        yield (x,), {"dims": dims, "factor": 1.0, "forward": False}


def complex_reference(x, dims, factor, forward):
    """The transform of complex numbers along `dims`, times `factor`."""
    for dim in dims:
        x = by_numpy(x, dim, x.shape[dim], forward, 1.0)
    return x * x.real.dtype.type(factor)


@op(linear=True, public=False, method=False, dtypes=("complex64", "complex128"),
    complex=True, tolerance="product", reference=complex_reference, samples=complex_samples)
def fft_c2c(input: Tensor, dims, factor, forward):
    """The transform of complex numbers along dims, times a factor."""
    return several(input, dims, factor, forward)


@fft_c2c.vjp("input")
def fft_c2c_vjp(g, dims, factor, forward):
    """The matrix of the transform is symmetric, and a rule the transpose."""
    return fft_c2c(g, dims, factor, forward)


# ---- real to complex -----------------------------------------------------------------------------

def real_samples(rng):
    """Real arrays, with dims to transform."""
    for shape, dims in (((5,), (0,)), ((2, 4), (1,)), ((3, 4), (0,)), ((2, 3, 6), (0, 2)),
                        ((2, 1), (1,))):
        for whole in (False, True):
            yield (rng.uniform(-1, 1, shape),), {
                "dims": dims, "factor": 0.5, "forward": shape != (2, 4), "whole": whole}


def real_reference(x, dims, factor, forward, whole):
    """The transform of real numbers: all frequencies, or the non-negative ones of the last dim."""
    x = by_numpy(x, dims[-1], x.shape[dims[-1]], forward, factor, whole=whole)
    return complex_reference(x, dims[:-1], 1.0, forward)


@op(linear=True, public=False, method=False, dtypes=("float32", "float64"), complex=True,
    tolerance="product", reference=real_reference, samples=real_samples,
    result_dtype=lambda x, **_: x.dtype.to_complex())
def fft_r2c(input: Tensor, dims, factor, forward, whole):
    """The transform of real numbers along dims, times a factor: `whole`, or the first half of the
    last of these dims, from which the other one follows."""
    last = dims[-1]
    x = passed(input, last, input.size(last), forward, factor, whole=whole)
    return in_place(x, dims[:-1], forward)


@fft_r2c.vjp("input")
def fft_r2c_vjp(g, dims, factor, forward, whole, input_shape):
    """Of half a spectrum: `fft_c2r` counts middle frequencies twice, for their mirror images."""
    if whole:
        return fft_c2c(g, dims, factor, forward).real
    n = input_shape[dims[-1]]
    return fft_c2r(g * middle_weights(g, dims[-1], n, 0.5), dims, n, factor, forward)


# ---- complex to real -----------------------------------------------------------------------------

def half_samples(rng):
    """Halves of spectra, with dims to transform and the last length."""
    for shape, dims, n in (((3,), (0,), 5), ((3,), (0,), 4), ((3, 4), (0,), 4),
                           ((2, 3, 3), (0, 2), 5), ((2, 1), (1,), 1)):
        x = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
        yield (x,), {"dims": dims, "n": n, "factor": 0.5, "forward": n == 4}


def half_reference(x, dims, n, factor, forward):
    """The real numbers whose non-negative frequencies these are, `n` along the last dim."""
    x = complex_reference(x, dims[:-1], 1.0, forward)
    return by_numpy(x, dims[-1], n, forward, factor, real=True)


@op(linear=True, public=False, method=False, dtypes=("complex64", "complex128"),
    complex=True, tolerance="product", reference=half_reference, samples=half_samples,
    result_dtype=lambda x, **_: x.dtype.to_real())
def fft_c2r(input: Tensor, dims, n, factor, forward):
    """The real numbers, `n` along the last of the dims, whose spectrum has this first half, times a
    factor. The imaginary parts of what stands for one element are not read."""
    x = several(input, dims[:-1], 1.0, forward) if len(dims) > 1 else input
    return passed(x, dims[-1], n, forward, factor, real=True)


@fft_c2r.vjp("input")
def fft_c2r_vjp(g, dims, n, factor, forward):
    """Each frequency in the middle also stood for its mirror image, so it counts twice."""
    half = fft_r2c(g, dims, factor, forward, False)
    return half * middle_weights(half, dims[-1], n, 2.0)


# ---- examples of a batch -------------------------------------------------------------------------

def for_all_examples(transform):
    """The batching rule: the dims lie one place further."""
    def rule(info, in_dims, input, dims, **attributes):
        return transform(input, dims=tuple(d + 1 for d in dims), **attributes), 0
    return rule


for _transform in (fft_c2c, fft_r2c, fft_c2r):
    _transform.batching = for_all_examples(_transform)

declared(__name__)
