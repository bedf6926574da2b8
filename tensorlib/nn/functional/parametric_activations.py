"""Activations with parameters (slopes, thresholds, bounds), which may be tensors that broadcast."""

import numpy as np

from tensorlib import clamp
from tensorlib._core.apply.halves import are_cast
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.create.creation import filling
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.activations import INPLACE, activation, made, take_in_place
from tensorlib.nn.functional.samples import with_numbers
from tensorlib.ops.samples import reals, refusals

nan = float("nan")
FLOAT32, FLOAT64 = BY_NAME["float32"], BY_NAME["float64"]


def slope_given(input: Tensor, negative_slope=0.01, inplace=False):
    """The `convert` of `leaky_relu`."""
    return [INPLACE["leaky_relu"], input, negative_slope] if inplace else (input, negative_slope)


@activation(reference=lambda x, slope: np.where(x > 0, x, x * slope),
            samples=with_numbers(0.1, 3, 0.2), edges=(0.0, -0.0, 1.0, -2.0, nan),
            convert=slope_given)
def leaky_relu(input, negative_slope):
    """Each element above 0, `negative_slope` times the others.

    Gradient: `negative_slope` at 0 and for NaN.
    """


@leaky_relu.deriv("input", fused="leaky_relu_backward")
def leaky_relu_deriv_input(input, negative_slope):
    """1 where x > 0, the slope elsewhere, at 0 and NaN too."""
    return negative_slope.where((input > 0).logical_not(), 1)


@leaky_relu.deriv("negative_slope")
def leaky_relu_deriv_slope(input):
    """d/ds (s min(x, 0)) = min(x, 0)"""
    return input.where((input > 0).logical_not(), 0)


def alpha_given(name):
    """The `convert` of `elu` and `celu`."""
    def convert(input: Tensor, alpha=1.0, inplace=False):
        if name == "celu" and not isinstance(alpha, Tensor) and alpha == 0:
            raise RuntimeError("celu: alpha must not be 0")
        return [INPLACE[name], input, alpha] if inplace else (input, alpha)
    return convert


@activation(reference=lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x))),
            samples=with_numbers(0.1, 3, 1.3), edges=(0.0, -0.0, 1.0, -2.0, nan),
            convert=alpha_given("elu"))
def elu(input, alpha):
    """Each element above 0, alpha * (exp(x) - 1) of the others.

    Gradient: `alpha` at 0.
    Source: Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by
    Exponential Linear Units", arXiv:1511.07289 (2015).
    """


@elu.deriv("input")
def elu_deriv_input(input, alpha):
    """alpha exp(x) up to 0, and 1 above."""
    return ((-(-input).relu()).exp() * alpha).where(input <= 0, 1)     # whose own is 0 at 0


@elu.deriv("alpha")
def elu_deriv_alpha(input):
    """exp(x) - 1 up to 0, and 0 above."""
    return input.expm1().where(input <= 0, 0)


@activation(reference=lambda x, alpha: np.where(
                x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha)),
            samples=with_numbers(0.1, 3, 1.3), edges=(1.0, -2.0, 0.5, nan),
            convert=alpha_given("celu"), public=True, method=True)
def celu(input, alpha):
    """Each element above 0, alpha * (exp(x / alpha) - 1) of the others.

    Gradient: 1 at 0. Raises: RuntimeError for an alpha of 0.
    Source: Barron, "Continuously Differentiable Exponential Linear Units", arXiv:1704.07483 (2017).
    """


@celu.deriv("input")
def celu_deriv_input(input, alpha):
    """exp(x / alpha) up to 0, and 1 above."""
    return (-(-input).relu() / alpha).exp().where(input <= 0, 1)


@celu.deriv("alpha")
def celu_deriv_alpha(input, alpha):
    """Of alpha (exp(x / alpha) - 1) up to 0."""
    ratio = input / alpha
    return (ratio.expm1() - ratio * ratio.exp()).where(input <= 0, 0)


def border_given(name):
    """The `convert` of `hardshrink` and `softshrink`."""
    def convert(input: Tensor, lambd=0.5):
        if name == "softshrink" and not isinstance(lambd, Tensor) and lambd < 0:
            raise RuntimeError(f"softshrink: lambd must be 0 or more, got {lambd}")
        return input, lambd
    return convert


@activation(reference=lambda x, lambd: np.where((x >= -lambd) & (x <= lambd), 0, x),
            samples=with_numbers(0.1, 3, 0.5, clear=0.5), edges=(0.0, 1.0, -1.0, -2.0, nan),
            convert=border_given("hardshrink"), public=True, method=True, slopes={"lambd": 0})
def hardshrink(input, lambd):
    """0 for each element from -lambd to lambd, and the others as they are."""


@hardshrink.deriv("input")
def hardshrink_deriv_input(g, input, lambd):
    """1 outside of [-lambd, lambd], and for NaN."""
    return g.where((input.abs() <= lambd).logical_not(), 0)


def shrunk(x, lambd):
    """The reference of `softshrink`."""
    return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0))


@activation(reference=shrunk, samples=with_numbers(0.1, 3, 0.5, clear=0.5),
            edges=(0.0, 1.0, -1.0, 2.0, nan), convert=border_given("softshrink"))
def softshrink(input, lambd):
    """Each element brought nearer to 0 by `lambd`, and 0 where it is nearer than that.

    Raises: RuntimeError for a negative `lambd`.
    """


@softshrink.deriv("input")
def softshrink_deriv_input(g, input, lambd):
    """1 outside of [-lambd, lambd], and for NaN."""
    return g.where((input.abs() <= lambd).logical_not(), 0)


@softshrink.deriv("lambd")
def softshrink_deriv_lambd(out):
    """The result, where it is not 0, moves towards 0."""
    return -out.sign()


def beta_given(input: Tensor, beta=1.0, threshold=20.0):
    """The `convert` of `softplus`."""
    return input, beta, threshold


@activation(reference=lambda x, beta, threshold: np.where(
                x * beta > threshold, x, np.logaddexp(0 * x, x * beta) / beta),
            samples=with_numbers(0.1, 3, 1.5, 20.0),
            edges=(1.0, -2.0, 40.0, nan), convert=beta_given, slopes={"threshold": 0})
def softplus(input, beta, threshold):
    """log(1 + exp(beta * x)) / beta for each element; x where beta * x is above `threshold`."""


@softplus.deriv("input")
def softplus_deriv_input(input, beta, threshold):
    """sigmoid(beta x) up to the threshold, and 1 above."""
    product = input * beta
    return product.sigmoid().where((product <= threshold).logical_or(product != product), 1)


@softplus.deriv("beta")
def softplus_deriv_beta(input, out, beta, threshold):
    """Of log(1 + exp(beta x)) / beta up to the threshold."""
    product = input * beta
    return ((input * product.sigmoid() - out) / beta).where(product <= threshold, 0)


def of_integers(input):
    """Whether a tensor has integers, which keep their dtype beside numbers that are none."""
    return not input.is_floating_point() and input.dtype.name != "bool"


def in_dtype(number):
    """A number as one that integers take."""
    return number if isinstance(number, Tensor) else int(number)


def threshold_given(input: Tensor, threshold, value, inplace=False):
    """The `convert` of `threshold`. Raises: OutOfRangeError for what a narrow dtype can't hold."""
    if of_integers(input):
        threshold, value = in_dtype(threshold), in_dtype(value)
    if input.dtype is not FLOAT32 and input.dtype is not FLOAT64:
        for number in (threshold, value):
            if not (isinstance(number, Tensor) or 0 <= number <= 127):     # which any dtype holds
                filling("threshold", number, input.dtype)
    return ([INPLACE["threshold"], input, threshold, value] if inplace
            else (input, threshold, value))


@activation(reference=lambda x, threshold, value: np.where(x <= threshold, value, x),
            samples=with_numbers(0.1, 3, 0.0, 0.6), edges=(0.0, 1.0, -2.0, nan),
            takes="integer floating", convert=threshold_given, public=True, method=True,
             slopes={"threshold": 0})
def threshold(input, threshold, value):
    """Each element above `threshold`, and `value` in the place of the others."""


@threshold.deriv("input")
def threshold_deriv_input(g, input, threshold):
    """1 above the threshold, and for NaN."""
    return g.where((input <= threshold).logical_not(), 0)


@threshold.deriv("value")
def threshold_deriv_value(g, input, threshold):
    """g where the value was put"""
    return g.where(input <= threshold, 0)


def bounds_given(input: Tensor, min_val=-1.0, max_val=1.0, inplace=False):
    """The `convert` of `hardtanh`."""
    if not (isinstance(min_val, Tensor) or isinstance(max_val, Tensor)) and min_val > max_val:
        raise ValueError(f"hardtanh: min_val must not be above max_val, got {min_val}, {max_val}")
    if of_integers(input):
        return [Tensor.clamp_ if inplace else clamp, input, in_dtype(min_val), in_dtype(max_val)]
    return ([INPLACE["hardtanh"], input, min_val, max_val] if inplace
            else (input, min_val, max_val))


@activation(reference=lambda x, low, high: np.minimum(np.where(x < low, low, x), high),
            samples=with_numbers(0.1, 3, -1.0, 2.0, clear=2.0), edges=(0.0, 1.0, -2.0),
            takes="integer floating", convert=bounds_given)
def hardtanh(input, min_val, max_val):
    """Each element between two bounds.

    Gradient: 1 between the bounds and for NaN, 0 on the bounds and beyond.
    Raises: ValueError where the first bound is above the second.
    """


@hardtanh.deriv("input")
def hardtanh_deriv_input(g, input, min_val, max_val):
    """1 between the bounds, and for NaN."""
    return g.masked_fill((input <= min_val).logical_or(input >= max_val), 0)


@hardtanh.deriv("min_val")
def hardtanh_deriv_min(g, input, min_val, max_val):
    """1 where the lower bound is the result, 0 at the bound."""
    return g.where((input < min_val).logical_and(min_val <= max_val), 0)


@hardtanh.deriv("max_val")
def hardtanh_deriv_max(g, input, min_val, max_val):
    """1 where the upper bound is the result, as everywhere if the bounds are crossed."""
    return g.where((input > max_val).logical_or(min_val > max_val), 0)


take_in_place(leaky_relu, elu, celu, threshold, hardtanh)
leaky_relu_, elu_, celu_, threshold_, hardtanh_ = (
    function.inplace for function in (leaky_relu, elu, celu, threshold, hardtanh))


# ---- made of these -------------------------------------------------------------------------------

@made(reference=lambda x, inplace=False: np.clip(x, 0, 6), samples=reals(0.1, 5.9))
def relu6(input: Tensor, inplace=False):
    """Each element between 0 and 6: `hardtanh`.

    Gradient: 1 between 0 and 6, else 0.
    """
    if not input.is_floating_point():
        return input.clamp_(0, 6) if inplace else input.clamp(0, 6)
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_by_channel(x, weight):
    """The reference of `prelu`."""
    weight = weight.reshape((-1, *(1,) * (x.ndim - 2)) if weight.size > 1 else ())
    return np.where(x > 0, x, x * weight)


@made(public=True, method=True, tensors=("input", "weight"), reference=leaky_by_channel,
      samples=lambda rng: (((rng.uniform(0.1, 2, shape) * rng.choice((-1, 1), shape),
                             rng.uniform(0, 1, size)), {})
                           for shape, size in (((2, 3), 3), ((2, 3, 2), 3), ((4,), 1), ((2, 3), 1),
                                               ((), 1))),
      errors=refusals((RuntimeError, (2, 3), np.ones(2)), (RuntimeError, (2, 3), np.ones((1, 3))),
                      (RuntimeError, (), np.ones(2))))
def prelu(input: Tensor, weight: Tensor):
    """Each element above 0, and the others times a weight: one for all, or one for each channel.

    Shapes: (B, C, *), (C,) -> (B, C, *), or any with (1,) or ().
    Raises: RuntimeError for another number of weights, TypeError.
    Source: He et al., "Delving Deep into Rectifiers", arXiv:1502.01852 (2015).
    """
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: weight must have at most one dim, got {weight.ndim}")
    if weight.dtype != input.dtype and not are_cast(input, weight):
        raise RuntimeError(f"prelu: input is {input.dtype}, but weight {weight.dtype}")
    count = weight.numel()
    if count == 1:
        return leaky_relu(input, weight.reshape(()))
    channels = input.shape[1] if input.ndim > 1 else 1
    if input.ndim == 0 or count != channels:
        raise RuntimeError(f"prelu: input of shape {tuple(input.shape)} has {channels} channels, "
                           f"but weight {count} elements")
    return leaky_relu(input, weight.reshape(count, *(1,) * (input.ndim - 2)))
