from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    FILLED = 2048        # elements up to which a buffer of one value is made, not a view

cdef Tensor fold(int kind, Tensor x, int n_reduced, const int* reduced, bint keepdim, int result)
cdef int fold_to(int kind, Tensor x, const char* center, const Py_ssize_t* sizes,
                 Tensor out) except -1
cdef Tensor sum_to(str name, Tensor g, int ndim, const Py_ssize_t* dims)
cdef Tensor arrange(int kind, Tensor x, int n_reduced, const int* reduced, Py_ssize_t* sizes)
cdef Tensor new_reduced(Tensor x, int n_reduced, const int* reduced, bint keepdim, int dtype)
cdef Tensor reduced_last(Tensor x, int n_reduced, const int* reduced, Py_ssize_t* sizes)
cdef int check_status(int status, Tensor x) except -1
cdef int reduced_dims(object dim, int ndim, int* reduced) except -1
cdef inline bint fills(int ndim, const Py_ssize_t* dims, int n_reduced) noexcept:
    """Whether the gradient of a sum is a buffer of one value, and no view."""
    cdef Py_ssize_t numel = 1
    cdef int d
    for d in range(ndim):
        numel *= dims[d]
    return n_reduced == ndim and numel <= FILLED

cdef Tensor expand_over(Tensor g, int ndim, const Py_ssize_t* dims, int n_reduced,
                        const int* reduced, bint keepdim)
cdef Tensor reducible(int kind, Tensor x, int computed)
cdef void mark(Tensor x, int n_reduced, const int* reduced, bint* is_reduced) noexcept
cdef void by_stride(Tensor x, int* order) noexcept
