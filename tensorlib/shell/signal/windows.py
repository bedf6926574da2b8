"""Weights of the samples of a signal, symmetric unless `sym=False`.

`tensorlib.hann_window` and the like are periodic unless told otherwise.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import tensorlib as tl
from tensorlib import Tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
           "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def weighed(name: str, M: int, sym: bool, weights: Callable[[Tensor, int], Tensor], dtype: Any,
            layout: Any, device: Any, requires_grad: bool) -> Tensor:
    """The weights of M samples, in float64 of their places and of how many steps lie between the
    ends. Raises: ValueError."""
    dtype = tl.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name}: requires non-negative window length, got M={M}")
    if layout not in (None, tl.strided):
        raise ValueError(f"{name}: is implemented for strided tensors only, got: {layout}")
    if dtype not in (tl.float32, tl.float64):
        raise ValueError(f"{name}: expects float32 or float64 dtypes, got: {dtype}")
    places = tl.arange(M, dtype=tl.float64)
    out = weights(places, M - 1 if sym else M) if M > 1 else tl.ones_like(places)
    return out.to(dtype=dtype, device=device).requires_grad_(requires_grad)


def require_positive(what: str, value: float) -> None:
    """Raises ValueError for a number that is not above 0."""
    if value <= 0:
        raise ValueError(f"{what} must be positive, got: {value} instead.")


def of_cosines(name: str, M: int, a: list[float], sym: bool, dtype: Any, layout: Any, device: Any,
               requires_grad: bool) -> Tensor:
    """The window a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x from 0 to 2 pi."""
    signed = tl.tensor([(-1) ** i * weight for i, weight in enumerate(a)], dtype=tl.float64)
    return weighed(name, M, sym, lambda n, steps: signed @ (
        tl.outer(tl.arange(len(signed), dtype=tl.float64), n) * (2 * math.pi / steps)).cos(),
        dtype, layout, device, requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
                dtype: Any = None, layout: Any = None, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """The window exp(-|n - center| / tau), which falls off to both sides.

    Raises: ValueError.
    """
    require_positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return weighed("exponential", M, sym, lambda n, steps: (
        (n - (steps / 2 if center is None else center)).abs() / -tau).exp(),
        dtype, layout, device, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """The window sin(pi (n + 1/2) / M), one arch of a sine. Raises: ValueError."""
    return weighed("cosine", M, sym, lambda n, steps: (
        (n + 0.5) * (math.pi / (steps + 1))).sin(), dtype, layout, device, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """The window of a normal density of standard deviation `std`, 1 in the middle.

    Raises: ValueError.
    """
    require_positive("Standard deviation", std)
    return weighed("gaussian", M, sym, lambda n, steps: (
        ((n - steps / 2) / std).square() * -0.5).exp(), dtype, layout, device, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False) -> Tensor:
    """Kaiser's window: narrow for a large `beta`, and 1 everywhere for 0. Raises: ValueError."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return weighed("kaiser", M, sym, lambda n, steps: tl.kaiser_window(
        steps + 1, False, beta, dtype=tl.float64)[:len(n)], dtype, layout, device, requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Hamming's window, a cosine that does not reach 0 at its ends. Raises: ValueError."""
    return of_cosines("hamming", M, [0.54, 1 - 0.54], sym, dtype, layout, device, requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """Hann's window, a cosine raised to lie between 0 and 1. Raises: ValueError."""
    return of_cosines("hann", M, [0.5, 0.5], sym, dtype, layout, device, requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """Blackman's window, of two cosines. Raises: ValueError."""
    return of_cosines("blackman", M, [0.42, 0.5, 0.08], sym, dtype, layout, device,
                      requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """Bartlett's window, a triangle. Raises: ValueError."""
    return weighed("bartlett", M, sym, lambda n, steps: 1 - (2 * n / steps - 1).abs(),
                   dtype, layout, device, requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None,
                   layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The window a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x from 0 to 2 pi. Raises: TypeError,
    ValueError."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    return of_cosines("general_cosine", M, coefficients, sym, dtype, layout, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None,
                    layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The window alpha - (1 - alpha) cos(x), x from 0 to 2 pi. Raises: ValueError."""
    return of_cosines("general_hamming", M, [alpha, 1 - alpha], sym, dtype, layout, device,
                      requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Nuttall's window, of three cosines, with the least side lobes that are continuous.

    Raises: ValueError. Source: A. Nuttall, "Some windows with very good sidelobe behavior", IEEE
    Transactions on Acoustics, Speech and Signal Processing 29, 1981.
    """
    return of_cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, dtype,
                      layout, device, requires_grad)
