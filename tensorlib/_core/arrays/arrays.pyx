"""Memory shared with others: NumPy arrays, the buffer protocol, and changes of dtype through NumPy.

All of it is outside autograd: nothing here is recorded for gradients.
"""

cimport numpy as cnp
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport malloc

import numpy as np

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, ITEMSIZE, N_DTYPES, dtype_id, from_numpy_dtype, to_numpy_dtype,
)
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport borrow
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.stack cimport leaving, made
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Export, Tensor, over_storage, requires_grad

from tensorlib._core.tensor.tensor import attach

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_New(PyTypeObject* type, int ndim, const cnp.npy_intp* dims, int type_num,
                       const cnp.npy_intp* strides, void* data, int itemsize, int flags,
                       PyObject* obj)
    bint PyArray_ISALIGNED(cnp.ndarray array)
    bint PyArray_ISNOTSWAPPED(cnp.ndarray array)
    bint PyArray_ISWRITEABLE(cnp.ndarray array)

cdef enum:
    N_TYPE_NUMS = 32

cdef int[N_DTYPES] type_nums         # NumPy's type number of each dtype; bfloat16 as uint16 bits
cdef int[N_TYPE_NUMS] ids            # and back, -1 where there is none
cdef int _id, _num

for _num in range(N_TYPE_NUMS):
    ids[_num] = -1
for _id in range(N_DTYPES):
    type_nums[_id] = (np.dtype(np.uint16) if _id == BFLOAT16 else to_numpy_dtype(_id)).num
    if _id != BFLOAT16:
        ids[type_nums[_id]] = _id
ids[np.dtype(np.longlong).num] = from_numpy_dtype(np.longlong)   # another int64 on Linux
ids[np.dtype(np.ulonglong).num] = from_numpy_dtype(np.ulonglong)

cdef const char** FORMATS = ["?", "B", "b", "h", "i", "q", "H", "I", "Q", "e", NULL, "f", "d",
                             "Zf", "Zd"]


# ---- from NumPy -------------------------------------------------------------------------------

cdef int numpy_id(object array) noexcept:
    """The dtype id of an array in native byte order whose dtype we have, else -1."""
    cdef int num = cnp.PyArray_TYPE(array)
    if num >= N_TYPE_NUMS or not PyArray_ISNOTSWAPPED(array):
        return -1
    return ids[num]


cdef Tensor from_ndarray(str name, object array):
    """A tensor over the memory of an ndarray, of any strides. Raises TypeError or ValueError."""
    cdef int id = numpy_id(array), ndim = cnp.PyArray_NDIM(array), d
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t itemsize, low = 0, high = 0, stride, size
    cdef bint empty = False
    cdef char* data = <char*>cnp.PyArray_DATA(array)
    if id < 0:
        if not PyArray_ISNOTSWAPPED(array):
            raise ValueError(
                f"{name}: the array has dtype {array.dtype.str}, not in this machine's byte order; "
                "convert it with array.astype(array.dtype.newbyteorder('='))")
        from_numpy_dtype(array.dtype, name)
    itemsize = ITEMSIZE[id]
    if not PyArray_ISALIGNED(array):
        raise ValueError(
            f"{name}: the elements of the array are not aligned to {itemsize} bytes; "
            "use array.copy()")
    for d in range(ndim):
        size = cnp.PyArray_DIM(array, d)
        stride = cnp.PyArray_STRIDE(array, d)
        if stride % itemsize and size > 1:
            raise ValueError(
                f"{name}: the stride of {stride} bytes at dim {d} is not a multiple of the "
                f"element's {itemsize}; use array.copy()")
        steps[d] = stride // itemsize
        if size == 0:
            empty = True
        elif stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    if empty:
        low, high = 0, -itemsize
    storage = borrow(data + low, high - low + itemsize, PyArray_ISWRITEABLE(array), array)
    return over_storage(storage, data, id, ndim, <Py_ssize_t*>cnp.PyArray_DIMS(array), steps)


def from_numpy(array):
    """A tensor that shares the memory of a NumPy array, whatever its strides.

    A read-only array gives a tensor that operations never write to. A tensor is given back, as
    NumPy's functions of tensors return some.
    Raises: TypeError for dtypes without a counterpart, ValueError for memory that can't be shared.

    >>> a = np.zeros(3)
    >>> x = tensorlib.from_numpy(a[::-1])
    >>> a[0] = 5
    >>> x
    tensor([0., 0., 5.], dtype=tensorlib.float64)
    """
    if isinstance(array, Tensor):
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    x = from_ndarray("from_numpy", array)
    if watched:
        made(x)
    return x


def frombuffer(buffer, *, dtype, Py_ssize_t count=-1, Py_ssize_t offset=0,
               bint requires_grad=False):
    """A 1-d tensor over the memory of an object that has the buffer protocol.

    `offset` is in bytes; a negative `count` takes all elements. Shapes: (count,).
    Raises: ValueError for what is not a buffer, for one without elements or without a whole number
    of them, and for an offset or a count beyond it.

    >>> tensorlib.frombuffer(b"abc", dtype=tensorlib.uint8)
    tensor([97, 98, 99], dtype=tensorlib.uint8)
    """
    cdef int id = dtype_id(dtype)
    cdef Py_ssize_t itemsize = ITEMSIZE[id], length, wanted
    cdef Tensor x
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError(
            f"frombuffer: {type(buffer).__name__} does not implement the buffer protocol") from None
    if length == 0 or count == 0:
        raise ValueError(
            f"frombuffer: both the buffer's length ({length}) and count ({count}) must not be 0")
    if offset < 0 or offset >= length:
        raise ValueError(
            f"frombuffer: offset must be in [0, {length - 1}] for {length} bytes, got {offset}")
    if count < 0 and (length - offset) % itemsize:
        raise ValueError(
            f"frombuffer: {length - offset} bytes after the offset are not a multiple of the "
            f"{itemsize} bytes of an element")
    wanted = (length - offset) // itemsize if count < 0 else count
    if wanted > (length - offset) // itemsize:
        raise ValueError(
            f"frombuffer: {count} elements of {itemsize} bytes after {offset} bytes do not fit in "
            f"a buffer of {length}")
    bits = np.int16 if id == BFLOAT16 else to_numpy_dtype(id)
    x = from_ndarray("frombuffer", np.frombuffer(buffer, bits, wanted, offset))
    x.type = id
    if requires_grad:
        x.requires_grad = True
    return x


# ---- to NumPy ---------------------------------------------------------------------------------

cdef object window(Tensor x):
    """An ndarray over the memory of `x`, whatever its strides; bfloat16 shows as uint16 bits."""
    cdef cnp.npy_intp strides[MAX_NDIM]
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type]
    cdef int d
    cdef char* data = elements("Tensor.numpy()", x)
    for d in range(x.ndim_):
        strides[d] = x.steps[d] * itemsize
    array = PyArray_New(<PyTypeObject*>cnp.ndarray, x.ndim_, <cnp.npy_intp*>x.dims,
                        type_nums[x.type], strides, data, <int>itemsize,
                        cnp.NPY_ARRAY_WRITEABLE if x.storage.writable else 0, NULL)
    cnp.set_array_base(array, x.storage)
    return array


cdef object numpy_view(Tensor x):
    """`window` for users. Raises TypeError for bfloat16, RuntimeError for a tensor in a graph."""
    if requires_grad(x) and mode().grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. "
            "Use tensor.detach().numpy() instead.")
    to_numpy_dtype(x.type)
    return window(x)


def numpy(Tensor self, *, bint force=False):
    """A NumPy array that shares the memory of this tensor.

    `force=True` ignores that gradients are not tracked through it.
    Raises: RuntimeError if the tensor requires grad, TypeError for bfloat16.
    """
    if watched:
        leaving("numpy", self)
    if force:
        to_numpy_dtype(self.type)
        return window(self)
    return numpy_view(self)


def __array__(Tensor self, dtype=None, copy=None):
    """The array for `numpy.asarray(x)`. Raises: ValueError if `copy=False` but a copy is needed."""
    if watched:
        leaving("numpy", self)
    if requires_grad(self) and mode().grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead; "
            "numpy.stack([...]) puts Tensors together inside the graph, as numpy.array can't.")
    shared = numpy_view(self)
    if dtype is not None and np.dtype(dtype) != shared.dtype:
        if copy is False:
            raise ValueError(
                f"__array__: {shared.dtype} elements can't be seen as {np.dtype(dtype)} "
                "without a copy")
        return shared.astype(dtype)
    return shared.copy() if copy else shared


# ---- change of dtype --------------------------------------------------------------------------

def widen(bits):
    """The float32 array of an array of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(values):
    """The bfloat16 bits of a float32 array, rounded to nearest even."""
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    rounded = (bits + np.uint32(0x7fff) + ((bits >> 16) & np.uint32(1))) >> 16
    # rounding may turn a NaN into infinity: keep the sign, and make it quiet
    quiet = (bits >> 16) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def shown(Tensor x, edge):
    """An array of the elements that are printed: with `edge`, that many at the ends of each dim."""
    values = window(x)
    if edge is not None:
        values = values[np.ix_(*[
            np.r_[:edge, size - edge:size] if size > 2 * edge else np.arange(size)
            for size in values.shape])]
    return widen(values) if x.type == BFLOAT16 else values


# ---- the buffer protocol ----------------------------------------------------------------------

cdef int fill_buffer(Tensor x, Py_buffer* buffer, int flags) except -1:
    """Fills a Py_buffer for `x`; the caller releases the `Export` in `buffer.internal`."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type]
    cdef Export* export
    cdef Py_ssize_t* layout
    cdef char* data
    cdef int d
    if watched:
        leaving("memoryview", x)
    data = elements("memoryview", x, BufferError)
    if FORMATS[x.type] == NULL:
        raise BufferError(f"memoryview: the buffer protocol has no format for {x.dtype}")
    if requires_grad(x) and mode().grad:
        # not even read-only: numpy.asarray would silently lose the gradient
        raise BufferError("memoryview: the tensor requires grad; use x.detach()")
    if flags & PyBUF_WRITABLE and not x.storage.writable:
        raise BufferError("memoryview: the tensor's memory is read-only")
    if not x.packed and flags & PyBUF_STRIDES != PyBUF_STRIDES:
        raise BufferError("memoryview: the tensor is not contiguous; use x.contiguous()")
    export = <Export*>malloc(sizeof(Export) + 2 * x.ndim_ * sizeof(Py_ssize_t))
    if export == NULL:
        raise MemoryError()
    export.storage = <PyObject*>x.storage
    Py_INCREF(x.storage)
    layout = export.layout
    for d in range(x.ndim_):
        layout[d] = x.dims[d]
        layout[x.ndim_ + d] = x.steps[d] * itemsize
    buffer.obj = x
    buffer.buf = data
    buffer.len = x.numel_ * itemsize
    buffer.itemsize = itemsize
    buffer.readonly = not x.storage.writable
    buffer.format = <char*>FORMATS[x.type] if flags & PyBUF_FORMAT else NULL
    buffer.ndim = x.ndim_
    buffer.shape = layout if flags & PyBUF_ND else NULL
    buffer.strides = layout + x.ndim_ if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    buffer.suboffsets = NULL
    buffer.internal = export
    return 0


attach("numpy", numpy)
attach("__array__", __array__)
