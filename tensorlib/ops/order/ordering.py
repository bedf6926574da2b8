"""The permutations that sort along a dim, by NumPy's sorts of keys (_core/reduce/order.pyx).

Of equal elements the first comes first, NaN is greater than all numbers, and -0.0 is 0.0.
"""

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import wrap
from tensorlib._core.interpreters.foreign import elements_known
from tensorlib._core.layout import views
from tensorlib._core.reduce.order import few_places, order_keys, short_kth, short_places
from tensorlib.ops.foreign import within_memory

INT64 = BY_NAME["int64"]
LONG_ROW = 4096        # elements from which on most are left out before the largest are sorted
SHORT_ROW = 64         # elements up to which a loop puts all of them in order
# Elements of 8 bytes that are found by going along a row once, at most 16. Of shorter ones NumPy's
# partition finds more than 4 faster, in 65,536 random ones by 1.1 times, in ordered ones by 2.
FEW = 16
GROUP = 32             # elements of which only the largest is looked at first


def along_last(name, input, dim, places_in, count=None):
    """The positions that a function gives for the rows of `input` along a dim, in the place of it.

    The function takes a tensor of at least one dim, and gives a tensor or an array of `count`
    positions for each row (None: as many as there are). Raises: IndexError, OutOfMemoryError.
    """
    dim = wrap(name, dim, input.ndim)
    turned = views.reshape(input, (1,)) if input.ndim == 0 else (
        input if dim == input.ndim - 1 else views.transpose(input, dim, -1))
    if elements_known(turned):
        found = within_memory(name, lambda: places_in(turned))
        found = from_numpy(found) if isinstance(found, np.ndarray) else found
    else:
        found = turned.new_empty(
            (*turned.shape[:-1], turned.shape[-1] if count is None else count), dtype=INT64)
    if input.ndim == 0:
        return views.reshape(found, ())
    return found if turned is input else views.clone(views.transpose(found, dim, -1))


def refuse_no_place(name, x, dim):
    """Raises IndexError where a dim has no element to choose."""
    if x.ndim and x.shape[wrap(name, dim, x.ndim)] == 0:
        raise IndexError(f"{name}: expected dim {dim} to have a size that is not 0")


# ---- places in the last dim ----------------------------------------------------------------------

def sorted_places(x, descending=False):
    """The positions that sort each row, as an array."""
    if 0 < x.shape[-1] <= SHORT_ROW:
        return short_places(x, descending, x.shape[-1]).numpy()
    keys, bits = order_keys(x, descending)
    array = keys.numpy()
    if bits:
        array.sort()
        array &= (1 << bits) - 1
        return array
    if array.shape[-1] >= 1 << 31:
        return np.argsort(array, kind="stable")
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
    return short_places(x, descending, n) if 0 < n <= SHORT_ROW else sorted_places(x, descending)


def kth_places(x, k):
    """The positions of the k-th smallest elements (k is at least 1) of each row, in one column, as
    a tensor or an array."""
    if x.shape[-1] <= SHORT_ROW:
        return short_kth(x, k)
    keys, bits = order_keys(x, False)
    array = keys.numpy()
    if not bits:
        return np.argpartition(array, k - 1)[..., k - 1:k]
    array.partition(k - 1)
    return array[..., k - 1:k] & (1 << bits) - 1


def top_places(x, k, largest):
    """The positions of the k largest or smallest elements of each row, in order, as a tensor or an
    array."""
    n = x.shape[-1]
    rows = x.numel() // n if n else 0
    if k == 0:
        return np.empty((*x.shape[:-1], 0), np.int64)
    if n >= LONG_ROW and n >= 4 * GROUP * k and 0 < k and rows * LONG_ROW <= 4 * x.numel():
        found = [few_candidates(row, k, largest) for row in numbers(x).reshape(-1, n)]
        return np.stack(found).reshape(*x.shape[:-1], k)
    if n <= SHORT_ROW:
        return short_places(x, largest, k)
    if k <= (FEW if x.itemsize == 8 else FEW // 4):
        return few_places(x, largest, k)
    keys, bits = order_keys(x, largest)
    array = keys.numpy()
    if not bits:
        return sorted_places(x, largest)[..., :k]
    if 0 < k < n:
        array.partition(k - 1)
    chosen = array[..., :k].copy()
    chosen.sort()
    chosen &= (1 << bits) - 1
    return chosen


def numbers(x):
    """A tensor outside the graph as an array of numbers that NumPy is fast with."""
    return (x.detach().float() if x.itemsize == 2 and x.is_floating_point() else x.detach()).numpy()


def few_candidates(row, k, largest):
    """The positions of the k largest or smallest elements of a long array, in order.

    The k-th largest of the largest elements of groups is a bound that few others reach.
    """
    groups = len(row) // GROUP
    grouped = row[:groups * GROUP].reshape(GROUP, groups)
    if largest:
        bound = np.partition(grouped.max(0), groups - k)[groups - k]
        mask = ~(row < bound) if row.dtype.kind == "f" else row >= bound     # NaN is among them
    else:
        least = (np.fmin if row.dtype.kind == "f" else np.minimum).reduce(grouped, 0)
        bound = np.partition(least, k - 1)[k - 1]
        mask = ~(row > bound) if bound != bound else row <= bound
    candidates = np.flatnonzero(mask)
    keys, bits = order_keys(from_numpy(row[candidates]), largest)
    array = keys.numpy()
    if not bits:
        return candidates[sorted_places(from_numpy(row[candidates]), largest)[:k]]
    if k < len(array):
        array.partition(k - 1)
    chosen = np.sort(array[:k])
    return candidates[chosen & (1 << bits) - 1]
