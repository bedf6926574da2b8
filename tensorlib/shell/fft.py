"""Discrete Fourier transforms, under the names of `torch.fft`.

>>> signal = tensorlib.tensor([0., 1., 0., -1.])
>>> tensorlib.fft.rfft(signal).abs()
tensor([0., 2., 0.])
"""

from tensorlib.ops.fourier.frequencies import (
    fft_fftfreq as fftfreq,
    fft_fftshift as fftshift,
    fft_ifftshift as ifftshift,
    fft_rfftfreq as rfftfreq,
)
from tensorlib.ops.fourier.functions import (
    fft_fft as fft,
    fft_fft2 as fft2,
    fft_fftn as fftn,
    fft_hfft as hfft,
    fft_hfft2 as hfft2,
    fft_hfftn as hfftn,
    fft_ifft as ifft,
    fft_ifft2 as ifft2,
    fft_ifftn as ifftn,
    fft_ihfft as ihfft,
    fft_ihfft2 as ihfft2,
    fft_ihfftn as ihfftn,
    fft_irfft as irfft,
    fft_irfft2 as irfft2,
    fft_irfftn as irfftn,
    fft_rfft as rfft,
    fft_rfft2 as rfft2,
    fft_rfftn as rfftn,
)
from tensorlib.ops.lazy import gathered

__all__ = gathered(__name__)


def __dir__():
    return __all__
