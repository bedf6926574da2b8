"""The operations that record a write in place into a view: the base with the new view, and each
view anew as a part of the base.

`place` is where a view lies in its base: sizes, strides and offset of the view, strides and offset
of the base, in elements of the storage.
"""

import numpy as np

from tensorlib._core.layout import rebasing
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import op
from tensorlib.ops.samples import given, given_pairs

# A base of sizes (2, 3), itself transposed in storage, and its second column; a base of sizes (4,)
# and its even elements in reverse.
PLACES = (((2, 3), (2,), ((2,), (1,), 4, (1, 2), 2)), ((4,), (2,), ((2,), (-2,), 2, (1,), 0)))


def viewed(x, place):
    """The reference of `strided_part`."""
    return storage_of(x, place)[positions_in(place)]


def spread(values, shape, place):
    """The reference of `spread_view`."""
    return scattered(np.zeros(shape, values.dtype), values, place)


def scattered(x, values, place):
    """The reference of `view_scatter`."""
    storage = storage_of(x, place)
    storage[positions_in(place)] = values
    return storage[positions_of(x.shape, place[3], place[4])]


def storage_of(x, place):
    """The reference's view of a storage."""
    storage = np.zeros(10, x.dtype)
    storage[positions_of(x.shape, place[3], place[4])] = x
    return storage


def positions_in(place):
    """The reference's positions of a view."""
    return positions_of(*place[:3])


def positions_of(sizes, strides, offset):
    """Where in the storage each element lies."""
    return offset + sum(np.indices(sizes)[d] * stride for d, stride in enumerate(strides))


@op(linear=True, view="maybe", public=False, method=False, reference=viewed,
    samples=given(*((base, place) for base, _, place in PLACES)))
def strided_part(input: Tensor, place):
    """The elements of `input`, a base or a copy of one, where a view of the base lies."""
    return rebasing.take_view(input, place)


@strided_part.vjp("input")
def strided_part_vjp(g, input_shape, place):
    """Zeros with g in the part: the adjoint of reading it."""
    return spread_view(g, input_shape, place)


@op(linear=True, public=False, method=False, reference=spread,
    samples=given(*((view, base, place) for base, view, place in PLACES)), complex=True)
def spread_view(input: Tensor, shape, place):
    """Zeros of a base's shape with `input` added where a view lies: `strided_part` transposed."""
    return rebasing.spread_view(input, shape, place)


@spread_view.vjp("input")
def spread_view_vjp(g, place):
    """The part of g: the adjoint of writing it among zeros."""
    return strided_part(g, place)


@op(linear=True, public=False, method=False, reference=scattered, samples=given_pairs(*PLACES),
    complex=True)
def view_scatter(input: Tensor, value: Tensor, place):
    """`input`, a base or a copy of one, with `value` put where a view lies."""
    return rebasing.scatter_view(input, value, place)


@view_scatter.vjp("input")
def view_scatter_vjp_input(g, value_shape, place):
    """What was written over has no part in the result."""
    return view_scatter(g, g.new_zeros(value_shape), place)


@view_scatter.vjp("value")
def view_scatter_vjp_value(g, place):
    """g where the value lies."""
    return strided_part(g, place)
