"""The short-time Fourier transform of a signal, and its inverse."""

import numpy as np

from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import FUNCTIONS, composite
from tensorlib.ops.fourier.arguments import complex_input, floating
from tensorlib.ops.fourier.functions import fft_fft, fft_ifft, fft_irfft, fft_rfft
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import refusals
from tensorlib.ops.shape.padding import pad
from tensorlib.ops.value_checks import value_check

arange, ones = FUNCTIONS["arange"], FUNCTIONS["ones"]

DTYPES = ("float32", "float64", "complex64", "complex128")
LEAST_OVERLAP = 1e-11        # of the squares of windows that meet, as PyTorch has it


def lengths_of(name, n_fft, hop_length, win_length):
    """The points of a transform, the step from part to part and the length of a window.

    Raises: RuntimeError, TypeError.
    """
    n = integer(name, "n_fft", n_fft)
    step = n // 4 if hop_length is None else integer(name, "hop_length", hop_length)
    length = n if win_length is None else integer(name, "win_length", win_length)
    if n < 1:
        raise RuntimeError(f"{name}: expected 0 < n_fft, but got n_fft={n}")
    if step < 1:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={step}")
    if not 0 < length <= n:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={length} "
                           f"and n_fft={n}")
    return n, step, length


def window_of(name, window, n, length, like):
    """The window with zeros around it, `n` elements.

    Raises: RuntimeError for another shape, TypeError.
    """
    if window is None:
        window = ones(length, dtype=like.dtype.to_real(), device=like.device)
    elif not is_tensor(window):
        raise TypeError(f"{name}: window must be a Tensor, got {type_name(window)}")
    elif tuple(window.shape) != (length,):
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length="
                           f"{length}, but got window with size {tuple(window.shape)}")
    before = (n - length) // 2
    return pad(window, (before, n - length - before)) if length < n else window


# ---- of a signal ---------------------------------------------------------------------------------

def framed(x, n, step, window):
    """Parts of an array, each times the window."""
    count = 1 + (x.shape[-1] - n) // step
    return np.stack([x[..., i * step:i * step + n] * window for i in range(count)], -1)


def short_time(x, n_fft, hop_length=None, win_length=None, window=None, center=True,
               pad_mode="reflect", normalized=False, onesided=None, return_complex=None):
    """The reference of `stft`."""
    if center:
        margin = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = np.pad(x, margin, pad_mode)
    parts = framed(x, n_fft, hop_length or n_fft // 4, np.ones(n_fft) if window is None else window)
    norm = "ortho" if normalized else None
    real = not np.iscomplexobj(parts) and onesided is not False
    return (np.fft.rfft if real else np.fft.fft)(parts, axis=-2, norm=norm)


def signals(rng):
    """Samples of `stft`."""
    for shape, n, hop, options in (
            ((12,), 4, 1, {}), ((2, 11), 5, 3, {"center": False}),
            ((9,), 4, 2, {"normalized": True, "onesided": False, "pad_mode": "constant"})):
        yield (rng.uniform(-2, 2, shape), n, hop, n, rng.uniform(0.5, 1, n)), {
            "return_complex": True, **options}


@composite(tensors=("input", "window"), dtypes=DTYPES, complex=True, tolerance="product",
           reference=short_time, samples=signals,
           result_dtype=lambda x, *_, **__: x.dtype.to_complex(),
           errors=refusals((RuntimeError, (2, 2, 8), 4), (RuntimeError, (8,), 0),
                           (RuntimeError, (8,), 4, 0), (RuntimeError, (8,), 4, 1, 5),
                           (RuntimeError, (8,), 4), (TypeError, (8,), 4.5)))
def stft(input: Tensor, n_fft, hop_length=None, win_length=None, window=None, center=True,
         pad_mode="reflect", normalized=False, onesided=None, return_complex=None,
         align_to_window=None):
    """The Fourier transforms of parts of a signal, `hop_length` apart: what is heard, and when.

    Each part has `n_fft` elements and is multiplied by the `window` of `win_length`, with zeros
    around it. hop_length: by default n_fft // 4. win_length: by default n_fft. window: by default
    ones. center: the signal is padded by n_fft // 2 at both ends, as `pad_mode` says, so that part
    t is around element t * hop_length. normalized: a factor of 1 / sqrt(n_fft). onesided: the first
    half of each spectrum, by default where signal and window are real. return_complex: must be
    True, or False for pairs of real numbers along a last dim, where the signal is real.
    align_to_window: without `center`, the first window begins with the signal, also where it is
    shorter than n_fft.

    Shapes: (L,) or (B, L) -> (N, T) or (B, N, T), for N frequencies and T parts.
    Raises: RuntimeError for other shapes, lengths that do not fit, a window of another size, and
    where real signals come without `return_complex`; TypeError.

    >>> tone = tensorlib.arange(16).mul(0.5 * 3.14159265).sin()
    >>> tensorlib.stft(tone, 8, 4, center=False, return_complex=True).abs().round(decimals=3)
    tensor([[0., 0., 0.],
            [0., 0., 0.],
            [4., 4., 4.],
            [0., 0., 0.],
            [0., 0., 0.]])
    """
    if not has_gradients(input.dtype):
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, got "
                           f"{input.dtype}")
    x = floating("stft", input)
    if x.ndim not in (1, 2):
        raise RuntimeError("stft: expected a 1D or 2D tensor, but got a tensor of shape "
                           f"{tuple(x.shape)}")
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window should only be set when center = false")
    n, step, length = lengths_of("stft", n_fft, hop_length, win_length)
    real = not (x.is_complex() or window is not None and window.is_complex())
    if return_complex is None and real:
        raise RuntimeError("stft: return_complex must be given for real inputs; True gives complex "
                           "numbers, False pairs of real ones")
    if onesided and not real:
        raise RuntimeError("stft: onesided is for real inputs and windows, and one is complex")
    window = window_of("stft", window, n, length, x)
    margin = n // 2 if center else (n - length) // 2 if align_to_window else 0
    if margin:
        x = pad(x.reshape(-1, x.shape[-1]), (margin, margin),
                pad_mode if center else "constant").reshape(*x.shape[:-1], -1)
    if x.shape[-1] < n:
        raise RuntimeError(f"stft: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n}")
    parts = x.unfold(-1, n, step) * window
    norm = "ortho" if normalized else None
    half = real if onesided is None else onesided
    found = (fft_rfft if half else fft_fft)(parts, norm=norm).transpose(-2, -1)
    if return_complex is None or return_complex:
        return found
    return FUNCTIONS["view_as_real"](found)


# ---- of spectra ----------------------------------------------------------------------------------

def overlapped(parts, step):
    """The sum of parts of a signal, (*, T, n), each of which begins `step` after the one before."""
    *batch, count, n = parts.shape
    places = (arange(count, device=parts.device) * step).unsqueeze(1) + arange(
        n, device=parts.device)
    signal = parts.new_zeros((*batch, n + step * (count - 1)))
    return signal.index_add(-1, places.reshape(-1), parts.reshape(*batch, count * n))


@value_check
def check_overlap(envelope):
    """Raises RuntimeError where a part of the signal is in no window."""
    least = envelope.abs().min().item()
    if least <= LEAST_OVERLAP:
        raise RuntimeError(f"istft: window overlap add min: {least:.3g}; every element must be in "
                           "a window that is not zero there")


def back_in_time(z, n_fft, hop_length=None, win_length=None, window=None, center=True,
                 normalized=False, onesided=None, length=None, return_complex=False):
    """The reference of `istft`."""
    step, norm = hop_length or n_fft // 4, "ortho" if normalized else None
    if return_complex:
        parts = np.fft.ifft(z, n_fft, -2, norm)
    else:
        parts = np.fft.irfft(z[..., :n_fft // 2 + 1, :], n_fft, -2, norm)
    window = np.ones(n_fft) if window is None else window
    total = np.zeros((*z.shape[:-2], n_fft + step * (z.shape[-1] - 1)), parts.dtype)
    times = np.zeros(total.shape[-1], window.dtype)
    for t in range(z.shape[-1]):
        total[..., t * step:t * step + n_fft] += parts[..., t] * window
        times[t * step:t * step + n_fft] += window ** 2
    start = n_fft // 2 if center else 0
    end = total.shape[-1] - start if length is None else start + length
    return (total / times)[..., start:end]


def spectra(rng):
    """Samples of `istft`."""
    for shape, n, hop, options in (
            ((2, 3), 2, 1, {}), ((2, 5, 4), 5, 3, {"center": False, "normalized": True}),
            ((4, 5), 4, 2, {"length": 6})):
        z = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
        yield (z, n, hop, n, rng.uniform(0.5, 1, n)), {
            "onesided": False, "return_complex": True, **options}


def kind_of_signal(x, *_, return_complex=False, **__):
    """The dtype of a signal."""
    return x.dtype if return_complex else x.dtype.to_real()


@composite(tensors=("input", "window"), dtypes=DTYPES[2:], complex=True, tolerance="product",
           reference=back_in_time, samples=spectra, result_dtype=kind_of_signal, checks_values=True)
def istft(input: Tensor, n_fft, hop_length=None, win_length=None, window=None, center=True,
          normalized=False, onesided=None, length=None, return_complex=False):
    """The inverse of `stft`: the signal whose parts come nearest to spectra, by least squares.

    n_fft, hop_length, win_length, window, center, normalized: as in `stft`. onesided: by default
    where there are not n_fft frequencies. length: of the signal, with zeros after it or cut; by
    default what the parts give. return_complex: the signal is complex.

    Shapes: (N, T) or (B, N, T) -> (L,) or (B, L).
    Raises: RuntimeError for what is not complex, for other shapes and lengths that do not fit, and
    where an element is in no window; TypeError.
    Source: Griffin and Lim, "Signal estimation from modified short-time Fourier transform", IEEE
    Transactions on Acoustics, Speech, and Signal Processing 32(2), 1984.

    >>> signal = tensorlib.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> tensorlib.istft(tensorlib.stft(signal, 4, return_complex=True), 4)
    tensor([1., 2., 3., 4., 5., 6.])
    """
    if not input.is_complex():
        raise RuntimeError("istft: requires a complex-valued input tensor, as stft with "
                           f"return_complex=True gives; got {input.dtype}")
    z = complex_input("istft", input)
    if z.ndim not in (2, 3) or not z.numel():
        raise RuntimeError("istft: expected a tensor with 2 or 3 dimensions that is not empty, but "
                           f"got one of shape {tuple(z.shape)}")
    n, step, size = lengths_of("istft", n_fft, hop_length, win_length)
    if step > size:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length, but got hop_length="
                           f"{step} and win_length={size}")
    found = z.shape[-2]
    half = found != n if onesided is None else onesided
    if found != (n // 2 + 1 if half else n):
        raise RuntimeError(f"istft: expected the frequency dimension to have "
                           f"{n // 2 + 1 if half else n} elements for n_fft={n} and onesided="
                           f"{bool(half)}, but got {found}")
    if return_complex and half:
        raise RuntimeError("istft: cannot have onesided output if return_complex=True")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("istft: a complex window takes return_complex=True")
    window = window_of("istft", window, n, size, z)
    norm = "ortho" if normalized else None
    parts = z.transpose(-2, -1)
    if return_complex:
        parts = fft_ifft(parts, norm=norm)
    else:                            # of the whole spectrum of a real signal the first half is read
        parts = fft_irfft(parts[..., :n // 2 + 1], n, norm=norm)
    parts = parts * window
    signal = overlapped(parts, step)
    envelope = overlapped((window * window).expand(parts.shape[-2:]), step)
    start = n // 2 if center else 0
    total = signal.shape[-1]
    end = total - start if length is None else start + integer("istft", "length", length)
    signal, envelope = signal[..., start:end], envelope[start:end]
    if envelope.numel():
        check_overlap(envelope)
    signal = signal / envelope
    return pad(signal, (0, end - total)) if end > total else signal


declared(__name__)
