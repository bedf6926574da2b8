"""Activations without parameters: each is one loop, and its gradient a loop or a tile program."""

from functools import partial

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import wrap
from tensorlib._core.base.warned import warn_of
from tensorlib._core.layers import glu as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib._core.tiles.loops import add_loops
from tensorlib.nn.functional.fused import differentiated_by, gradients_of, stands_for
from tensorlib.nn.functional.samples import signed
from tensorlib.ops.declare import FUNCTIONS, composite, elementwise, offered, op
from tensorlib.ops.pointwise.unary import erf as _erf
from tensorlib.ops.pointwise.unary import relu as _relu
from tensorlib.ops.reduce.softmax import log_softmax as _log_softmax
from tensorlib.ops.reduce.softmax import softmax as _softmax
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import given, in_complex, reals, refusals, with_gradients

add_loops("activations")

inf, nan = float("inf"), float("nan")
EDGES = (0.0, -0.0, 1.0, -1.0, 40.0, -40.0, inf, nan)
ALL = (*EDGES, -inf)


def activation(public=False, method=False, **declared):
    """Declares an activation, which takes floating dtypes alone unless `takes` has others."""
    return elementwise(public=public, method=method, inplace=False,
                       factors=("alpha", "beta", "lambd", "negative_slope", "threshold"),
                       **{"takes": "floating", **declared})


def made(public=False, method=False, **declared):
    """Declares an activation that is made of operations."""
    return composite(public=public, method=method, takes="floating", **declared)


def logistic(x):
    """1 / (1 + exp(-x)), for references."""
    return 1 / (1 + np.exp(-x))


# ---- of one tensor -------------------------------------------------------------------------------

@partial(offered, of_one=_relu)
def relu(input, inplace=False):
    """The larger of each element and 0: `tensorlib.relu`, or with `inplace` its in-place form."""
    return _relu.inplace(input) if inplace else _relu(input)


def normal_cdf(x):
    """The distribution function of the normal distribution, for references."""
    erf = np.vectorize(FUNCTIONS["erf"].op.testing["reference"], otypes=[float])
    return 0.5 * (1 + erf(np.asarray(x, float) / np.sqrt(2)))


def approximated(input: Tensor, approximate="none"):
    """The `convert` of `gelu`."""
    if approximate == "tanh":
        return [gelu_tanh, input]
    if approximate != "none":
        raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return (input,)


@activation(reference=lambda x: x * normal_cdf(x), samples=reals(-3, 3), edges=EDGES,
            convert=approximated)
def gelu(input):
    """x * Phi(x) for each element, Phi the distribution function of the normal distribution.

    approximate: "tanh" for x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))).
    Raises: RuntimeError for integers and for another `approximate`.
    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415 (2016).
    """


@gelu.deriv(fused="gelu_backward")
def gelu_deriv(input):
    """P(x) + x p(x), with the normal distribution's function P and density p."""
    density = (input * input * -0.5).exp() * 0.3989422804014327       # 1 / sqrt(2 pi)
    return _erf(input * 0.7071067811865476) * 0.5 + 0.5 + input * density


@activation(reference=lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
            samples=reals(-3, 3), edges=EDGES)
def gelu_tanh(input):
    """`gelu` by the hyperbolic tangent, see there."""


@gelu_tanh.deriv(fused="gelu_tanh_backward")
def gelu_tanh_deriv(input):
    """(1 + t) / 2 + x / 2 (1 - t^2) u' with t = tanh(u), u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    square = input * input
    t = (input * (square * 0.035677408136300125 + 0.7978845608028654)).tanh()
    slope = square * (3 * 0.035677408136300125) + 0.7978845608028654
    return (t + 1) * 0.5 + input * 0.5 * (1 - t * t) * slope


def in_place(function):
    """The `convert` of an activation of one tensor, which may be overwritten."""
    def convert(input: Tensor, inplace=False):
        return [INPLACE[function], input] if inplace else (input,)
    return convert


def take_in_place(*functions):
    """Records the in-place forms, which calls with `inplace=True` run."""
    for function in functions:
        INPLACE[function.__name__] = function.inplace
        function.inplace.inplace = function.inplace        # which may be told so, too


INPLACE = {}            # the in-place forms, by name


@activation(reference=lambda x: x * logistic(x), samples=reals(-4, 4), edges=EDGES,
            convert=in_place("silu"), complex=True)
def silu(input):
    """x / (1 + exp(-x)) for each element.

    Source: Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", arXiv:1702.03118 (2017).
    """


@silu.deriv(fused="silu_backward")
def silu_deriv(input):
    """s + x s (1 - s) with s = sigmoid(x)."""
    s = input.sigmoid()
    return s * (input * (1 - s) + 1)


@activation(reference=lambda x: x * np.tanh(np.logaddexp(x, 0)), samples=reals(-4, 4), edges=EDGES,
            convert=in_place("mish"))
def mish(input):
    """x * tanh(softplus(x)) for each element.

    Source: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", arXiv:1908.08681.
    """


@mish.deriv(fused="mish_backward")
def mish_deriv(input):
    """t + x s (1 - t^2) with t = tanh(softplus(x)), s = sigmoid(x), the derivative of softplus."""
    s = input.sigmoid()
    t = (((-input).sigmoid()).log() * -1).tanh()          # softplus(x) = -log(sigmoid(-x))
    return t + input * s * (1 - t * t)


SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772


@activation(reference=lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.where(x > 0, 0, x))),
            samples=signed(0.1, 3), edges=ALL, convert=in_place("selu"), public=True, method=True)
def selu(input):
    """1.0507 * (x above 0, else 1.6733 * (exp(x) - 1)) for each element.

    Source: Klambauer et al., "Self-Normalizing Neural Networks", NIPS 2017.
    """


@selu.deriv
def selu_deriv(input):
    """From the result it would be a difference, which keeps no digit far below 0."""
    return ((-(-input).relu()).exp() * (SCALE * ALPHA)).where(input <= 0, SCALE)   # 0's own is 0


@activation(reference=lambda x: -np.logaddexp(0, -x), samples=reals(-4, 4), edges=ALL,
            signed_zeros=False)
def logsigmoid(input):
    """log(1 / (1 + exp(-x))) for each element, without overflow."""


@logsigmoid.deriv
def logsigmoid_deriv(input):
    """1 - sigmoid(x), exact for large x."""
    return (-input).sigmoid()


@activation(reference=lambda x: x * np.clip(x + 3, 0, 6) / 6, samples=reals(-2.9, 2.9),
            edges=EDGES, convert=in_place("hardswish"))
def hardswish(input):
    """x * relu6(x + 3) / 6 for each element.

    Gradient: 0 up to -3, 1 from 3 on and for NaN.
    Source: Howard et al., "Searching for MobileNetV3", arXiv:1905.02244 (2019).
    """


@hardswish.deriv(fused="hardswish_backward")
def hardswish_deriv(g, input):
    """(2 x + 3) / 6 between -3 and 3; 0 at -3, 1 at 3 and for NaN."""
    slope = (g * (input * (1 / 3) + 0.5)).where(input > -3, 0)
    return slope.where(input < 3, g)


@activation(reference=lambda x: np.clip(x + 3, 0, 6) / 6, samples=reals(-2.9, 2.9),
            edges=ALL, convert=in_place("hardsigmoid"))
def hardsigmoid(input):
    """relu6(x + 3) / 6 for each element.

    Gradient: 1 / 6 between -3 and 3, else 0.
    """


@hardsigmoid.deriv
def hardsigmoid_deriv(g, input):
    """1 / 6 between -3 and 3; 0 at both."""
    return (g * (1 / 6)).where(input.abs() < 3, 0)


def over_size(x):
    """The reference of `softsign`."""
    return x / (1 + np.abs(x))


@composite(public=False, method=False, out=True, complex=True, dtypes=("complex64", "complex128"),
           reference=over_size, samples=in_complex(reals(0.1, 3)))
def softsign_of_complex(input: Tensor):
    """x / (1 + |x|) by operations of their own, as it has no complex derivative: see `softsign`."""
    return input / (input.abs() + 1)


def by_kind(input: Tensor):
    """The `convert` of `softsign`."""
    return [softsign_of_complex, input] if input.is_complex() else (input,)


@activation(reference=over_size, samples=signed(0.1, 3), edges=ALL,
            takes="integer floating", to_float=True, convert=by_kind)
def softsign(input):
    """x / (1 + |x|) for each element."""


@softsign.deriv
def softsign_deriv(input):
    """1 / (1 + |x|)**2"""
    scale = input.abs() + 1
    return 1 / (scale * scale)


@activation(reference=lambda x: x - np.tanh(x), samples=reals(-3, 3), edges=ALL,
            takes="integer floating", to_float=True, complex=True)
def tanhshrink(input):
    """x - tanh(x) for each element."""


@tanhshrink.deriv
def tanhshrink_deriv(input):
    """d/dx (x - tanh(x)) = tanh(x)**2"""
    t = input.tanh()
    return t * t


take_in_place(silu, mish, selu, hardswish, hardsigmoid)
selu_, relu_ = selu.inplace, _relu.inplace


# ---- along a dim ---------------------------------------------------------------------------------

def glu_reference(x, dim=-1):
    """The reference of `glu`."""
    first, second = np.split(x, 2, dim)
    return first * logistic(second)


def glu_formula(input, dim):
    """`gated_halves` by operations of their own."""
    size = input.size(dim) // 2
    return input.narrow(dim, 0, size) * input.narrow(dim, size, size).sigmoid()


HALVED = given(((4,), 0), ((2, 6), 1), ((4, 3), 0), ((0, 2), 1))


@stands_for(gradients_of(glu_formula))
@op(public=False, method=False, takes="floating", differentiable=False,
    reference=gradients(glu_reference), samples=with_gradients(HALVED, glu_reference),
    kernel=kernels.gated_backward)
def gated_backward(grad: Tensor, input: Tensor, dim):
    """The gradient of `gated_halves`, by one kernel."""


@differentiated_by(glu_formula, gated_backward)
@op(public=False, method=False, takes="floating", reference=glu_reference, samples=HALVED,
    kernel=kernels.gated_halves)
def gated_halves(input: Tensor, dim):
    """The first half along a dim times the sigmoid of the second."""


@made(reference=glu_reference, samples=given(((4,),), ((2, 6), 1), ((4, 3), 0), ((0, 2),)),
      errors=refusals((RuntimeError, (3,)), (RuntimeError, ()), (IndexError, (4,), 1)))
def glu(input: Tensor, dim: int = -1):
    """The first half along a dim times the sigmoid of the second.

    Shapes: (*, 2 N, *) -> (*, N, *).
    Raises: RuntimeError for an odd size or no dims, IndexError.
    Source: Dauphin et al., "Language Modeling with Gated Convolutional Networks",
    arXiv:1612.08083 (2016).
    """
    if input.ndim == 0:
        raise RuntimeError("glu: does not take tensors without dims")
    dim = wrap("glu", dim, input.ndim)       # as examples of a batch see it
    if input.shape[dim] % 2:
        raise RuntimeError(f"glu: the size of dim {dim} must be even, got {input.shape[dim]}")
    return gated_halves(input, dim)


def usual_dim(name, input):
    """The dim that older programs leave out. It is 0 for images and vectors, else 1."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: input must be a Tensor, not {type_name(input)}")
    warn_of(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
            "include dim=X as an argument.", level=3)
    return 0 if input.ndim in (0, 1, 3) else 1


@offered
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) / sum(exp(input)) along one dim: `tensorlib.softmax`."""
    return _softmax(input, usual_dim("softmax", input) if dim is None else dim, dtype=dtype)


@offered
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of `softmax`, exact where that is small: `tensorlib.log_softmax`."""
    return _log_softmax(input, usual_dim("log_softmax", input) if dim is None else dim,
                        dtype=dtype)


@offered
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax` of the negative: exp(-input) / sum(exp(-input)) along one dim."""
    return _softmax(-input, usual_dim("softmin", input) if dim is None else dim, dtype=dtype)
