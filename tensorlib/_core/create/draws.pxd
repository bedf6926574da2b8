from tensorlib._core.base.pool cimport range_fn

cdef int run_draw(range_fn run, void* context, Py_ssize_t n) except -1
cdef object largest(int dtype)
