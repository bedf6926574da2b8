"""NumPy's Fourier transforms on Tensors: `np.fft` records what it does."""

import numpy as np

from tensorlib.io.operands import tensor_of
from tensorlib.io.table import counterpart
from tensorlib.ops.fourier import frequencies, functions

ALONG_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
ALONG_TWO = ("fft2", "ifft2", "rfft2", "irfft2")


def along_one(transform):
    """NumPy's function along one axis."""
    def function(a, n=None, axis=-1, norm=None, out=None):
        return transform(tensor_of(a), n, axis, norm, out=out)
    return function


def along_several(transform, default):
    """NumPy's function along several axes, and of these a default."""
    def function(a, s=None, axes=default, norm=None, out=None):
        return transform(tensor_of(a), s, axes, norm, out=out)
    return function


for _name in ALONG_ONE:
    counterpart(getattr(np.fft, _name))(along_one(getattr(functions, f"fft_{_name}")))
for _name in ALONG_SEVERAL:
    counterpart(getattr(np.fft, _name))(along_several(getattr(functions, f"fft_{_name}"), None))
for _name in ALONG_TWO:
    counterpart(getattr(np.fft, _name))(along_several(getattr(functions, f"fft_{_name}"), (-2, -1)))


@counterpart(np.fft.fftshift)
def fftshift(x, axes=None):
    """`x` with the frequency 0 moved to the middle of the axes."""
    return frequencies.fft_fftshift(tensor_of(x), axes)


@counterpart(np.fft.ifftshift)
def ifftshift(x, axes=None):
    """What undoes `fftshift`."""
    return frequencies.fft_ifftshift(tensor_of(x), axes)
