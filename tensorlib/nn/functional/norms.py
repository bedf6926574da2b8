"""Layer, RMS and batch normalisation: one kernel forward, one for each gradient."""

import math
from operator import index as as_int

import numpy as np

from tensorlib import ones, zeros
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import listed
from tensorlib._core.interpreters.foreign import elements_known, is_proxy
from tensorlib._core.layers import group_norm as grouped, norms as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import apart_from_transforms
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.nn.functional.checks import check_optional
from tensorlib.ops.declare import composite, op
from tensorlib.ops.samples import calls, real, reals_of, refusals

# ---- what is normalised --------------------------------------------------------------------------
# Rows: all dims that the weight has, the last ones. Channels: all dims but dim 1.

def normal_dims(ndim, weight_ndim):
    """The dims of rows, over which means are taken."""
    return tuple(range(ndim - weight_ndim, ndim))


def other_dims(ndim, weight_ndim):
    """The dims over which the gradient of a weight of rows is summed."""
    return tuple(range(ndim - weight_ndim))


def channel_dims(ndim):
    """All dims but that of channels."""
    return (0, *range(2, ndim))


def spread(weight, ndim):
    """A vector of channels with the dims that it needs to broadcast."""
    return weight.reshape((-1, *(1,) * (ndim - 2)))


def summed(x, dims):
    """The sums over dims, of which there may be none."""
    return x.sum(dims) if dims else x


def mean(x, dims):
    """The means over dims, which stay; there may be none."""
    return x.mean(dims, keepdim=True) if dims else x


def plain_weight(input, weight_ndim):
    """The weight that changes nothing."""
    return ones(tuple(input.shape[input.ndim - weight_ndim:]), dtype=input.dtype)


def normalised(input, dims, eps, centered):
    """The normalised elements and the factors, by operations of their own."""
    moved = input - mean(input, dims) if centered else input
    factor = (mean(moved * moved, dims) + eps) ** -0.5
    return moved * factor, factor


# ---- the operations ------------------------------------------------------------------------------

def norm_formula(input, weight, bias, eps, centered):
    """`affine_norm` by operations of their own; also its reference."""
    u, _ = normalised(input, normal_dims(input.ndim, weight.ndim), eps, centered)
    return u * weight + bias


def backward_formula(grad, input, weight, eps, centered):
    """`norm_backward` by operations of their own; also its reference."""
    dims = normal_dims(input.ndim, weight.ndim)
    u, factor = normalised(input, dims, eps, centered)
    h = grad * weight
    return factor * (h - (mean(h, dims) if centered else 0) - u * mean(h * u, dims))


def weight_formula(grad, input, ndim, eps, centered):
    """`norm_weight_backward` by operations of their own; also its reference."""
    u, _ = normalised(input, normal_dims(input.ndim, ndim), eps, centered)
    return summed(grad * u, other_dims(input.ndim, ndim))


def in_numpy(formula):
    """A formula on arrays, whose `mean` has another word for `keepdim`; it gives one or several."""
    class Array(np.ndarray):
        def mean(self, dims, keepdim=False):
            return np.mean(self.view(np.ndarray), dims, keepdims=keepdim).view(Array)

    def reference(*args):
        y = formula(*(x.view(Array) if isinstance(x, np.ndarray) else x for x in args))
        return tuple(map(np.asarray, y)) if isinstance(y, tuple) else np.asarray(y)
    return reference


CASES = ((2, 3), (3,)), ((2, 2, 3), (2, 3)), ((0, 3), (3,))


def norm_samples(*others):
    """Samples: tensors of the shape of the input ("x") or of the weight ("w"), then the options."""
    def generate(rng):
        for i, (shape, weight) in enumerate(CASES):
            yield (*(rng.uniform(-2, 2, shape if x == "x" else weight) if isinstance(x, str)
                     else x(weight) for x in others), 0.1, i != 1), {}
    return generate


@stands_for(norm_formula, rows=1)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=in_numpy(norm_formula), samples=norm_samples("x", "w", "w"),
    kernel=kernels.affine_norm)
def affine_norm(input: Tensor, weight: Tensor, bias: Tensor, eps, centered):
    """The elements less their mean, over their standard deviation, times a weight plus a bias.

    Over the dims of the weight, the last ones. centered: False for a mean of 0.
    """


@stands_for(backward_formula, rows=2)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=in_numpy(backward_formula), samples=norm_samples("x", "x", "w"),
    kernel=kernels.norm_backward)
def norm_backward(grad: Tensor, input: Tensor, weight: Tensor, eps, centered):
    """The gradient of `affine_norm` for its input."""


@stands_for(weight_formula)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=in_numpy(weight_formula), samples=norm_samples("x", "x", len),
    kernel=kernels.norm_weight_backward)
def norm_weight_backward(grad: Tensor, input: Tensor, ndim, eps, centered):
    """The gradient of `affine_norm` for its weight, which has `ndim` dims."""


# ---- their derivatives ---------------------------------------------------------------------------
# With u the normalised input and r the factor, the derivative of u is the symmetric map
# J(h) = r * (h - mean(h) - u * mean(h * u)). That of J(h) in the direction k, `curvature`, is
# symmetric in h and k.

def slope(h, input, ndim, eps, centered):
    """J(h)"""
    return norm_backward(h, input, plain_weight(input, ndim), eps, centered)


def curvature(h, k, input, ndim, eps, centered):
    """-r * (u * mean(k * J(h)) + J(h) * mean(k * u) + J(k) * mean(h * u))"""
    dims = normal_dims(input.ndim, ndim)
    u, factor = normalised(input, dims, eps, centered)
    along_h, along_k = (slope(x, input, ndim, eps, centered) for x in (h, k))
    return -factor * (u * mean(k * along_h, dims) + along_h * mean(k * u, dims)
                      + along_k * mean(h * u, dims))


@affine_norm.vjp("input")
def affine_norm_vjp_input(g, input, weight, eps, centered):
    """J(g * weight)"""
    return norm_backward(g, input, weight, eps, centered)


@affine_norm.vjp("weight")
def affine_norm_vjp_weight(g, input, weight_shape, eps, centered):
    """sum(g * u)"""
    return norm_weight_backward(g, input, len(weight_shape), eps, centered)


@affine_norm.vjp("bias")
def affine_norm_vjp_bias(g, bias_shape):
    """g summed over the dims that the bias lacks."""
    return summed(g, other_dims(g.ndim, len(bias_shape)))


@affine_norm.jvp
def affine_norm_jvp(d_input, d_weight, d_bias, input, weight, eps, centered):
    """J(d_input) * weight + u * d_weight + d_bias"""
    u, _ = normalised(input, normal_dims(input.ndim, weight.ndim), eps, centered)
    moved = slope(d_input, input, weight.ndim, eps, centered)
    return moved * weight + u * d_weight + d_bias


@norm_backward.vjp("grad")
def norm_backward_vjp_grad(g, input, weight, eps, centered):
    """J(g) * weight, as J is symmetric."""
    return slope(g, input, weight.ndim, eps, centered) * weight


@norm_backward.vjp("input")
def norm_backward_vjp_input(g, grad, input, weight, eps, centered):
    """The curvature of J(grad * weight) in the direction g, as it is symmetric."""
    return curvature(grad * weight, g, input, weight.ndim, eps, centered)


@norm_backward.vjp("weight")
def norm_backward_vjp_weight(g, grad, input, weight_shape, eps, centered):
    """sum(grad * J(g)), as J is symmetric."""
    ndim = len(weight_shape)
    moved = slope(g, input, ndim, eps, centered)
    return summed(grad * moved, other_dims(input.ndim, ndim))


@norm_backward.jvp
def norm_backward_jvp(d_grad, d_input, d_weight, grad, input, weight, eps, centered):
    """J(d_grad * weight + grad * d_weight), and the curvature of J(grad * weight) along d_input."""
    rest = weight.ndim, eps, centered
    return (slope(d_grad * weight + grad * d_weight, input, *rest)
            + curvature(grad * weight, d_input, input, *rest))


@norm_weight_backward.vjp("grad")
def norm_weight_backward_vjp_grad(g, input, ndim, eps, centered):
    """u * g, of sum(grad * u)."""
    return normalised(input, normal_dims(input.ndim, ndim), eps, centered)[0] * g


@norm_weight_backward.vjp("input")
def norm_weight_backward_vjp_input(g, grad, input, eps, centered):
    """J(grad * g), of sum(grad * u)."""
    return norm_backward(grad, input, g, eps, centered)


@norm_weight_backward.jvp
def norm_weight_backward_jvp(d_grad, d_input, grad, input, ndim, eps, centered):
    """sum(d_grad * u + grad * J(d_input))"""
    rest = ndim, eps, centered
    moved = slope(d_input, input, *rest)
    return (norm_weight_backward(d_grad, input, *rest)
            + summed(grad * moved, other_dims(input.ndim, ndim)))


# ---- of rows -------------------------------------------------------------------------------------

def rows_of(name, input, normalized_shape, weight, bias):
    """The weight and the bias of rows, made where they are not given. Raises: RuntimeError."""
    if isinstance(weight, Tensor) and isinstance(bias, Tensor) and weight.ndim and (
            weight.shape == bias.shape == input.shape[-weight.ndim:] == normalized_shape):
        return weight, bias      # as layers call it: the checks take as long as a small kernel
    check_optional(name, weight=weight, bias=bias)
    try:
        several = hasattr(normalized_shape, "__iter__")
        shape = tuple(map(as_int, listed(normalized_shape) if several else (normalized_shape,)))
    except TypeError:
        raise TypeError(
            f"{name}: normalized_shape must be ints, got {normalized_shape!r}") from None
    if not shape or tuple(input.shape[max(0, input.ndim - len(shape)):]) != shape:
        raise RuntimeError(f"{name}: given normalized_shape={list(shape)}, expected an input that "
                           f"ends with these sizes, got {tuple(input.shape)}")
    for what, given_one in (("weight", weight), ("bias", bias)):
        if given_one is not None and tuple(given_one.shape) != shape:
            raise RuntimeError(f"{name}: expected {what} to be of the shape {shape}, got "
                               f"{tuple(given_one.shape)}")
    return (ones(shape, dtype=input.dtype) if weight is None else weight,
            zeros(shape, dtype=input.dtype) if bias is None else bias)


def with_options(*cases):
    """Samples: a shape, the normalised shape, the shapes of tensors or None, and keywords."""
    return calls(*cases, arguments=lambda shape, size, tensors, keywords: (
        real(*shape), size, *reals_of(tensors, 0.5, 2.0), keywords))


def layer_reference(x, shape, weight=None, bias=None, eps=1e-5):
    """The reference of `layer_norm`."""
    dims = tuple(range(x.ndim - len(np.atleast_1d(shape)), x.ndim))
    u = (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)
    return u * (1 if weight is None else weight) + (0 if bias is None else bias)


BAD_ROWS = refusals((RuntimeError, (2, 3), (2,)), (RuntimeError, (2, 3), ()),
                    (RuntimeError, (3,), (2, 3)), (TypeError, (3,), "3"))


@composite(tensors=("input", "weight", "bias"), method=False, takes="floating",
           tolerance="reduction", reference=layer_reference, errors=BAD_ROWS,
           samples=with_options(
               ((2, 3), (3,), ((3,), (3,)), {}), ((0, 3), 3, ((3,), (3,)), {}),
               ((2, 2, 3), (2, 3), ((2, 3), (2, 3)), {"eps": 0.1})), rounds_once=False)
def layer_norm(input: Tensor, normalized_shape, weight=None, bias=None, eps=1e-5,
               cudnn_enable=True):
    """Each row less its mean, over its standard deviation, times `weight` plus `bias`.

    Shapes: (*, *normalized_shape) -> the same; weight and bias (*normalized_shape).
    Raises: RuntimeError for an input or a weight of another shape and for integers, TypeError.
    Source: Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450 (2016).
    """
    weight, bias = rows_of("layer_norm", input, normalized_shape, weight, bias)
    return affine_norm(input, weight, bias, float(eps), True)


def rms_reference(x, shape, weight=None, eps=None):
    """The reference of `rms_norm`."""
    dims = tuple(range(x.ndim - len(np.atleast_1d(shape)), x.ndim))
    eps = 1e-7 if eps is None else eps
    return x / np.sqrt(np.square(x).mean(dims, keepdims=True) + eps) * (
        1 if weight is None else weight)


@composite(tensors=("input", "weight"), method=False, takes="floating", tolerance="reduction",
           reference=rms_reference, errors=BAD_ROWS,
           samples=with_options(((2, 3), (3,), ((3,),), {"eps": 0.1}),
                                ((2, 2, 3), (2, 3), ((2, 3),), {"eps": 1e-5})), rounds_once=False,
           complex=True)
def rms_norm(input: Tensor, normalized_shape, weight=None, eps=None):
    """Each row over its root mean square, times `weight`.

    eps: by default the distance from 1 to the next number of the dtype that is computed in.
    Of complex numbers the mean is that of their squares, not of their absolute values.
    Shapes: (*, *normalized_shape) -> the same; weight (*normalized_shape).
    Raises: RuntimeError for an input or a weight of another shape and for integers, TypeError.
    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.
    """
    weight, bias = rows_of("rms_norm", input, normalized_shape, weight, None)
    if eps is None:
        eps = 2.0 ** -52 if input.dtype.name in ("float64", "complex128") else 2.0 ** -23
    if input.is_complex():
        dims = normal_dims(input.ndim, weight.ndim)
        return normalised(input, dims, float(eps), False)[0] * weight
    return affine_norm(input, weight, bias, float(eps), False)


# ---- of channels ---------------------------------------------------------------------------------

def channel_norm_formula(input, weight, bias, eps, statistics=None):
    """`channel_norm` by operations of their own; also its reference."""
    u, _ = normalised(input, channel_dims(input.ndim), eps, True)
    return channel_formula(u, weight, bias)


def channel_norm_backward_formula(grad, input, weight, eps):
    """`channel_norm_backward` by operations of their own; also its reference."""
    dims = channel_dims(input.ndim)
    u, factor = normalised(input, dims, eps, True)
    h, along = grad * spread(weight, input.ndim), grad * u
    return (factor * (h - mean(h, dims) - u * mean(h * u, dims)), along.sum(dims), grad.sum(dims))


def channel_formula(input, weight, bias):
    """`channel_affine` by operations of their own; also its reference."""
    return input * spread(weight, input.ndim) + spread(bias, input.ndim)


def channel_backward_formula(grad, input, weight):
    """`channel_backward` by operations of their own; also its reference."""
    dims = channel_dims(input.ndim)
    return grad * spread(weight, input.ndim), (grad * input).sum(dims), grad.sum(dims)


def channel_samples(*others, options=()):
    """Samples: tensors of the shape of the input ("x") or of the weight ("w")."""
    def generate(rng):
        for shape in ((3, 2), (2, 2, 3), (0, 3))[:2 if options else 3]:
            arrays = (rng.uniform(-2, 2, shape if x == "x" else shape[1]) for x in others)
            yield (*arrays, *options), {}
    return generate


@stands_for(channel_norm_backward_formula)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    outputs=("g_input", "g_weight", "g_bias"), reference=in_numpy(channel_norm_backward_formula),
    samples=channel_samples("x", "x", "w", options=(0.1,)), kernel=grouped.channel_norm_backward)
def channel_norm_backward(grad: Tensor, input: Tensor, weight: Tensor, eps):
    """The gradients of `channel_norm` for its tensors, by one kernel."""


@differentiated_by(channel_norm_formula, channel_norm_backward, takes_halves=True)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=in_numpy(channel_norm_formula),
    samples=channel_samples("x", "w", "w", options=(0.1,)))
def channel_norm(input: Tensor, weight: Tensor, bias: Tensor, eps, statistics=()):
    """Each element less the mean of its channel, over the standard deviation; times weight plus
    bias. statistics: what is filled with the means and the variances."""
    return grouped.channel_norm(input, weight, bias, eps, *statistics)


@stands_for(channel_backward_formula)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    outputs=("g_input", "g_weight", "g_bias"), reference=channel_backward_formula,
    samples=channel_samples("x", "x", "w"), kernel=grouped.channel_backward)
def channel_backward(grad: Tensor, input: Tensor, weight: Tensor):
    """The gradients of `channel_affine` for its tensors, by one kernel."""


@differentiated_by(channel_formula, channel_backward, takes_halves=True)
@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=channel_formula, samples=channel_samples("x", "w", "w"),
    kernel=grouped.channel_affine)
def channel_affine(input: Tensor, weight: Tensor, bias: Tensor):
    """Each element times the weight plus the bias of its channel."""


def channel_count(name, input, least):
    """The number of channels. Raises: ValueError for too few dims."""
    if input.ndim < least:
        raise ValueError(f"{name}: expects an input with at least {least} dims, got {input.ndim}")
    return input.shape[1]


def check_vectors(name, channels, **vectors):
    """Raises RuntimeError for a vector that has not one element for each channel."""
    check_optional(name, **vectors)
    for what, x in vectors.items():
        if x is not None and tuple(x.shape) != (channels,):
            raise RuntimeError(f"{name}: {what} should contain {channels} elements, got shape "
                               f"{tuple(x.shape)}")


def refuse_one_value(name, input):
    """Raises ValueError where a channel has one value, which lies nowhere from its mean."""
    if input.shape[0] * math.prod(input.shape[2:]) == 1:
        raise ValueError(f"{name}: Expected more than 1 value per channel when training, got input "
                         f"size {tuple(input.shape)}")


def batch_reference(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """The reference of `batch_norm`."""
    dims, wide = (0, *range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
    if training:
        mean, var = x.mean(dims), x.var(dims)
    u = (x - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + eps)
    return (u * (1 if weight is None else weight.reshape(wide))
            + (0 if bias is None else bias.reshape(wide)))


def batch_samples(rng):
    """Samples of `batch_norm` in training: running statistics would be written."""
    for shape in ((3, 2), (2, 2, 3)):
        x, w, b = rng.uniform(-2, 2, shape), rng.uniform(0.5, 2, 2), rng.uniform(-1, 1, 2)
        yield (x, None, None, w, b), {"training": True, "eps": 0.1}


@composite(tensors=("input", "weight", "bias"), method=False, public=False, takes="floating",
           tolerance="reduction", reference=batch_reference, samples=batch_samples,
           errors=refusals((RuntimeError, (3, 2), np.ones(3), np.ones(3)),
                           (ValueError, (3,), np.ones(3), np.ones(3)), (RuntimeError, (3, 2)),
                           (ValueError, (1, 2), None, None, None, None, True)), rounds_once=False)
def batch_norm(input: Tensor, running_mean=None, running_var=None, weight=None, bias=None,
               training=False, momentum=0.1, eps=1e-5):
    """Each channel less its mean, over its standard deviation, times `weight` plus `bias`.

    training: with the mean and variance of the batch, towards which the running ones, where they
    are given, are moved by the part `momentum`; else with the running ones.
    Shapes: (B, C, *) -> the same; the others (C,).
    Raises: RuntimeError for vectors of another size, and where there are no running statistics to
    use; ValueError for an input of less than 2 dims, and in training for one value in each channel
    and an `eps` that is not positive.
    Source: Ioffe and Szegedy, "Batch Normalization", ICML 2015.
    """
    count = channel_count("batch_norm", input, 2)
    check_vectors("batch_norm", count, running_mean=running_mean, running_var=running_var,
                  weight=weight, bias=bias)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("batch_norm: running_mean and running_var must be given unless training")
    weight = ones(count, dtype=input.dtype) if weight is None else weight
    bias = zeros(count, dtype=input.dtype) if bias is None else bias
    if not training:
        scale = weight * (running_var + eps).rsqrt()
        shift = bias - running_mean * scale
        return channel_affine(input, scale, shift)
    if not eps > 0:
        raise ValueError(f"batch_norm: eps must be positive in training, got {eps}")
    refuse_one_value("batch_norm", input)
    if running_mean is None and running_var is None:
        return channel_norm(input, weight, bias, float(eps))
    wide = BY_NAME["float64" if input.dtype.name == "float64" else "float32"]
    if not elements_known(input, weight, bias):        # of a batch, no kernel fills statistics
        out = channel_norm(input, weight, bias, float(eps))
        with apart_from_transforms():
            x, dims = input.to(wide), channel_dims(input.ndim)
            found = x.mean(dims), x.var(dims, correction=0)
    else:
        found = zeros(count, dtype=wide), zeros(count, dtype=wide)
        out = channel_norm(input, weight, bias, float(eps), found)
    move_statistics(input, found, running_mean, running_var, momentum)
    return out


def move_statistics(input, found, running_mean, running_var, momentum):
    """Moves the running statistics towards those of a batch.

    They are no part of the result, so that they may be written where a function is transformed,
    too. Raises: RuntimeError for those that all examples of a `vmap` share, where the input differs
    between them; then they are as they were.
    """
    n = math.prod(input.shape) // input.shape[1] if input.shape[1] else 0
    if n == 0:
        return                                     # as in PyTorch, nothing is known of a channel
    for running, new in zip((running_mean, running_var), found):
        if running is not None and is_proxy(new) and not is_proxy(running):
            raise RuntimeError(
                "batch_norm: the input differs between the examples of a vmap, which share the "
                "running statistics; give each its own, or none: track_running_stats=False or "
                "func.replace_all_batch_norm_modules_")
    with apart_from_transforms():
        if running_mean is not None:
            running_mean.lerp_(found[0].to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = found[1] * (n / (n - 1) if n > 1 else 1.0)
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
