"""Work on the memory of tensors that is long enough to release the GIL."""

from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.pool cimport parallel_for


cdef int share_out(range_fn work, void* context, Py_ssize_t n, Py_ssize_t grain) except -1:
    cdef int epoch = work_begins()
    with nogil:
        parallel_for(work, context, n, grain)
    return work_ends(epoch)
