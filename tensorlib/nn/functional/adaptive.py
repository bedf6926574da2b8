"""Adaptive pooling, whose number of windows is given, and power-average (LP) pooling."""

import math
from functools import lru_cache
from operator import index as as_int

import numpy as np

from tensorlib import is_grad_enabled
from tensorlib._core.layers import windows as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.convolution import are_plain, sizes_of
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.nn.functional.pooling import (
    Pooled,
    are_beside,
    avg_pool,
    max_pool_jvp,
    max_pool_vjp,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_values,
    mean_pooled,
    planes_in,
    planes_of,
    pool_sizes,
)
from tensorlib.ops.adjoints import forward_and_back, planes_alone, turned_by_back
from tensorlib.ops.declare import FUNCTIONS, composite, op
from tensorlib.ops.samples import given, refusals

amax, mean = FUNCTIONS["amax"], FUNCTIONS["mean"]


def windows_of(size, count):
    """Positions (count, width) of the elements of `count` windows over `size` elements, and how
    many each window has (count, 1): shorter ones repeat their last."""
    order = np.arange(count)
    first, end = order * size // count, -(-(order + 1) * size // count)
    lengths = (end - first)[:, None]
    inner = np.arange(lengths.max(initial=0))
    return first[:, None] + np.minimum(inner, lengths - 1), lengths


def wanted_sizes(name, spatial, output_size):
    """The sizes that are asked for, where None stands for the plane's own. Raises: RuntimeError."""
    n = len(spatial)
    given_sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given_sizes) != n:
        raise RuntimeError(f"{name}: output_size should be one number or {n}, got {output_size}")
    given_sizes = tuple(s if o is None else o for o, s in zip(given_sizes, spatial))
    if any(s < 1 for s in spatial):
        raise RuntimeError(f"{name}: expected input to have non-zero size for non-batch dimensions,"
                           f" but has {spatial}")
    return sizes_of(name, "output_size", given_sizes, n)


def require_planes(name, input, n, output_size):
    """Raises ValueError for too few dims where planes or volumes have a size for each dim."""
    if n > 1 and isinstance(output_size, (tuple, list)) and input.ndim <= len(output_size):
        raise ValueError(f"{name}: expected {n + 1}D or {n + 2}D input for {len(output_size)} "
                         f"sizes, got shape {tuple(input.shape)}")


def means_of(name, n, shape, output_size):
    """The operation that takes the means, and what it takes beside the tensor."""
    spatial = planes_in(name, shape, n)
    counts = wanted_sizes(name, spatial, output_size)
    if all(count == 1 for count in counts):
        return mean, (tuple(range(-n, 0)), True)
    kernel = even_windows(spatial, counts)
    if kernel:
        return avg_pool, (spatial, kernel, kernel, (0,) * n, counts, True, 0, False)
    return adaptive_pool, (spatial, counts, False)


def adaptive_means(name, n, input, output_size):
    """The means of windows: of all elements, of equal windows, or of windows that differ."""
    require_floating(name, input)
    require_planes(name, input, n, output_size)
    find = plain_means_of if are_plain((output_size,)) else means_of
    operation, given_sizes = find(name, n, input.shape, output_size)
    return operation(input, *given_sizes)


def even_windows(spatial, counts):
    """The sizes of windows of which so many lie side by side; None where they differ."""
    if all(count and size % count == 0 for size, count in zip(spatial, counts)):
        return tuple(size // count for size, count in zip(spatial, counts))
    return None


def adaptive_reference(x, spatial, planes):
    """The reference of `adaptive_pool`."""
    lead = x.shape[:-len(planes)]
    return by_bounds(np.mean)(x.reshape(1, -1, *spatial), planes).reshape(*lead, *planes)


@turned_by_back
@op(public=False, method=False, linear=True, takes="floating", kernel=kernels.adaptive_pool,
    tolerance="reduction", reference=forward_and_back(adaptive_reference),
    samples=given(((2, 5), (5,), (3,), False), ((1, 3, 4), (3, 4), (2, 5), False),
                  ((2, 2, 2), (3, 5), (2, 2), True)))
def adaptive_pool(input: Tensor, spatial, planes, back):
    """The means of windows that cover planes of sizes `spatial`; or back from them, its adjoint."""


def maxima_of(name, n, shape, output_size):
    """How many windows there are, and what finds their values alone: an operation, and what it
    takes beside the tensor; or None."""
    spatial = planes_in(name, shape, n)
    sizes = wanted_sizes(name, spatial, output_size)
    if all(size == 1 for size in sizes):
        return sizes, (amax, (tuple(range(-n, 0)), True))
    kernel = even_windows(spatial, sizes)
    return sizes, kernel and (max_values, (kernel, kernel, (0,) * n, (1,) * n, sizes))


def adaptive_maxima(name, n, input, output_size, return_indices):
    """The maxima of windows, one after the other, and their places in the plane."""
    require_floating(name, input)
    require_planes(name, input, n, output_size)
    find = plain_maxima_of if are_plain((output_size,)) else maxima_of
    sizes, values_alone = find(name, n, input.shape, output_size)
    if not math.prod(sizes):
        empty = input.new_zeros((*input.shape[:-n], *sizes))
        return (empty, empty.long()) if return_indices else empty
    if values_alone and not (return_indices or input.requires_grad and is_grad_enabled()):
        operation, given_sizes = values_alone
        return operation(input, *given_sizes)
    values, indices = adaptive_max_pool(input, sizes)
    return (values, indices) if return_indices else values


# they take as long as a small pool
plain_means_of, plain_maxima_of = map(lru_cache(256), (means_of, maxima_of))


def in_plane(spatial, sizes):
    """Positions (windows, width) in the flattened plane of the elements of each window."""
    found = np.zeros((1, 1), np.int64)
    for size, count in zip(spatial, sizes):
        along = windows_of(size, count)[0]
        found = found[:, None, :, None] * size + along[None, :, None, :]
        found = found.reshape(found.shape[0] * found.shape[1], -1)
    return found


def adaptive_max_reference(x, planes):
    """The reference of `adaptive_max_pool`."""
    n = len(planes)
    positions = in_plane(x.shape[-n:], planes)
    parts = x.reshape(*x.shape[:-n], -1)[..., positions]
    shape = (*x.shape[:-n], *planes)
    places = positions[np.arange(len(positions)), parts.argmax(-1)]
    return parts.max(-1).reshape(shape), places.reshape(shape)


@planes_alone
@op(public=False, method=False, takes="floating", outputs=("values", "indices"),
    reference=adaptive_max_reference,
    samples=given(((2, 5), (3,)), ((1, 3, 4), (2, 5)), ((2, 2, 2, 3), (1, 2, 2))))
def adaptive_max_pool(input: Tensor, planes):
    """The greatest elements of windows that cover the last dims, and their places in the plane.

    Gradient: to the element that was found.
    """
    return Pooled(*kernels.adaptive_max_pool(input, planes))


adaptive_max_pool.vjp("input")(max_pool_vjp)
adaptive_max_pool.jvp(max_pool_jvp)


def by_bounds(function):
    """The reference of adaptive pools."""
    def reference(x, output_size):
        n = x.ndim - 2
        sizes = output_size if isinstance(output_size, tuple) else (output_size,) * n
        found = np.zeros((*x.shape[:2], *sizes))
        for place in np.ndindex(*sizes):
            cuts = [(i * s // o, -(-(i + 1) * s // o))
                    for s, o, i in zip(x.shape[2:], sizes, place)]
            part = x[(..., *(slice(*cut) for cut in cuts))]
            found[(..., *place)] = function(part.reshape(*x.shape[:2], -1), -1)
        return found
    return reference


def adaptive(n, function):
    """Declares an adaptive pool over n dims."""
    shape = (1, 1, *(3, 4, 1)[:n])
    return composite(
        tensors=("input",), public=False, method=False, takes="floating", tolerance="product",
        rounds_once=False, reference=by_bounds(function),
        samples=given((shape, 2), (shape, (2, 3, 1)[:n])),
        errors=refusals((RuntimeError, (3,) * n, 2), (RuntimeError, shape, (2,) * (n + 1)),
                        (RuntimeError, shape, -1), (RuntimeError, (1, 1, *(0,) * n), 2)))


@adaptive(1, np.mean)
def adaptive_avg_pool1d(input: Tensor, output_size):
    """The means of so many windows, that together cover sequences.

    Shapes: (B, C, L) -> (B, C, output_size); without B, too. Raises: RuntimeError, TypeError.
    """
    return adaptive_means("adaptive_avg_pool1d", 1, input, output_size)


@adaptive(2, np.mean)
def adaptive_avg_pool2d(input: Tensor, output_size):
    """The means of so many windows along each dim, that together cover images.

    Shapes: (B, C, H, W) -> (B, C, *output_size); None in it stands for the size that there is.
    Raises: RuntimeError, ValueError for too few dims beside several sizes, TypeError.
    """
    return adaptive_means("adaptive_avg_pool2d", 2, input, output_size)


@adaptive(3, np.mean)
def adaptive_avg_pool3d(input: Tensor, output_size):
    """The means of so many windows along each dim, that together cover volumes.

    Shapes: (B, C, D, H, W) -> (B, C, *output_size). Raises: as `adaptive_avg_pool2d`.
    """
    return adaptive_means("adaptive_avg_pool3d", 3, input, output_size)


@adaptive(1, np.max)
def adaptive_max_pool1d(input: Tensor, output_size, return_indices=False):
    """The greatest elements of so many windows, that together cover sequences; and their places.

    Shapes: (B, C, L) -> (B, C, output_size); without B, too. Raises: RuntimeError, TypeError.
    """
    return adaptive_maxima("adaptive_max_pool1d", 1, input, output_size, return_indices)


@adaptive(2, np.max)
def adaptive_max_pool2d(input: Tensor, output_size, return_indices=False):
    """The greatest elements of so many windows along each dim of images; and their places.

    Shapes: (B, C, H, W) -> (B, C, *output_size). Raises: as `adaptive_avg_pool2d`.
    """
    return adaptive_maxima("adaptive_max_pool2d", 2, input, output_size, return_indices)


@adaptive(3, np.max)
def adaptive_max_pool3d(input: Tensor, output_size, return_indices=False):
    """The greatest elements of so many windows along each dim of volumes; and their places.

    Shapes: (B, C, D, H, W) -> (B, C, *output_size). Raises: as `adaptive_avg_pool2d`.
    """
    return adaptive_maxima("adaptive_max_pool3d", 3, input, output_size, return_indices)


# ---- pools of powers -----------------------------------------------------------------------------

MAX_POOLS = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def norms_of_windows(name, n, input, norm_type, kernel_size, stride, ceil_mode):
    """The norms of windows: from the means of powers."""
    require_floating(name, input)
    if isinstance(norm_type, float) and math.isinf(norm_type):
        sign = math.copysign(1.0, norm_type)
        return sign * MAX_POOLS[n](sign * input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    kernel = pool_sizes(name, planes_of(name, input, n), kernel_size, stride, 0, 1, ceil_mode)[0]
    means = mean_pooled(name, n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True)
    return (means.sign() * means.abs().relu() * math.prod(kernel)) ** (1.0 / norm_type)


def power_reference(x, p, kernel):
    """The reference of pools of powers."""
    for d in range(2, x.ndim):
        count = x.shape[d] // kernel
        x = np.moveaxis(np.stack([
            (x.take(range(i * kernel, (i + 1) * kernel), d) ** p).sum(d) for i in range(count)]),
            0, d) ** (1 / p)
    return x


def power_pool(n):
    """Declares a pool of powers over n dims."""
    shape = (1, 1, *(4, 2, 1)[:n])
    return composite(
        tensors=("input",), public=False, method=False, takes="floating", tolerance="product",
        reference=power_reference, samples=lambda rng: [
            ((rng.uniform(0.5, 2, shape if n < 3 else (1, 1, 2, 2, 2)), 2.0, 2), {})],
        errors=refusals((RuntimeError, shape, 2, 5), (RuntimeError, (3,) * n, 2, 1)))


@power_pool(1)
def lp_pool1d(input: Tensor, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum(x**p))**(1/p) of the windows of sequences.

    Shapes: as `avg_pool1d`. Raises: RuntimeError, TypeError.
    """
    return norms_of_windows("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@power_pool(2)
def lp_pool2d(input: Tensor, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum(x**p))**(1/p) of the windows of images.

    Shapes: as `avg_pool2d`. Raises: RuntimeError, TypeError.
    """
    return norms_of_windows("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@power_pool(3)
def lp_pool3d(input: Tensor, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum(x**p))**(1/p) of the windows of volumes.

    Shapes: as `avg_pool3d`. Raises: RuntimeError, TypeError.
    """
    return norms_of_windows("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


# ---- channels to places --------------------------------------------------------------------------

# Results that depend on a shape alone are cached: computing them takes longer than small images do.
kept = lru_cache(256, typed=True)   # typed, so that a factor other than an int is refused each time


def factor_of(name, factor):
    """A positive int. Raises: RuntimeError."""
    if as_int(factor) < 1:
        raise RuntimeError(f"{name}: expects a positive factor, got {factor}")
    return as_int(factor)


def copied(x, shape, images, deep):
    """The elements of `x` in a shape and in memory of their own, also where one step would do.

    They lie as `images` do; `deep`: how many dims of `x` become channels.
    """
    beside = are_beside(images)
    if beside:
        x = x.permute((0, *range(1 + deep, x.ndim), *range(1, 1 + deep)))
        shape = shape[0], *shape[2:], shape[1]
    x = (x.clone() if x.is_contiguous() else x.contiguous()).reshape(shape)
    return x.movedim(-1, 1) if beside else x


def shuffled(x, r):
    """The reference of `pixel_shuffle`."""
    *lead, c, h, w = x.shape
    x = x.reshape(*lead, c // r ** 2, r, r, h, w)
    return np.moveaxis(x, (-4, -3), (-3, -1)).reshape(*lead, c // r ** 2, h * r, w * r)


@composite(tensors=("input",), method=False, reference=shuffled,
           samples=given(((1, 4, 2, 1), 2), ((4, 1, 2), 2)),
           errors=refusals((RuntimeError, (3, 2, 2), 2), (RuntimeError, (4, 2), 2),
                           (RuntimeError, (4, 2, 2), 0)), complex=True)
def pixel_shuffle(input: Tensor, upscale_factor):
    """Images enlarged by elements of r**2 channels: the channels become places.

    Shapes: (*, C r**2, H, W) -> (*, C, H r, W r). Raises: RuntimeError for sizes that do not fit.
    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution", CVPR 2016.
    """
    split, order, shape = enlarged(input.shape, upscale_factor)
    return copied(input.reshape(split).permute(order), shape, input, 1)


@kept
def enlarged(shape, factor):
    """The dims that `pixel_shuffle` takes a shape for, their order, and what they become."""
    shape, r = tuple(shape), factor_of("pixel_shuffle", factor)
    if len(shape) < 3 or shape[-3] % r ** 2:
        raise RuntimeError(f"pixel_shuffle: expects at least 3 dims and channels divisible by "
                           f"{r ** 2}, got shape {shape}")
    *lead, c, h, w = shape
    n = len(lead) + 1
    return (*lead, c // r ** 2, r, r, h, w), (*range(n), n + 2, n, n + 3, n + 1), (
        *lead, c // r ** 2, h * r, w * r)


def unshuffled(x, r):
    """The reference of `pixel_unshuffle`."""
    *lead, c, h, w = x.shape
    x = x.reshape(*lead, c, h // r, r, w // r, r)
    return np.moveaxis(x, (-3, -1), (-4, -3)).reshape(*lead, c * r * r, h // r, w // r)


@composite(tensors=("input",), method=False, reference=unshuffled,
           samples=given(((1, 1, 4, 2), 2), ((1, 2, 4), 2)),
           errors=refusals((RuntimeError, (1, 3, 2), 2), (RuntimeError, (4, 2), 2)), complex=True)
def pixel_unshuffle(input: Tensor, downscale_factor):
    """Images made smaller: places become channels, the inverse of `pixel_shuffle`.

    Shapes: (*, C, H r, W r) -> (*, C r**2, H, W). Raises: RuntimeError for sizes that do not fit.
    """
    split, order, shape = reduced(input.shape, downscale_factor)
    return copied(input.reshape(split).permute(order), shape, input, 3)


@kept
def reduced(shape, factor):
    """The same of `pixel_unshuffle`."""
    shape, r = tuple(shape), factor_of("pixel_unshuffle", factor)
    if len(shape) < 3 or shape[-1] % r or shape[-2] % r:
        raise RuntimeError(f"pixel_unshuffle: expects at least 3 dims and sizes divisible by {r}, "
                           f"got shape {shape}")
    *lead, c, h, w = shape
    n = len(lead) + 1
    return (*lead, c, h // r, r, w // r, r), (*range(n), n + 1, n + 3, n, n + 2), (
        *lead, c * r * r, h // r, w // r)


@composite(tensors=("input",), method=False, samples=given(((1, 4, 2), 2), ((2, 3, 1, 1), 3)),
           reference=lambda x, groups: x.reshape(len(x), groups, -1, *x.shape[2:]).swapaxes(
               1, 2).reshape(x.shape),
           errors=refusals((RuntimeError, (1, 3, 2), 2), (RuntimeError, (4, 2), 2)), complex=True)
def channel_shuffle(input: Tensor, groups):
    """The channels of groups in turn: the first of each, the second of each, ...

    Shapes: (B, C, *) -> the same. Raises: RuntimeError for channels that the groups do not divide.
    """
    split = grouped(input.shape, groups)
    return copied(input.reshape(split).transpose(1, 2), input.shape, input, 2)


@kept
def grouped(shape, groups):
    """The dims that `channel_shuffle` takes a shape for."""
    shape, groups = tuple(shape), factor_of("channel_shuffle", groups)
    if len(shape) < 3 or shape[1] % groups:
        raise RuntimeError(f"channel_shuffle: expects at least 3 dims and channels divisible by "
                           f"{groups}, got shape {shape}")
    return shape[0], groups, shape[1] // groups, *shape[2:]
