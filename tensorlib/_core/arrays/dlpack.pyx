"""Zero-copy exchange of tensors with other libraries by DLPack.

A capsule carries a C structure with the address of the elements, and a function, the deleter, which
its consumer calls once when done with it. Ours holds the storage. Structures of other libraries are
checked, except that the elements are assumed to be where they say.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_Destructor, PyCapsule_GetName, PyCapsule_GetPointer,
    PyCapsule_New, PyCapsule_SetName,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, COMPLEX_KIND, FLOAT_KIND, ITEMSIZE, KIND, N_DTYPES, is_unsigned,
)
from tensorlib._core.base.shape cimport LARGEST, MAX_NDIM, reach, row_major, widen
from tensorlib._core.base.storage cimport borrow
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, over_storage, requires_grad

from tensorlib._core.base.device import require_cpu
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import attach

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil
    void PyErr_Fetch(PyObject** kind, PyObject** value, PyObject** trace)
    void PyErr_Restore(PyObject* kind, PyObject* value, PyObject* trace)

# ---- the structures of dlpack.h ------------------------------------------------------------------

cdef enum:
    ON_CPU = 1           # the kind of device
    READ_ONLY = 1        # flags
    IS_COPY = 2

cdef enum Code:
    SIGNED, UNSIGNED, FLOATING, OPAQUE, BRAIN, COMPLEX, TRUTH

cdef struct DLTensor:
    void* data
    int32_t device_type
    int32_t device_id
    int32_t ndim
    uint8_t code         # the dtype: type code, bits, and lanes of a vector
    uint8_t bits
    uint16_t lanes
    int64_t* shape
    int64_t* strides     # in elements; NULL, before version 1.2: row-major
    uint64_t byte_offset

cdef struct Managed:
    DLTensor tensor
    void* context
    void (*deleter)(Managed*) noexcept

cdef struct Versioned:
    uint32_t major
    uint32_t minor
    void* context
    void (*deleter)(Versioned*) noexcept
    uint64_t flags
    DLTensor tensor

cdef const char* OLD = "dltensor"
cdef const char* OLD_USED = "used_dltensor"
cdef const char* NEW = "dltensor_versioned"
cdef const char* NEW_USED = "used_dltensor_versioned"


# ---- lending -------------------------------------------------------------------------------------

cdef Code code_of(int id) noexcept:
    """The DLPack dtype of a dtype."""
    if id == BOOL:
        return TRUTH
    if id == BFLOAT16:
        return BRAIN
    if KIND[id] == FLOAT_KIND:
        return FLOATING
    if KIND[id] == COMPLEX_KIND:
        return COMPLEX
    return UNSIGNED if is_unsigned(id) else SIGNED


cdef void describe(Tensor x, DLTensor* lent, int64_t* layout) noexcept:
    """Fills in the description of `x`; `layout` is space for its sizes and strides."""
    cdef int d
    lent.data = x.data_pointer if x.numel_ else NULL
    lent.device_type, lent.device_id = ON_CPU, 0
    lent.ndim = x.ndim_
    lent.code, lent.bits, lent.lanes = code_of(x.type), <uint8_t>(8 * ITEMSIZE[x.type]), 1
    lent.shape, lent.strides = layout, layout + x.ndim_
    lent.byte_offset = 0
    for d in range(x.ndim_):
        layout[d] = x.dims[d]
        layout[x.ndim_ + d] = x.steps[d]


cdef void give_back(void* storage) noexcept with gil:
    """The deleter: releases the storage. It may be called without the GIL, or with an error set."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    PyErr_Fetch(&kind, &value, &trace)
    Py_DECREF(<object>storage)
    PyErr_Restore(kind, value, trace)


cdef void delete_old(Managed* lent) noexcept nogil:
    if lent != NULL:
        if Py_IsInitialized():
            give_back(lent.context)
        free(lent)


cdef void delete_new(Versioned* lent) noexcept nogil:
    if lent != NULL:
        if Py_IsInitialized():
            give_back(lent.context)
        free(lent)


# A capsule that was not consumed still has its original name, and must be deleted here.

cdef void drop_old(object capsule) noexcept:
    cdef Managed* lent
    if strcmp(PyCapsule_GetName(capsule), OLD) == 0:
        lent = <Managed*>PyCapsule_GetPointer(capsule, OLD)
        lent.deleter(lent)


cdef void drop_new(object capsule) noexcept:
    cdef Versioned* lent
    if strcmp(PyCapsule_GetName(capsule), NEW) == 0:
        lent = <Versioned*>PyCapsule_GetPointer(capsule, NEW)
        lent.deleter(lent)


cdef object lend_old(Tensor x):
    """A capsule of a version before 1, which has no flag for read-only memory."""
    cdef Managed* lent
    if not x.storage.writable:
        raise BufferError("__dlpack__: the tensor's memory is read-only, which takes max_version "
                          "(1, 0) or later to say")
    lent = <Managed*>malloc(sizeof(Managed) + 2 * x.ndim_ * sizeof(int64_t))
    if lent == NULL:
        raise MemoryError()
    describe(x, &lent.tensor, <int64_t*>(lent + 1))
    lent.context, lent.deleter = <PyObject*>x.storage, delete_old
    return capsule_of(lent, OLD, drop_old, x)


cdef object lend_new(Tensor x, uint64_t flags):
    """A capsule of version 1."""
    cdef Versioned* lent = <Versioned*>malloc(sizeof(Versioned) + 2 * x.ndim_ * sizeof(int64_t))
    if lent == NULL:
        raise MemoryError()
    describe(x, &lent.tensor, <int64_t*>(lent + 1))
    lent.major, lent.minor = 1, 0
    lent.flags = flags | (0 if x.storage.writable else <uint64_t>READ_ONLY)
    lent.context, lent.deleter = <PyObject*>x.storage, delete_new
    return capsule_of(lent, NEW, drop_new, x)


cdef object capsule_of(void* lent, const char* name, PyCapsule_Destructor drop, Tensor x):
    """A capsule that owns `lent`, which holds the storage of x."""
    try:
        capsule = PyCapsule_New(lent, name, drop)
    except BaseException:
        free(lent)
        raise
    Py_INCREF(x.storage)
    return capsule


def __dlpack__(Tensor self, *, stream=-1, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule over the memory of this tensor, for `from_dlpack` of other libraries.

    max_version: the latest version that the caller takes, as (1, 0); None for those before 1.
    copy: whether the memory is to be a copy. None is the same as False.
    Raises: BufferError for a tensor that requires grad, for negative strides, for read-only memory
    if the version has no flag for it, and for other devices; TypeError.
    """
    cdef bint new, copied
    cdef int d
    if stream is not None and type(stream) is not int:
        raise TypeError(f"__dlpack__: stream must be an int or None, got {stream!r}")
    if stream is not None and stream != -1:
        raise BufferError(f"__dlpack__: memory of the CPU has no streams, got stream={stream}")
    try:
        new = max_version is not None and max_version[0] >= 1
        elsewhere = dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != (ON_CPU, 0)
    except (TypeError, ValueError, IndexError, KeyError):
        raise TypeError("__dlpack__: max_version and dl_device must be pairs of ints, got "
                        f"{max_version!r} and {dl_device!r}") from None
    copied = bool(copy)
    if elsewhere:
        raise BufferError(f"__dlpack__: the tensor is on the CPU, (1, 0), not on {dl_device!r}")
    elements("__dlpack__", self, BufferError)
    if requires_grad(self):
        raise BufferError("__dlpack__: Can't export tensors that require gradient, use "
                          "tensor.detach()")
    if copied:
        self = self.clone()
    for d in range(self.ndim_):
        if self.steps[d] < 0 and self.dims[d] > 1:
            raise BufferError("__dlpack__: the tensor has steps below 0, which libraries do not "
                              "expect; use x.contiguous()")
    return lend_new(self, IS_COPY if copied else 0) if new else lend_old(self)


def __dlpack_device__(Tensor self):
    """The device as DLPack has it: (1, 0), the CPU. Raises: BufferError."""
    elements("__dlpack_device__", self, BufferError)
    return ON_CPU, 0


def to_dlpack(tensor):
    """A DLPack capsule over the memory of a tensor, of a version before 1.

    Current libraries take the tensor itself: `torch.from_dlpack(x)`, `numpy.from_dlpack(x)`.
    Raises: BufferError for a tensor that requires grad, TypeError.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack: expected a Tensor, got {type_name(tensor)}")
    return tensor.__dlpack__()


# ---- borrowing -----------------------------------------------------------------------------------

@cython.final
@cython.no_gc
cdef class Borrowed:
    """Memory of another library, whose deleter is called when nothing uses it any more."""
    cdef Managed* old
    cdef Versioned* new

    def __dealloc__(self):
        if self.old != NULL and self.old.deleter != NULL:
            self.old.deleter(self.old)
        if self.new != NULL and self.new.deleter != NULL:
            self.new.deleter(self.new)


close_type(Borrowed)


cdef Borrowed consume(object capsule):
    """Consumes a capsule, and returns its content. Raises BufferError or TypeError."""
    cdef Borrowed memory = Borrowed.__new__(Borrowed)
    cdef const char* name
    if not PyCapsule_CheckExact(capsule):
        raise TypeError("from_dlpack: expected an object with __dlpack__, or a capsule, got "
                        f"{type(capsule).__name__}")
    name = PyCapsule_GetName(capsule)
    if name != NULL and strcmp(name, NEW) == 0:
        memory.new = <Versioned*>PyCapsule_GetPointer(capsule, NEW)
        PyCapsule_SetName(capsule, NEW_USED)
    elif name != NULL and strcmp(name, OLD) == 0:
        memory.old = <Managed*>PyCapsule_GetPointer(capsule, OLD)
        PyCapsule_SetName(capsule, OLD_USED)
    else:
        shown = "no name" if name == NULL else f"the name {name.decode(errors='replace')!r}"
        raise BufferError(f"from_dlpack: the capsule has {shown}: it is none of DLPack's, or was "
                          "used before, which it can be only once")
    return memory


cdef int dtype_of(const DLTensor* given) except -1:
    """The dtype id of a structure's elements. Raises BufferError."""
    cdef int id
    if given.lanes != 1:
        raise BufferError(f"from_dlpack: an element has {given.lanes} lanes; expected 1")
    for id in range(N_DTYPES):
        if code_of(id) == given.code and 8 * ITEMSIZE[id] == given.bits:
            return id
    kinds = ("int", "uint", "float", "opaque", "bfloat", "complex", "bool")
    kind = kinds[given.code] if given.code < len(kinds) else f"code {given.code}, bits "
    raise BufferError(f"from_dlpack: elements of {kind}{given.bits} have no dtype here")


cdef Tensor over(const DLTensor* given, bint writable, object owner):
    """A tensor over the memory of a structure, after checking its description."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t low = 0, high = 0, span = 1, itemsize
    cdef uintptr_t address
    cdef bint empty = False, sound = True
    cdef int d, id
    if given.device_type != ON_CPU:
        raise BufferError(f"from_dlpack: the memory is on a device of kind {given.device_type}; "
                          f"expected {<int>ON_CPU}, the CPU")
    if given.ndim < 0 or given.ndim > MAX_NDIM:
        raise BufferError(f"from_dlpack: {given.ndim} dims; expected from 0 to {<int>MAX_NDIM}")
    if given.ndim and given.shape == NULL:
        raise BufferError(f"from_dlpack: {given.ndim} dims, but no sizes")
    id = dtype_of(given)
    itemsize = ITEMSIZE[id]
    for d in range(given.ndim):
        dims[d] = given.shape[d]
        empty = empty or dims[d] == 0
        sound = sound and widen(&span, dims[d])
    if not sound:
        raise BufferError("from_dlpack: no tensor has the sizes "
                          f"{tuple([dims[d] for d in range(given.ndim)])}")
    row_major(given.ndim, dims, steps)
    if given.strides != NULL:
        for d in range(given.ndim):
            steps[d] = given.strides[d]
    for d in range(given.ndim):
        sound = sound and (empty or reach(&low, &high, dims[d], steps[d]))
    address = <uintptr_t>given.data + given.byte_offset
    # all elements are within the address space
    sound = sound and low > -(LARGEST // itemsize) and high < LARGEST // itemsize - 1 and (
        address >= given.byte_offset)
    sound = sound and (empty or (address >= <uintptr_t>(-low * itemsize)
                                 and address <= <uintptr_t>(LARGEST - (high + 1) * itemsize)))
    if not sound:
        raise BufferError("from_dlpack: strides of "
                          f"{tuple([steps[d] for d in range(given.ndim)])} elements for sizes of "
                          f"{tuple([dims[d] for d in range(given.ndim)])} lead out of any memory")
    if empty:
        return over_storage(borrow(NULL, 0, writable, owner), NULL, id, given.ndim, dims, steps)
    if given.data == NULL:
        raise BufferError("from_dlpack: there are elements, but no memory")
    if address % itemsize:
        raise BufferError(f"from_dlpack: the elements are not aligned to {itemsize} bytes")
    storage = borrow(<char*>address + low * itemsize, (high - low + 1) * itemsize, writable, owner)
    return over_storage(storage, <char*>address, id, given.ndim, dims, steps)


cdef object asked(object source, dict wishes):
    """The capsule of an object, whose `__dlpack__` may not have all of these arguments."""
    cdef str name
    for name in ("max_version", "copy"):
        try:
            return source.__dlpack__(**wishes)
        except TypeError:
            wishes.pop(name, None)
    return source.__dlpack__()


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's tensor, or of a capsule.

    copy: True for a copy; False, and None, for none. Memory that is read-only gives a tensor that
    operations never write to.
    Raises: BufferError for what cannot be shared: other devices, dtypes without a counterpart, a
    capsule used before; TypeError for an object without `__dlpack__`.

    >>> a = np.zeros(3)
    >>> x = tensorlib.from_dlpack(a)
    >>> a[0] = 5
    >>> x
    tensor([5., 0., 0.], dtype=tensorlib.float64)
    """
    cdef Borrowed memory
    cdef Tensor x
    cdef bint copied = bool(copy)
    cdef dict wishes
    require_cpu("from_dlpack", device)
    if hasattr(ext_tensor, "__dlpack__"):
        where = ext_tensor.__dlpack_device__() if hasattr(ext_tensor, "__dlpack_device__") else None
        if isinstance(where, tuple) and where and where[0] != ON_CPU:
            raise BufferError(f"from_dlpack: the memory is on {where}, not on the CPU, (1, 0)")
        wishes = {"max_version": (1, 0)}
        if copy is not None:
            wishes["copy"] = copied
        ext_tensor = asked(ext_tensor, wishes)
        copied = copied and "copy" not in wishes           # the producer was not asked
    memory = consume(ext_tensor)
    if memory.old != NULL:
        x = over(&memory.old.tensor, True, memory)
    elif memory.new.major != 1:
        raise BufferError(f"from_dlpack: the capsule is of version {memory.new.major}."
                          f"{memory.new.minor}; expected 1")
    else:
        x = over(&memory.new.tensor, not memory.new.flags & READ_ONLY, memory)
    return x.clone() if copied else x


attach("__dlpack__", __dlpack__)
attach("__dlpack_device__", __dlpack_device__)
