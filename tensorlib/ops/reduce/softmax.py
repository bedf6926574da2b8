"""Softmax, its logarithm and logsumexp: along dims, without overflow, with fused gradients."""

import numpy as np

from tensorlib._core.reduce import exponentials
from tensorlib._core.reduce.reductions import expand_reduced
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import op
from tensorlib.ops.reduce.reductions import cast_for
from tensorlib.ops.samples import given, given_pairs

inf = float("inf")

# Complex numbers are taken with the `dtype` that their real parts are to have.
FLOATS = ("float16", "bfloat16", "float32", "float64")
ROWS = given(((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 0))


def log_of_sums(x, dim, keepdim=False):
    """The reference of `logsumexp`."""
    return np.log(np.sum(np.exp(x * 1.0), axis=dim, keepdims=keepdim))


def summed(x, dim):
    """The sums over a dim that stays; a 0-d array is its own."""
    return x.sum(dim, keepdims=True) if x.ndim else x


def normalised(x, dim):
    """The reference of `softmax`."""
    return np.exp(x) / summed(np.exp(x), dim)


@op(kernel=exponentials.logsumexp, out=True, reference=log_of_sums, tolerance="reduction",
    samples=given(((5,), 0), ((3, 4), 1, True), ((3, 4), 0), ((2, 3, 4), (0, 2)), ((0, 3), 0)),
    complex=True)
def logsumexp(input: Tensor, dim, keepdim=False):
    """log(sum(exp(input))) over `dim` (an int or several), without overflow; -inf for none.

    Of complex numbers the largest real part is taken from all before, and added after.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Gradient: softmax; 0 where every element is -inf.

    Raises: IndexError for a dim out of range.

    Source: Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax
    functions", IMA Journal of Numerical Analysis 41(4), 2021.

    >>> tensorlib.logsumexp(tensorlib.tensor([1000., 1000.]), 0)
    tensor(1000.6932)
    """


def weights(input, out, dim, keepdim):
    """The softmax over several dims from the logsumexp."""
    shift = out.where(out != -inf, 0)
    return (input - expand_reduced(shift, input.shape, dim, keepdim)).exp()


@logsumexp.vjp("input")
def logsumexp_vjp(g, input, out, dim, keepdim):
    """The derivative of logsumexp is softmax."""
    return expand_reduced(g, input.shape, dim, keepdim) * weights(input, out, dim, keepdim)


@logsumexp.jvp
def logsumexp_jvp(d_input, input, out, dim, keepdim):
    """The mean of the tangents weighted by the softmax."""
    return (d_input * weights(input, out, dim, keepdim)).sum(dim, keepdim)


@op(kernel=exponentials.softmax, out=True, reference=normalised, samples=ROWS, takes="floating",
    tolerance="reduction", dtypes=FLOATS, complex=True)
def softmax(input: Tensor, dim, dtype=None):
    """exp(input) / sum(exp(input)) along one dim, without overflow.

    NaN where a row holds inf or nothing but -inf.

    Shapes: the input's.

    Raises: RuntimeError for integers and complex numbers (give a floating `dtype`), IndexError for
    a dim out of range.

    Source: as `logsumexp`.

    >>> tensorlib.softmax(tensorlib.tensor([1000., 1000.]), 0)
    tensor([0.5000, 0.5000])
    """


@op(kernel=exponentials.log_softmax, out=True,
    reference=lambda x, dim: np.log(normalised(x, dim)), samples=ROWS, takes="floating",
    tolerance="reduction", dtypes=FLOATS, complex=True)
def log_softmax(input: Tensor, dim, dtype=None):
    """The logarithm of `softmax`, exact where that is small.

    Shapes: the input's.

    Raises: RuntimeError for integers and complex numbers (give a floating `dtype`), IndexError for
    a dim out of range.

    Source: as `logsumexp`.

    >>> tensorlib.log_softmax(tensorlib.tensor([0., 200.]), 0)
    tensor([-200.,    0.])
    """


PAIRS_OF_ROWS = given_pairs(((5,), (5,), 0), ((3, 4), (3, 4), 1), ((2, 3, 4), (2, 3, 4), -2),
                            ((), (), 0), ((0, 3), (0, 3), 0))


@op(public=False, method=False, kernel=exponentials.softmax_backward, takes="floating",
    reference=lambda g, y, dim: (g - summed(g * y, dim)) * y, samples=PAIRS_OF_ROWS)
def softmax_backward(grad: Tensor, result: Tensor, dim):
    """(grad - sum(grad * result)) * result: the gradient of `softmax`, in one pass."""


@op(public=False, method=False, kernel=exponentials.log_softmax_backward, takes="floating",
    reference=lambda g, y, dim: g - np.exp(y) * summed(g, dim), samples=PAIRS_OF_ROWS)
def log_softmax_backward(grad: Tensor, result: Tensor, dim):
    """grad - exp(result) * sum(grad): the gradient of `log_softmax`, in one pass."""


@softmax.vjp("input")
def softmax_vjp(g, out, dim):
    """y (g - sum(g y)), where y is the result."""
    return softmax_backward(g, out, dim)


@softmax.jvp
def softmax_jvp(d_input, out, dim):
    """The same map, as it is symmetric, of the change of what the result is made of."""
    return softmax_backward(cast_for(d_input, out), out, dim)


@log_softmax.vjp("input")
def log_softmax_vjp(g, out, dim):
    """g - softmax(x) * (the sum of g over `dim`)"""
    return log_softmax_backward(g, out, dim)


@log_softmax.jvp
def log_softmax_jvp(d_input, out, dim):
    """d_x - sum(d_x softmax(x))."""
    d_input = cast_for(d_input, out)
    return d_input - (d_input * out.exp()).sum(dim, True)


@softmax_backward.vjp("grad")
def softmax_backward_vjp_grad(g, result, dim):
    """The same map, as it is symmetric."""
    return softmax_backward(g, result, dim)


@softmax_backward.vjp("result")
def softmax_backward_vjp_result(g, grad, result, dim):
    """The rule is quadratic in the result: a term for each of its two places."""
    return (g * (grad - (grad * result).sum(dim, True))
            - grad * (g * result).sum(dim, True))


@softmax_backward.jvp
def softmax_backward_jvp(d_grad, d_result, grad, result, dim):
    """Of result * (grad - sum(grad * result)), by both."""
    return (softmax_backward(d_grad, result, dim)
            + d_result * (grad - (grad * result).sum(dim, True))
            - result * (grad * d_result).sum(dim, True))


@log_softmax_backward.vjp("grad")
def log_softmax_backward_vjp_grad(g, result, dim):
    """The transpose of grad - exp(result) * sum(grad)."""
    return g - (g * result.exp()).sum(dim, True)


@log_softmax_backward.vjp("result")
def log_softmax_backward_vjp_result(g, grad, result, dim):
    """The derivative of -exp(result) * sum(grad)."""
    return -(g * result.exp()) * grad.sum(dim, True)


@log_softmax_backward.jvp
def log_softmax_backward_jvp(d_grad, d_result, grad, result, dim):
    """Of grad - exp(result) * sum(grad), by both."""
    slope = result.exp()
    return d_grad - slope * d_grad.sum(dim, True) - d_result * slope * grad.sum(dim, True)
