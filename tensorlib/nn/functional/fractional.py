"""Fractional max pooling: windows at random positions, for output sizes that no stride gives."""

import math
from functools import lru_cache

import numpy as np

from tensorlib import rand
from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite
from tensorlib.ops.samples import given, refusals

NAMES = {2: "fractional_max_pool2d", 3: "fractional_max_pool3d"}


def numbers(name, what, value, ndim, kind):
    """A number for each dim, given as one or as many. Raises: ValueError."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim
    if len(values) != ndim:
        raise ValueError(f"{name}: {what} must be one number or {ndim}, got {value!r}")
    return tuple(map(kind, values))


def output_sizes(name, sizes, window, output_size, output_ratio):
    """How many windows each dim has. Raises: ValueError where that is not said, or can't be."""
    ndim = len(sizes)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: takes either output_size or output_ratio")
    if output_ratio is not None:
        ratios = numbers(name, "output_ratio", output_ratio, ndim, float)
        if not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1, got {output_ratio}")
        outs = tuple(int(size * ratio) for size, ratio in zip(sizes, ratios))
    else:
        outs = numbers(name, "output_size", output_size, ndim, int)
    for size, out, length in zip(sizes, outs, window):
        if not (out >= 1 and length >= 1 and out + length - 1 <= size):
            raise RuntimeError(f"{name}: {out} windows of {length} don't fit into a size of "
                               f"{size}")
    return outs


@lru_cache(64)
def plan(sizes, window, outs):
    """Arrays of what the places of windows follow from, with the windows of each dim after those of
    the one before: their numbers, the draws they go by, the steps, which are the last ones, where
    these begin, and the elements from one to the next; and where the elements of a window are."""
    ndim = len(sizes)
    order = range(ndim) if ndim == 3 else (1, 0)           # in PyTorch's order: W first, for images
    strides = [math.prod(sizes[d + 1:]) for d in range(ndim)]
    steps = [(size - length) / max(out - 1, 1) for size, length, out in zip(sizes, window, outs)]
    numbers = np.concatenate([np.arange(out) for out in outs])
    draws, step, end, stride, out = (np.repeat(values, outs) for values in (
        order, steps, np.subtract(sizes, window), strides, outs))
    within = np.ravel_multi_index(np.indices(window).reshape(ndim, -1), sizes)
    return numbers.astype(float), draws, step, numbers == out - 1, end, stride, within


def places(samples, sizes, window, outs):
    """Positions (B, C, *outs, elements of a window) in an image, of draws (B, C, dims). The last
    window of a dim ends where the input does."""
    numbers, draws, step, last, end, stride, within = map(from_numpy, plan(sizes, window, outs))
    u, step = samples.index_select(-1, draws), step.to(samples.dtype)
    begin = ((u + numbers.to(u.dtype)) * step).long() - (u * step).long()
    begin, at, found = end.where(last, begin) * stride, 0, 0
    for d, out in enumerate(outs):
        part = begin.narrow(-1, at, out).reshape(*samples.shape[:2], *[1] * d, out)
        found, at = part + found, at + out
        found = found.unsqueeze(-1)
    return found + within


def pooled(name, ndim, input, kernel_size, output_size, output_ratio, return_indices, samples):
    """The largest numbers of windows, and with `return_indices` their positions."""
    if input.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(f"{name}: expected an input of {ndim + 1} or {ndim + 2} dims, got "
                           f"{input.ndim}")
    batch = input if input.ndim == ndim + 2 else input.unsqueeze(0)
    planes, sizes = tuple(batch.shape[:2]), tuple(batch.shape[2:])
    if 0 in input.shape[1:]:
        raise RuntimeError(f"{name}: Expected input to have non-zero size for non-batch "
                           f"dimensions, but got {list(input.shape)}")
    window = numbers(name, "kernel_size", kernel_size, ndim, int)
    outs = output_sizes(name, sizes, window, output_size, output_ratio)
    if samples is None:
        samples = rand(*planes, ndim, dtype=input.dtype)
    if tuple(samples.shape) != (*planes, ndim):
        raise RuntimeError(f"{name}: _random_samples must have shape {(*planes, ndim)}, got "
                           f"{tuple(samples.shape)}")
    index = places(samples, sizes, window, outs)
    values = batch.flatten(2).gather(2, index.flatten(2)).reshape(index.shape)
    result, best = values.max(-1)
    if input.ndim == ndim + 1:
        result = result.squeeze(0)
    if not return_indices:
        return result
    found = index.gather(-1, best.unsqueeze(-1)).squeeze(-1)
    return result, found.squeeze(0) if input.ndim == ndim + 1 else found


def bounds(ndim):
    """The reference: between the smallest and the largest number of the input."""
    def reference(x, kernel_size, output_size):
        shape = (*x.shape[:-ndim], *output_size)
        return np.full(shape, x.min()), np.full(shape, x.max())
    return reference


def pool(ndim):
    """Declares a pool."""
    images, size = (2, 3, 7, 8, 5)[:ndim + 2], (4, 5, 3)[:ndim]
    return composite(
        random=True, public=False, method=False, takes="floating", reference=bounds(ndim),
        samples=given((images, 2, size), (images[1:], 2, size)),
        errors=refusals((ValueError, (1, 1, 4, 4, 4)[:ndim + 2], 2),
                        (RuntimeError, (1, 1, 4, 4, 4)[:ndim + 2], 2, 4),
                        (RuntimeError, (3,), 2, 1)))


@pool(2)
def fractional_max_pool2d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices=False, _random_samples=None):
    """The largest number of each of `output_size` windows, whose places are drawn.

    output_ratio: the size of the output as a part of the input's, instead of `output_size`.
    return_indices: the positions of the numbers as well. `_random_samples` (B, C, 2) are the
    numbers from 0 to 1 that give the places. Shapes: (B, C, H, W) or (C, H, W).
    Raises: ValueError where neither or both sizes are given, RuntimeError where windows don't fit.
    Source: Graham, "Fractional Max-Pooling", arXiv:1412.6071 (2014).
    """
    return pooled(NAMES[2], 2, input, kernel_size, output_size, output_ratio, return_indices,
                  _random_samples)


@pool(3)
def fractional_max_pool3d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices=False, _random_samples=None):
    """As `fractional_max_pool2d`, of volumes. Shapes: (B, C, D, H, W) or (C, D, H, W).

    Raises: ValueError where neither or both sizes are given, RuntimeError where windows don't fit.
    """
    return pooled(NAMES[3], 3, input, kernel_size, output_size, output_ratio, return_indices,
                  _random_samples)
