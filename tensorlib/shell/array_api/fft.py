"""The extension `fft`: discrete Fourier transforms."""

import tensorlib as tl
from tensorlib.array_api.operands import named


def along_one(name, operation):
    """The standard's transform along one axis."""
    def function(x, /, *, n=None, axis=-1, norm="backward"):
        return operation(x, n, axis, norm)
    return named(function, name, operation.__doc__)


def along_several(name, operation):
    """The standard's transform along several axes, by default all."""
    def function(x, /, *, s=None, axes=None, norm="backward"):
        return operation(x, s, axes, norm)
    return named(function, name, operation.__doc__)


fft = along_one("fft", tl.fft.fft)
hfft = along_one("hfft", tl.fft.hfft)
ifft = along_one("ifft", tl.fft.ifft)
ihfft = along_one("ihfft", tl.fft.ihfft)
irfft = along_one("irfft", tl.fft.irfft)
rfft = along_one("rfft", tl.fft.rfft)

fftn = along_several("fftn", tl.fft.fftn)
ifftn = along_several("ifftn", tl.fft.ifftn)
irfftn = along_several("irfftn", tl.fft.irfftn)
rfftn = along_several("rfftn", tl.fft.rfftn)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequency of each element of `fft`."""
    return tl.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequency of each element of `rfft`."""
    return tl.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None):
    """A spectrum in the order of frequencies."""
    return tl.fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of `fftshift`."""
    return tl.fft.ifftshift(x, axes)


__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]
