"""The bytes of a tensor as elements of another dtype."""

from libc.stdint cimport uintptr_t

from tensorlib._core.base.dtypes cimport ITEMSIZE, dtype_id, dtype_object
from tensorlib._core.base.shape cimport MAX_NDIM, times
from tensorlib._core.tensor.tensor cimport Tensor, over_storage


def view_dtype(Tensor x, dtype):
    """The memory of `x` as elements of another dtype, outside the graph.

    The last dim becomes longer for smaller elements and shorter for larger ones.
    Raises: RuntimeError where the memory cannot be cut so, TypeError for what is no dtype.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int id = dtype_id(dtype), last = x.ndim_ - 1, d
    cdef Py_ssize_t old = ITEMSIZE[x.type], new = ITEMSIZE[id]
    for d in range(x.ndim_):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    if old != new:
        if last < 0:
            refuse(x, id, "it has no dims")
        if steps[last] != 1 and dims[last] > 1 and x.numel_:
            refuse(x, id, f"the elements of its last dim lie {steps[last]} apart")
        steps[last] = 1
    if old > new:
        dims[last] = times(dims[last], old // new)
        for d in range(last):
            steps[d] = times(steps[d], old // new)
    elif old < new:
        if dims[last] % (new // old):
            refuse(x, id, f"the size of its last dim, {dims[last]}, is not divisible by "
                          f"{new // old}")
        dims[last] //= new // old
        for d in range(last):
            if steps[d] % (new // old) and dims[d] > 1 and x.numel_:
                refuse(x, id, f"the step of dim {d}, {steps[d]}, is not divisible by {new // old}")
            steps[d] //= new // old
    if <uintptr_t>x.data_pointer % new:
        refuse(x, id, f"its memory does not begin at a multiple of {new} bytes")
    return over_storage(x.storage, x.data_pointer, id, x.ndim_, dims, steps)


cdef int refuse(Tensor x, int id, str reason) except -1:
    raise RuntimeError(f"view: a tensor of {x.dtype} can't be viewed as {dtype_object(id)}, whose "
                       f"elements have another size: {reason} (shape {tuple(x.shape)})")
