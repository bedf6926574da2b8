"""Tensors without memory: `device="meta"`."""

from cpython.object cimport PyObject

from tensorlib._core.base.region cimport reserve, without_memory
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor

from tensorlib._core.base.device import META


class NoData(NotImplementedError, TypeError):
    """What needs elements was asked of a tensor that has none. PyTorch's errors for it are both."""

    __module__ = "tensorlib"


cdef int refuse_meta(PyObject** inputs, int n) except -1:
    """Raises NoData where a tensor that is to be read has no elements."""
    cdef int i
    for i in range(n):
        if is_meta(<Tensor>inputs[i]):
            raise NoData("cannot copy out of a meta tensor: it has no elements (shape "
                         f"{tuple((<Tensor>inputs[i]).shape)})")
    return 0


cdef object device_beside(Tensor x, object device):
    """The device asked for, else that of a tensor."""
    return META if device is None and is_meta(x) else device


cdef Tensor new_on_meta(int dtype, int ndim, const Py_ssize_t* dims):
    """A tensor without memory. Raises RuntimeError or MemoryError for its sizes."""
    cdef int before
    reserve(0)                        # from here on there are addresses without memory
    before = without_memory()[0]
    without_memory()[0] = True
    try:
        return new_tensor(dtype, ndim, dims)
    finally:
        without_memory()[0] = before


def refuse_reading(str name, Tensor x):
    """Raises NoData for a tensor without elements to read."""
    if is_meta(x):
        raise NoData(f"{name}: cannot be called on meta tensors: there are no elements to read "
                     f"(shape {tuple(x.shape)})")
