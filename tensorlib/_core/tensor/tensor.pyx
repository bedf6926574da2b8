"""Tensor: a typed, strided view of a storage, with its place in the graph.

The type's body holds what must be fast or a slot: layout, properties and operators, which call
through the table of upcalls (`_core/base/upcalls.pxd`). `attach` puts other methods on the type.
"""

cimport cython
from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdlib cimport free

from tensorlib._core.base.closed cimport attach_to, quiet_type
from tensorlib._core.base.dtypes cimport (
    FLOAT_KIND, ITEMSIZE, KIND, default_float, dtype_id, dtype_object)
from tensorlib._core.base.epochs cimport before_change, retire
from tensorlib._core.base.region cimport in_region, without_memory
from tensorlib._core.base.shape cimport (
    check_rows, make_size, reach, refuse_place, refuse_size, settled, sizes_of, widen, wrap_dim,
)
from tensorlib._core.base.storage cimport Storage, allocate, first_version, holds, untracked
from tensorlib._core.base.upcalls cimport (
    ABS, ADD, AND, FLOORDIV, INVERT, LSHIFT, LT, MATMUL, MOD, MUL, NEG, OR, OpSlot, POW, RSHIFT,
    SUB, TRUEDIV, XOR, effect, upcalls,
)

from tensorlib._core.base.call_wrappers import name_errors
from tensorlib._core.base.error_names import type_name, unknown_keyword
from tensorlib._core.base.warned import warn_of

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object value)
    int PyObject_GenericSetAttr(object x, object name, object value) except -1


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.freelist(65536)
cdef class Tensor:
    """An n-dimensional array of one dtype whose operations can be differentiated.

    `Tensor(data, dtype=None, requires_grad=False)` copies nested sequences and arrays to the
    default dtype unless one is given; `Tensor(2, 3)` has these sizes, and is uninitialized. As in
    PyTorch, `Tensor(x)` is a view of a tensor, and shares the memory of an array of the default
    dtype. In new programs, `tensorlib.tensor` copies and keeps the dtype; `empty` is for sizes.

    >>> x = Tensor([[1., 2.]], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 4.]])
    """

    __array_priority__ = 1000        # NumPy's operators leave mixed expressions to ours

    def __init__(self, *data, dtype=None, bint requires_grad=False, **others):
        if type(self).__new__ is not Tensor.__new__:
            return                     # the `__new__` of a subclass made it
        for name in others:
            raise TypeError(unknown_keyword("Tensor", name, ["dtype", "requires_grad"]))
        if requires_grad and dtype is None:      # of a leaf the elements are its own
            dtype = dtype_object(default_float())
        become(self, <Tensor>upcalls.constructed(data, -1 if dtype is None else dtype_id(dtype)))
        if requires_grad:
            set_requires_grad(self, True)

    def __dealloc__(self):
        if self.view_link != NULL or self.first_view != NULL:
            leave_lists(<PyObject*>self)
        if self.dims != NULL and self.dims != self.inline_dims:
            free(self.dims)
        if self.gradient is not None:
            drop_gradients(self)

    # ---- layout ---------------------------------------------------------------------------

    @property
    def shape(self):
        """The sizes as a `Size`."""
        return make_size(self.ndim_, self.dims)

    def size(self, dim=None):
        """The sizes as a `Size`, or the size of one dim. Raises: IndexError."""
        if dim is None:
            return make_size(self.ndim_, self.dims)
        if self.ndim_ == 0:
            raise IndexError("size: a 0-d tensor has no dims")
        dim = settled(dim)
        return self.dims[wrap_dim("size", dim, self.ndim_)]

    def stride(self, dim=None):
        """The steps between elements along each dim, in elements, or the step of one dim."""
        if dim is None:
            return sizes_of(self.ndim_, self.steps)
        dim = settled(dim)
        return self.steps[wrap_dim("stride", dim, self.ndim_)]

    def dim(self):
        """The number of dims."""
        return self.ndim_

    @property
    def ndim(self):
        """The number of dims."""
        return self.ndim_

    def numel(self):
        """The number of elements."""
        return self.numel_

    @property
    def dtype(self):
        """The type of the elements."""
        return dtype_object(self.type)

    # ---- place in the graph -----------------------------------------------------------------

    @property
    def requires_grad(self):
        """Whether gradients are computed for this tensor."""
        return requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise TypeError(f"requires_grad: must be a bool, not {type_name(value)}")
        effect("requires_grad", self)
        set_requires_grad(self, value)

    @property
    def is_leaf(self):
        """Whether no recorded operation made this tensor."""
        return self.grad_node is None

    @property
    def grad(self):
        """The gradient that `backward` accumulated here; None, with a warning, if it never will."""
        if self.gradient is None and self.grad_node is not None and not self.keeps_grad:
            warn_of_none()
        effect("read_grad", self)
        return gradient_of(self)

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: expected a Tensor or None, got {type_name(value)}")
            if value is self:
                raise RuntimeError("grad: a tensor can't be its own gradient")
            if (<Tensor>value).type != self.type:
                raise RuntimeError(f"grad: expected dtype {self.dtype}, got {value.dtype}")
            if not same_shape(self, value):
                raise RuntimeError(
                    f"grad: expected shape {tuple(self.shape)}, got {tuple(value.shape)}")
            upcalls.track_held(self, value)
        effect("grad", self)
        set_gradient(self, value)

    @grad.deleter
    def grad(self):
        effect("grad", self)
        set_gradient(self, None)

    def __setattr__(self, name, value):
        if type(self) is not Tensor:         # its attributes may hold views or results of it
            upcalls.track_held(self, value)
        try:
            PyObject_GenericSetAttr(self, name, value)
        except AttributeError:
            if hasattr(Tensor, name) or name.startswith("__"):
                raise
            self.__take_attribute__(name)
            PyObject_GenericSetAttr(self, name, value)

    # ---- operators --------------------------------------------------------------------------

    def __add__(self, other):
        return upcalls.binary(ADD, self, other)

    def __radd__(self, other):
        return upcalls.binary(ADD, self, other)

    def __iadd__(self, other):
        return upcalls.inplace(ADD, self, other)

    def __sub__(self, other):
        return upcalls.binary(SUB, self, other)

    def __rsub__(self, other):
        return upcalls.binary(SUB, other, self)

    def __isub__(self, other):
        return upcalls.inplace(SUB, self, other)

    def __mul__(self, other):
        return upcalls.binary(MUL, self, other)

    def __rmul__(self, other):
        return upcalls.binary(MUL, self, other)

    def __imul__(self, other):
        return upcalls.inplace(MUL, self, other)

    def __truediv__(self, other):
        return upcalls.binary(TRUEDIV, self, other)

    def __rtruediv__(self, other):
        return upcalls.binary(TRUEDIV, other, self)

    def __itruediv__(self, other):
        return upcalls.inplace(TRUEDIV, self, other)

    def __floordiv__(self, other):
        return upcalls.binary(FLOORDIV, self, other)

    def __rfloordiv__(self, other):
        return upcalls.binary(FLOORDIV, other, self)

    def __ifloordiv__(self, other):
        return upcalls.inplace(FLOORDIV, self, other)

    def __mod__(self, other):
        return upcalls.binary(MOD, self, other)

    def __rmod__(self, other):
        return upcalls.binary(MOD, other, self)

    def __imod__(self, other):
        return upcalls.inplace(MOD, self, other)

    def __pow__(self, other, modulo):
        return upcalls.binary(POW, self, other)

    def __rpow__(self, other, modulo):
        return upcalls.binary(POW, other, self)

    def __ipow__(self, other):
        return upcalls.inplace(POW, self, other)

    def __matmul__(self, other):
        return upcalls.binary(MATMUL, self, other)

    def __rmatmul__(self, other):
        return upcalls.binary(MATMUL, other, self)

    def __and__(self, other):
        return upcalls.binary(AND, self, other)

    def __rand__(self, other):
        return upcalls.binary(AND, other, self)

    def __iand__(self, other):
        return upcalls.inplace(AND, self, other)

    def __or__(self, other):
        return upcalls.binary(OR, self, other)

    def __ror__(self, other):
        return upcalls.binary(OR, other, self)

    def __ior__(self, other):
        return upcalls.inplace(OR, self, other)

    def __xor__(self, other):
        return upcalls.binary(XOR, self, other)

    def __rxor__(self, other):
        return upcalls.binary(XOR, other, self)

    def __ixor__(self, other):
        return upcalls.inplace(XOR, self, other)

    def __lshift__(self, other):
        return upcalls.binary(LSHIFT, self, other)

    def __rlshift__(self, other):
        return upcalls.binary(LSHIFT, other, self)

    def __ilshift__(self, other):
        return upcalls.inplace(LSHIFT, self, other)

    def __rshift__(self, other):
        return upcalls.binary(RSHIFT, self, other)

    def __rrshift__(self, other):
        return upcalls.binary(RSHIFT, other, self)

    def __irshift__(self, other):
        return upcalls.inplace(RSHIFT, self, other)

    def __neg__(self):
        return upcalls.unary(NEG, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return upcalls.unary(ABS, self)

    def __invert__(self):
        return upcalls.unary(INVERT, self)

    def __richcmp__(self, other, int op):
        # Python numbers them in the order of OpSlot: LT, LE, EQ, NE, GT, GE
        return upcalls.binary(<OpSlot>(<int>LT + op), self, other)

    def __hash__(self):
        return <Py_hash_t>(<size_t><PyObject*>self >> 4)

    def __getitem__(self, key):
        return upcalls.getitem(self, key)

    def __setitem__(self, key, value):
        upcalls.setitem(self, key, value)

    def __delitem__(self, key):
        raise TypeError("Tensor does not support deleting items; index what is to be kept")

    def __len__(self):
        if self.ndim_ == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.dims[0]

    def __iter__(self):
        if self.ndim_ == 0:
            raise TypeError("iteration over a 0-d tensor")
        return map(self.__getitem__, range(check_rows(self.dims[0])))

    def __contains__(self, element):
        return self._contains(element)

    # ---- as Python's own kinds ----------------------------------------------------------------

    def __bool__(self):
        if self.numel_ != 1:
            how_many = "more than one value" if self.numel_ else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {how_many} is ambiguous")
        return bool(upcalls.item(self))

    def __int__(self):
        return int(upcalls.number(self))

    def __float__(self):
        return float(upcalls.number(self))

    def __index__(self):
        if KIND[self.type] >= FLOAT_KIND or self.numel_ != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(upcalls.item(self))

    def __repr__(self):
        return self._text()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        upcalls.fill_buffer(self, buffer, flags)

    def __releasebuffer__(self, Py_buffer* buffer):
        cdef Export* export = <Export*>buffer.internal
        Py_DECREF(<object>export.storage)
        free(export)


cdef int warn_of_none() except -1:
    warn_of("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: without "
            ".retain_grad(), backward() fills that of leaves only.")
    return 0


cdef int set_requires_grad(Tensor x, bint value) except -1:
    if value and KIND[x.type] < FLOAT_KIND:
        raise RuntimeError(
            f"requires_grad: only floating-point tensors can require gradients, got {x.dtype}")
    if value and untracked(x.storage) and first_version()[0] == 0:
        raise RuntimeError(
            "requires_grad: setting requires_grad=True on inference tensor outside InferenceMode "
            "is not allowed; clone() it first")
    if not value and x.grad_node is not None:
        raise RuntimeError("requires_grad: can't be turned off on a tensor that an operation made; "
                           "use x.detach() for one outside the graph")
    if x.grad_node is None:
        x.wants_grad = value
    return 0


# ---- making tensors ---------------------------------------------------------------------------

cdef Tensor new_tensor(int dtype, int ndim, const Py_ssize_t* dims):
    """An uninitialised contiguous tensor. Raises RuntimeError or OutOfMemoryError for its sizes."""
    cdef Tensor x = Tensor.__new__(Tensor)
    cdef Py_ssize_t span = 1
    cdef bint empty = False
    cdef int d
    PyObject_GC_UnTrack(x)
    set_layout_room(x, ndim)
    for d in range(ndim - 1, -1, -1):
        x.dims[d] = dims[d]
        x.steps[d] = span
        empty |= dims[d] == 0
        if not widen(&span, dims[d]):
            refuse_size("", ndim, dims)
    x.type = dtype
    x.numel_ = 0 if empty else span
    x.packed = True
    x.storage = allocate(x.numel_ * ITEMSIZE[dtype])
    x.data_pointer = x.storage.data
    return x


cdef Tensor new_like(Tensor x, int dtype):
    """An uninitialised contiguous tensor of the sizes of `x`, without memory if that has none."""
    if not in_region(x.storage.data):
        return new_tensor(dtype, x.ndim_, x.dims)
    cdef int* mode = without_memory()
    cdef int before = mode[0]
    mode[0] = True
    try:
        return new_tensor(dtype, x.ndim_, x.dims)
    finally:
        mode[0] = before


cdef Tensor over_storage(Storage storage, char* data, int dtype, int ndim,
                         const Py_ssize_t* dims, const Py_ssize_t* steps):
    """A tensor over memory of `storage`.

    Raises: RuntimeError where an element would lie outside of it, OutOfMemoryError.
    """
    cdef Tensor x = Tensor.__new__(Tensor)
    cdef Py_ssize_t span = 1, low = 0, high = 0
    cdef bint empty = False, packed = True, inside = True
    cdef int d
    PyObject_GC_UnTrack(x)
    set_layout_room(x, ndim)
    for d in range(ndim - 1, -1, -1):
        x.dims[d] = dims[d]
        x.steps[d] = steps[d]
        packed &= dims[d] == 1 or steps[d] == span
        empty |= dims[d] == 0
        inside &= reach(&low, &high, dims[d], steps[d])
        if not widen(&span, dims[d]):
            refuse_size("", ndim, dims)
    if not empty and not (inside and holds(storage, data, low, high, ITEMSIZE[dtype])):
        refuse_place(ndim, dims, steps, storage.nbytes)
    x.numel_ = 0 if empty else span
    x.type, x.packed = dtype, packed or empty
    x.storage = storage
    x.data_pointer = data
    return x


cdef Tensor new_view(Tensor x, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                     char* data):
    """A tensor that shares the storage of `x`, outside the graph."""
    return over_storage(x.storage, data, x.type, ndim, dims, steps)


cdef Tensor alias(Tensor x):
    """The same elements as a new tensor outside the graph."""
    cdef Tensor y = Tensor.__new__(Tensor)
    PyObject_GC_UnTrack(y)
    set_layout_room(y, x.ndim_)
    take_on(y, x)
    y.storage = x.storage
    return y


cdef int replace(Tensor x, Tensor other) except -1:
    """Makes `x` show the elements of `other`; the graph of `x` stays."""
    if x is other:
        return 0
    before_change()
    cdef Py_ssize_t* dims = x.dims
    cdef Storage storage = x.storage         # freeing it may run code: only once x is consistent
    if storage is not other.storage:
        retire(storage)
    set_layout_room(x, other.ndim_)
    if dims != x.inline_dims:
        free(dims)
    take_on(x, other)
    x.storage = other.storage
    return leave_family(x) if storage is not other.storage else 0


quiet_type(Tensor)


cdef int set_attribute(Tensor x, str name, value) except -1:
    """Keeps a value under a name, for as long as the tensor lives."""
    upcalls.track_held(x, value)
    x.attributes = {} if x.attributes is None else x.attributes
    x.attributes[name] = value
    track_tensor(x)
    return 0


def attach(str name, object function):
    """Adds a method or property to the Tensor type; the core itself calls it by upcalls only."""
    attach_to(Tensor, name, name_errors(function, True))
