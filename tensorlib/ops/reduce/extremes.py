"""Maxima and minima: their values, their positions, or both."""

from inspect import signature

import numpy as np

from tensorlib._core.apply.operators import make_reduction
from tensorlib._core.base.results import result_type
from tensorlib._core.reduce import reductions
from tensorlib._core.reduce.reductions import expand_reduced
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, op
from tensorlib.ops.pointwise.arithmetic import maximum, minimum
from tensorlib.ops.reduce.reductions import DIMS, ONE_DIM, over
from tensorlib.ops.samples import given


def empty(*cases):
    """Error samples: empty shapes with a dim (or none), and the error."""
    def generate():
        for shape, dim, error in cases:
            yield (np.ones(shape),), {} if dim is None else {"dim": dim}, error
    return generate


NOTHING_TO_CHOOSE = empty(((0, 3), None, RuntimeError), ((0, 3), 0, IndexError))
NO_PLACE = empty(((0, 3), None, IndexError), ((0, 3), 0, IndexError))


@op(kernel=reductions.amax, maker=make_reduction, out=True,
    reference=over(np.max), samples=given(*DIMS),
    errors=NOTHING_TO_CHOOSE)
def amax(input: Tensor, dim=None, keepdim=False):
    """The largest element of all, or over `dim` (an int or several); NaN if one is.

    Shapes: as `sum`.

    Gradient: evenly among equal largest elements.

    Raises: RuntimeError for no elements at all, IndexError if a dim is empty or not there.

    >>> tensorlib.tensor([[1., 5.], [7., 3.]]).amax(dim=(0, 1))
    tensor(7.)
    """


@op(kernel=reductions.amin, maker=make_reduction, out=True,
    reference=over(np.min), samples=given(*DIMS),
    errors=NOTHING_TO_CHOOSE)
def amin(input: Tensor, dim=None, keepdim=False):
    """The smallest element of all, or over `dim` (an int or several); NaN if one is.

    Shapes: as `sum`.

    Gradient: evenly among equal smallest elements.

    Raises: RuntimeError for no elements at all, IndexError if a dim is empty or not there.
    """


def share(input, out, dim, keepdim):
    """1 over the number of ties where an element is the extreme `out`, else 0."""
    reached = input == expand_reduced(out.detach(), input.shape, dim, keepdim)
    ties = reached.logical_or(input.isnan()).to(input.dtype)
    return ties / ties.sum(dim, True)


@amax.vjp("input")
@amin.vjp("input")
def extreme_vjp(g, input, out, dim, keepdim):
    """The gradient is shared by all elements that are extreme."""
    return expand_reduced(g, input.shape, dim, keepdim) * share(input, out, dim, keepdim)


@amax.jvp
@amin.jvp
def extreme_jvp(d_input, input, out, dim, keepdim):
    """The mean of the tangents of all elements that are extreme."""
    return (d_input * share(input, out, dim, keepdim)).sum(dim, keepdim)


@op(differentiable=False, kernel=reductions.argmax, maker=make_reduction, out=True,
    reference=over(np.argmax),
    samples=given(*ONE_DIM), errors=NO_PLACE, takes="integer floating")
def argmax(input: Tensor, dim=None, keepdim=False):
    """The first place of the largest element (or NaN): along `dim`, or in row-major order of all.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Raises: IndexError if there is none, or for a dim out of range.

    >>> tensorlib.argmax(tensorlib.tensor([2., 7., 7.]))
    tensor(1)
    """


@op(differentiable=False, kernel=reductions.argmin, maker=make_reduction, out=True,
    reference=over(np.argmin),
    samples=given(*ONE_DIM), errors=NO_PLACE, takes="integer floating")
def argmin(input: Tensor, dim=None, keepdim=False):
    """The first place of the smallest element (or NaN): along `dim`, or in row-major order of all.

    Shapes: (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Raises: IndexError if there is none, or for a dim out of range.
    """


Largest = result_type("max", "values indices")
Smallest = result_type("min", "values indices")
Extremes = result_type("aminmax", "min max")


def with_places(values_of, places_of):
    """The reference of `max` and `min` along a dim."""
    return lambda x, dim, keepdim=False: (
        values_of(x, axis=dim, keepdims=keepdim), places_of(x, axis=dim, keepdims=keepdim))


def three_forms(name, whole, of_two):
    """The `convert` of `max` or `min`: of all elements, along a dim, or of two tensors.

    A tensor in the second place is the other one, unless `keepdim` follows; by keyword it is a dim.
    """
    def shown(input: Tensor, dim=None, keepdim=False, *, other=None):
        """What callers see."""

    def convert(input: Tensor, *placed, dim=None, keepdim=None, other=None):
        if placed:
            if len(placed) > (2 if keepdim is None else 1) or dim is not None or other is not None:
                raise TypeError(f"{name}: takes a tensor and either a dim and keepdim or another "
                                "tensor")
            dim = placed[0]
            if len(placed) == 2:
                keepdim = placed[1]
            elif keepdim is None and isinstance(dim, Tensor):
                return [of_two, input, dim]
        if dim is not None and other is None:
            return input, dim, keepdim or False
        if dim is not None:
            raise TypeError(f"{name}: takes either a dim or another tensor")
        if keepdim:
            raise TypeError(f"{name}: keepdim needs a dim")
        return [whole, input] if other is None else [of_two, input, other]
    convert.alone, convert.__signature__ = whole, signature(shown)
    return convert


@op(outputs=("values", "indices"), convert=three_forms("max", amax, maximum), out=True,
    reference=with_places(np.max, np.argmax), errors=empty(((0, 3), 0, IndexError)),
    samples=given(((3, 4), 0), ((3, 4), -1, True), ((2, 3, 4), 1), ((), 0)))
def max(input: Tensor, dim, keepdim=False):
    """The largest element of all; along `dim` a named tuple of the largest `values` and the first
    places, `indices`; with another tensor, `maximum` of both. NaN if one is.

    Shapes: () of all; along a dim (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Gradient: of all elements, evenly among equal ones; along a dim, to the place that was found.

    Raises: RuntimeError for no elements at all, IndexError if the dim is empty or not there,
    TypeError for several dims (see `amax`) and for `keepdim` without one.

    >>> tensorlib.tensor([[1., 5.], [4., 2.]]).max(1).indices
    tensor([1, 0])
    """
    return Largest(*reductions.extreme_along("max", input, dim, keepdim))


@op(outputs=("values", "indices"), convert=three_forms("min", amin, minimum), out=True,
    reference=with_places(np.min, np.argmin), errors=empty(((0, 3), 0, IndexError)),
    samples=given(((3, 4), 0), ((3, 4), -1, True), ((2, 3, 4), 1), ((), 0)))
def min(input: Tensor, dim, keepdim=False):
    """The smallest element of all; along `dim` a named tuple of the smallest `values` and the first
    places, `indices`; with another tensor, `minimum` of both. NaN if one is.

    Shapes: () of all; along a dim (*, N, *) -> (*, *), with `keepdim` (*, 1, *).

    Gradient: of all elements, evenly among equal ones; along a dim, to the place that was found.

    Raises: RuntimeError for no elements at all, IndexError if the dim is empty or not there,
    TypeError for several dims (see `amin`) and for `keepdim` without one.
    """
    return Smallest(*reductions.extreme_along("min", input, dim, keepdim))


@max.vjp("input")
@min.vjp("input")
def along_vjp(g, indices, input_shape, dim, keepdim):
    """The gradient goes to the element that was chosen, one for each result."""
    g = g[0]                                 # the indices have none
    if not input_shape:
        return g
    if not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return put_along(g, indices, dim, input_shape[dim])


@max.jvp
@min.jvp
def along_jvp(d_input, indices, dim, keepdim):
    """The tangents of the elements that were chosen."""
    if keepdim or d_input.ndim == 0:
        return d_input.gather(dim, indices), None
    return d_input.gather(dim, indices.unsqueeze(dim)).squeeze(dim), None


def placed(x, places, dim, size):
    """The reference of `put_along`."""
    whole = np.zeros(x.shape[:dim] + (size,) + x.shape[dim + 1:], x.dtype)
    np.put_along_axis(whole, places, x, dim)
    return whole


@op(linear=True, public=False, method=False, kernel=reductions.put_along, reference=placed,
    samples=given(((2, 1), np.array([[3], [0]]), 1, 4), ((1, 3), np.array([[1, 0, 1]]), 0, 2)),
    checks_values=True)
def put_along(input: Tensor, places, dim, size):
    """Zeros of `size` along `dim` with the elements of `input` at `places`: see `max`."""


@put_along.vjp("input")
def put_along_vjp(g, places, dim):
    """g read at the places: the adjoint of writing there."""
    return g.gather(dim, places)


@composite(outputs=("min", "max"), out=True, reference=lambda x, dim=None, keepdim=False: (
    np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)),
    samples=lambda rng: (((rng.normal(size=(3, 4)),), keywords)
                         for keywords in ({}, {"dim": 0}, {"dim": 1, "keepdim": True})))
def aminmax(input, *, dim=None, keepdim=False):
    """`amin` and `amax` as a named tuple (min, max).

    Shapes: as `sum`.

    Raises: RuntimeError for no elements at all, IndexError if a dim is empty or not there.

    >>> tensorlib.aminmax(tensorlib.tensor([3., 1., 2.]))
    tensorlib.return_types.aminmax(
    min=tensor(1.),
    max=tensor(3.))
    """
    return Extremes(amin(input, dim, keepdim), amax(input, dim, keepdim))
