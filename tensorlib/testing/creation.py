"""Random tensors for tests, of any dtype and within bounds."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import tensorlib as tl
from tensorlib._core.base.dtypes import has_gradients


def make_tensor(
    *shape: int | Sequence[int],
    dtype: tl.dtype,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> tl.Tensor:
    """Random numbers in [low, high), by default [-9, 9) and, of integers, whole ones up to 9.

    Of complex numbers both parts are such.
    The bounds are brought within what the dtype has. noncontiguous: every second element of a
    tensor. exclude_zero: has the smallest number above 0 in the place of 0.
    Raises: ValueError for bounds that are NaN, not below each other or beyond the dtype, and for
    integers that require grad.

    >>> tensorlib.testing.make_tensor(2, 3, dtype=tensorlib.int64, low=1, high=2)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude each other")
    floating = has_gradients(dtype)
    if requires_grad and not floating:
        raise ValueError(f"make_tensor: requires_grad takes floating dtypes, got {dtype}")
    first, last = bounds(dtype, low, high)
    spread = noncontiguous and math.prod(sizes) > 1
    drawn_shape = (*sizes[:-1], 2 * sizes[-1]) if spread else tuple(sizes)
    if floating:
        half = last / 2 - first / 2 > tl.finfo(dtype).max / 2    # the width of the bounds overflows
        made = tl.empty(drawn_shape, dtype=dtype, device=device).uniform_(
            *(first / 2, last / 2) if half else (first, last))
        made = made * 2 if half else made
    else:
        made = tl.randint(math.ceil(first), math.ceil(last), drawn_shape, dtype=dtype,
                          device=device)
    if spread:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = tl.finfo(dtype).tiny if floating else 1
    return made.requires_grad_(requires_grad) if floating else made


def bounds(dtype: tl.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds for a dtype. Raises: ValueError."""
    least: float
    most: float
    if has_gradients(dtype):
        least, most, default = tl.finfo(dtype).min, tl.finfo(dtype).max, (-9.0, 9.0)
    elif dtype is tl.bool:
        least, most, default = 0, 2, (0, 2)
    else:
        info = tl.iinfo(dtype)
        least, most, default = info.min, min(info.max + 1, 2**63 - 1), (-9, 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"make_tensor: low and high must be numbers, got {low} and {high}")
    if low == high and has_gradients(dtype):
        warnings.warn(f"make_tensor: low == high ({low}) for floating or complex dtypes is "
                      "deprecated", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"make_tensor: low must be less than high, got {low} and {high}")
    if high < least or low >= most:
        raise ValueError(f"make_tensor: {dtype} has numbers in [{least}, {most}), got bounds {low} "
                         f"and {high}")
    return min(max(low, least), most), min(max(high, least), most)
