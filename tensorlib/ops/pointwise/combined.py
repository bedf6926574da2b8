"""Functions of several tensors that combine sums, products and quotients, with broadcasting."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import refuse_bools
from tensorlib.ops.declare import composite, elementwise
from tensorlib.ops.pointwise.arithmetic import (
    EDGES,
    add_product,
    add_quotient,
    check_factors,
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
        raise UnsupportedDtype(f"{name}: expects floating-point tensors, got {input.dtype}")


def with_factor(**keywords):
    """Samples of three real tensors that broadcast, with a number and with a fourth."""
    def generate(rng):
        for tensors, _ in three_reals(**keywords)(rng):
            yield (*tensors, rng.uniform(0.5, 2, ())), {}
            yield (*tensors, rng.uniform(0.5, 2, tensors[0].shape)), {}
    return generate


@elementwise(kernel="addcmul_scaled", reference=lambda x, a, b, value: x + value * a * b,
             samples=with_factor(), edges=EDGES, takes="integer floating", tolerance="product",
             public=False, method=False, complex=True, slopes={"input": 1},
             factors=("factor", "other", "value"))
def add_scaled_product(input, factor, other, value):
    """input + value * factor * other in one pass, with broadcasting: see `addcmul`."""


@add_scaled_product.deriv("factor")
def add_scaled_product_deriv_factor(other, value):
    """The other factor times the value."""
    return other * value


@add_scaled_product.deriv("other")
def add_scaled_product_deriv_other(factor, value):
    """The other factor times the value."""
    return factor * value


@add_scaled_product.deriv("value")
def add_scaled_product_deriv_value(factor, other):
    """The product of the factors."""
    return factor * other


@elementwise(kernel="addcdiv_scaled", reference=lambda x, a, b, value: x + value * a / b,
             samples=with_factor(low=0.5), edges=EDGES, takes="floating", tolerance="product",
             public=False, method=False, complex=True, slopes={"input": 1},
             factors=("dividend", "other", "value"))
def add_scaled_quotient(input, dividend, other, value):
    """input + value * dividend / other in one pass, with broadcasting: see `addcdiv`."""


@add_scaled_quotient.deriv("dividend")
def add_scaled_quotient_deriv_dividend(other, value):
    """The value over the divisor."""
    return value / other


@add_scaled_quotient.deriv("other")
def add_scaled_quotient_deriv_other(dividend, other, value):
    """d/dz (x + v y / z) = -v y / z**2"""
    return -(dividend * value / other) / other


@add_scaled_quotient.deriv("value")
def add_scaled_quotient_deriv_value(dividend, other):
    """The quotient."""
    return dividend / other


def check_terms(name, input, tensor1, tensor2, value):
    """Raises RuntimeError for what `addcmul` can't sum: bools, and integers times a float."""
    if input.dtype == tensor1.dtype == tensor2.dtype:
        refuse_bools(name, input, RuntimeError)
    check_factors(name, (input, tensor1, tensor2), value=value)


def refuse_integers(name, dividend, other):
    """Raises RuntimeError for a quotient of integers, which PyTorch once cut."""
    if not (dividend.dtype.is_floating_point or other.dtype.is_floating_point
            or dividend.is_complex() or other.is_complex()):
        raise UnsupportedDtype(f"{name}: expects floating-point tensors to divide, got "
                               f"{dividend.dtype} and {other.dtype}")


def write_sum(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """`addcmul_`"""
    if not input.is_floating_point():
        check_terms("addcmul_", input, tensor1, tensor2, value)
    if value == 1:
        return add_product.inplace(input, tensor1, tensor2)
    return add_scaled_product.inplace(input, tensor1, tensor2, value)


def write_sum_of_quotient(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """`addcdiv_`"""
    refuse_integers("addcdiv_", tensor1, tensor2)
    if value == 1:
        return add_quotient.inplace(input, tensor1, tensor2)
    return add_scaled_quotient.inplace(input, tensor1, tensor2, value)


@composite(out=True, reference=lambda x, a, b, value=1: x + value * a * b,
           takes="integer floating", between="value", tolerance="product", inplace=write_sum,
           samples=three_reals(value=2), rounds_once=False, complex=True)
def addcmul(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """input + value * tensor1 * tensor2, with broadcasting.

    Raises: RuntimeError for bools, for shapes that do not broadcast, and for a float as a `value`
    of integers.

    >>> one = tensorlib.ones(2)
    >>> tensorlib.addcmul(one, tensorlib.tensor([1., 2.]), one, value=10)
    tensor([11., 21.])
    """
    if not input.is_floating_point():
        check_terms("addcmul", input, tensor1, tensor2, value)
    if value == 1:
        return add_product(input, tensor1, tensor2)
    return add_scaled_product(input, tensor1, tensor2, value)


@composite(out=True, reference=lambda x, a, b, value=1: x + value * a / b, takes="floating",
           between="value", tolerance="product", inplace=write_sum_of_quotient,
           samples=three_reals(low=0.5, value=2), rounds_once=False, complex=True)
def addcdiv(input, tensor1: Tensor, tensor2: Tensor, *, value=1):
    """input + value * tensor1 / tensor2, with broadcasting.

    Raises: RuntimeError for two integers to divide and for shapes that do not broadcast.
    """
    refuse_integers("addcdiv", tensor1, tensor2)
    if value == 1:
        return add_quotient(input, tensor1, tensor2)
    return add_scaled_quotient(input, tensor1, tensor2, value)


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
             signed_zeros=False, tolerance="product", convert=between, complex=True,
             factors=("weight",))
def lerp(input, end, weight):
    """input + weight * (end - input), for a number or a tensor `weight`, with broadcasting.

    It is computed from the nearer end, so that weights of 0 and 1 give `input` and `end` exactly.

    Raises: RuntimeError for integers or tensors of different dtypes.

    >>> tensorlib.lerp(tensorlib.tensor([1e8, 0.]), tensorlib.tensor([1., 8.]), 1)
    tensor([1., 8.])
    """


@lerp.deriv("input")
def lerp_deriv_input(weight):
    """d/dx (x + w (end - x)) = 1 - w"""
    return 1 - weight


@lerp.deriv("end")
def lerp_deriv_end(weight):
    """The weight."""
    return weight


@lerp.deriv("weight")
def lerp_deriv_weight(input, end):
    """end - start"""
    return end - input
