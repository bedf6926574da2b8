"""Variance, standard deviation and norms."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.create.creation import plain_number
from tensorlib._core.graph.op import find
from tensorlib._core.interpreters.capture import may_be_differentiated
from tensorlib._core.reduce import reductions
from tensorlib._core.reduce.reductions import expand_reduced
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, op
from tensorlib.ops.pointwise.arithmetic import zmul
from tensorlib.ops.pointwise.comparison import with_no_slope
from tensorlib.ops.reduce.extremes import amax, amin
from tensorlib.ops.reduce.reductions import mean
from tensorlib.ops.samples import given, in_complex

inf = float("inf")
COMPLEX = ("complex64", "complex128")


def deviations(function):
    """The reference of `var` and `std`."""
    return lambda x, dim=None, correction=1, keepdim=False: function(
        x, axis=dim, ddof=correction, keepdims=keepdim)


def deviation_samples(rng):
    """Samples of `var`, `std` and the pairs of these and the mean."""
    for shape, dim, correction, keepdim in (
            ((5,), None, 1, False), ((3, 4), 0, 0, True), ((2, 3, 4), (0, 2), 1, False),
            ((2, 3), -1, 0.5, False)):
        yield (rng.uniform(-2, 2, shape),), {
            "dim": dim, "correction": correction, "keepdim": keepdim}


def deviation_arguments(name):
    """The `convert` of all four: PyTorch's older and newer words, and NumPy's."""
    def convert(input: Tensor, dim=None, unbiased=None, keepdim=False, *, correction=None,
                axis=None, keepdims=None):
        dim = dim if axis is None else axis
        keepdim = keepdim if keepdims is None else keepdims
        if isinstance(dim, bool):                # var(x, False) is var(x, unbiased=False)
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(f"{name}: takes unbiased or correction, not both")
        if correction is None:
            correction = 0 if unbiased is False else 1
        if input.is_complex():
            return [var_of_parts if name == "var" else std_of_parts, input, dim, correction,
                    keepdim]
        return input, dim, correction, keepdim
    return convert


@op(convert=deviation_arguments("var"), out=True, reference=deviations(np.var),
    samples=deviation_samples, takes="floating", tolerance="reduction", complex=True)
def var(input: Tensor, dim, correction, keepdim):
    """The mean squared distance from the mean, over all elements or over `dim` (an int or several).

    The sum of squares is divided by the number of elements less `correction`, at least 0; so NaN
    for one element. `unbiased` is an older word for a correction of 1 (True) or 0 (False).

    Shapes: as `sum`.

    Raises: RuntimeError for integers, IndexError for a dim out of range, TypeError where both
    `unbiased` and `correction` are given.

    Source: Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance: Analysis and
    Recommendations", The American Statistician 37(3), 1983: the algorithm of two passes.

    >>> tensorlib.tensor([1., 2., 6.]).var()
    tensor(7.)
    """
    return reductions.var(input, dim, correction, keepdim)


@op(convert=deviation_arguments("std"), out=True, reference=deviations(np.std),
    samples=deviation_samples, takes="floating", tolerance="reduction", complex=True)
def std(input: Tensor, dim, correction, keepdim):
    """The square root of `var`.

    Shapes: as `sum`.

    Gradient: 0 where the result is 0.

    Raises: as `var`.

    Source: as `var`.

    >>> tensorlib.tensor([1., 2., 6.]).std(correction=0)
    tensor(2.1602)
    """
    return reductions.std(input, dim, correction, keepdim)


def var_slope(input, dim, correction):
    """The derivative of the variance by each element: 2 (x - mean) / (n - correction)."""
    center = input.mean(dim, True)
    freedom = input.numel() / center.numel() - correction if center.numel() else 0
    return (input - center) * (2 / freedom if freedom > 0 else inf)


def half_inverse(g, out):
    """g / (2 std), and 0 where std is 0."""
    return (g / (2 * out)).where(out != 0, 0)


@var.vjp("input")
def var_vjp(g, input, dim, correction, keepdim):
    """g 2 (x - mean) / (n - correction)."""
    return expand_reduced(g, input.shape, dim, keepdim) * var_slope(input, dim, correction)


@var.jvp
def var_jvp(d_input, input, dim, correction, keepdim):
    """The sum of 2 (x - mean) d_x / (n - correction)."""
    return (d_input * var_slope(input, dim, correction)).sum(dim, keepdim)


@std.vjp("input")
def std_vjp(g, input, out, dim, correction, keepdim):
    """That of the variance, by the chain rule through the square root."""
    return var_vjp(half_inverse(g, out), input, dim, correction, keepdim)


@std.jvp
def std_jvp(d_input, input, out, dim, correction, keepdim):
    """The tangent of the variance, over 2 std."""
    return half_inverse(var_jvp(d_input, input, dim, correction, keepdim), out)


# ---- of complex numbers --------------------------------------------------------------------------

def of_parts(function):
    """Declares what gives the variance of complex numbers, or its root."""
    return composite(public=False, method=False, out=True, complex=True, dtypes=COMPLEX,
                     tolerance="reduction", reference=deviations(function),
                     samples=in_complex(deviation_samples),
                     result_dtype=lambda x, *_, **__: x.dtype.to_real())


@of_parts(np.var)
def var_of_parts(input: Tensor, dim=None, correction=1, keepdim=False):
    """The variance of complex numbers, whose parts count as numbers of their own: see `var`."""
    return var(input.real, dim, correction=correction, keepdim=keepdim) + var(
        input.imag, dim, correction=correction, keepdim=keepdim)


@of_parts(np.std)
def std_of_parts(input: Tensor, dim=None, correction=1, keepdim=False):
    """The square root of `var_of_parts`, whose gradient is 0 at 0: see `std`."""
    spread = var_of_parts(input, dim, correction, keepdim)
    return spread.where(spread != 0, 1).sqrt().where(spread != 0, 0)


# ---- with the mean -------------------------------------------------------------------------------

def own_arguments(function, *args, **kwargs):
    """The tensor, dim, correction and keepdim of a call of `var` or `std`, also of complex ones."""
    given = function.op.convert(*args, **kwargs)
    return given if isinstance(given, tuple) else tuple(given[1:])


def with_mean(function):
    """The reference of `var_mean` and `std_mean`."""
    return lambda x, dim, correction, keepdim: (
        deviations(function)(x, dim, correction, keepdim), x.mean(dim, keepdims=keepdim))


@composite(outputs=("var", "mean"), out=True, reference=with_mean(np.var),
           samples=deviation_samples, takes="floating", tolerance="reduction", complex=True)
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None,
             keepdims=None):
    """The pair of `var` and `mean`. Shapes and errors are those of `var`.

    >>> tensorlib.var_mean(tensorlib.tensor([1., 2., 6.]))
    (tensor(7.), tensor(3.))
    """
    x, dim, correction, keepdim = own_arguments(
        var, input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@composite(outputs=("std", "mean"), out=True, reference=with_mean(np.std),
           samples=deviation_samples, takes="floating", tolerance="reduction", complex=True)
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None,
             keepdims=None):
    """The pair of `std` and `mean`. Shapes and errors are those of `var`."""
    x, dim, correction, keepdim = own_arguments(
        std, input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    return std(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


def p_norm(x, p="fro", dim=None, keepdim=False):
    """The reference of `norm`."""
    return np.linalg.norm(x.reshape(-1), 2) if x.size and p == "fro" and dim is None else (
        np.abs(x) ** p).sum(axis=dim, keepdims=keepdim) ** (1 / p)


@op(public=False, method=False, takes="floating", tolerance="reduction",
    reference=lambda x, dim, keepdim: np.sqrt(np.square(x).sum(dim, keepdims=keepdim)),
    samples=given(((5,), None, False), ((3, 4), 0, False), ((2, 3, 4), (0, 2), True),
                  ((0, 3), 0, False)), kernel=reductions.euclidean_norm)
def euclidean_norm(input: Tensor, dim, keepdim):
    """The square root of the sum of squares, of all elements or over `dim`.

    Gradient: 0 where the norm is 0.
    """


def inverse(out):
    """1 / out, and 0 where that is 0."""
    return out.reciprocal().where(out != 0, 0)


@euclidean_norm.vjp("input")
def euclidean_norm_vjp(g, input, out, dim, keepdim):
    """g x / norm, 0 at 0."""
    return zmul(expand_reduced(zmul(g, inverse(out)), input.shape, dim, keepdim), input)


@euclidean_norm.jvp
def euclidean_norm_jvp(d_input, input, out, dim, keepdim):
    """The sum of x d_x, over the norm, 0 at 0."""
    return zmul((d_input * input).sum(dim, keepdim), inverse(out))


@composite(reference=p_norm, out=True, takes="floating", tolerance="reduction",
           samples=given(((5,),), ((3, 4), 2, 0), ((3, 4), 3, 1, True), ((2, 3), 1, (0, 1))),
           complex=True, rounds_once=False)
def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """The p-norm of all elements, or over `dim` (an int or several), as of vectors.

    p is 2 by default (also "fro"), a number, inf or -inf; 0 counts what is not zero. "nuc" is the
    nuclear norm of matrices, `linalg.matrix_norm`.

    Shapes: as `sum`.

    Gradient: 0 where the norm is 0, and where an element is 0 if p is below 1.

    Raises: RuntimeError for integers and for a `p` that would have a gradient, IndexError for a dim
    out of range, ValueError for another name of a norm, TypeError.

    >>> tensorlib.norm(tensorlib.tensor([3., 4.]))
    tensor(5.)
    """
    x = input if dtype is None else input.to(dtype)
    if isinstance(p, str) and p == "nuc":
        return find("linalg_matrix_norm").function(x, "nuc", dim or (-2, -1), keepdim)
    p = exponent_of(p)
    if x.is_complex():
        x = x.abs()
    if not x.is_floating_point():
        raise UnsupportedDtype(f"norm: takes floating-point dtypes, got {x.dtype}")
    return norm_of_order(x, p, dim, keepdim)


def norm_of_order(x, p, dim, keepdim):
    """The norm of a floating-point tensor, for a number `p`."""
    if p == 2:
        return euclidean_norm(x, dim, keepdim)
    if p == 0 and not may_be_differentiated(x):
        return (x != 0).sum(dim, keepdim).to(x.dtype)
    x = x.abs()
    if p == 1:
        return x.sum(dim, keepdim)
    if p in (inf, -inf):
        return (amax if p > 0 else amin)(x, dim, keepdim)
    if p == 0:
        return with_no_slope((x != 0).to(x.dtype), x).sum(dim, keepdim)
    return root_of_powers(x, p, dim, keepdim)


@rounded_once
def root_of_powers(x, p, dim, keepdim):
    """The root of the sum of powers of numbers that are not negative."""
    if not may_be_differentiated(x):
        return (x ** p).sum(dim, keepdim) ** (1 / p)
    powers = x ** p
    if 0 < p < 1:                            # whose slope is infinite at 0
        powers = (x.where(x != 0, 1) ** p).where(x != 0, 0)
    total = powers.sum(dim, keepdim)
    safe = total.where(total != 0, 1)
    return (safe ** (1 / p)).where(total != 0, 0)


def exponent_of(p):
    """The p of a norm as a number. Raises: ValueError, TypeError, RuntimeError."""
    if p is None or isinstance(p, str) and p == "fro":
        return 2
    if isinstance(p, str):
        raise ValueError(f"norm: p={p!r} is not supported; p is a number, inf, -inf, 'fro' or "
                         "'nuc'")
    return plain_number("norm", "p", p)
