from tensorlib._core.base.pool cimport range_fn

cdef void run_draw(range_fn run, void* context, Py_ssize_t n) noexcept
cdef object largest(int dtype)
