"""Sums of products: functions of several tensors that are made of others, with broadcasting."""

import numpy as np

from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import refuse_bools
from tensorlib.ops.declare import composite, elementwise
from tensorlib.ops.pointwise.arithmetic import (
    EDGES,
    add_product,
    add_quotient,
    check_factors,
    mul,
    sub,
)
from tensorlib.ops.samples import pairs, three_reals


def with_alpha(rng):
    """Samples of two real tensors, without and with `alpha`."""
    for tensors, _ in pairs()(rng):
        yield tensors, {}
        yield tensors, {"alpha": 3}


@composite(reference=lambda x, y, alpha=1: y - alpha * x, takes="integer floating",
           tolerance="product", samples=with_alpha, rounds_once=False, complex=True)
def rsub(input, other, *, alpha=1):
    """other - alpha * input, with broadcasting: `sub` with its tensors exchanged.

    >>> tensorlib.rsub(tensorlib.tensor([1., 2.]), 10, alpha=3)
    tensor([7., 4.])
    """
    return sub(other, input, alpha=alpha)


def no_integers(name, input):
    """Raises RuntimeError for a tensor that is neither floating nor complex."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"{name}: expects floating-point tensors, got {input.dtype}")


@rounded_once
def scaled(function, input, tensor1, tensor2, value):
    """What a function gives for the second tensor times a value."""
    return function(input, mul(tensor1, value), tensor2)


@composite(out=True, reference=lambda x, a, b, value=1: x + value * a * b,
           takes="integer floating", between="value", tolerance="product", inplace=True,
           samples=three_reals(value=2), rounds_once=False, complex=True)
def addcmul(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """input + value * tensor1 * tensor2, with broadcasting.

    Raises: RuntimeError for bools, for shapes that do not broadcast, and for a float as a `value`
    of integers.

    >>> one = tensorlib.ones(2)
    >>> tensorlib.addcmul(one, tensorlib.tensor([1., 2.]), one, value=10)
    tensor([11., 21.])
    """
    refuse_bools("addcmul", input, RuntimeError)
    check_factors("addcmul", (input, tensor1, tensor2), value=value)
    return (add_product(input, tensor1, tensor2) if value == 1 else
            scaled(add_product, input, tensor1, tensor2, value))


@composite(out=True, reference=lambda x, a, b, value=1: x + value * a / b, takes="floating",
           between="value", tolerance="product", inplace=True,
           samples=three_reals(low=0.5, value=2), rounds_once=False, complex=True)
def addcdiv(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """input + value * tensor1 / tensor2, with broadcasting.

    Raises: RuntimeError for integers and for shapes that do not broadcast.
    """
    no_integers("addcdiv", input)
    return (add_quotient(input, tensor1, tensor2) if value == 1 else
            scaled(add_quotient, input, tensor1, tensor2, value))


def between(input: Tensor, end: Tensor, weight):
    """The `convert` of `lerp`: three of one dtype, but for a weight without dimensions."""
    no_integers("lerp", input)
    if end.dtype != input.dtype:
        raise RuntimeError(f"lerp: expected dtype {input.dtype} for end, got {end.dtype}")
    if isinstance(weight, Tensor) and weight.ndim and weight.dtype != input.dtype:
        raise RuntimeError(f"lerp: expected dtype {input.dtype} for weight, got {weight.dtype}")
    return input, end, weight


def nearer_end(input, end, weight):
    """The reference of `lerp`."""
    way = end - input
    return np.where(np.abs(weight) < 0.5, input + weight * way, end - way * (1 - weight))


@elementwise(reference=nearer_end, samples=three_reals(), edges=EDGES, takes="floating",
             signed_zeros=False, tolerance="product", convert=between, complex=True)
def lerp(input, end, weight):
    """input + weight * (end - input), for a number or a tensor `weight`, with broadcasting.

    It is computed from the nearer end, so that weights of 0 and 1 give `input` and `end` exactly.

    Raises: RuntimeError for integers or tensors of different dtypes.

    >>> tensorlib.lerp(tensorlib.tensor([1e8, 0.]), tensorlib.tensor([1., 8.]), 1)
    tensor([1., 8.])
    """


@lerp.deriv("input")
def lerp_deriv_input(weight):
    return 1 - weight


@lerp.deriv("end")
def lerp_deriv_end(weight):
    return weight


@lerp.deriv("weight")
def lerp_deriv_weight(input, end):
    return end - input
