from tensorlib._core.tensor.tensor cimport Tensor

cdef int finish_squares(Tensor x, Tensor center, const Py_ssize_t* sizes, double over, bint root,
                        bint centered, Tensor out) except -1
cdef int divide(Tensor x, double by) except -1
cdef int multiply(Tensor x, Py_ssize_t by) except -1
