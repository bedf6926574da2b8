"""Gamma variates with the gradient of their concentration."""

import tensorlib as tl
from tensorlib.autograd import Function
from tensorlib.autograd.function import once_differentiable
from tensorlib.ops.pointwise.special import gamma_gradient
from tensorlib.ops.create.variates import numbers


class StandardGamma(Function):
    """Gamma numbers of scale 1: a shape moves its number at the quantile that this has."""

    @staticmethod
    def forward(ctx, shape):
        wide = numbers("standard_gamma", "gamma", shape).to(shape.dtype)
        drawn = wide.clamp(min=tl.finfo(shape.dtype).tiny)
        ctx.save_for_backward(shape, drawn)
        return drawn

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        shape, drawn = ctx.saved_tensors
        return g * gamma_gradient(shape, drawn)


class LogGamma(Function):
    """The logarithms of gamma numbers of scale 1, which small shapes do not bring to 0."""

    @staticmethod
    def forward(ctx, shape):
        drawn = numbers("log_gamma", "log_gamma", shape)
        ctx.save_for_backward(shape, drawn)
        return drawn.to(shape.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        shape, drawn = ctx.saved_tensors
        number = drawn.exp()
        # of numbers near 0 the cumulative probability is x**a / gamma(a + 1)
        small = ((shape + 1).digamma() - drawn) / shape
        moved = tl.where(drawn < -30, small, gamma_gradient(shape.double(), number) / number)
        return g * moved.to(g.dtype)


def standard_gamma(shape):
    """Gamma numbers of these shapes and of scale 1, one for each element.

    Gradient: implicit; its own is refused.
    Source: Figurnov, Mohamed and Mnih, "Implicit Reparameterization Gradients", NeurIPS 2018.
    """
    return StandardGamma.apply(shape)


def log_gamma(shape):
    """The logarithms of such numbers."""
    return LogGamma.apply(shape)
