"""Reductions of permuted tensors whose kept dims lie in another order in memory, as those of
`x.transpose(0, 1).sum(-1)`.

They are reduced as they lie, and the result, which is smaller, is put in order: the other way is a
copy of the whole tensor.
"""

from tensorlib._core.reduce.arrange cimport by_stride, mark
from tensorlib._core.tensor.tensor cimport Tensor, new_view
from tensorlib._core.tiles.copies cimport packed_copy

cdef enum:
    LEAST = 1024             # elements: fewer are copied in less time than views of them are made


cdef Tensor turn(Turned* turned, Tensor x, int n, const int* dims):
    """`x`, or a view with its dims in their order in memory; fills in `turned`, with the dims to
    reduce of that. The result has to keep these, as of size 1, if `is_turned`."""
    cdef bint is_reduced[MAX_NDIM]
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int among[MAX_NDIM]
    cdef int k, d, last = -1
    turned.is_turned = False
    for k in range(n):
        turned.dims[k] = dims[k]
    if x.packed or x.numel_ < LEAST or x.ndim_ - n < 2:
        return x
    mark(x, n, dims, is_reduced)
    by_stride(x, turned.order)
    n = 0
    for k in range(x.ndim_):
        d = turned.order[k]
        sizes[k], steps[k] = x.dims[d], x.steps[d]
        turned.is_reduced[k] = is_reduced[d]
        if is_reduced[d]:
            among[n] = k
            n += 1
        elif x.dims[d] != 1:
            turned.is_turned = turned.is_turned or d < last
            last = d
    if not turned.is_turned:
        return x
    for k in range(n):
        turned.dims[k] = among[k]
    return new_view(x, x.ndim_, sizes, steps, x.data_pointer)


cdef Tensor turn_back(const Turned* turned, Tensor out, bint keepdim):
    """A result of what `turn` gave, with its dims in their order, and those that were reduced only
    if `keepdim`."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int place[MAX_NDIM]
    cdef int k, d, ndim = 0
    if not turned.is_turned:
        return out
    for k in range(out.ndim_):
        place[turned.order[k]] = k
    for d in range(out.ndim_):
        k = place[d]
        if keepdim or not turned.is_reduced[k]:
            sizes[ndim], steps[ndim] = out.dims[k], out.steps[k]
            ndim += 1
    return packed_copy(new_view(out, ndim, sizes, steps, out.data_pointer), out.type)
