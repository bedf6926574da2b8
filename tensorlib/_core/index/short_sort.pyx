"""The sorted elements of short rows, with their positions. Outside autograd."""

from cpython.long cimport PyLong_CheckExact

from tensorlib._core.base.dtypes cimport BOOL, COMPLEX_KIND, INT64, KIND
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.index.gather cimport line_of_gather, walk
from tensorlib._core.reduce.sort_keys cimport ALL, FIRST, RANKED, places_of
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport packed_copy


cdef Tensor with_last(Tensor x, int dim):
    """`x` with this dim and the last one exchanged."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, last = x.ndim_ - 1
    for d in range(x.ndim_):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    dims[dim], dims[last] = x.dims[last], x.dims[dim]
    steps[dim], steps[last] = x.steps[last], x.steps[dim]
    return new_view(x, x.ndim_, dims, steps, x.data_pointer)


def ranked_along(Tensor input, dim, k, bint descending):
    """The k least (or greatest) elements of each row along a dim, in order, and their positions.

    k: None for all. The result is None for what the caller does in another way: more than RANKED
    elements, bools, and arguments that have to be converted or refused.
    """
    cdef Tensor x, places, values
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t along, n, count
    cdef int d
    if not PyLong_CheckExact(dim) or KIND[input.type] == COMPLEX_KIND or input.type == BOOL or (
            not -input.ndim_ <= dim < input.ndim_):
        return None
    along = dim
    along += input.ndim_ if along < 0 else 0
    n = input.dims[along]
    if k is None:
        count = n
    elif PyLong_CheckExact(k) and 0 <= k <= n:
        count = k
    else:
        return None
    if k is not None and count == 0:
        for d in range(input.ndim_):
            dims[d] = 0 if d == along else input.dims[d]
        return new_tensor(input.type, input.ndim_, dims), new_tensor(INT64, input.ndim_, dims)
    if not 0 < count <= RANKED:
        return None
    x = with_last(input, <int>along)         # a view, which keeps the memory while others run
    places = places_of(x, descending, ALL if k is None else FIRST, count)[0]
    values = new_tensor(x.type, places.ndim_, places.dims)
    if not walk(line_of_gather(x.type), x, x.ndim_ - 1, places, values, False):
        raise IndexError("sort: a position is out of bounds")
    if along < x.ndim_ - 1:
        values = packed_copy(with_last(values, <int>along), x.type)
        places = packed_copy(with_last(places, <int>along), INT64)
    return values, places
