from tensorlib._core.interpreters.stack cimport plain_call
from tensorlib._core.tensor.tensor cimport Tensor

cdef bint is_for_meta(tuple args, dict kwargs, int n) except -1
cdef object without_elements(plain_call run, object what, tuple args, dict kwargs)
cdef object with_elements(plain_call run, object what, tuple args, dict kwargs)
cdef Tensor new_on(object device, Tensor beside, int dtype, int ndim, const Py_ssize_t* dims)
cdef Tensor data_on(object device, Tensor x)
cdef Tensor twin_on(object device, Tensor x)
