"""Reductions: many elements to one, over all dims or some."""

import numpy as np

from tensorlib._core.apply.operators import make_reduction
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.layout import views
from tensorlib._core.reduce import reductions
from tensorlib._core.reduce.reductions import expand_reduced
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.calls import packed_gradient
from tensorlib.ops.declare import op
from tensorlib.ops.samples import given
from tensorlib.ops.shape.joining import cat

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
        x, dtype=None if x.dtype.kind in "fc" else np.int64, **options)


def bad_dims():
    """Error samples of reductions that take any dims."""
    yield (np.ones((2, 3)), 2), {}, IndexError
    yield (np.ones((2, 3)), (0, -2)), {}, RuntimeError
    yield (np.ones((2, 3)), 0.5), {}, TypeError
    yield (np.ones((2, 3)), 0, 1), {}, TypeError


# ---- sums, products, means -----------------------------------------------------------------------

@op(linear=True, kernel=reductions.sum, maker=make_reduction, out=True,
    reference=over(whole(np.sum)),
    samples=given(*DIMS, ((0, 3), 0)), errors=bad_dims, tolerance="reduction", complex=True)
def sum(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The sum over all elements, or over `dim` (an int or several); 0 for none.

    Integers are summed in int64.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Raises: IndexError for a dim out of range, RuntimeError for one given twice.

    Source: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14(4), 1993:
    pairwise summation, whose error grows with the logarithm of N.

    >>> tensorlib.tensor([[1., 2.], [3., 4.]]).sum(dim=0)
    tensor([4., 6.])
    """


sum.op.add_rule("input", expand_reduced, spreads=True)


@op(linear=True, kernel=reductions.mean, maker=make_reduction, out=True,
    reference=over(np.mean),
    samples=given(*DIMS), errors=bad_dims, takes="floating", tolerance="reduction", complex=True)
def mean(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The mean over all elements, or over `dim` (an int or several); NaN for none.

    Shapes: as `sum`.

    Raises: RuntimeError for integers (give a floating `dtype`) and for a dim given twice,
    IndexError for a dim out of range.

    Source: as `sum`.

    >>> tensorlib.tensor([[1., 2.], [3., 4.]]).mean(dim=1, keepdim=True)
    tensor([[1.5000],
            [3.5000]])
    """


mean.vjp("input")(reductions.grad_of_mean)


@op(kernel=reductions.prod, maker=make_reduction, out=True,
    reference=over(whole(np.prod)),
    samples=given(*ONE_DIM, ((0, 3), 0), ((7,),)), tolerance="reduction", complex=True)
def prod(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """The product of all elements, or along one dim; 1 for none. Integers give int64.

    Shapes: as `sum`.

    Gradient: the product of the other elements, exact where some are zero.

    Raises: IndexError for a dim out of range, TypeError for several.

    >>> tensorlib.tensor([[1., 2.], [3., 4.]]).prod(dim=1)
    tensor([ 2., 12.])
    """


def cast_for(x, out):
    """`x` in the dtype of a result, for which it was cast first: complex to real, their real parts.
    """
    return (x.real if x.is_complex() and not out.is_complex() else x).to(out.dtype)


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
@packed_gradient
def prod_vjp(g, input, out, dim, keepdim):
    """Each element's factor is the product of the others, which no division finds at 0."""
    factors = others(cast_for(input, out), out, dim, keepdim)
    return expand_reduced(g, input.shape, dim, keepdim) * factors


@prod.jvp
def prod_jvp(d_input, input, out, dim, keepdim):
    """Each tangent times the product of all other elements, summed."""
    factors = others(cast_for(input, out), out, dim, keepdim)
    return (cast_for(d_input, out) * factors).sum(dim, keepdim)


@op(linear=True, kernel=reductions.cumsum, out=True, inplace=True, tolerance="reduction",
    reference=lambda x, dim: whole(np.cumsum)(np.atleast_1d(x), axis=dim).reshape(x.shape),
    samples=given(((5,), 0), ((3, 4), 0), ((2, 3, 4), -2), ((), 0), ((0, 3), 1)), complex=True)
def cumsum(input: Tensor, dim, dtype=None):
    """The sums of each element and those before it along `dim`. Integers give int64.

    float32 and half types are added in float64, float64 with the errors of its additions, so that
    long sums lose nothing.

    Shapes: the input's.

    Raises: IndexError for a dim out of range.

    Source: Ogita, Rump and Oishi, "Accurate Sum and Dot Product", SIAM J. Sci. Comput. 26(6), 2005.

    >>> tensorlib.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """


@cumsum.vjp("input")
def cumsum_vjp(g, dim):
    """Each element is in all sums from its own on: the running sums of `g` from the end."""
    return backwards(backwards(g, dim).cumsum(dim), dim)


def backwards(x, dim):
    """`x` in reverse order along a dim, as a view."""
    return x[(slice(None),) * (dim % x.ndim) + (slice(None, None, -1),)] if x.ndim else x


def sum_of_known(x, dim=None, keepdim=False):
    """The reference of `nansum`, which takes complex numbers as they are."""
    return over(whole(np.nansum if x.dtype.kind == "f" else np.sum))(x, dim, keepdim)


@op(kernel=reductions.nansum, maker=make_reduction, out=True, tolerance="reduction",
    reference=sum_of_known, samples=given(*DIMS, ((0, 3), 0)), errors=bad_dims, complex=True)
def nansum(input: Tensor, dim=None, keepdim=False, *, dtype=None):
    """`sum` with NaN taken as zero.

    Shapes: as `sum`.

    Raises: IndexError for a dim out of range, RuntimeError for one given twice.

    >>> tensorlib.nansum(tensorlib.tensor([1., float("nan"), 2.]))
    tensor(3.)
    """


def of_known(x, input):
    """`x`, but 0 where `input` is NaN."""
    return x.where(input == input, 0) if input.is_floating_point() else x


@nansum.vjp("input")
def nansum_vjp(g, input, dim, keepdim):
    """g where x is not NaN."""
    return of_known(expand_reduced(g, input.shape, dim, keepdim), input)


@nansum.jvp
def nansum_jvp(d_input, input, out, dim, keepdim):
    """The sum of the tangents where x is not NaN."""
    return of_known(cast_for(d_input, out), input).sum(dim, keepdim)


@op(differentiable=False, kernel=reductions.count_nonzero,
    samples=given(((3, 4),), ((3, 4), 0), ((2, 3, 4), (0, 2)), ((0, 3), 0)),
    reference=lambda x, dim=None: np.count_nonzero(x, axis=dim), complex=True)
def count_nonzero(input: Tensor, dim=None):
    """How many elements are not zero, as int64, over all or over `dim` (an int or several).

    Shapes: (*, N, *) -> (*, *).

    Raises: IndexError for a dim out of range, RuntimeError for one given twice.

    >>> tensorlib.count_nonzero(tensorlib.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """


# ---- truth ---------------------------------------------------------------------------------------

def truth_dtype(input, *_, **__):
    """bool, but uint8 for uint8."""
    return BY_NAME["uint8" if input.dtype is BY_NAME["uint8"] else "bool"]


@op(differentiable=False, kernel=reductions.any, maker=make_reduction, out=True,
    reference=over(np.any),
    samples=given(*ONE_DIM, ((2, 3, 4), (0, 2))), errors=bad_dims, result_dtype=truth_dtype,
    complex=True)
def any(input: Tensor, dim=None, keepdim=False):
    """Whether an element is true (not zero), of all or over `dim` (an int or several).

    bool, but uint8 for uint8, as in PyTorch; an empty sequence of dims reduces none.

    Shapes: as `sum`.

    Raises: IndexError for a dim out of range, RuntimeError for one given twice.
    """


@op(differentiable=False, kernel=reductions.all, maker=make_reduction, out=True,
    reference=over(np.all),
    samples=given(*ONE_DIM, ((2, 3, 4), (0, 2))), errors=bad_dims, result_dtype=truth_dtype,
    complex=True)
def all(input: Tensor, dim=None, keepdim=False):
    """Whether every element is true (not zero), of all or over `dim` (an int or several).

    bool, but uint8 for uint8, as in PyTorch; an empty sequence of dims reduces none.

    Shapes: as `sum`.

    Raises: IndexError for a dim out of range, RuntimeError for one given twice.
    """
