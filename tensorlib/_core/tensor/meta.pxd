from cpython.object cimport PyObject

from tensorlib._core.base.region cimport in_region
from tensorlib._core.tensor.tensor cimport Tensor

cdef inline bint is_meta(Tensor x) noexcept:
    """Whether a tensor has no memory."""
    return in_region(x.storage.data)

cdef int refuse_meta(PyObject** inputs, int n) except -1
cdef object device_beside(Tensor x, object device)
cdef Tensor new_on_meta(int dtype, int ndim, const Py_ssize_t* dims)
