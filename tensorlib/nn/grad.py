"""Gradients of convolutions for their input and their weight, as functions of their own.

>>> from tensorlib.nn import grad
>>> grad.conv1d_input((1, 1, 3), tensorlib.ones(1, 1, 2), tensorlib.ones(1, 1, 2))
tensor([[[1., 2., 1.]]])
"""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, empty
from tensorlib.nn.functional.convolution import conv_plan, convolve_input, convolve_weight

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
           "conv3d_weight"]


def options_of(name: str, n: int, input: Tensor, weight: Tensor, grad_output: Tensor,
               *sizes: Any) -> Any:
    """The options of a convolution that gives what has this gradient. Raises: RuntimeError."""
    out, options = conv_plan(name, n, input, weight, *sizes)
    wanted = (input.shape[0], weight.shape[0], *out)
    if tuple(grad_output.shape) != wanted:
        raise RuntimeError(f"{name}: expected grad_output of shape {wanted}, got "
                           f"{tuple(grad_output.shape)}")
    return options


def of_input(n: int) -> Callable[..., Tensor]:
    """The gradient of a convolution over n dims for its input."""
    def gradient(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
        input = empty(tuple(input_size), device="meta")
        options = options_of(gradient.__name__, n, input, weight, grad_output, stride, padding,
                             dilation, groups)
        found: Tensor = convolve_input(grad_output, weight, tuple(input.shape)[2:], options)
        return found
    return named(gradient, f"conv{n}d_input", f"""The gradient of `conv{n}d` for its input.

    Shapes: {SHAPES}
    Raises: RuntimeError for sizes that do not fit.
    """)


def of_weight(n: int) -> Callable[..., Tensor]:
    """The gradient of a convolution over n dims for its weight."""
    def gradient(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
        weight = empty(tuple(weight_size), device="meta")
        options = options_of(gradient.__name__, n, input, weight, grad_output, stride, padding,
                             dilation, groups)
        found: Tensor = convolve_weight(grad_output, input, tuple(weight.shape)[2:], options)
        return found
    return named(gradient, f"conv{n}d_weight", f"""The gradient of `conv{n}d` for its weight.

    Shapes: {SHAPES}
    Raises: RuntimeError for sizes that do not fit.
    """)


SHAPES = "those of the convolution, and grad_output has that of its result."


def named(function: Callable[..., Tensor], name: str, text: str) -> Callable[..., Tensor]:
    """The function under this name, with this docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


conv1d_input, conv2d_input, conv3d_input = of_input(1), of_input(2), of_input(3)
conv1d_weight, conv2d_weight, conv3d_weight = of_weight(1), of_weight(2), of_weight(3)
