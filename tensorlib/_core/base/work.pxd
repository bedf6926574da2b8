"""Runs all code that accesses the memory of tensors, together with the pool.

Work is passed an address of a tensor that it reads or writes. If that is of a tensor on `meta`,
which has no memory, nothing is done, so loops need no test for it. Results of the work, such as a
count, then keep the values that they had before.
"""

from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.region cimport in_region

cdef int share_out(range_fn work, void* context, Py_ssize_t n, Py_ssize_t grain) except -1

cdef inline void run_alone(range_fn work, void* context, const void* memory,
                           Py_ssize_t n) noexcept nogil:
    """work(context, 0, n) in this thread."""
    if not in_region(memory):
        work(context, 0, n)

cdef inline int share(range_fn work, void* context, const void* memory, Py_ssize_t n,
                      Py_ssize_t grain, bint brief) except -1:
    """work(context, begin, end) on chunks of [0, n) of at least `grain` elements: by several
    threads and without the GIL or, if it is brief, on the whole range and with the GIL."""
    if in_region(memory):
        return 0
    if brief:
        work(context, 0, n)
        return 0
    return share_out(work, context, n, grain)

cdef inline int run_once(range_fn work, void* context, const void* memory, bint brief) except -1:
    """work(context, 0, 1), which is not divided: without the GIL, unless it is brief."""
    return share(work, context, memory, 1, 1, brief)
