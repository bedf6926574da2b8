"""Attributes and methods of Tensor off the hot path; the others are in the body of the type."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.object cimport PyObject

from tensorlib._core.base.closed cimport ClosedType, newfunc, open_type
from tensorlib._core.base.dtypes cimport (
    COMPLEX_KIND, FLOAT_KIND, ITEMSIZE, KIND, default_float, dtype_id,
)
from tensorlib._core.base.locks cimport FREE_THREADED
from tensorlib._core.base.storage cimport Storage, allocate, borrow, untracked
from tensorlib._core.base.upcalls cimport effect, upcalls
from tensorlib._core.base.watch cimport watched
from tensorlib._core.tensor.meta cimport is_meta as no_memory
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, become, leave_lists, own_dict, over_storage, replace, requires_grad as requires,
    set_attribute, set_layout_room, track_tensor,
)

from io import SEEK_END
from mmap import ACCESS_COPY, ACCESS_WRITE, mmap
from operator import index
from os import PathLike
from os.path import exists

from tensorlib._core.base.device import CPU, META
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import (
    RANKS, contiguous_format, preserve_format, strided,
)
from tensorlib._core.tensor.tensor import attach

ctypedef void (*destructor)(PyObject*) noexcept

cdef extern from "Python.h":
    ctypedef struct TypeSlots "PyTypeObject":
        destructor tp_dealloc


# ---- made by Python code -------------------------------------------------------------------------

# `Tensor.__new__` called from Python must not show memory that is not there: the type's slot makes
# an empty tensor, or one of the data that the `__new__` of a subclass hands on. Compiled code calls
# the function behind the slot and sets every field itself.
cdef newfunc new_uninitialised = (<ClosedType*><PyObject*>Tensor).tp_new


cdef PyObject* new_empty(ClosedType* type, PyObject* args, PyObject* kwargs) except NULL:
    cdef PyObject* made = new_uninitialised(type, args, kwargs)
    cdef Tensor x = <Tensor>made
    set_layout_room(x, 1)
    x.dims[0], x.steps[0] = 0, 1
    x.type, x.packed = default_float(), True
    x.storage = allocate(0)
    x.data_pointer = x.storage.data
    if type.tp_new != new_empty and len(<tuple>args):     # `super().__new__(cls, data)`
        become(x, <Tensor>upcalls.constructed(<tuple>args, -1))
    return made


(<ClosedType*><PyObject*>Tensor).tp_new = new_empty
open_type(Tensor)


# ---- views without a global lock -----------------------------------------------------------------

cdef destructor free_tensor = (<TypeSlots*><PyObject*>Tensor).tp_dealloc


cdef void dealloc(PyObject* self) noexcept:
    """Frees a tensor, after taking it off its lists under a temporary reference."""
    if (<Tensor>self).view_link != NULL or (<Tensor>self).first_view != NULL:
        leave_lists(self)
    free_tensor(self)


if FREE_THREADED:
    (<TypeSlots*><PyObject*>Tensor).tp_dealloc = dealloc


# ---- memory --------------------------------------------------------------------------------------

def nelement(Tensor self):
    """The number of elements."""
    return self.numel_


def element_size(Tensor self):
    """Bytes of one element."""
    return ITEMSIZE[self.type]


def itemsize(Tensor self):
    """Bytes of one element."""
    return ITEMSIZE[self.type]


def nbytes(Tensor self):
    """Bytes of all elements."""
    return self.numel_ * ITEMSIZE[self.type]


def is_contiguous(Tensor self, memory_format=None):
    """Whether the elements lie in row-major order without gaps; or as another format orders them.

    Raises: RuntimeError for what is not a memory format.
    """
    cdef Py_ssize_t span = 1
    cdef int d, i
    if memory_format is None or memory_format in (contiguous_format, preserve_format):
        return self.packed
    if memory_format not in RANKS:
        raise RuntimeError("is_contiguous: memory_format must be contiguous_format, channels_last "
                           f"or channels_last_3d, got {memory_format!r}")
    if self.ndim_ != RANKS[memory_format]:
        return False
    if self.numel_ == 0:
        return True
    for i in range(self.ndim_):              # the channels, then from the last dim to the first
        d = 1 if i == 0 else 0 if i == self.ndim_ - 1 else self.ndim_ - i
        if self.dims[d] != 1 and self.steps[d] != span:
            return False
        span *= self.dims[d]
    return True


def data_ptr(Tensor self):
    """Address of the first element; 0 on `meta`, where there are none."""
    effect("data_ptr", self)
    return 0 if no_memory(self) else <size_t>self.data_pointer


def storage_offset(Tensor self):
    """Elements between the start of the storage and the first element."""
    effect("storage_offset", self)
    return (self.data_pointer - self.storage.data) // ITEMSIZE[self.type]


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class UntypedStorage:
    """The memory of a tensor, which its views share: where it is, and how many bytes it has.

    `x.untyped_storage()` returns one, and `from_file` one of a file. It exports its bytes as a
    buffer, so `tensorlib.asarray(memory)` and `numpy.asarray(memory)` share them.
    """
    cdef Storage memory
    cdef bint absent

    def __cinit__(self):
        self.memory = allocate(0)

    def __init__(self):
        pass                          # so that arguments are refused

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """The first `nbytes` bytes of a file, which are read when they are used.

        Args:
            shared: whether writes to the memory go to the file, which is extended to `nbytes`;
                else they stay in memory
        Raises: RuntimeError for a file that has fewer bytes; TypeError for what is no path.
        """
        cdef UntypedStorage found = UntypedStorage()
        cdef Py_ssize_t count = index(nbytes)
        if count < 0:
            raise ValueError(f"UntypedStorage.from_file: nbytes must not be negative, got {count}")
        if not isinstance(filename, (str, bytes, PathLike)):      # numbers would be open files
            raise TypeError("UntypedStorage.from_file: filename must be a path, got "
                            f"{type_name(filename)}")
        with open(filename, ("r+b" if exists(filename) else "w+b") if shared else "rb") as file:
            size = file.seek(0, SEEK_END)
            if shared and size < count:
                file.truncate(count)
            elif size < count:
                raise RuntimeError(f"UntypedStorage.from_file: {filename} has {size} bytes, fewer "
                                   f"than the {count} of nbytes")
            if count:
                mapped = mmap(file.fileno(), count, access=ACCESS_WRITE if shared else ACCESS_COPY)
                held = memoryview(mapped)
                found.memory = borrow(<char*>PyMemoryView_GET_BUFFER(held).buf, count, True, held)
        return found

    def untyped(self):
        """The memory itself."""
        return self

    def tolist(self):
        """The bytes as numbers."""
        return list(memoryview(self))

    def __getitem__(self, key):
        """One byte as a number, or the memory of a slice with step 1."""
        cdef UntypedStorage part
        cdef Py_ssize_t start, stop
        if not isinstance(key, slice):
            return memoryview(self)[key]
        first, last, step = key.indices(self.memory.nbytes)
        if step != 1:
            raise RuntimeError(f"UntypedStorage: only slices of step 1 are possible, got {step}")
        part, start, stop = UntypedStorage(), first, last
        part.absent = self.absent
        part.memory = borrow(NULL if self.absent else self.memory.data + start,
                             max(stop - start, 0), self.memory.writable, self.memory)
        return part

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.absent:
            raise BufferError("UntypedStorage: has no memory on meta")
        PyBuffer_FillInfo(buffer, self, self.memory.data, self.memory.nbytes,
                          not self.memory.writable, flags)

    def data_ptr(self):
        """Address of the first byte; 0 on `meta`, where there are none."""
        return 0 if self.absent else <size_t>self.memory.data

    def nbytes(self):
        """How many bytes there are."""
        return self.memory.nbytes

    def size(self):
        """How many bytes there are."""
        return self.memory.nbytes

    def element_size(self):
        """1: the elements are bytes."""
        return 1

    @property
    def device(self):
        """Where the bytes are."""
        return META if self.absent else CPU

    def __len__(self):
        return self.memory.nbytes

    def __sizeof__(self):
        return object.__sizeof__(self) + (0 if self.absent else self.memory.nbytes)

    def __reduce__(self):
        raise TypeError("UntypedStorage: can't be pickled; save the tensor")

    def __repr__(self):
        return f"<UntypedStorage of {self.memory.nbytes} bytes on {self.device}>"


def untyped_storage(Tensor self):
    """The memory that this tensor and its views share."""
    effect("untyped_storage", self)
    cdef UntypedStorage found = UntypedStorage()
    found.memory = self.storage
    found.absent = no_memory(self)
    return found


def elements_of(UntypedStorage source, dtype):
    """A vector of all whole elements of a dtype in the memory of a storage."""
    cdef int given = dtype_id(dtype)
    cdef Py_ssize_t count = source.memory.nbytes // ITEMSIZE[given], one = 1
    return over_storage(source.memory, source.memory.data, given, 1, &count, &one)


def device(Tensor self):
    """Where the elements are: `device("cpu")`, or `device("meta")` if there are none."""
    return META if no_memory(self) else CPU


def layout(Tensor self):
    """How the elements lie in memory: `strided`, the one layout there is."""
    return strided


def is_cuda(Tensor self):
    """False: the elements are in the memory of the CPU."""
    return False


def is_cpu(Tensor self):
    """Whether the elements are in the memory of the CPU."""
    return not no_memory(self)


def is_meta(Tensor self):
    """Whether the tensor has only a shape, strides and a dtype, and no elements."""
    return no_memory(self)


def is_other(Tensor self):
    """False: all tensors are dense and in the memory of the CPU."""
    return False


def is_floating_point(Tensor self):
    """Whether the dtype is a floating one."""
    return KIND[self.type] == FLOAT_KIND


def is_complex(Tensor self):
    """Whether the dtype is a complex one."""
    return KIND[self.type] == COMPLEX_KIND


# ---- place in the graph --------------------------------------------------------------------------

def requires_grad_(Tensor self, requires_grad=True):
    """This tensor, after its `requires_grad` is set.

    Raises: RuntimeError for integer dtypes, TypeError unless it is a bool.
    """
    self.requires_grad = requires_grad
    return self


def is_inference(Tensor self):
    """Whether this tensor was made in inference mode."""
    return untracked(self.storage)


def output_nr(Tensor self):
    """Which output of its `grad_fn` this is."""
    return self.slot


def retains_grad(Tensor self):
    """Whether `backward` stores the gradient here though this is not a leaf: see `retain_grad`."""
    return self.keeps_grad


def detach(Tensor self):
    """A view of the same elements, outside the graph."""
    if watched:
        done = upcalls.offered(None, "detach", (self,), None)
        if done is not NotImplemented:
            return done
    return alias(self)


def detach_(Tensor self):
    """This tensor, cut from its graph. Raises: RuntimeError for a view."""
    if self.base_ is not None:
        raise RuntimeError("detach_: can't detach views in-place; use detach() instead")
    effect("detach_", self)
    self.grad_node = None
    self.slot = 0
    self.wants_grad = False
    self.keeps_grad = False
    return self


def _version(Tensor self):
    """How often the storage was written in place. Raises: RuntimeError for inference tensors."""
    if untracked(self.storage):
        raise RuntimeError("_version: inference tensors do not track version counter")
    effect("_version", self)
    return self.storage.version


def _cdata(Tensor self):
    """A number that no other tensor has while this one lives."""
    return id(self)


def _grad(Tensor self):
    """The same as `grad`."""
    return self.grad


def set__grad(Tensor self, value):
    """Sets the gradient, as `grad` does."""
    self.grad = value


def _base(Tensor self):
    """For a view, the tensor whose storage it shares; else None."""
    effect("_base", self)
    return self.base_


cdef class Attribute:
    """The descriptor of an attribute that users set; tensors on which it was not set lack it.

    A dict in each tensor would make each of them, and each call of a method, slower. Instances of
    subclasses have a dict, and keep it there.
    """

    cdef str name

    def __init__(self, str name):
        self.name = name

    def __get__(self, x, kind):
        if x is None:               # asked of the class, as any descriptor may be
            return self
        found = (<Tensor>x).attributes if own_dict(x) is None else own_dict(x)
        if found is None or self.name not in found:
            raise AttributeError(f"{kind.__module__ + '.' + kind.__name__!r} object has no "
                                 f"attribute {self.name!r}", name=self.name, obj=x)
        return found[self.name]

    def __set__(self, Tensor x, value):
        own = own_dict(x)
        if own is not None:
            own[self.name] = value
            return
        effect("setattr", x)
        set_attribute(x, self.name, value)

    def __delete__(self, Tensor x):
        self.__get__(x, type(x))
        effect("delattr", x)
        del (x.attributes if own_dict(x) is None else own_dict(x))[self.name]


def __dict__(Tensor self):
    """The attributes that the user set, by name; deleting from the dict deletes the attribute."""
    effect("__dict__", self)
    if self.attributes is None:
        self.attributes = {}
        track_tensor(self)
    return self.attributes


def __take_attribute__(Tensor self, str name):
    """Adds the descriptor of a name to Tensor, at the first attribute of that name."""
    attach(name, Attribute(name))


def name(Tensor self):
    """A name that the user gave, or None; `no_grad_set` finds leaves by it."""
    return None if self.attributes is None else self.attributes.get("name")


def set_name(Tensor self, str value or None):
    """Names the tensor."""
    effect("setattr", self)
    set_attribute(self, "name", value)


def data(Tensor self):
    """A view outside the graph with a version counter of its own, so writes to it go unnoticed."""
    cdef Tensor x = alias(self)
    cdef Storage storage = self.storage
    x.storage = borrow(storage.data, storage.nbytes, storage.writable, storage)
    return x


def set_data(Tensor self, given):
    """Makes the tensor show the elements of `given`; its place in the graph stays.

    Raises: RuntimeError for another dtype within a graph, or one that has no gradients.
    """
    if not isinstance(given, Tensor):
        raise TypeError(f"data: expected a Tensor, got {type_name(given)}")
    cdef Tensor value = given, shown = value
    if value.type != self.type and requires(self):
        if self.grad_node is not None:
            raise RuntimeError(f"data: expected dtype {self.dtype}, got {value.dtype}")
        if KIND[value.type] < FLOAT_KIND:
            raise RuntimeError("data: a tensor that requires gradients must be of a floating point "
                               f"or complex dtype, got {value.dtype}")
    if value.storage.owner is self.storage:          # `x.data = x.data.t()`: the memory stays
        shown = alias(value)
        shown.storage = self.storage
    effect("data", self)
    replace(self, shown)


for method in (nelement, element_size, is_contiguous, data_ptr, storage_offset, is_floating_point,
               untyped_storage, is_complex, requires_grad_, is_inference, detach, detach_,
               __take_attribute__):
    attach(method.__name__, method)
for getter in (itemsize, nbytes, device, layout, is_cpu, is_cuda, is_meta, output_nr, retains_grad,
               _version, _base, _cdata, __dict__):
    attach(getter.__name__, property(getter, doc=getter.__doc__))
for other in ("is_ipu", "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_quantized",
              "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"):
    attach(other, property(is_other, doc=is_other.__doc__))
for getter, setter in ((name, set_name), (data, set_data), (_grad, set__grad)):
    attach(getter.__name__, property(getter, setter, doc=getter.__doc__))
