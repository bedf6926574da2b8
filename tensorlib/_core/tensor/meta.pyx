"""Tensors without memory: `device="meta"`."""

from cpython.object cimport PyObject

from tensorlib._core.base.region cimport without_memory
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor


class NoData(NotImplementedError, TypeError):
    """An operation needs the elements of a tensor on `meta`. PyTorch raises either of the bases."""

    __module__ = "tensorlib"


cdef int refuse_meta(PyObject** inputs, int n) except -1:
    """Raises NoData for a tensor on `meta`, whose elements are to be read."""
    cdef int i
    for i in range(n):
        if is_meta(<Tensor>inputs[i]):
            raise NoData("cannot copy out of a meta tensor: it has no elements (shape "
                         f"{tuple((<Tensor>inputs[i]).shape)})")
    return 0


cdef Tensor new_in_mode(bint absent, int dtype, int ndim, const Py_ssize_t* dims):
    """A tensor without memory, or with it, in whatever mode this thread is.

    Raises: RuntimeError or MemoryError for its sizes.
    """
    cdef int* mode = without_memory()
    cdef int before = mode[0]
    if before == absent:
        return new_tensor(dtype, ndim, dims)
    mode[0] = absent
    try:
        return new_tensor(dtype, ndim, dims)
    finally:
        mode[0] = before


cdef int raise_no_data(str name, Tensor x, error) except -1:
    raise (NoData if error is None else error)(
        f"{name}: cannot be called on meta tensors: there are no elements to read (shape "
        f"{tuple(x.shape)})")
