from cpython.object cimport PyObject

from tensorlib._core.base.region cimport in_region
from tensorlib._core.tensor.tensor cimport Tensor

cdef inline bint is_meta(Tensor x) noexcept:
    """Whether a tensor has no memory."""
    return in_region(x.storage.data)

cdef int refuse_meta(PyObject** inputs, int n) except -1
cdef int raise_no_data(str name, Tensor x, error) except -1
cdef Tensor new_in_mode(bint absent, int dtype, int ndim, const Py_ssize_t* dims)

cdef inline char* elements(str name, Tensor x, error=None) except? NULL:
    """The address of the elements, for the function `name`, which reads them outside of a loop.

    Raises: NoData, or another error, for a tensor without any.
    """
    if is_meta(x):
        raise_no_data(name, x, error)
    return x.data_pointer
