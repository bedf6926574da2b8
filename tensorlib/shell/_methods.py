"""Methods of Tensors that only make sense beside other devices, or are older names."""

from importlib import import_module

import numpy as np

from tensorlib._core.base import library
from tensorlib._core.base.device import NoSuchDevice, require_device
from tensorlib._core.base.dtypes import BY_NAME, get_default_dtype
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from tensorlib._core.base.importing import deferred
from tensorlib._core.interpreters.foreign import outside_graph
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import attach_checked, put_method
from tensorlib.storage import storage

TYPES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
         "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
         "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "bool": "Bool",
         "complex64": "ComplexFloat", "complex128": "ComplexDouble"}
BY_TYPE = {f"{kind}Tensor": name for name, kind in TYPES.items()}


def type_(self, dtype=None, non_blocking=False):
    """The name of this kind of tensor, as "tensorlib.FloatTensor"; or the tensor in a dtype.

    dtype: a dtype, such a name, `LongTensor` and the like, or `Tensor` for the default dtype.
    Raises: ValueError for an unknown name, RuntimeError for that of another device.
    """
    if dtype is None:
        return f"{library.name}.{TYPES[self.dtype.name]}Tensor"
    if isinstance(dtype, str):
        module, _, kind = dtype.rpartition(".")
        name = BY_TYPE.get(kind)
        if name is None:
            raise ValueError(f"type: invalid type: {dtype!r}")
        require_device("type", module.partition(".")[2] or None)
        dtype = BY_NAME[name]
    if dtype is Tensor:
        dtype = get_default_dtype()
    return self.to(dtype=getattr(dtype, "dtype", dtype) if isinstance(dtype, type) else dtype)


def new(self, *args, size=None):
    """A tensor of this one's dtype: of the data of a sequence, or not initialized, of sizes, which
    may be given by name; or a view of a tensor of this dtype."""
    if size is not None and not args:
        return self.new_empty(size)
    if len(args) == 1 and isinstance(args[0], Tensor) and args[0].dtype == self.dtype:
        return Tensor(args[0])
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, Tensor)) and not (
            type(args[0]).__name__ == "Size"):
        return self.new_tensor(args[0])
    return self.new_empty(*args) if args else self.new_empty(0)


def ndimension(self):
    """The number of dims."""
    return self.ndim


def is_pinned(self, device=None):
    """False: memory is pinned for other devices."""
    return False


def pin_memory(self, device=None):
    """The tensor itself: memory is pinned for other devices, of which there are none."""
    return self


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Raises RuntimeError: there is no GPU to copy the tensor to."""
    require_device("cuda", "cuda" if device is None else device)
    raise NoSuchDevice(f"cuda: {device!r} is no GPU")


def xpu(self, device=None, non_blocking=False, memory_format=None):
    """Raises RuntimeError: there is no GPU to copy the tensor to."""
    require_device("xpu", "xpu" if device is None else device)
    raise NoSuchDevice(f"xpu: {device!r} is no GPU")


_from_dense = deferred("tensorlib.sparse", "from_dense")
_masked = deferred("tensorlib.sparse.creation", "masked")


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor without its zeros, as a sparse one: docs/sparse.md.

    sparse_dim: how many of the first dims have positions, by default all. layout: `sparse_coo`, or
    of matrices and batches of them `sparse_csr` or `sparse_csc`, or, with the rows and columns of
    a block as `blocksize`, `sparse_bsr` or `sparse_bsc`; there `dense_dim` is how many of the last
    dims have no positions. Raises: RuntimeError.
    """
    return _from_dense(self, sparse_dim, layout, blocksize, dense_dim)


def to_sparse_coo(self):
    """The tensor without its zeros, as a sparse one: as `to_sparse()`."""
    return _from_dense(self)


def to_sparse_csr(self, dense_dim=None):
    """The matrix without its zeros, as a sparse one, whose entries lie in order of rows."""
    return _from_dense(self, layout=sparse_csr, dense_dim=dense_dim)


def to_sparse_csc(self, dense_dim=None):
    """The matrix without its zeros, as a sparse one, whose entries lie in order of columns."""
    return _from_dense(self, layout=sparse_csc, dense_dim=dense_dim)


def to_sparse_bsr(self, blocksize, dense_dim=None):
    """The matrix without blocks of zeros, as a sparse one, whose blocks lie in order of rows.

    blocksize: the rows and columns of a block. Raises: RuntimeError if they do not fit.
    """
    return _from_dense(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_bsc(self, blocksize, dense_dim=None):
    """The matrix without blocks of zeros, as a sparse one, whose blocks lie in order of columns.

    blocksize: the rows and columns of a block. Raises: RuntimeError if they do not fit.
    """
    return _from_dense(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


def sparse_mask(self, mask):
    """The elements at the positions of a sparse tensor `mask` of the same shape, as a sparse one.

    Raises: TypeError if mask is not sparse, RuntimeError if its shape is another.
    """
    return _masked(self, mask)


def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself, as it is dense; in `dtype` if that is given."""
    return self if dtype is None else self.to(dtype)


def sparse_dim(self):
    """How many of the first dims have positions: none of a dense tensor."""
    return 0


def dense_dim(self):
    """How many dims the values at a position have: all of a dense tensor."""
    return self.ndim


def of_sparse_tensors(name):
    """A method that only sparse tensors have."""
    def refused(self):
        """Raises RuntimeError, as the tensor is dense. Sparse tensors have this: docs/sparse.md."""
        raise RuntimeError(f"{name}: expected a sparse tensor, got a dense one; to_sparse() makes "
                           "it sparse")

    refused.__name__ = refused.__qualname__ = name
    return refused


VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")     # of the array API standard


def __array_namespace__(self, *, api_version=None):
    """The namespace of the array API standard: `tensorlib.array_api`.

    Raises: ValueError for a version of the standard that it does not have.
    """
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"__array_namespace__: has the versions {', '.join(VERSIONS)} of the "
                         f"standard, got {api_version!r}")
    return import_module("tensorlib.array_api")


def to_device(self, device, /, *, stream=None):
    """The tensor on a device, in the words of the array API standard: as `x.to(device)`.

    Raises: ValueError for a stream, as memory of the CPU has none.
    """
    if stream is not None:
        raise ValueError(f"to_device: memory of the CPU has no streams, got {stream!r}")
    return self.to(device)


def _make_subclass(cls, data, require_grad=False):
    """The elements of a tensor as a leaf of a subclass of Tensor: what such a `__new__` returns.

    Raises: TypeError for another class or for what is not a tensor; RuntimeError for integers that
    require gradients.
    """
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass: data must be a Tensor, got {type_name(data)}")
    made = outside_graph(data, cls)
    made.requires_grad = bool(require_grad)
    return made


def _is_view(self):
    """Whether the tensor is a view of another one."""
    return self._base is not None


for _method in (__array_namespace__, to_device, to_sparse, to_sparse_coo, to_sparse_csc,
                to_sparse_csr, to_sparse_bsr, to_sparse_bsc, sparse_mask, to_dense, new, ndimension,
                is_pinned, pin_memory, cuda, xpu, storage):
    attach_checked(_method.__name__, _method)
attach_checked("type", type_)
for _method in (sparse_dim, dense_dim, *map(of_sparse_tensors, (
        "coalesce", "is_coalesced", "indices", "values", "crow_indices", "col_indices",
        "ccol_indices", "row_indices"))):
    attach_checked(_method.__name__, _method)
put_method("_is_view", _is_view)
put_method("_make_subclass", staticmethod(_make_subclass))

declared(__name__)
