"""The permutations that sort along a dim, by sort keys (_core/reduce/sort_keys.pyx).

Of equal elements the first comes first, NaN is greater than all numbers, and -0.0 is 0.0.
"""

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import wrap
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.index.gather import take_along
from tensorlib._core.interpreters.foreign import elements_known
from tensorlib._core.layout import views
from tensorlib._core.reduce.radix_sort import keys_in_order, places_in_order
from tensorlib._core.reduce.sort_keys import least_places, order_keys, short_places
from tensorlib._core.tensor.tensor import Tensor

INT64, FLOAT64 = BY_NAME["int64"], BY_NAME["float64"]
SHORT_ROW = 64         # elements that a loop puts in order: all of a row, or the least of it
LONG_ROW = 512         # elements from which on digits are counted, and not elements compared
FEW_KEYS = 2048        # without positions, for which what NumPy's calls cost beside is too much


def memory_order(x):
    """The dims from the outermost in memory to the innermost, where that is another order."""
    steps = x.stride()
    order = sorted(range(x.ndim), key=lambda dim: -steps[dim])
    return None if min(steps) <= 0 or order == [*range(x.ndim)] else order


def lying_as(x, dim, order, function, permute):
    """What `function(x, dim)` gives, as a sequence of tensors whose dims lie in an order."""
    found = function(permute(x, order), order.index(wrap("sort", dim, x.ndim)))
    back = sorted(range(x.ndim), key=order.__getitem__)
    return [permute(y, back) for y in found]


def along_last(name, input, dim, places_in, count=None):
    """The positions that a function gives for the rows of `input` along a dim, in the place of it.

    The function takes a tensor of at least one dim, and gives a tensor or an array of `count`
    positions for each row (None: as many as there are). Raises: IndexError, OutOfMemoryError.
    """
    ndim = input.ndim
    dim = wrap(name, dim, ndim)
    turned = views.reshape(input, (1,)) if ndim == 0 else (
        input if dim == ndim - 1 else views.transpose(input, dim, -1))
    if elements_known(turned):
        try:
            found = places_in(turned)
        except MemoryError as error:
            raise OutOfMemoryError(f"{name}: {error}") from None
        found = found if isinstance(found, Tensor) else from_numpy(found)
    else:
        found = turned.new_empty(
            (*turned.shape[:-1], turned.shape[-1] if count is None else count), dtype=INT64)
    if ndim == 0:
        return views.reshape(found, ())
    return found if turned is input else views.contiguous_copy(views.transpose(found, dim, -1))


def refuse_no_place(name, x, dim):
    """Raises IndexError where a dim has no element to choose."""
    if x.ndim and x.shape[wrap(name, dim, x.ndim)] == 0:
        raise IndexError(f"{name}: expected dim {dim} to have a size that is not 0")


# ---- places in the last dim ----------------------------------------------------------------------

def sorted_places(x, descending=False):
    """The positions that sort each row, as an array."""
    if 0 < x.shape[-1] <= SHORT_ROW:
        return short_places(x, descending).numpy()
    keys, bits = order_keys(x, descending)
    if keys.shape[-1] >= LONG_ROW or not bits and keys.numel() <= FEW_KEYS:
        return places_in_order(keys, bits).numpy()
    array = keys.numpy()
    if bits:
        array.sort()
        array &= (1 << bits) - 1
        return array
    order = np.argsort(array)               # which is vectorized, and leaves ties in any order
    ranked = np.take_along_axis(array, order, -1)
    differs = ranked[..., 1:] != ranked[..., :-1]
    if differs.all():
        return order
    array[..., 0] = 0
    np.cumsum(differs, -1, out=array[..., 1:])
    array <<= 32
    array |= order
    array.sort()
    array &= (1 << 32) - 1
    return array


def order_of_rows(x, descending=False):
    """The same as a tensor or an array, whichever is at hand."""
    n = x.shape[-1]
    return short_places(x, descending) if 0 < n <= SHORT_ROW else sorted_places(x, descending)


def top_places(x, k, largest):
    """The positions of the k largest or smallest elements of each row, in order, as a tensor or an
    array."""
    if k == 0:
        return x.new_empty((*x.shape[:-1], 0), dtype=INT64)
    if 4 * k >= x.size(-1) >= LONG_ROW and x.dtype is not FLOAT64:    # to sort all takes no longer
        return np.ascontiguousarray(sorted_places(x, largest)[..., :k])
    found, bits = least_places(x, largest, k)
    if k <= SHORT_ROW:
        return found
    array = found.numpy()
    if not bits:
        chosen = take_along(x, x.ndim - 1, found)        # of which equal ones are in their order
        return np.take_along_axis(array, sorted_places(chosen, largest), -1)
    if k >= LONG_ROW:
        keys_in_order(found, 0)
    else:
        array.sort()
    array &= (1 << bits) - 1
    return found


def numbers(x):
    """A tensor outside the graph as an array of numbers that NumPy is fast with."""
    return (x.detach().float() if x.itemsize == 2 and x.is_floating_point() else x.detach()).numpy()
