"""uint16, uint32 and uint64 as signed integers in the same order.

The loops for extremes, sorting and searching are for signed integers. An unsigned number whose
highest bit is flipped, and which is then read as a signed one, keeps its place in the order: 0
becomes the least number, and the greatest stays the greatest. So these dtypes need no loops.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport ITEMSIZE, signed_twin
from tensorlib._core.base.work cimport run_once
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.copies cimport packed_copy

ctypedef fused word:
    uint16_t
    uint32_t
    uint64_t


cdef void flip(word* x, Py_ssize_t n) noexcept nogil:
    """x := x with the highest bit flipped"""
    cdef word highest = <word>1 << (8 * sizeof(word) - 1)
    cdef Py_ssize_t i
    for i in range(n):
        x[i] ^= highest


cdef int flip_all(Tensor x) except -1:
    """Flips the highest bit of every element of a contiguous tensor."""
    cdef Flip job
    job.x, job.n, job.itemsize = x.data_pointer, x.numel_, ITEMSIZE[x.type]
    return run_once(flip_run, &job, job.x, False)


cdef struct Flip:
    char* x
    Py_ssize_t n, itemsize


cdef void flip_run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Flip* job = <Flip*>context
    if job.itemsize == 2:
        flip(<uint16_t*>job.x, job.n)
    elif job.itemsize == 4:
        flip(<uint32_t*>job.x, job.n)
    else:
        flip(<uint64_t*>job.x, job.n)


cdef Tensor signed_order(Tensor x):
    """`x` itself; or for uint16, uint32 and uint64 a contiguous copy as signed integers."""
    cdef Tensor out
    if signed_twin(x.type) == x.type:
        return x
    out = packed_copy(x, x.type)
    flip_all(out)
    out.type = signed_twin(x.type)
    return out


cdef Tensor restored(Tensor x, int dtype):
    """`x`, a contiguous tensor that `signed_order` made from one of `dtype`, turned back in place.

    For other dtypes it is `x` as it is.
    """
    if signed_twin(dtype) != dtype:
        flip_all(x)
        x.type = dtype
    return x
