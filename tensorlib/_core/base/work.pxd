"""Where code runs that touches the memory of tensors: here and in the pool, and nowhere else.

Work names memory of a tensor that it reads or writes. Where that is of a tensor on `meta`, which
has none, nothing is done; so who writes a loop hands it in here, and need not think of that. What
is read after the work, such as a count that it found, then has the value that it had before.
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
    """work(context, begin, end) on chunks of [0, n) that have `grain` elements at least: by several
    threads and without the GIL, or, where it is brief, on all of it at once and with the GIL."""
    if in_region(memory):
        return 0
    if brief:
        work(context, 0, n)
        return 0
    return share_out(work, context, n, grain)

cdef inline int run_once(range_fn work, void* context, const void* memory, bint brief) except -1:
    """work(context, 0, 1), which is not cut: without the GIL, unless it is brief."""
    return share(work, context, memory, 1, 1, brief)
