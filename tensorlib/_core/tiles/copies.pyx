"""Copies of tensors, cast and laid out anew, and whether two tensors share memory."""

from cpython.object cimport PyObject
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.tensor.lanes cimport gives_lanes, lanes_of, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, over_storage, same_shape
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program

cdef TileProgram copying = TileProgram(1, ())


cdef int copy_into(Tensor target, Tensor source) except -1:
    """target := source, cast and broadcast. They do not overlap, unless they are the same."""
    cdef PyObject* inputs[1]
    inputs[0] = <PyObject*>source
    return run_program(copying.at(target.type), inputs, target)


cdef Tensor packed_copy(Tensor x, int dtype):
    """A new contiguous tensor with the elements of `x` as `dtype`, outside the graph."""
    cdef Tensor result = new_like(x, dtype)
    copy_into(result, x)
    return result


cdef Tensor packed(Tensor x):
    """`x` itself if it is contiguous, else a contiguous copy."""
    return x if x.packed else packed_copy(x, x.type)


cdef Tensor cast(Tensor x, int dtype):
    """`x` itself if it has this dtype, else a contiguous copy."""
    return x if x.type == dtype else packed_copy(x, dtype)


cdef Tensor new_arranged_as(Tensor x, int dtype):
    """A new tensor of the sizes of `x`, its dims in the same order in memory, without gaps."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef bint placed[MAX_NDIM]
    cdef Py_ssize_t expected = 1
    cdef int d, chosen, _
    cdef Tensor y
    if x.packed:
        return new_like(x, dtype)
    for d in range(x.ndim_):
        placed[d] = False
    for _ in range(x.ndim_):             # place the dims from the innermost outwards
        chosen = -1
        for d in range(x.ndim_ - 1, -1, -1):
            if not placed[d] and (chosen < 0 or x.steps[d] < x.steps[chosen]):
                chosen = d
        placed[chosen] = True
        if x.steps[chosen] <= 0:
            return new_like(x, dtype)
        steps[chosen] = expected
        expected *= x.dims[chosen]
    y = new_like(x, dtype)
    return over_storage(y.storage, y.data_pointer, dtype, x.ndim_, x.dims, steps)


cdef Tensor arranged_copy(Tensor x, int dtype):
    """A new tensor with the elements of `x` as `dtype`, its dims in the same order in memory."""
    cdef Tensor result = new_arranged_as(x, dtype)
    copy_into(result, x)
    return result


cdef Tensor laid(Tensor x, int dtype, bint lanes):
    """(N, C, *) as `dtype` without gaps: its channels beside each other, or else row by row."""
    cdef Tensor result
    if not lanes:
        return packed(cast(x, dtype))
    if x.type == dtype and (lanes_of(x) or x.packed and gives_lanes(x)):
        return x
    result = new_like(x, dtype)
    lay_lanes(result)
    copy_into(result, x)
    return result


cdef int zero(Tensor x) except -1:
    """Sets every element of a tensor without gaps to zero."""
    run_alone(clear, x.data_pointer, x.data_pointer, x.numel_ * ITEMSIZE[x.type])
    return 0


cdef void clear(void* data, Py_ssize_t begin, Py_ssize_t nbytes) noexcept nogil:
    memset(data, 0, nbytes)


# ---- shared memory -------------------------------------------------------------------------------

cdef bint may_overlap(Tensor a, Tensor b) noexcept:
    """Whether the memory that two tensors span meets, other than element by element."""
    cdef int d
    cdef bint alike
    if a.numel_ == 0 or b.numel_ == 0:
        return False
    alike = a.data_pointer == b.data_pointer and a.type == b.type and same_shape(a, b)
    if alike:
        for d in range(a.ndim_):
            alike = alike and (a.steps[d] == b.steps[d] or a.dims[d] == 1)
        if alike:
            return False
    return may_meet(a, b)


cdef bint may_meet(Tensor a, Tensor b) noexcept:
    """Whether the memory that two tensors span meets, be it element by element."""
    cdef char* low_a
    cdef char* low_b
    cdef char* high_a
    cdef char* high_b
    if a.numel_ == 0 or b.numel_ == 0:
        return False
    extent(a, &low_a, &high_a)
    extent(b, &low_b, &high_b)
    return low_a < high_b and low_b < high_a


cdef void extent(Tensor x, char** low, char** high) noexcept:
    cdef Py_ssize_t size = ITEMSIZE[x.type], reach
    cdef int d
    low[0] = x.data_pointer
    high[0] = x.data_pointer + size
    for d in range(x.ndim_):
        reach = (x.dims[d] - 1) * x.steps[d] * size
        if reach > 0:
            high[0] += reach
        else:
            low[0] += reach
