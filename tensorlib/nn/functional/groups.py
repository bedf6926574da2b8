"""Normalisation of groups of channels, of single ones, and over neighbouring ones."""

import math

import numpy as np

from tensorlib import cat, no_grad, ones, zeros
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.norms import (
    affine_norm, batch_norm, channel_count, check_vectors, layer_reference, move_statistics,
)
from tensorlib.ops.declare import composite
from tensorlib.ops.samples import given, refusals


def wide(input):
    """The input in the dtype that it is computed in."""
    return input.float() if input.dtype.name in ("float16", "bfloat16") else input


def of_groups(input, groups, eps):
    """The elements of each group of channels of each example, normalised."""
    if input.numel() == 0:
        return input * 1
    rows = input.reshape(input.shape[0] * groups, -1)
    size = rows.shape[1]
    plain = ones(size, dtype=input.dtype), zeros(size, dtype=input.dtype)
    return affine_norm(rows, *plain, float(eps), True, False).reshape(input.shape)


def with_vectors(input, weight, bias):
    """The elements times a weight plus a bias of their channel."""
    shape = (-1, *(1,) * (input.ndim - 2))
    out = input if weight is None else input * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def group_reference(x, groups, weight=None, bias=None, eps=1e-5):
    """The reference of `group_norm`."""
    rows = x.reshape(len(x) * groups, -1)
    u, wide = layer_reference(rows, rows.shape[1], eps=eps).reshape(x.shape), (
        -1, *(1,) * (x.ndim - 2))
    return (u * (1 if weight is None else weight.reshape(wide))
            + (0 if bias is None else bias.reshape(wide)))


def group_samples(rng):
    """Samples of `group_norm`."""
    for shape, groups in (((2, 4, 3), 2), ((2, 2), 1)):
        w, b = rng.uniform(0.5, 2, (2, shape[1]))
        yield (rng.uniform(-2, 2, shape), groups, w, b, 0.1), {}


@composite(tensors=("input", "weight", "bias"), method=False, takes="floating",
           tolerance="reduction", reference=group_reference, samples=group_samples,
           errors=refusals((RuntimeError, (2, 3), 2), (RuntimeError, (3,), 1),
                           (RuntimeError, (2, 4), 2, np.ones(2)), (RuntimeError, (2, 4), 0)))
def group_norm(input: Tensor, num_groups, weight=None, bias=None, eps=1e-5):
    """Each group of channels less its mean, over its standard deviation; times weight plus bias.

    Shapes: (B, C, *), with weight and bias (C,) -> the same.
    Raises: RuntimeError for channels that the groups do not divide, and other sizes.
    Source: Wu and He, "Group Normalization", ECCV 2018.
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm: expected at least 2 dims, got {input.ndim}")
    channels = input.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise RuntimeError(f"group_norm: expected the number of channels to be divisible by "
                           f"num_groups, got {channels} channels and num_groups={num_groups}")
    check_vectors("group_norm", channels, weight=weight, bias=bias)
    return with_vectors(of_groups(wide(input), num_groups, eps), weight, bias).to(input.dtype)


def instance_reference(x, mean=None, var=None, weight=None, bias=None, *rest):
    """The reference of `instance_norm`."""
    return group_reference(x, x.shape[1], weight, bias)


def instance_samples(rng):
    """Samples of `instance_norm`."""
    w, b = rng.uniform(0.5, 2, (2, 2))
    yield (rng.uniform(-2, 2, (2, 2, 3)), None, None, w, b), {}


@composite(tensors=("input", "weight", "bias"), method=False, takes="floating", public=False,
           tolerance="reduction", reference=instance_reference, samples=instance_samples,
           errors=refusals((ValueError, (2, 3)), (ValueError, (2, 3, 1)),
                           (RuntimeError, (2, 3, 4), None, None, np.ones(2))))
def instance_norm(input: Tensor, running_mean=None, running_var=None, weight=None, bias=None,
                  use_input_stats=True, momentum=0.1, eps=1e-5):
    """Each channel of each example less its mean, over its standard deviation.

    With `use_input_stats` false by the running statistics, as `batch_norm`.
    Shapes: (B, C, *), with the others (C,) -> the same.
    Raises: ValueError for channels of one element, RuntimeError for other sizes.
    Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", arXiv:1607.08022 (2016).
    """
    count = channel_count("instance_norm", input, 2)
    check_vectors("instance_norm", count, running_mean=running_mean, running_var=running_var,
                  weight=weight, bias=bias)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError("instance_norm: expected more than 1 spatial element when training, got "
                         f"input size {tuple(input.shape)}")
    if running_mean is not None or running_var is not None:
        with no_grad():
            dims = tuple(range(2, input.ndim))
            found = input.mean(dims).mean(0), input.var(dims, correction=0).mean(0)
            move_statistics(input[:1], found, running_mean, running_var, momentum)
    return with_vectors(of_groups(wide(input), count, eps), weight, bias).to(input.dtype)


def neighbours(x, size, alpha=1e-4, beta=0.75, k=1.0):
    """The reference of `local_response_norm`."""
    padding = [(0, 0)] * x.ndim
    padding[1] = (size // 2, (size - 1) // 2)
    squares = np.pad(x * x, padding)
    sums = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (k + alpha * sums / size) ** beta


@composite(public=False, method=False, takes="floating", tolerance="reduction",
           reference=neighbours, samples=given(((2, 4, 3), 3, 0.5), ((1, 3, 2), 2, 0.3, 0.5, 2.0)),
           errors=refusals((ValueError, (2, 3), 2)))
def local_response_norm(input: Tensor, size: int, alpha=1e-4, beta=0.75, k=1.0):
    """Each element over (k + alpha * mean of the squares of `size` channels around it)**beta.

    Shapes: (B, C, L, *) -> the same. Raises: ValueError for less than 3 dims, RuntimeError.
    Source: Krizhevsky, Sutskever and Hinton, "ImageNet Classification with Deep Convolutional
    Neural Networks", NIPS 2012.
    """
    if input.ndim < 3:
        raise ValueError(f"local_response_norm: expected 3-D or higher, got {input.ndim} dims")
    if not input.is_floating_point():
        raise RuntimeError(f"local_response_norm: takes floating-point dtypes, got {input.dtype}")
    if size < 1:
        raise RuntimeError(f"local_response_norm: size must be positive, got {size}")
    squares, channels = input * input, input.shape[1]
    beyond = channels if input.numel() else 0               # from there on, all is 0
    reach = [min(n, beyond) for n in (size // 2, (size - 1) // 2)]
    ends = [input.new_zeros((input.shape[0], n, *input.shape[2:])) for n in reach]
    padded = cat([ends[0], squares, ends[1]], 1)
    sums = padded.narrow(1, 0, channels)
    for i in range(1, sum(reach) + 1):
        sums = sums + padded.narrow(1, i, channels)
    return input / (sums * (alpha / size) + k) ** beta
