"""Group normalisation, instance normalisation, and local response normalisation."""

import math

import numpy as np

from tensorlib import cat, func, no_grad, ones, zeros, zeros_like
from tensorlib._core.layers import group_norm as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.nn.functional.norms import (
    affine_norm, batch_norm, channel_count, check_vectors, layer_reference, move_statistics,
)
from tensorlib.ops.declare import composite, op
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import given, refusals


# ---- the operations ------------------------------------------------------------------------------

def wide(x, ndim):
    """A vector of the channels with the dims that it needs to broadcast."""
    return x.reshape((-1, *(1,) * (ndim - 2)))


def group_formula(input, weight, bias, groups, eps):
    """`group_affine` by operations of their own."""
    if input.numel() == 0:
        return input * wide(weight, input.ndim) + wide(bias, input.ndim)
    rows = input.reshape(input.shape[0] * groups, -1)
    size = rows.shape[1]
    plain = ones(size, dtype=input.dtype), zeros(size, dtype=input.dtype)
    u = affine_norm(rows, *plain, eps, True).reshape(input.shape)
    return u * wide(weight, input.ndim) + wide(bias, input.ndim)


def backward_formula(grad, input, weight, groups, eps):
    """`group_backward` by operations of their own."""
    return func.vjp(lambda *xs: group_formula(*xs, groups, eps), input, weight,
                    zeros_like(weight))[1](grad)


def group_reference(x, groups, weight=None, bias=None, eps=1e-5):
    """The reference of `group_norm`."""
    rows = x.reshape(len(x) * groups, -1)
    u, wide = layer_reference(rows, rows.shape[1], eps=eps).reshape(x.shape), (
        -1, *(1,) * (x.ndim - 2))
    return (u * (1 if weight is None else weight.reshape(wide))
            + (0 if bias is None else bias.reshape(wide)))


def group_reference_in_order(x, weight, bias, groups, eps):
    """The reference of `group_affine`."""
    return group_reference(x, groups, weight, bias, eps)


def backward_reference(g, x, w, groups, eps):
    """The reference of `group_backward`."""
    return gradients(group_reference_in_order, 3)(g, x, w, np.zeros_like(w), groups, eps)


GROUPS = ((2, 4, 3), 2), ((2, 2), 1), ((2, 4), 2)


def affine_samples(rng):
    """Samples of `group_affine`."""
    for shape, groups in GROUPS:
        yield (rng.uniform(-2, 2, shape), *rng.uniform(0.5, 2, (2, shape[1])), groups, 0.1), {}


def back_samples(rng):
    """Samples of `group_backward`."""
    for (x, w, b, *options), _ in affine_samples(rng):
        yield (rng.uniform(-1, 1, x.shape), x, w, *options), {}


@stands_for(backward_formula)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    outputs=("g_input", "g_weight", "g_bias"), reference=backward_reference, samples=back_samples,
    kernel=kernels.group_backward)
def group_backward(grad: Tensor, input: Tensor, weight: Tensor, groups, eps):
    """The gradients of `group_affine` for its tensors, by one kernel."""


@differentiated_by(group_formula, group_backward, takes_halves=True)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=group_reference_in_order, samples=affine_samples, kernel=kernels.group_affine)
def group_affine(input: Tensor, weight: Tensor, bias: Tensor, groups, eps):
    """Each group of channels less its mean, over its standard deviation; times weight plus bias."""


# ---- public functions ----------------------------------------------------------------------------

def of_groups(input, groups, weight, bias, eps):
    """`group_affine` with vectors that may be None."""
    channels, dtype = input.shape[1], input.dtype
    weight = ones(channels, dtype=dtype) if weight is None else weight
    bias = zeros(channels, dtype=dtype) if bias is None else bias
    return group_affine(input, weight, bias, groups, float(eps))


def group_samples(rng):
    """Samples of `group_norm`."""
    for shape, groups in (((2, 4, 3), 2), ((2, 2), 1)):
        w, b = rng.uniform(0.5, 2, (2, shape[1]))
        yield (rng.uniform(-2, 2, shape), groups, w, b, 0.1), {}


@composite(tensors=("input", "weight", "bias"), method=False, takes="floating",
           tolerance="reduction", reference=group_reference, samples=group_samples,
           errors=refusals((RuntimeError, (2, 3), 2), (RuntimeError, (3,), 1),
                           (RuntimeError, (2, 4), 2, np.ones(2)), (RuntimeError, (2, 4), 0)),
           rounds_once=False)
def group_norm(input: Tensor, num_groups, weight=None, bias=None, eps=1e-5):
    """Each group of channels less its mean, over its standard deviation; times weight plus bias.

    Shapes: (B, C, *), with weight and bias (C,) -> the same.
    Raises: RuntimeError for channels that the groups do not divide, and other sizes; ValueError
    for groups of one element, which lies nowhere from its mean.
    Source: Wu and He, "Group Normalization", ECCV 2018.
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm: expected at least 2 dims, got {input.ndim}")
    channels = input.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise RuntimeError(f"group_norm: expected the number of channels to be divisible by "
                           f"num_groups, got {channels} channels and num_groups={num_groups}")
    if input.numel() == num_groups:
        raise ValueError("group_norm: expected more than 1 value in a group, got input size "
                         f"{tuple(input.shape)} and num_groups={num_groups}")
    check_vectors("group_norm", channels, weight=weight, bias=bias)
    return of_groups(input, num_groups, weight, bias, eps)


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
                           (RuntimeError, (2, 3, 4), None, None, np.ones(2))), rounds_once=False)
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
        raise ValueError("instance_norm: Expected more than 1 spatial element when training, got "
                         f"input size {tuple(input.shape)}")
    if running_mean is not None or running_var is not None:
        with no_grad():
            dims = tuple(range(2, input.ndim))
            found = input.mean(dims).mean(0), input.var(dims, correction=0).mean(0)
            move_statistics(input[:1], found, running_mean, running_var, momentum)
    input = input if input.is_contiguous() else input.contiguous()
    return of_groups(input, count, weight, bias, eps)


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
    if size < 1:
        raise RuntimeError(f"local_response_norm: size must be positive, got {size}")
    if not input.numel():
        return input
    squares, channels = input * input, input.shape[1]
    reach = [min(n, channels) for n in (size // 2, (size - 1) // 2)]     # outside, all is 0
    ends = [input.new_zeros((input.shape[0], n, *input.shape[2:])) for n in reach]
    padded = cat([ends[0], squares, ends[1]], 1)
    sums = padded.narrow(1, 0, channels)
    for i in range(1, sum(reach) + 1):
        sums = sums + padded.narrow(1, i, channels)
    if input.is_floating_point() or input.is_complex():
        means = sums * (alpha / size)
    else:
        means = sums // size * alpha             # an average pool of integers is one of them
    return input / (means + k) ** beta
