"""The device `meta`: operations on tensors without memory.

An operation on such a tensor determines the shape, strides and dtype of its result, and computes
nothing: it runs as usual, but in a mode of the thread in which allocations have no memory
(`base/region.pyx`) and no loop runs.
"""

from tensorlib._core.base.region cimport makes_meta, region_size, reserve, without_memory
from tensorlib._core.base.storage cimport Storage, allocate
from tensorlib._core.interpreters.stack cimport plain_call
from tensorlib._core.tensor.meta cimport is_meta, new_in_mode
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, over_storage

from tensorlib._core.base.device import is_meta_device
from tensorlib._core.base.region import set_default_meta


cdef bint is_for_meta(tuple args, dict kwargs, int n) except -1:
    """Whether a call has a tensor on `meta`, and is not inside another such call.

    Only the first `n` arguments count, all for -1. Raises: RuntimeError if tensors other than
    numbers have memory.
    """
    if region_size == 0 or without_memory()[0]:
        return False
    if n >= 0:
        return meta_among(args[:n])
    if kwargs is not None and "out" in kwargs:
        return meta_among((*args, *kwargs.values()))
    return meta_among(args) or (kwargs is not None and meta_among(kwargs.values()))


cdef int refuse_mixed(Tensor x) except -1:
    raise RuntimeError(
        "expected all tensors to be on the same device, but found at least two devices, meta and "
        f"cpu (a tensor of shape {tuple(x.shape)}); beside tensors on meta, those with elements "
        "may be numbers only, of no dims")


cdef bint meta_among(object values) except -1:
    """Whether a tensor among the values, or in a sequence among them, has no memory."""
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


cdef object without_elements(plain_call run, object what, tuple args, dict kwargs):
    """The result of a call that runs without allocating memory."""
    without_memory()[0] = True
    try:
        return all_emptied(run(what, args, kwargs))
    finally:
        without_memory()[0] = False


cdef object with_elements(plain_call run, object what, tuple args, dict kwargs):
    """The result of a call on tensors with elements while the default device is `meta`."""
    set_default_meta(False)
    try:
        return run(what, args, kwargs)
    finally:
        set_default_meta(True)


cdef object all_emptied(object result):
    """The result of a call with its tensors moved to `meta`."""
    if isinstance(result, Tensor):
        return emptied(<Tensor>result)
    if isinstance(result, (tuple, list)):
        found = [emptied(<Tensor>x) if isinstance(x, Tensor) else x for x in result]
        return type(result)(*found) if hasattr(result, "_fields") else type(result)(found)
    return result


cdef Tensor emptied(Tensor x):
    """A result, which may have been computed (positions, say), without its elements."""
    cdef Storage storage
    if is_meta(x):
        return x
    storage = allocate(x.storage.nbytes)
    return over_storage(storage, storage.data + (x.data_pointer - x.storage.data), x.type, x.ndim_,
                        x.dims, x.steps)


# ---- tensors that are made -----------------------------------------------------------------------

cdef bint goes_to_meta(object device) except -1:
    """Whether new tensors on a device (None: the default one) have no memory."""
    return makes_meta() if device is None else is_meta_device(device)


cdef Tensor new_on(object device, Tensor beside, int dtype, int ndim, const Py_ssize_t* dims):
    """A new tensor on a device, by default that of the tensor `beside`, if there is one.

    Raises: RuntimeError or MemoryError for its sizes.
    """
    if not (goes_to_meta(device) if device is not None or beside is None else is_meta(beside)):
        return new_tensor(dtype, ndim, dims)
    reserve(0)                        # from here on addresses without memory exist
    return new_in_mode(True, dtype, ndim, dims)


cdef Tensor data_on(object device, Tensor x):
    """A new tensor made of data; if it is to be on `meta`, one of its shape and dtype."""
    return x if is_meta(x) or not goes_to_meta(device) else new_on(
        device, None, x.type, x.ndim_, x.dims)


cdef Tensor twin_on(object device, Tensor x):
    """A tensor on a device with the layout of `x`: `x` itself, if it is there."""
    cdef int before
    if device is None or is_meta_device(device) == is_meta(x):
        return x
    if is_meta(x):
        return new_in_mode(False, x.type, x.ndim_, x.dims)
    reserve(0)
    before = without_memory()[0]
    without_memory()[0] = True
    try:
        return emptied(x)
    finally:
        without_memory()[0] = before
