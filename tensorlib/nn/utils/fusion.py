"""Fusion of a layer with the batch normalisation after it, for inference."""

import copy
from typing import TypeVar

from tensorlib import Tensor, ones_like, zeros_like
from tensorlib.nn.modules.batchnorm import BatchNorm
from tensorlib.nn.modules.conv import Convolution
from tensorlib.nn.modules.linear import Linear
from tensorlib.nn.modules.weighted import Weighted
from tensorlib.nn.parameter import Parameter

Layer = TypeVar("Layer", bound=Weighted)


def fuse_conv_bn_eval(conv: Convolution, bn: BatchNorm, transpose: bool = False) -> Convolution:
    """A convolution that gives what `conv` and `bn` give one after the other.

    Both must be in the mode for use. Raises: RuntimeError otherwise, or without running statistics.
    """
    return fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Linear, bn: BatchNorm) -> Linear:
    """A linear layer that gives what `linear` and `bn` give one after the other.

    Both must be in the mode for use. Raises: RuntimeError otherwise, or without running statistics.
    """
    if bn.num_features not in (linear.out_features, 1):
        raise ValueError(f"fuse_linear_bn_eval: the layer gives {linear.out_features} features, "
                         f"the normalisation takes {bn.num_features}")
    return fused(linear, bn, False)


def fused(layer: Layer, bn: BatchNorm, transpose: bool) -> Layer:
    """A copy of a layer, with the normalisation in its weights."""
    if layer.training or bn.training:
        raise RuntimeError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError("Only support fusion for batch norm with tracked stats!")
    found = copy.deepcopy(layer)
    found.weight, found.bias = fuse_conv_bn_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose)
    return found


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
    bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a layer with a batch normalisation after it, as one layer's."""
    before = zeros_like(bn_rm) if conv_b is None else conv_b
    offset = zeros_like(bn_rm) if bn_b is None else bn_b
    scale = (ones_like(bn_rm) if bn_w is None else bn_w) * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = conv_w * scale.reshape(shape)
    bias = (before - bn_rm) * scale + offset
    return (Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
            Parameter(bias.to(conv_w.dtype), before.requires_grad))


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
    bn_w: Tensor, bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a linear layer with a batch normalisation after it."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
