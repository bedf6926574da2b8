"""Tensors without memory: `device="meta"`.

An operation that is given one finds out the shape, strides and dtype of its result, and computes
nothing: it runs as always, in a mode of the thread in which all that is allocated has no memory
(`base/region.pyx`) and no loop runs.
"""

from cpython.object cimport PyObject, PyObject_Call

from tensorlib._core.base.region cimport reserve, without_memory
from tensorlib._core.base.storage cimport Storage, allocate
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, over_storage

from tensorlib._core.base.device import META


class NoData(NotImplementedError, TypeError):
    """What needs elements was asked of a tensor that has none. PyTorch's errors for it are both."""

    __module__ = "tensorlib"


cdef int refuse_mixed(Tensor x) except -1:
    raise RuntimeError(
        "expected all tensors to be on the same device, but found at least two devices, meta and "
        f"cpu (a tensor of shape {tuple(x.shape)}); beside tensors on meta, those with elements "
        "may be numbers only, of no dims")


cdef bint any_meta(PyObject** args, int n) except -1:
    """Whether one of the tensors has no memory. Raises: RuntimeError beside others with dims."""
    cdef bint found = False
    cdef int i
    for i in range(n):
        found = found or is_meta(<Tensor>args[i])
    if found:
        for i in range(n):
            if (<Tensor>args[i]).ndim_ and not is_meta(<Tensor>args[i]):
                refuse_mixed(<Tensor>args[i])
    return found


cdef bint meta_among(object values) except -1:
    """As `any_meta`, of the tensors among values and in the sequences among them."""
    cdef bint found = False
    cdef Tensor other = None
    for value in values:
        for part in (value if type(value) is list or type(value) is tuple else (value,)):
            if isinstance(part, Tensor):
                if is_meta(<Tensor>part):
                    found = True
                elif (<Tensor>part).ndim_:
                    other = <Tensor>part
    if found and other is not None:
        refuse_mixed(other)
    return found


cdef object on_meta(object function, tuple args, dict kwargs):
    """What a function gives while all that is allocated has no memory."""
    without_memory()[0] = True
    try:
        result = PyObject_Call(function, args, kwargs)
        if isinstance(result, Tensor):
            return emptied(<Tensor>result)
        if isinstance(result, (tuple, list)):
            found = [emptied(<Tensor>x) if isinstance(x, Tensor) else x for x in result]
            return type(result)(*found) if hasattr(result, "_fields") else type(result)(found)
        return result
    finally:
        without_memory()[0] = False


cdef Tensor emptied(Tensor x):
    """A result, which an operation may have computed (positions, say), without its elements."""
    cdef Storage storage
    if is_meta(x):
        return x
    storage = allocate(x.storage.nbytes)
    return over_storage(storage, storage.data + (x.data_pointer - x.storage.data), x.type, x.ndim_,
                        x.dims, x.steps)


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


def made_on_meta(function, *args, **kwargs):
    """What a function that makes a tensor gives on `meta`."""
    reserve(0)                        # from here on there are addresses without memory
    if without_memory()[0]:
        return function(*args, **kwargs)
    return on_meta(function, args, kwargs)


def refuse_reading(str name, Tensor x):
    """Raises NoData for a tensor without elements to read."""
    if is_meta(x):
        raise NoData(f"{name}: cannot be called on meta tensors: there are no elements to read "
                     f"(shape {tuple(x.shape)})")
