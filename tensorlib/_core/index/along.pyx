"""Writes at positions along a dim, over the elements of the tensor itself. Outside of autograd."""

from tensorlib._core.base.dtypes cimport INT64
from tensorlib._core.index.gather cimport (
    adding, as_vector, check_index, in_range, laying, line, walk, wrapped,
)
from tensorlib._core.tensor.tensor cimport Tensor, same_shape
from tensorlib._core.tiles.copies cimport may_meet, packed_copy


cdef int walk_over(line run, Tensor x, Tensor values, int dim, Tensor index) except -1:
    """Runs along all lines of positions, which are checked before, over the elements of `x` itself.

    Raises: IndexError, RuntimeError.
    """
    cdef Tensor places = index
    cdef Py_ssize_t size = as_vector(x).dims[dim]
    if values.type != x.type or not same_shape(values, index):
        raise RuntimeError("scatter: values and positions differ")
    check_index("scatter", x, dim, index)
    if index.type != INT64 or not index.packed or may_meet(index, x) or (
            not in_range(index, size)):
        places = wrapped(index, size, dim, "scatter")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if not walk(run, as_vector(x), dim, as_vector(places), as_vector(values), True):
        raise IndexError("scatter: the index was written after it was checked")
    return 0


def write_along(Tensor x, Tensor values, int dim, Tensor index, bint adds):
    """Writes values over, or adds them to, the elements of `x` itself at positions along a dim.

    The positions are checked before. Raises: as `written_along`.
    """
    walk_over(adding(x.type) if adds else laying(x.type), x, values, dim, index)
