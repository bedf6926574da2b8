"""Pickles and copies of tensors. A pickle holds the elements of the tensor, contiguous."""

import pickle

import numpy as np

from tensorlib._core.arrays.arrays cimport from_ndarray, window
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, FLOAT_KIND, ITEMSIZE, KIND, UINT8, dtype_id, to_numpy_dtype,
)
from tensorlib._core.base.storage cimport Storage
from tensorlib._core.base.shape cimport MAX_NDIM, count, parse_shape
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, new_tensor, over_storage, own_dict, replace, requires_grad,
)
from tensorlib._core.tiles.copies cimport packed, packed_copy

from tensorlib._core.tensor.tensor import attach
from tensorlib._core.base.importing import deferred

deepcopy = deferred("copy", "deepcopy")

cdef object instance(object cls, Tensor x, bint wants_grad, object attributes, object given):
    """A leaf of type `cls` with the elements of `x`, and the attributes of that: those in its dict
    and in `given`, or only its name."""
    cdef Tensor out = <Tensor?>Tensor.__new__(cls)
    replace(out, x)
    out.wants_grad = wants_grad
    if attributes:
        vars(out).update(attributes)
    if given:
        given = {"name": given} if isinstance(given, str) else given
        for key, value in given.items():
            Tensor.__setattr__(out, key, value)
    return out


def rebuild(cls, dtype, shape, data, bint wants_grad, attributes, name=None):
    """The tensor of a pickle. It shares the memory of `data` if that may be written to."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("unpickle", shape, dims), id = dtype_id(dtype)
    cdef Py_ssize_t nbytes = count("unpickle", ndim, dims) * ITEMSIZE[id]
    cdef Tensor x = None
    if wants_grad and KIND[id] < FLOAT_KIND:
        raise pickle.UnpicklingError(f"unpickle: a tensor of {dtype} can't require gradients")
    view = memoryview(data)
    if view.nbytes != nbytes:
        raise pickle.UnpicklingError(
            f"unpickle: a tensor of shape {tuple(shape)} and {dtype} has {nbytes} bytes, "
            f"the pickle holds {view.nbytes}")
    if nbytes:
        array = np.frombuffer(data, np.int16 if id == BFLOAT16 else to_numpy_dtype(id))
        array = array.reshape(shape)
        if array.flags.writeable and array.flags.aligned:
            x = from_ndarray("unpickle", array)
            x.type = id
    if x is None:
        x = new_tensor(id, ndim, dims)
        if nbytes:
            window(x)[...] = array
    return instance(cls, x, wants_grad, attributes, name)


def __reduce_ex__(Tensor self, protocol):
    """`__reduce_ex__` of tensors; protocol 5 passes the elements as an out-of-band buffer.

    The unpickled tensor is a leaf; it requires grad if the tensor did.
    """
    cdef Tensor whole = packed(self)
    array = window(whole)
    data = pickle.PickleBuffer(array) if protocol >= 5 else array.tobytes()
    return rebuild, (type(self), self.dtype, tuple(self.shape), data, requires_grad(self),
                     own_dict(self) or None, self.attributes)


def __copy__(Tensor self):
    """A leaf that shares the elements."""
    return instance(type(self), alias(self), requires_grad(self), own_dict(self),
                    self.attributes)


cdef Tensor copied(Tensor x, dict memo):
    """The elements in a copy of their memory, which is shared by all tensors of a memo."""
    cdef Storage given = x.storage, made
    cdef Py_ssize_t step = 1
    cdef Tensor out
    held = memo.get(id(given))
    if held is None:
        out = packed_copy(over_storage(given, given.data, UINT8, 1, &given.nbytes, &step), UINT8)
        memo[id(given)] = given, out.storage          # `given` keeps its id
        made = out.storage
    else:
        made = held[1]
    out = alias(x)
    out.storage, out.data_pointer = made, made.data + (x.data_pointer - given.data)
    return out


def __deepcopy__(Tensor self, memo):
    """A leaf with elements and gradient of its own. Raises: RuntimeError inside a graph."""
    cdef Tensor out
    if not isinstance(memo, dict):
        raise TypeError(f"deepcopy: memo must be a dict, got {type(memo).__name__}")
    if id(self) in memo:
        return memo[id(self)]
    if self.grad_node is not None:
        raise RuntimeError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment; use x.detach().clone()")
    out = instance(type(self), copied(self, memo), self.wants_grad, None, None)
    memo[id(self)] = out
    out.gradient = deepcopy(self.gradient, memo)
    for key, value in deepcopy(self.attributes or {}, memo).items():
        Tensor.__setattr__(out, key, value)
    attributes = own_dict(self)
    if attributes:
        vars(out).update(deepcopy(attributes, memo))
    return out


attach("__reduce_ex__", __reduce_ex__)
attach("__copy__", __copy__)
attach("__deepcopy__", __deepcopy__)
