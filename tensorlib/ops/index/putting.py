"""Copies with values where an index expression picks, written or added."""

import numpy as np

from tensorlib._core.create.ranges import arange
from tensorlib._core.index.keys import parse, put, take
from tensorlib._core.interpreters.foreign import elements_known
from tensorlib._core.layout import views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import op
from tensorlib.ops.index.indexing import KEYS, added_at, getitem
from tensorlib.ops.samples import given_pairs


def put_at(x, values, key):
    """The reference of `put_index`."""
    x = x.copy()
    x[key] = values
    return x


@op(linear=True, public=False, method=False, reference=put_at,
    prepare=lambda x, values, key: (x, values, parse(x, key)),
    samples=given_pairs(*(((3, 4), picked, key) for key, picked in KEYS),
                        ((3, 4), (4,), slice(1, 3)), ((3, 4), (), ...),
                        ((3, 4), (1, 1, 4), slice(1, 3)), ((3, 4), (1, 4), 1)), checks_values=True,
    key="index", complex=True)
def put_index(input: Tensor, values: Tensor, index):
    """A copy of `input` with `values` where the index expression picks, as `x[key] = values`."""
    base = views.clone(input)
    put(base, index, views.to_dtype(values, input.dtype), False)
    return base


@put_index.vjp("input")
def put_index_vjp_input(g, values_shape, index):
    """What was written over has no part in the result."""
    return put_index(g, g.new_zeros(()), index)


@put_index.vjp("values")
def put_index_vjp_values(g, values_shape, index):
    """Each value's gradient is that of its place; of several at one place the last has it."""
    picked = getitem(g, index)
    if picks_twice(index):           # of values put at one place the last remains
        order = arange(picked.numel()).reshape(picked.shape)
        last = views.zeros(g.shape, order.dtype)
        put(last, index, order, False)
        picked = picked.where(take(last, index) == order, 0.0)
    return with_dims_of(values_shape, picked)


def with_dims_of(values_shape, picked):
    """What was picked: values may have more dims than there are places, of size 1 and in front."""
    more = len(values_shape) - picked.ndim
    return picked.reshape((1,) * more + tuple(picked.shape)) if more > 0 else picked


@op(linear=True, public=False, method=False, reference=lambda x, values, key: x + added_at(
        values, x.shape, key), tolerance="reduction",
    prepare=lambda x, values, key: (x, values, parse(x, key)),
    samples=given_pairs(*(((3, 4), picked, key) for key, picked in KEYS),
                        ((3, 4), (4,), slice(1, 3))), checks_values=True, key="index", complex=True)
def add_index(input: Tensor, values: Tensor, index):
    """A copy of `input` with `values` added, one after the other, where the index expression picks.
    """
    base = views.clone(input)
    put(base, index, views.to_dtype(values, input.dtype), True)
    return base


@add_index.vjp("input")
def add_index_vjp_input(g):
    """g"""
    return g


@add_index.vjp("values")
def add_index_vjp_values(g, values_shape, index):
    """g[index], since y = x with values added at the index"""
    return with_dims_of(values_shape, getitem(g, index))


def picks_twice(index):
    """Whether an index expression may pick an element more than once."""
    place = 0
    for one in index.places:
        if not elements_known(one):
            return True
        array = one.numpy().reshape(-1)
        place = place * (array.max(initial=0) + 1) + array
    return bool(index.places) and np.bincount(place).max(initial=0) > 1
