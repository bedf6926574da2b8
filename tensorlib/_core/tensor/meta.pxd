from cpython.object cimport PyObject

from tensorlib._core.base.region cimport in_region, region_size, without_memory
from tensorlib._core.tensor.tensor cimport Tensor

cdef inline bint is_meta(Tensor x) noexcept:
    """Whether a tensor has no memory."""
    return in_region(x.storage.data)

cdef bint any_meta(PyObject** args, int n) except -1
cdef bint meta_among(object values) except -1
cdef int refuse_meta(PyObject** inputs, int n) except -1
cdef object device_beside(Tensor x, object device)
cdef Tensor new_on_meta(int dtype, int ndim, const Py_ssize_t* dims)
cdef object on_meta(object function, tuple args, dict kwargs)

cdef inline bint meta_arguments(PyObject** args, int n) except -1:
    """Whether an operation on these tensors is the first to find that it is to compute nothing."""
    return region_size != 0 and not without_memory()[0] and any_meta(args, n)

cdef inline bint meta_call(object values) except -1:
    """As `meta_arguments`, for what a function was given: tensors, sequences and other values."""
    return region_size != 0 and not without_memory()[0] and meta_among(values)
