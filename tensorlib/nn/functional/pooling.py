"""Max and average pooling, and unpooling."""

import math
from collections import namedtuple
from functools import lru_cache
from operator import index as as_int

import numpy as np

from tensorlib import is_grad_enabled, zeros
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.layers import windows as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.convolution import are_plain, out_size, sizes_of
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.nn.functional.integers import in_doubles
from tensorlib.ops.adjoints import forward_and_back, planes_alone, turned_by_back
from tensorlib.ops.arguments import refuse_bools, refuse_complex
from tensorlib.ops.declare import composite, op
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.value_checks import value_check

Pooled = namedtuple("max_pool", ("values", "indices"))

# ---- the operations ------------------------------------------------------------------------------

def windows_at(x, kernel, stride, padding, dilation, out, fill):
    """For references: each window's elements, and their places in the plane."""
    n = len(kernel)
    lead, spatial = x.shape[:-n], x.shape[-n:]
    for place in np.ndindex(*out):
        found, places = [], []
        for inside in np.ndindex(*kernel):
            at = [o * s - p + k * d for o, s, p, k, d in zip(
                place, stride, padding, inside, dilation)]
            if all(0 <= a < size for a, size in zip(at, spatial)):
                found.append(x[(..., *at)])
                places.append(np.ravel_multi_index(at, spatial))
            elif fill is not None:
                found.append(np.full(lead, fill))
        yield place, np.array(found), places


def max_reference(x, kernel, stride, padding, dilation, out):
    """The reference of `max_pool`."""
    shape = (*x.shape[:-len(kernel)], *out)
    values, indices = np.zeros(shape), np.zeros(shape, np.int64)
    for place, found, places in windows_at(x, kernel, stride, padding, dilation, out, None):
        values[(..., *place)] = found.max(0)
        indices[(..., *place)] = np.array(places)[found.argmax(0)]
    return values, indices


MAXIMA = (((2, 5), (2,), (2,), (1,), (1,), (3,)),
          ((1, 3, 4), (2, 2), (1, 2), (0, 0), (2, 1), (1, 2)),
          ((2, 2, 2, 2), (2, 1, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), (1, 2, 1)),
          ((1, 2, 9), (2, 3), (2, 1), (0, 1), (1, 1), (1, 9)),
          ((17,), (2,), (2,), (1,), (2,), (9,)), ((45,), (34,), (1,), (0,), (1,), (12,)))


@planes_alone
@op(public=False, method=False, takes="floating", outputs=("values", "indices"),
    reference=max_reference, samples=given(*MAXIMA))
def max_pool(input: Tensor, kernel, stride, padding, dilation, planes):
    """The greatest elements of the windows of the last dims, and their places in the plane.

    `planes` are the sizes that come out. Gradient: to the element that was found.
    """
    return Pooled(*kernels.max_pool(input, kernel, stride, padding, dilation, planes))


def put_reference(x, places, spatial):
    """The reference of `put_places`."""
    n = len(spatial)
    found = np.zeros((*x.shape[:-n], math.prod(spatial)))
    for lead in np.ndindex(*x.shape[:-n]):
        np.add.at(found[lead], places[lead].reshape(-1), x[lead].reshape(-1))
    return found.reshape(*x.shape[:-n], *spatial)


@op(public=False, method=False, linear=True, takes="floating", kernel=kernels.put_places,
    reference=put_reference, tolerance="reduction",
    samples=given(((2, 3), np.array([[3, 0, 3], [1, 2, 0]]), (4,)),
                  ((1, 2, 1), np.array([[[3], [1]]]), (2, 2))), checks_values=True)
def put_places(input: Tensor, places, spatial):
    """Zeros, plus the elements of `input` at places in planes of sizes `spatial`."""


@put_places.vjp("input")
def put_places_vjp(g, places, spatial):
    """The adjoint of writing to places: reading at the same ones."""
    return taken(g, places, len(spatial))


def taken(x, places, n):
    """The elements of planes, the last n dims, at places."""
    flat = places.flatten(-n)
    return x.flatten(-n).gather(-1, flat).reshape(places.shape)


@max_pool.vjp("input")
def max_pool_vjp(g, indices, input_shape, planes):
    """g at the places of the maxima."""
    return put_places(g[0], indices, tuple(input_shape)[-len(planes):])


@max_pool.jvp
def max_pool_jvp(d_input, indices, planes):
    """The tangents at the places of the maxima."""
    return taken(d_input, indices, len(planes)), None


@planes_alone
@op(public=False, method=False, takes="floating", kernel=kernels.max_values,
    reference=lambda *args: max_reference(*args)[0], samples=given(*MAXIMA))
def max_values(input: Tensor, kernel, stride, padding, dilation, planes):
    """The greatest elements of windows, as `max_pool` has them, for what needs no gradient.

    Gradient: as that of `max_pool`, which is run for it.
    """


@max_values.vjp("input")
def max_values_vjp(g, input, kernel, stride, padding, dilation, planes):
    """As of `max_pool`, by the places that it finds anew."""
    indices = max_pool(input, kernel, stride, padding, dilation, planes)[1]
    return put_places(g, indices, tuple(input.shape)[-len(kernel):])


@max_values.jvp
def max_values_jvp(d_input, input, kernel, stride, padding, dilation, planes):
    """As of `max_pool`, by the places that it finds anew."""
    return taken(d_input, max_pool(input, kernel, stride, padding, dilation, planes)[1],
                 len(kernel))


def mean_reference(x, spatial, kernel, stride, padding, planes, counts_padding, divisor):
    """The reference of `avg_pool`."""
    found = np.zeros((*x.shape[:-len(kernel)], *planes))
    sizes = [size + p for size, p in zip(spatial, padding)]
    for place, values, _ in windows_at(x, kernel, stride, padding, (1,) * len(kernel), planes,
                                       None):
        firsts = [o * s - p for o, s, p in zip(place, stride, padding)]
        padded = math.prod(min(f + k, e) - f for f, k, e in zip(firsts, kernel, sizes))
        count = divisor or (padded if counts_padding else len(values))
        found[(..., *place)] = values.sum(0) / count
    return found


MEANS = (((2, 5), (5,), (3,), (2,), (1,), (3,), True, 0, False),
         ((1, 3, 3), (3, 3), (2, 2), (2, 1), (0, 1), (2, 4), False, 0, False),
         ((1, 3, 3), (3, 3), (2, 2), (2, 1), (0, 1), (2, 4), True, 3, False),
         ((2, 3), (5,), (3,), (2,), (1,), (3,), True, 0, True),
         ((1, 2, 9), (2, 9), (2, 3), (2, 1), (0, 1), (1, 9), False, 0, False),
         ((17,), (17,), (3,), (2,), (1,), (9,), True, 0, False),
         ((9,), (9,), (3,), (1,), (1,), (9,), True, 0, True))


@turned_by_back
@op(public=False, method=False, linear=True, takes="floating", kernel=kernels.avg_pool,
    tolerance="reduction", reference=forward_and_back(mean_reference), samples=given(*MEANS))
def avg_pool(input: Tensor, spatial, kernel, stride, padding, planes, counts_padding, divisor,
             back):
    """The means of windows of planes of sizes `spatial`; with `back` its adjoint, from `planes`."""


def for_all_examples(info, dims, input, places, spatial):
    """The batching rule of `put_places`, with the same places in each example."""
    return put_places(input, places.expand(input.shape), spatial), 0


put_places.batching = for_all_examples


# ---- what the public functions share -------------------------------------------------------------

def planes_of(name, input, n):
    """The sizes of the planes. Raises: RuntimeError."""
    return planes_in(name, input.shape, n)


def planes_in(name, shape, n):
    """The same, of a tensor of this shape."""
    shape = tuple(shape)
    if not n < len(shape) < n + 3:
        raise RuntimeError(f"{name}: expected {n + 1}D or {n + 2}D input, got shape {shape}")
    return shape[-n:]


def pool_sizes(name, spatial, kernel, stride, padding, dilation, ceil_mode):
    """Sizes of windows and how many there are along each dim: the arguments of `max_pool`.

    Raises: RuntimeError.
    """
    n = len(spatial)
    kernel = sizes_of(name, "kernel_size", kernel, n, 1)
    no_stride = stride is None or hasattr(stride, "__len__") and len(stride) == 0
    stride = kernel if no_stride else sizes_of(name, "stride", stride, n, 1)
    padding, dilation = sizes_of(name, "padding", padding, n), sizes_of(
        name, "dilation", dilation, n, 1)
    if any(padding) and any(2 * p > k for p, k in zip(padding, kernel)):
        raise RuntimeError(f"{name}: pad should be at most half of effective kernel size, but got "
                           f"padding={padding} and kernel_size={kernel}")
    planes = tuple(map(out_size, spatial, kernel, stride, padding, dilation))
    if ceil_mode:
        planes = tuple(rounded_up(*each) for each in zip(
            spatial, kernel, stride, padding, dilation))
    if min(planes) < 1:
        raise RuntimeError(f"{name}: given input size {spatial} and kernel {kernel}, the output "
                           f"size {planes} is too small")
    return kernel, stride, padding, dilation, planes


def maxima_sizes(name, n, shape, *sizes):
    """`pool_sizes`, of planes in a tensor of this shape. Raises: RuntimeError."""
    return pool_sizes(name, planes_in(name, shape, n), *sizes)


def means_sizes(name, n, shape, kernel, stride, padding, ceil_mode, counts, divisor):
    """The arguments of `avg_pool`, and whether its result is negated. Raises: RuntimeError."""
    spatial = planes_in(name, shape, n)
    kernel, stride, padding, _, planes = pool_sizes(name, spatial, kernel, stride, padding, 1,
                                                    ceil_mode)
    divisor = None if divisor is None else as_int(divisor)
    if divisor is not None and not 0 < abs(divisor) < 2 ** 60:
        raise RuntimeError(f"{name}: divisor must not be 0, got {divisor}")
    divisor = divisor or 0
    return (spatial, kernel, stride, padding, planes, bool(counts), abs(divisor), False), (
        divisor < 0)


# they take twice as long as a small pool
plain_maxima_sizes, plain_means_sizes = map(lru_cache(256), (maxima_sizes, means_sizes))


def rounded_up(size, kernel, stride, padding, dilation):
    """How many windows there are with the last one that begins in the plane or before it."""
    count = -((dilation * (kernel - 1) + 1 - size - 2 * padding) // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def refuse_types(name, input):
    """Raises: RuntimeError for bools and complex numbers."""
    refuse_bools(name, input, RuntimeError)
    refuse_complex(name, input)


def max_pooled(name, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """The maxima of windows over n dims."""
    plain = input.is_floating_point()
    if not plain:
        refuse_types(name, input)
    plain_sizes = are_plain((kernel_size, stride, padding, dilation))
    find = plain_maxima_sizes if plain_sizes else maxima_sizes
    sizes = find(name, n, input.shape, kernel_size, stride, padding, dilation, bool(ceil_mode))
    if plain:
        if not (return_indices or input.requires_grad and is_grad_enabled()):
            return max_values(input, *sizes)
        pooled = max_pool(input, *sizes)
    else:
        indices = max_pool(input.to(BY_NAME["float64"]), *sizes)[1]
        pooled = taken(input, indices, n), indices
    return tuple(pooled) if return_indices else pooled[0]


def mean_pooled(name, n, input, kernel_size, stride, padding, ceil_mode, counts, divisor=None):
    """The means of windows over n dims."""
    plain = input.is_floating_point()
    if not plain:
        refuse_types(name, input)
    plain_sizes = are_plain((kernel_size, stride, padding, divisor))
    find = plain_means_sizes if plain_sizes else means_sizes
    sizes, negated = find(name, n, input.shape, kernel_size, stride, padding, bool(ceil_mode),
                          bool(counts), divisor)

    if plain:
        return -avg_pool(input, *sizes) if negated else avg_pool(input, *sizes)

    def means(x):                # nearest: a quotient is 1 / count from the next integer
        found = -avg_pool(x, *sizes) if negated else avg_pool(x, *sizes)
        return found + found.sign() * (0.5 / (sizes[-2] or math.prod(sizes[1])))
    return in_doubles(means, input)


def pooled_reference(function):
    """The reference of the pools: windows of 2 elements, one after the other, along each dim."""
    def reference(x, kernel):
        n, dtype = x.ndim - 2, x.dtype
        for d in range(2, 2 + n):
            size = x.shape[d] // kernel
            x = function(np.stack(np.split(x.take(range(size * kernel), d), size, d)), d + 1)
            x = np.moveaxis(x, 0, d)
        return x if dtype.kind == "f" else np.trunc(x + np.sign(x) * 1e-9).astype(dtype)
    return reference


def pool(n, function, public=False, out=False):
    """Declares a pool over n dims."""
    shape = (1, 1, *(4, 2, 1)[:n]) if n < 3 else (1, 1, 2, 2, 2)
    return composite(
        tensors=("input",), public=public, method=False, out=out, takes="integer floating",
        tolerance="reduction", rounds_once=False, reference=pooled_reference(function),
        samples=given((shape, 2)),
        errors=refusals((RuntimeError, (3,) * n, 2), (RuntimeError, shape, 5),
                        (RuntimeError, shape, 0), (RuntimeError, shape, 2, 0),
                        (RuntimeError, shape, 2, 1, 2), (TypeError, shape, 1.5)))


@pool(1, np.max, public=True)
def max_pool1d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False):
    """The greatest elements of windows of sequences, with `return_indices` also their places.

    stride: by default the window's size. ceil_mode: with a window that is cut at the end.
    Shapes: (B, C, L) -> (B, C, (L + 2 padding - dilation (K - 1) - 1) // stride + 1), or (C, L).
    Gradient: to the element that was found, the first of equal ones.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return max_pooled("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode,
                      return_indices)


@pool(2, np.max, public=True)
def max_pool2d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False):
    """The greatest elements of windows of images, with `return_indices` also their places.

    Shapes: (B, C, H, W) -> (B, C, *, *), as `max_pool1d` along each dim.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return max_pooled("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode,
                      return_indices)


@pool(3, np.max, public=True)
def max_pool3d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
               return_indices=False):
    """The greatest elements of windows of volumes, with `return_indices` also their places.

    Shapes: (B, C, D, H, W) -> (B, C, *, *, *), as `max_pool1d` along each dim.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return max_pooled("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode,
                      return_indices)


@pool(1, np.mean, public=True)
def avg_pool1d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode=False,
               count_include_pad=True):
    """The means of windows of sequences.

    count_include_pad: zeros of the padding count. Shapes: as `max_pool1d`.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return mean_pooled("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode,
                       count_include_pad)


@pool(2, np.mean, out=True)
def avg_pool2d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode=False,
               count_include_pad=True, divisor_override=None):
    """The means of windows of images, or their sums over `divisor_override`.

    count_include_pad: zeros of the padding count. Shapes: as `max_pool2d`.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return mean_pooled("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode,
                       count_include_pad, divisor_override)


@pool(3, np.mean, out=True)
def avg_pool3d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode=False,
               count_include_pad=True, divisor_override=None):
    """The means of windows of volumes, or their sums over `divisor_override`.

    count_include_pad: zeros of the padding count. Shapes: as `max_pool3d`.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    return mean_pooled("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode,
                       count_include_pad, divisor_override)


# ---- back from maxima, and powers ----------------------------------------------------------------

def unpooled_sizes(name, n, shape, kernel, stride, padding, output_size):
    """The sizes of the planes that maxima are put back into. Raises: RuntimeError, ValueError."""
    planes = planes_in(name, shape, n)
    kernel = sizes_of(name, "kernel_size", kernel, n, 1)
    stride = kernel if stride is None else sizes_of(name, "stride", stride, n, 1)
    padding = sizes_of(name, "padding", padding, n)
    spatial = tuple((o - 1) * s + k - 2 * p for o, s, k, p in zip(planes, stride, kernel, padding))
    if output_size is None:
        return spatial
    wanted = tuple(map(as_int, output_size))[-n:]
    if len(wanted) != n or any(not s - t < w < s + t for s, t, w in zip(spatial, stride, wanted)):
        raise ValueError(f"{name}: invalid output_size {output_size}, near {spatial} is expected")
    return wanted


plain_unpooled_sizes = lru_cache(256)(unpooled_sizes)


def are_beside(images):
    """Whether the channels of images lie beside each other, be it with gaps; as in PyTorch, strides
    of dims of size 1 count, too."""
    if images.ndim != 4 or not hasattr(images, "stride"):      # variables of programs lie in rows
        return False
    if images.stride(1) > images.stride(3) or images.numel() == 0:
        return False                     # as most are told to be at once
    (_, channels, high, wide), (n, c, h, w) = images.shape, images.stride()
    return 0 < c <= w >= c * channels and h >= w * wide and n >= h * high != c


def unpooled(name, n, input, indices, kernel_size, stride, padding, output_size):
    """Planes of zeros with the elements at their places; images lie as the input does."""
    require_floating(name, input)
    output_size = None if output_size is None else tuple(output_size)
    plain_sizes = are_plain((kernel_size, stride, padding, output_size))
    find = plain_unpooled_sizes if plain_sizes else unpooled_sizes
    spatial = find(name, n, input.shape, kernel_size, stride, padding, output_size)
    if indices.shape != input.shape or indices.dtype.name != "int64":
        raise RuntimeError(f"{name}: indices should be int64 and of the input's shape, got "
                           f"{indices.dtype} of shape {tuple(indices.shape)}")
    flat = indices.flatten(-n)
    places_are_in_planes(flat, name, spatial)
    lead = tuple(input.shape[:-n])
    empty = zeros((), dtype=input.dtype)         # `scatter` writes the zeros of its result
    if are_beside(input):
        empty = empty.expand(lead[0], math.prod(spatial), lead[1])
        places = empty.scatter(1, flat.transpose(1, 2), input.flatten(-n).transpose(1, 2))
        return places.reshape((lead[0], *spatial, lead[1])).movedim(-1, 1)
    empty = empty.expand(*lead, math.prod(spatial))
    return empty.scatter(-1, flat, input.flatten(-n)).reshape((*lead, *spatial))


@value_check
def places_are_in_planes(places, name, spatial):
    """Raises RuntimeError for a place outside of a plane of these sizes."""
    if places.numel() == 0:
        return
    least, most = places.aminmax()
    if least < 0 or most >= math.prod(spatial):
        raise RuntimeError(f"{name}: found an invalid index in a plane of {spatial}")


def unpool(n):
    """Declares the way back from maxima over n dims."""
    def samples(rng):
        yield (rng.uniform(-2, 2, (1, 2, *(2, 1, 1)[:n])),
               np.array([[[1, 3], [2, 0]]]).reshape(1, 2, *(2, 1, 1)[:n]), 2), {}
    return composite(
        tensors=("input",), public=False, method=False, takes="floating", samples=samples,
        checks_values=True,
        reference=lambda x, i, k: put_reference(x, i, tuple(s * k for s in x.shape[2:])))


@unpool(1)
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None):
    """Zeros with the elements at the places that `max_pool1d` gave with `return_indices`.

    Raises: RuntimeError for a position out of range, ValueError.
    """
    return unpooled("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@unpool(2)
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None):
    """Zeros with the elements at the places that `max_pool2d` gave with `return_indices`.

    Raises: RuntimeError for a position out of range, ValueError.
    """
    return unpooled("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@unpool(3)
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None):
    """Zeros with the elements at the places that `max_pool3d` gave with `return_indices`.

    Raises: RuntimeError for a position out of range, ValueError.
    """
    return unpooled("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
