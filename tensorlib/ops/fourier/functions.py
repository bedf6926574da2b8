"""The functions of `tensorlib.fft`: transforms with lengths, dims and norms.

The signs and the factors: forward transforms have exp(-2 pi i jk / n) and by default no factor,
backward ones exp(2 pi i jk / n) and by default 1 / n. norm: "backward", "ortho" for a factor of
1 / sqrt(n) in both, or "forward" for 1 / n in forward ones.
"""

import math
from typing import NamedTuple

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import composite
from tensorlib.ops.fourier.arguments import (
    check_length, complex_input, dims_and_lengths, factor_of, floating, one_dim, real_input,
    resized)
from tensorlib.ops.fourier.transforms import fft_c2c, fft_c2r, fft_r2c
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, refusals

SHARED = {"method": False, "public": False, "out": True, "tolerance": "product", "complex": True,
          "dtypes": ("float32", "float64", "complex64", "complex128")}
OF_REAL = {**SHARED, "dtypes": ("float32", "float64")}
SIGNALS = given(((5,),), ((2, 4),), ((2, 3), 5), ((3, 4), 2, 0), ((4, 3), None, 0, "ortho"),
                ((3, 2), 3, -1, "forward"))
HALVES = given(((5,),), ((2, 4),), ((2, 3), 5), ((3, 4), 2, 0), ((4, 3), None, 0, "ortho"),
               ((3, 2), 3, -1, "forward"))
PLANES = given(((3, 4),), ((2, 3, 4), (2, 5)), ((2, 3, 4), None, (0, 1), "ortho"))
SPACES = given(((3, 4),), ((2, 3, 4), (2, 5)), ((2, 3, 4), None, (0, 1), "ortho"),
               ((4, 3), (5,), (0,), "forward"))
BAD = refusals((RuntimeError, (4,), 0), (RuntimeError, (4,), -2),
               (RuntimeError, (4,), None, 0, "no"), (IndexError, (4,), None, 1),
               (IndexError, ()), (TypeError, (4,), 2.5))
REFUSED = [
    (RuntimeError, (4, 4), (2, 0)), (RuntimeError, (4, 4), None, (0, 0)),
    (RuntimeError, (4, 4), (2,), (0, 1)), (IndexError, (4, 4), None, (0, 2)),
    (RuntimeError, (4, 4), None, (0, 1), "no")]
BAD_SPACES = refusals(*REFUSED, (RuntimeError, (2,), (2, 2)))
BAD_PLANES = refusals(*REFUSED, (IndexError, (2,), (2, 2)))


# ---- kinds ---------------------------------------------------------------------------------------

class Kind(NamedTuple):
    """What a function takes, and the operation: of a tensor, dims, the points along the last of
    them, the factor and the direction. halved: what it takes is half a spectrum."""

    takes: object
    transform: object
    halved: bool = False


def whole_spectrum(x, dims, n, factor, forward):
    """Of complex numbers, or all of the spectrum of real ones."""
    if x.dtype.is_complex:
        return fft_c2c(x, dims, factor, forward) if dims else x.clone()
    return fft_r2c(x, dims, factor, forward, True) if dims else x.to(x.dtype.to_complex())


def half_spectrum(x, dims, n, factor, forward):
    """Of real numbers, half of the spectrum."""
    return fft_r2c(x, dims, factor, forward, False)


WHOLE = Kind(floating, whole_spectrum)
HALF = Kind(real_input, half_spectrum)
REAL = Kind(complex_input, fft_c2r, halved=True)


def along_one(kind, name, input, n, dim, norm, forward):
    """The transform along one dim, of `n` points."""
    d = one_dim(name, input, integer(name, "dim", dim))
    if n is not None:
        n = integer(name, "n", n)
        check_length(name, n)               # -1 stands for the size in lists of lengths alone
    x = kind.takes(name, input)
    size = x.size(d)
    if n is None:
        n = 2 * (size - 1) if kind.halved else size
        check_length(name, n)
    factor = factor_of(name, norm, n, forward)
    return kind.transform(resized(x, d, size, n // 2 + 1 if kind.halved else n), (d,), n, factor,
                          forward)


def along_several(kind, name, input, s, dim, norm, forward):
    """The transform along several dims, of `s` points."""
    x = kind.takes(name, input)
    dims, lengths = dims_and_lengths(name, x, s, dim, kind.halved)
    if not dims and kind is not WHOLE:
        raise RuntimeError(f"{name}: must transform at least one axis")
    factor = factor_of(name, norm, math.prod(lengths), forward)
    n = lengths[-1] if lengths else 1
    if s is not None:
        stored = [*lengths[:-1], n // 2 + 1] if kind.halved else lengths
        for d, length in zip(dims, stored, strict=True):
            x = resized(x, d, x.size(d), length)
    return kind.transform(x, tuple(dims), n, factor, forward)


# ---- one dim -------------------------------------------------------------------------------------

@composite(reference=np.fft.fft, samples=SIGNALS, errors=BAD, **SHARED)
def fft_fft(input: Tensor, n=None, dim=-1, norm=None):
    """The discrete Fourier transform along a dim: the sum of x[j] exp(-2 pi i jk / n) for each k.

    Shapes: (*, N, *) -> (*, n, *): the signal is cut to `n` elements, or has zeros after it.
    Raises: RuntimeError for n below 1 and an unknown norm, IndexError for a dim out of range.

    >>> tensorlib.fft.fft(tensorlib.tensor([1., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """
    return along_one(WHOLE, "fft.fft", input, n, dim, norm, True)


@composite(reference=np.fft.ifft, samples=SIGNALS, errors=BAD, **SHARED)
def fft_ifft(input: Tensor, n=None, dim=-1, norm=None):
    """The inverse of `fft`: the mean of x[k] exp(2 pi i jk / n) for each j.

    Shapes: (*, N, *) -> (*, n, *). Raises: as `fft`.
    """
    return along_one(WHOLE, "fft.ifft", input, n, dim, norm, False)


@composite(reference=np.fft.rfft, samples=SIGNALS, errors=BAD, **OF_REAL)
def fft_rfft(input: Tensor, n=None, dim=-1, norm=None):
    """The first half of the `fft` of real numbers; the other one is its conjugate in reverse.

    Shapes: (*, N, *) -> (*, n // 2 + 1, *). Raises: as `fft`, RuntimeError for complex numbers.
    """
    return along_one(HALF, "fft.rfft", input, n, dim, norm, True)


@composite(reference=np.fft.irfft, samples=HALVES, errors=BAD, **SHARED)
def fft_irfft(input: Tensor, n=None, dim=-1, norm=None):
    """The inverse of `rfft`: `n` real numbers, by default 2 (N - 1).

    Shapes: (*, N, *) -> (*, n, *). Raises: as `fft`.
    """
    return along_one(REAL, "fft.irfft", input, n, dim, norm, False)


@composite(reference=np.fft.hfft, samples=HALVES, errors=BAD, **SHARED)
def fft_hfft(input: Tensor, n=None, dim=-1, norm=None):
    """The `fft` of a signal of which there is the first half and the other one is its conjugate in
    reverse: `n` real numbers, by default 2 (N - 1).

    Shapes: (*, N, *) -> (*, n, *). Raises: as `fft`.
    """
    return along_one(REAL, "fft.hfft", input, n, dim, norm, True)


@composite(reference=np.fft.ihfft, samples=SIGNALS, errors=BAD, **OF_REAL)
def fft_ihfft(input: Tensor, n=None, dim=-1, norm=None):
    """The inverse of `hfft`: the first half of the `ifft` of real numbers.

    Shapes: (*, N, *) -> (*, n // 2 + 1, *). Raises: as `fft`, RuntimeError for complex numbers.
    """
    return along_one(HALF, "fft.ihfft", input, n, dim, norm, False)


# ---- several dims --------------------------------------------------------------------------------

def over(function, axes=None):
    """NumPy's function of several dims as a reference: with all lengths, as it wants them."""
    def reference(x, s=None, dim=axes, norm=None):
        if s is not None and dim is None:
            dim = tuple(range(x.ndim - len(s), x.ndim))
        return function(x, s, dim, norm)
    return reference


def hermitian(x, s=None, dim=None, norm=None):
    """The reference of `hfftn`."""
    swapped = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
    return over(np.fft.irfftn)(np.conj(x), s, dim, swapped[norm])


def inverse_hermitian(x, s=None, dim=None, norm=None):
    """The reference of `ihfftn`."""
    swapped = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
    return np.conj(over(np.fft.rfftn)(x, s, dim, swapped[norm]))


@composite(reference=over(np.fft.fftn), samples=SPACES, errors=BAD_SPACES, **SHARED)
def fft_fftn(input: Tensor, s=None, dim=None, norm=None):
    """The `fft` along several dims: by default all, or the last ones where `s` gives lengths.

    Raises: RuntimeError for dims twice, other lengths than dims, lengths below 1 (but -1 stands for
    the size) and an unknown norm; IndexError for a dim out of range.
    """
    return along_several(WHOLE, "fft.fftn", input, s, dim, norm, True)


@composite(reference=over(np.fft.ifftn), samples=SPACES, errors=BAD_SPACES, **SHARED)
def fft_ifftn(input: Tensor, s=None, dim=None, norm=None):
    """The inverse of `fftn`. Raises: as `fftn`."""
    return along_several(WHOLE, "fft.ifftn", input, s, dim, norm, False)


@composite(reference=over(np.fft.rfftn), samples=SPACES, errors=BAD_SPACES, **OF_REAL)
def fft_rfftn(input: Tensor, s=None, dim=None, norm=None):
    """The `fftn` of real numbers, of whose last dim there is the first half.

    Raises: as `fftn`, RuntimeError for complex numbers and for no dims.
    """
    return along_several(HALF, "fft.rfftn", input, s, dim, norm, True)


@composite(reference=over(np.fft.irfftn), samples=SPACES, errors=BAD_SPACES, **SHARED)
def fft_irfftn(input: Tensor, s=None, dim=None, norm=None):
    """The inverse of `rfftn`. Raises: as `fftn`, RuntimeError for no dims."""
    return along_several(REAL, "fft.irfftn", input, s, dim, norm, False)


@composite(reference=hermitian, samples=SPACES, errors=BAD_SPACES, **SHARED)
def fft_hfftn(input: Tensor, s=None, dim=None, norm=None):
    """The `fftn` of a signal that equals its conjugate in reverse, of whose last dim there is the
    first half: real numbers. Raises: as `fftn`, RuntimeError for no dims."""
    return along_several(REAL, "fft.hfftn", input, s, dim, norm, True)


@composite(reference=inverse_hermitian, samples=SPACES, errors=BAD_SPACES, **OF_REAL)
def fft_ihfftn(input: Tensor, s=None, dim=None, norm=None):
    """The inverse of `hfftn`, of real numbers. Raises: as `rfftn`."""
    return along_several(HALF, "fft.ihfftn", input, s, dim, norm, False)


@composite(reference=over(np.fft.fft2, (-2, -1)), samples=PLANES, errors=BAD_PLANES, **SHARED)
def fft_fft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The `fft` along two dims. Raises: as `fftn`."""
    return along_several(WHOLE, "fft.fft2", input, s, dim, norm, True)


@composite(reference=over(np.fft.ifft2, (-2, -1)), samples=PLANES, errors=BAD_PLANES, **SHARED)
def fft_ifft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The inverse of `fft2`. Raises: as `fftn`."""
    return along_several(WHOLE, "fft.ifft2", input, s, dim, norm, False)


@composite(reference=over(np.fft.rfft2, (-2, -1)), samples=PLANES, errors=BAD_PLANES, **OF_REAL)
def fft_rfft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The `rfftn` along two dims. Raises: as `rfftn`."""
    return along_several(HALF, "fft.rfft2", input, s, dim, norm, True)


@composite(reference=over(np.fft.irfft2, (-2, -1)), samples=PLANES, errors=BAD_PLANES, **SHARED)
def fft_irfft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The inverse of `rfft2`. Raises: as `irfftn`."""
    return along_several(REAL, "fft.irfft2", input, s, dim, norm, False)


@composite(reference=lambda x, s=None, dim=(-2, -1), norm=None: hermitian(x, s, dim, norm),
           samples=PLANES, errors=BAD_PLANES, **SHARED)
def fft_hfft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The `hfftn` along two dims. Raises: as `hfftn`."""
    return along_several(REAL, "fft.hfft2", input, s, dim, norm, True)


@composite(reference=lambda x, s=None, dim=(-2, -1), norm=None: inverse_hermitian(x, s, dim, norm),
           samples=PLANES, errors=BAD_PLANES, **OF_REAL)
def fft_ihfft2(input: Tensor, s=None, dim=(-2, -1), norm=None):
    """The `ihfftn` along two dims. Raises: as `rfftn`."""
    return along_several(HALF, "fft.ihfft2", input, s, dim, norm, False)


declared(__name__)
