"""uint16, uint32 and uint64 as signed integers that are ordered as they are.

What looks for extremes, sorts or searches has loops for signed integers. With its highest bit
flipped an unsigned number, read as a signed one, has the place in the order that it had: 0 becomes
the least, the largest stays the largest. So these dtypes need no loops of their own.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from tensorlib._core.base.dtypes cimport ITEMSIZE, signed_twin
from tensorlib._core.base.region cimport in_region
from tensorlib._core.base.storage cimport work_begins, work_ends
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
    cdef Py_ssize_t n = x.numel_, size = ITEMSIZE[x.type]
    cdef char* data = x.data_pointer
    cdef int era
    if in_region(data):
        return 0
    era = work_begins()
    with nogil:
        if size == 2:
            flip(<uint16_t*>data, n)
        elif size == 4:
            flip(<uint32_t*>data, n)
        else:
            flip(<uint64_t*>data, n)
    return work_ends(era)


cdef Tensor signed_order(Tensor x):
    """`x` itself, or of uint16, uint32 and uint64 a contiguous copy as signed integers."""
    cdef Tensor out
    if signed_twin(x.type) == x.type:
        return x
    out = packed_copy(x, x.type)
    flip_all(out)
    out.type = signed_twin(x.type)
    return out


cdef Tensor restored(Tensor x, int dtype):
    """`x`, contiguous elements of what `signed_order` made of `dtype`, turned back in place.

    What it left as it was stays so.
    """
    if signed_twin(dtype) != dtype:
        flip_all(x)
        x.type = dtype
    return x
