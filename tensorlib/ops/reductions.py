"""Reductions: many elements to one, over all dims or some."""

from collections import namedtuple

import numpy as np

from tensorlib._core.apply.operators import make_reduction
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.layout import views
from tensorlib._core.reduce import reductions
from tensorlib._core.reduce.reductions import expand_reduced
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arithmetic import maximum, minimum
from tensorlib.ops.declare import composite, op
from tensorlib.ops.samples import given
from tensorlib.ops.joining import cat

inf = float("inf")

ONE_DIM = (((),), ((5,),), ((3, 4),), ((3, 4), 0), ((3, 4), -1, True), ((2, 3, 4), 1), ((0, 3), 1))
DIMS = (*ONE_DIM, ((2, 3, 4), (0, 2)), ((2, 3, 4), (-1, 0), True), ((2, 3), ()))


def over(function):
    """A NumPy reduction under PyTorch's names, for the references."""
    def reference(x, dim=None, keepdim=False):
        return function(x, axis=None if dim == () else dim, keepdims=keepdim)
    return reference


def whole(function):
    """A NumPy sum or product whose integers are int64, as PyTorch's are."""
    return lambda x, **options: function(
        x, dtype=None if x.dtype.kind == "f" else np.int64, **options)


def empty(*cases):
    """Error samples: empty shapes with a dim (or none), and the error."""
    def generate():
        for shape, dim, error in cases:
            yield (np.ones(shape),), {} if dim is None else {"dim": dim}, error
    return generate


def bad_dims():
    """Error samples of reductions that take any dims."""
    yield (np.ones((2, 3)), 2), {}, IndexError
    yield (np.ones((2, 3)), (0, -2)), {}, RuntimeError
    yield (np.ones((2, 3)), 0.5), {}, TypeError
    yield (np.ones((2, 3)), 0, 1), {}, TypeError


NOTHING_TO_CHOOSE = empty(((0, 3), None, RuntimeError), ((0, 3), 0, IndexError))
NO_PLACE = empty(((0, 3), None, IndexError), ((0, 3), 0, IndexError))


# ---- sums, products, means -----------------------------------------------------------------------

@op(linear=True, kernel=reductions.sum, maker=make_reduction, out=True,
    reference=over(whole(np.sum)),
    samples=given(*DIMS, ((0, 3), 0)), errors=bad_dims, tolerance="reduction")
def sum(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The sum over all elements, or over `dim` (an int or several); 0 for none.

    Integers are summed in int64. Raises: IndexError, RuntimeError for a dim given twice.

    >>> tensorlib.tensor([[1., 2.], [3., 4.]]).sum(dim=0)
    tensor([4., 6.])
    """


sum.op.add_rule("input", expand_reduced, spreads=True)


@op(linear=True, kernel=reductions.mean, maker=make_reduction, out=True,
    reference=over(np.mean),
    samples=given(*DIMS), errors=bad_dims, takes="floating", tolerance="reduction")
def mean(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The mean over all elements, or over `dim` (an int or several); NaN for none.

    Raises: RuntimeError for integers (give a floating `dtype`), IndexError.
    """


mean.vjp("input")(reductions.grad_of_mean)


@op(kernel=reductions.prod, maker=make_reduction, out=True,
    reference=over(whole(np.prod)),
    samples=given(*ONE_DIM, ((0, 3), 0), ((7,),)), tolerance="reduction")
def prod(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The product of all elements, or along one dim; 1 for none. Integers give int64.

    Gradient: the product of the other elements, exact where some are zero.
    """


def others(x, out, dim, keepdim):
    """For each element the product of all others along `dim` (None: of all).

    No element is zero where the product `out` is a normal number.
    """
    if bool((out.abs() > (1e-4 if x.itemsize == 2 else 1e-30)).logical_and(out.isfinite()).all()):
        return expand_reduced(out, x.shape, dim, keepdim) / x
    if dim is None or x.ndim == 0:
        return others_in_row(x.reshape(-1)).reshape(x.shape)
    return others_in_row(x.transpose(dim, -1)).transpose(dim, -1)


def others_in_row(x):
    """Halves the row: the others of an element are its partner and the others of both's product."""
    n = x.shape[-1]
    half = n // 2
    if n < 2:
        return views.zeros(x.shape, x.dtype) + 1
    first, second = x.narrow(-1, 0, half), x.narrow(-1, half, half)
    rest = x.narrow(-1, 2 * half, n - 2 * half)
    outer = others_in_row(cat((first * second, rest), -1))
    pairs = outer.narrow(-1, 0, half)
    return cat((pairs * second, pairs * first, outer.narrow(-1, half, n - 2 * half)), -1)


@prod.vjp("input")
def prod_vjp(g, input, out, dim, keepdim):
    return expand_reduced(g, input.shape, dim, keepdim) * others(input, out, dim, keepdim)


@prod.jvp
def prod_jvp(d_input, input, out, dim, keepdim):
    return (d_input * others(input, out, dim, keepdim)).sum(dim, keepdim)


@op(linear=True, kernel=reductions.cumsum, out=True, inplace=True, tolerance="reduction",
    reference=lambda x, dim: whole(np.cumsum)(np.atleast_1d(x), axis=dim).reshape(x.shape),
    samples=given(((5,), 0), ((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 1)))
def cumsum(input: Tensor, dim, dtype=None):
    """The sums of each element and those before it along `dim`. Integers give int64."""


@cumsum.vjp("input")
def cumsum_vjp(g, dim):
    return backwards(backwards(g, dim).cumsum(dim), dim)


def backwards(x, dim):
    """`x` in reverse order along a dim, as a view."""
    return x[(slice(None),) * (dim % x.ndim) + (slice(None, None, -1),)] if x.ndim else x


@composite(tolerance="reduction", reference=over(whole(np.nansum)), samples=given(*DIMS))
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """`sum` with NaN taken as zero."""
    known = input.where(input == input, 0) if input.is_floating_point() else input
    return sum(known, dim, keepdim, dtype=dtype, out=out)


@op(differentiable=False, kernel=reductions.count_nonzero,
    samples=given(((3, 4),), ((3, 4), 0), ((2, 3, 4), (0, 2)), ((0, 3), 0)),
    reference=lambda x, dim=None: np.count_nonzero(x, axis=dim))
def count_nonzero(input: Tensor, dim=None):
    """How many elements are not zero, as int64, over all or over `dim` (an int or several)."""


# ---- extremes ------------------------------------------------------------------------------------

@op(kernel=reductions.amax, maker=make_reduction, out=True,
    reference=over(np.max), samples=given(*DIMS),
    errors=NOTHING_TO_CHOOSE)
def amax(input: Tensor, dim=None, keepdim=False):
    """The largest element of all, or over `dim` (an int or several); NaN if one is.

    Gradient: evenly among equal largest elements. Raises: RuntimeError and IndexError if empty.
    """


@op(kernel=reductions.amin, maker=make_reduction, out=True,
    reference=over(np.min), samples=given(*DIMS),
    errors=NOTHING_TO_CHOOSE)
def amin(input: Tensor, dim=None, keepdim=False):
    """The smallest element of all, or over `dim` (an int or several); NaN if one is.

    Gradient: evenly among equal smallest elements. Raises: RuntimeError and IndexError if empty.
    """


def share(input, out, dim, keepdim):
    """1 over the number of ties where an element is the extreme `out`, else 0."""
    reached = input == expand_reduced(out.detach(), input.shape, dim, keepdim)
    ties = reached.logical_or(input.isnan()).to(input.dtype)
    return ties / ties.sum(dim, True)


@amax.vjp("input")
@amin.vjp("input")
def extreme_vjp(g, input, out, dim, keepdim):
    return expand_reduced(g, input.shape, dim, keepdim) * share(input, out, dim, keepdim)


@amax.jvp
@amin.jvp
def extreme_jvp(d_input, input, out, dim, keepdim):
    return (d_input * share(input, out, dim, keepdim)).sum(dim, keepdim)


@op(differentiable=False, kernel=reductions.argmax, maker=make_reduction, out=True,
    reference=over(np.argmax),
    samples=given(*ONE_DIM), errors=NO_PLACE, takes="integer floating")
def argmax(input: Tensor, dim=None, keepdim=False):
    """The first place of the largest element (or NaN): along `dim`, or in row-major order of all.

    Raises: IndexError if there is none.
    """


@op(differentiable=False, kernel=reductions.argmin, maker=make_reduction, out=True,
    reference=over(np.argmin),
    samples=given(*ONE_DIM), errors=NO_PLACE, takes="integer floating")
def argmin(input: Tensor, dim=None, keepdim=False):
    """The first place of the smallest element (or NaN): along `dim`, or in row-major order of all.

    Raises: IndexError if there is none.
    """


Largest = namedtuple("max", ("values", "indices"))
Smallest = namedtuple("min", ("values", "indices"))
Extremes = namedtuple("aminmax", ("min", "max"))


def with_places(values_of, places_of):
    """The reference of `max` and `min` along a dim."""
    return lambda x, dim, keepdim=False: (
        values_of(x, axis=dim, keepdims=keepdim), places_of(x, axis=dim, keepdims=keepdim))


def three_forms(name, whole, of_two):
    """The `convert` of `max` or `min`: of all elements, along a dim, or of two tensors."""
    def convert(input: Tensor, dim=None, keepdim=False, *, other=None, axis=None, keepdims=None):
        dim = dim if axis is None else axis
        keepdim = keepdim if keepdims is None else keepdims
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if other is not None:
            return [of_two, input, other]
        if dim is not None:
            return input, dim, keepdim
        if keepdim:
            raise TypeError(f"{name}: keepdim needs a dim")
        return [whole, input]
    convert.alone = whole
    return convert


@op(outputs=("values", "indices"), convert=three_forms("max", amax, maximum), out=True,
    reference=with_places(np.max, np.argmax), errors=empty(((0, 3), 0, IndexError)),
    samples=given(((3, 4), 0), ((3, 4), -1, True), ((2, 3, 4), 1), ((), 0)))
def max(input: Tensor, dim, keepdim=False):
    """The largest element of all; along `dim` a named tuple of the largest `values` and the first
    places, `indices`; with another tensor, `maximum` of both. NaN if one is.

    Gradient: of all elements, evenly among equal ones; along a dim, to the place that was found.
    Raises: RuntimeError and IndexError if empty, TypeError for several dims (see `amax`).
    """
    return Largest(*reductions.extreme_along("max", input, dim, keepdim))


@op(outputs=("values", "indices"), convert=three_forms("min", amin, minimum), out=True,
    reference=with_places(np.min, np.argmin), errors=empty(((0, 3), 0, IndexError)),
    samples=given(((3, 4), 0), ((3, 4), -1, True), ((2, 3, 4), 1), ((), 0)))
def min(input: Tensor, dim, keepdim=False):
    """The smallest element of all; along `dim` a named tuple of the smallest `values` and the first
    places, `indices`; with another tensor, `minimum` of both. NaN if one is.

    Gradient: of all elements, evenly among equal ones; along a dim, to the place that was found.
    Raises: RuntimeError and IndexError if empty, TypeError for several dims (see `amin`).
    """
    return Smallest(*reductions.extreme_along("min", input, dim, keepdim))


@max.vjp("input")
@min.vjp("input")
def along_vjp(g, indices, input_shape, dim, keepdim):
    g = g[0]                                 # the indices have none
    if not input_shape:
        return g
    if not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return put_along(g, indices, dim, input_shape[dim])


@max.jvp
@min.jvp
def along_jvp(d_input, indices, dim, keepdim):
    if keepdim or d_input.ndim == 0:
        return d_input.gather(dim, indices), None
    return d_input.gather(dim, indices.unsqueeze(dim)).squeeze(dim), None


def placed(x, places, dim, size):
    """The reference of `put_along`."""
    whole = np.zeros(x.shape[:dim] + (size,) + x.shape[dim + 1:], x.dtype)
    np.put_along_axis(whole, places, x, dim)
    return whole


@op(linear=True, public=False, method=False, kernel=reductions.put_along, reference=placed,
    samples=given(((2, 1), np.array([[3], [0]]), 1, 4), ((1, 3), np.array([[1, 0, 1]]), 0, 2)))
def put_along(input: Tensor, places, dim, size):
    """Zeros of `size` along `dim` with the elements of `input` at `places`: see `max`."""


@put_along.vjp("input")
def put_along_vjp(g, places, dim):
    return g.gather(dim, places)


@composite(outputs=("min", "max"), reference=lambda x, dim=None, keepdim=False: (
    np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)),
    samples=lambda rng: (((rng.normal(size=(3, 4)),), keywords)
                         for keywords in ({}, {"dim": 0}, {"dim": 1, "keepdim": True})))
def aminmax(input, *, dim=None, keepdim=False):
    """`amin` and `amax` as a named tuple (min, max)."""
    return Extremes(amin(input, dim, keepdim), amax(input, dim, keepdim))


# ---- variance ------------------------------------------------------------------------------------

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
    """The `convert` of `var` and its kin: PyTorch's older and newer words, and NumPy's."""
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
        return input, dim, correction, keepdim
    return convert


@op(convert=deviation_arguments("var"), out=True, reference=deviations(np.var),
    samples=deviation_samples, takes="floating", tolerance="reduction")
def var(input: Tensor, dim, correction, keepdim):
    """The mean squared distance from the mean, over all elements or over `dim` (an int or several).

    The sum of squares is divided by the number of elements less `correction`, at least 0; so NaN
    for one element. `unbiased` is an older word for a correction of 1 (True) or 0 (False).
    Raises: RuntimeError for integers, IndexError.
    """
    return reductions.var(input, dim, correction, keepdim)


@op(convert=deviation_arguments("std"), out=True, reference=deviations(np.std),
    samples=deviation_samples, takes="floating", tolerance="reduction")
def std(input: Tensor, dim, correction, keepdim):
    """The square root of `var`.

    Gradient: 0 where the result is 0.
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
    return expand_reduced(g, input.shape, dim, keepdim) * var_slope(input, dim, correction)


@var.jvp
def var_jvp(d_input, input, dim, correction, keepdim):
    return (d_input * var_slope(input, dim, correction)).sum(dim, keepdim)


@std.vjp("input")
def std_vjp(g, input, out, dim, correction, keepdim):
    return var_vjp(half_inverse(g, out), input, dim, correction, keepdim)


@std.jvp
def std_jvp(d_input, input, out, dim, correction, keepdim):
    return half_inverse(var_jvp(d_input, input, dim, correction, keepdim), out)


def with_mean(function):
    """The reference of `var_mean` and `std_mean`."""
    return lambda x, dim, correction, keepdim: (
        deviations(function)(x, dim, correction, keepdim), x.mean(dim, keepdims=keepdim))


@composite(outputs=("var", "mean"), out=True, reference=with_mean(np.var),
           samples=deviation_samples, takes="floating", tolerance="reduction")
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None,
             keepdims=None):
    """The pair of `var` and `mean`. Raises: RuntimeError for integers, IndexError."""
    x, dim, correction, keepdim = var.op.convert(
        input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@composite(outputs=("std", "mean"), out=True, reference=with_mean(np.std),
           samples=deviation_samples, takes="floating", tolerance="reduction")
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None,
             keepdims=None):
    """The pair of `std` and `mean`. Raises: RuntimeError for integers, IndexError."""
    x, dim, correction, keepdim = std.op.convert(
        input, dim, unbiased, keepdim, correction=correction, axis=axis, keepdims=keepdims)
    return std(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


def p_norm(x, p="fro", dim=None, keepdim=False):
    """The reference of `norm`."""
    return np.linalg.norm(x.reshape(-1), 2) if x.size and p == "fro" and dim is None else (
        np.abs(x) ** p).sum(axis=dim, keepdims=keepdim) ** (1 / p)


@composite(reference=p_norm, out=True, takes="floating", tolerance="reduction",
           samples=given(((5,),), ((3, 4), 2, 0), ((3, 4), 3, 1, True), ((2, 3), 1, (0, 1))))
def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """The p-norm of all elements, or over `dim` (an int or several), as of vectors.

    p is 2 by default (also "fro"), a number, inf or -inf; 0 counts what is not zero.
    Gradient: 0 where the norm is 0. Raises: RuntimeError for integers, IndexError.
    """
    x = input if dtype is None else input.to(dtype)
    p = 2 if p is None or p == "fro" else p
    x = x if p == 2 else x.abs()
    if not x.is_floating_point():
        raise RuntimeError(f"norm: takes floating-point dtypes, got {x.dtype}")
    if p in (inf, -inf):
        result = (amax if p > 0 else amin)(x, dim, keepdim)
    elif p == 0:
        result = (x != 0).sum(dim, keepdim).to(x.dtype)
    else:
        total = (x.square() if p == 2 else x ** p).sum(dim, keepdim)
        safe = total.where(total != 0, 1)
        result = (safe.sqrt() if p == 2 else safe ** (1 / p)).where(total != 0, 0)
    return result


# ---- truth ---------------------------------------------------------------------------------------

def truth_dtype(input, *_, **__):
    """bool, but uint8 for uint8."""
    return BY_NAME["uint8" if input.dtype is BY_NAME["uint8"] else "bool"]


@op(differentiable=False, kernel=reductions.any, maker=make_reduction, out=True,
    reference=over(np.any),
    samples=given(*ONE_DIM, ((2, 3, 4), (0, 2))), errors=bad_dims, result_dtype=truth_dtype)
def any(input: Tensor, dim=None, keepdim=False):
    """Whether an element is true (not zero), of all or over `dim` (an int or several).

    bool, but uint8 for uint8, as in PyTorch; an empty sequence of dims reduces none.
    """


@op(differentiable=False, kernel=reductions.all, maker=make_reduction, out=True,
    reference=over(np.all),
    samples=given(*ONE_DIM, ((2, 3, 4), (0, 2))), errors=bad_dims, result_dtype=truth_dtype)
def all(input: Tensor, dim=None, keepdim=False):
    """Whether every element is true (not zero), of all or over `dim` (an int or several).

    bool, but uint8 for uint8, as in PyTorch; an empty sequence of dims reduces none.
    """
