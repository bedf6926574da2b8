"""Sizes, dims and broadcasting: checks of shapes before any memory is touched."""

from math import prod

from libc.string cimport memcpy

from cpython.long cimport PyLong_AsSsize_t, PyLong_CheckExact
from cpython.number cimport PyIndex_Check, PyNumber_Index
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

cdef extern from "Python.h":
    struct TypeObject "_typeobject"
    object PyType_GenericAlloc(TypeObject* type, Py_ssize_t n)
    bint PyTuple_Check(object value)
    bint PyList_Check(object value)
    tuple PyTuple_GetSlice(object sequence, Py_ssize_t begin, Py_ssize_t end)
    tuple PyList_AsTuple(object sequence)
    int PySlice_Unpack(object key, Py_ssize_t* begin, Py_ssize_t* end, Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t size, Py_ssize_t* begin, Py_ssize_t* end,
                                     Py_ssize_t step)

from tensorlib._core.base import library
from tensorlib._core.base.storage import OutOfMemoryError


class Size(tuple):
    """The shape of a tensor: a tuple of ints, given as ints or as tensors of one integer.

    Raises: TypeError for what is not an int.

    >>> tensorlib.zeros(2, 3).shape
    tensorlib.Size([2, 3])
    """

    __slots__ = ()

    def __new__(cls, sizes=(), /):
        cdef tuple given = checked_sizes(sizes)
        return known_size(given) if cls is Size else tuple.__new__(cls, given)

    def numel(self):
        """The number of elements of a tensor of this shape."""
        return prod(self)

    def __repr__(self):
        return f"{library.name}.Size({list(self)})"

    def __add__(self, other):
        return known_size(tuple(self) + checked_sizes(other)) if (
            isinstance(other, tuple)) else NotImplemented

    def __radd__(self, other):
        return known_size(checked_sizes(other) + tuple(self)) if (
            isinstance(other, tuple)) else NotImplemented

    def __mul__(self, times):
        return known_size(tuple(self) * times)

    __rmul__ = __mul__

    def __getitem__(self, key):
        cdef Py_ssize_t place, end, step
        if PyLong_CheckExact(key):           # twice as fast as the method of tuples
            place = clipped(key, NULL)
            if place < 0:
                place += PyTuple_GET_SIZE(self)
            if 0 <= place < PyTuple_GET_SIZE(self):
                return <object>PyTuple_GET_ITEM(self, place)
        if isinstance(key, slice) and key.step is None:      # three times as fast
            PySlice_Unpack(key, &place, &end, &step)
            PySlice_AdjustIndices(PyTuple_GET_SIZE(self), &place, &end, 1)
            return known_size(PyTuple_GetSlice(self, place, end))
        found = tuple.__getitem__(self, key)
        return known_size(found) if isinstance(key, slice) else found

    def __reduce__(self):
        return Size, (tuple(self),)


cdef tuple checked_sizes(object sizes):
    """Sizes as ints."""
    cdef list found = list(sizes)
    cdef Py_ssize_t at
    for at in range(len(found)):
        if PyLong_CheckExact(found[at]):
            continue
        try:
            found[at] = PyNumber_Index(found[at])
        except TypeError:
            raise TypeError("tensorlib.Size() takes an iterable of 'int' "
                            f"(item {at} is '{type(found[at]).__name__}')") from None
    return tuple(found)


cdef object known_size(tuple sizes):
    """A `Size` of values that are known to be ints."""
    cdef Py_ssize_t n = len(sizes), at
    cdef object size = PyType_GenericAlloc(<TypeObject*>Size, n), item
    for at in range(n):
        item = sizes[at]
        Py_INCREF(item)
        PyTuple_SET_ITEM(size, at, item)
    return size


cdef object make_size(int ndim, const Py_ssize_t* dims):
    """The sizes as a `Size`, filled in place as tuples are.

    They are copied first: making a tuple may run the garbage collector, and so any code, which may
    change the sizes of the tensor.
    """
    cdef Py_ssize_t kept[MAX_NDIM]
    memcpy(kept, dims, ndim * sizeof(Py_ssize_t))
    cdef object size = PyType_GenericAlloc(<TypeObject*>Size, ndim), item
    cdef int d
    for d in range(ndim):
        item = kept[d]
        Py_INCREF(item)
        PyTuple_SET_ITEM(size, d, item)
    return size


cdef tuple sizes_of(int ndim, const Py_ssize_t* dims):
    """Sizes or strides as a plain tuple, for messages."""
    return tuple(make_size(ndim, dims))


cdef Py_ssize_t count(str name, int ndim, const Py_ssize_t* dims) except -1:
    """The number of elements. Raises RuntimeError for a negative size, OutOfMemoryError (which is
    one) for too many elements."""
    cdef Py_ssize_t span = 1
    cdef bint empty = False
    cdef int d
    for d in range(ndim):
        if not widen(&span, dims[d]):
            refuse_size(name, ndim, dims)
        empty = empty or dims[d] == 0
    return 0 if empty else span


cdef int refuse_size(str name, int ndim, const Py_ssize_t* dims) except -1:
    """Raises for sizes that no tensor can have. Without a name the operation adds its own."""
    cdef list sizes = list(sizes_of(ndim, dims))
    if name:
        name += ": "
    if min(sizes) < 0:
        raise RuntimeError(f"{name}sizes must be 0 or more, got {sizes}")
    raise OutOfMemoryError(f"{name}a tensor of sizes {sizes} has too many elements")


cdef int refuse_place(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                      Py_ssize_t nbytes) except -1:
    """Raises for a view that would leave its storage."""
    raise RuntimeError(
        f"a view of sizes {list(sizes_of(ndim, dims))} and strides "
        f"{list(sizes_of(ndim, steps))} does not lie in the {nbytes} bytes of its storage; was "
        "the tensor changed while it was read?")


cdef Py_ssize_t add_sizes(str name, Py_ssize_t a, Py_ssize_t b) except -1:
    """a + b. Raises OutOfMemoryError where that is too large a size."""
    if b > MAX_NUMEL - a:
        raise OutOfMemoryError(f"{name}: a size of {a} + {b} has too many elements")
    return a + b


cdef Py_ssize_t check_rows(Py_ssize_t rows) except -1:
    """`rows`, the length of a tensor that is iterated over. Raises if no list could hold the rows.

    `list` allocates by the length before the first row, and would raise a MemoryError without a
    message. (PyTorch makes all rows first.)
    """
    if rows >> 28:                   # 30 GB of tensors
        raise OutOfMemoryError(f"iteration: {rows} rows are too many tensors")
    return rows


cdef tuple items(object sequence, Py_ssize_t most):
    """The items of a sequence, at most `most` + 1 of them.

    `__len__` is not trusted: items of sequences other than lists and tuples are counted.
    """
    cdef list found
    if PyTuple_Check(sequence):
        return PyTuple_GetSlice(sequence, 0, LARGEST)
    if PyList_Check(sequence):
        return PyList_AsTuple(sequence)
    found = []
    for item in sequence:
        found.append(item)
        if len(found) > most:
            break
    return tuple(found)


cdef int parse_shape(str name, object given, Py_ssize_t* dims) except -1:
    """Writes the sizes of an int, a sequence of ints, or a call's *args; returns their number."""
    cdef int ndim = 0
    if isinstance(given, tuple) and len(given) == 1 and not PyIndex_Check(given[0]):
        given = given[0]
    if PyIndex_Check(given) and not isinstance(given, (tuple, list)):
        given = (given,)
    try:
        given = items(given, MAX_NDIM)
    except TypeError:
        raise TypeError(f"{name}: expected sizes as ints, got {given!r}") from None
    if len(given) > MAX_NDIM:
        raise RuntimeError(f"{name}: at most {MAX_NDIM} dims are supported, got more")
    for size in given:
        if not PyIndex_Check(size):
            raise TypeError(
                f"{name}: expected sizes as ints, got {type(size).__name__} in {given!r}")
        try:
            dims[ndim] = PyLong_AsSsize_t(PyNumber_Index(size))
        except OverflowError:
            raise RuntimeError(f"{name}: size {size} is too large") from None
        ndim += 1
    return ndim


cdef object settled(object dim):
    """A dim or a sequence of dims as exact ints, so that reading them runs no code.

    To be called before the tensor is looked at, since `__index__` may change that.
    """
    if dim is None or PyLong_CheckExact(dim):
        return dim
    if isinstance(dim, (tuple, list)):
        dim = items(dim, LARGEST)
        for one in <tuple>dim:
            if not PyLong_CheckExact(one):
                # one level only: a list may contain itself; what is not an int is rejected later
                return tuple([PyNumber_Index(one) if PyIndex_Check(one) else one
                              for one in <tuple>dim])
        return dim
    return PyNumber_Index(dim) if PyIndex_Check(dim) else dim


cdef int wrap_dim(str name, object dim, int ndim) except -1:
    """A dim counted from the front. A 0-d tensor accepts dims -1 and 0, as in PyTorch."""
    cdef Py_ssize_t wrapped, limit = ndim if ndim else 1
    if not PyIndex_Check(dim):
        raise TypeError(f"{name}: dim must be an int, got {type(dim).__name__}")
    try:
        wrapped = PyLong_AsSsize_t(PyNumber_Index(dim))
    except OverflowError:
        wrapped = limit
    if wrapped < -limit or wrapped >= limit:
        raise IndexError(
            f"{name}: Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], "
            f"but got {dim})")
    return <int>(wrapped + limit if wrapped < 0 else wrapped)


cdef int parse_dims(str name, object dim, int ndim, int* dims) except -1:
    """Writes each wrapped dim of an int or a sequence, in ascending order; returns their number.

    None and an empty sequence mean every dim. Raises RuntimeError for a dim that appears twice.
    """
    cdef bint chosen[MAX_NDIM]
    cdef int d, n = 0
    if PyIndex_Check(dim):
        dims[0] = wrap_dim(name, dim, ndim)
        return 0 if ndim == 0 else 1
    for d in range(MAX_NDIM):
        chosen[d] = False
    if dim is not None and not isinstance(dim, (tuple, list)):
        raise TypeError(
            f"{name}: dim must be an int or a sequence of ints, got {type(dim).__name__}")
    if not dim:
        for d in range(ndim):
            dims[d] = d
        return ndim
    for one in dim:
        d = wrap_dim(name, one, ndim)
        if chosen[d]:
            raise RuntimeError(f"{name}: dim {d} appears multiple times in the list of dims")
        chosen[d] = True
    for d in range(ndim):
        if chosen[d]:
            dims[n] = d
            n += 1
    return n


cdef void row_major(int ndim, const Py_ssize_t* dims, Py_ssize_t* strides) noexcept nogil:
    """Strides, in elements, of a contiguous tensor."""
    cdef Py_ssize_t stride = 1
    cdef int d
    for d in range(ndim - 1, -1, -1):
        strides[d] = stride
        if dims[d] > 1:
            stride *= dims[d]


cdef int broadcast(str name, int ndim_a, const Py_ssize_t* a, int ndim_b, const Py_ssize_t* b,
                   Py_ssize_t* dims) except -1:
    """Writes the shape to which both broadcast; returns its number of dims. Raises RuntimeError."""
    cdef int ndim = max(ndim_a, ndim_b), d
    cdef Py_ssize_t size_a, size_b
    for d in range(ndim - 1, -1, -1):
        size_a = a[d - ndim + ndim_a] if d >= ndim - ndim_a else 1
        size_b = b[d - ndim + ndim_b] if d >= ndim - ndim_b else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise RuntimeError(
                f"{name}: shapes {sizes_of(ndim_a, a)} and "
                f"{sizes_of(ndim_b, b)} do not broadcast: The size of tensor a ({size_a}) must "
                f"match the size of tensor b ({size_b}) at non-singleton dimension {d}")
        dims[d] = size_b if size_a == 1 else size_a
    return ndim


def listed(sequence):
    """The items of a sequence as a tuple, without trusting its `__len__`."""
    return items(sequence, LARGEST)


def settled_dims(dims):
    """Dims, or any integers, as exact ints: see `settled`."""
    return settled(dims)


def wrap(str name, dim, int ndim):
    """A dim counted from the front. Raises IndexError outside [-ndim, ndim)."""
    return wrap_dim(name, dim, ndim)


def broadcast_shapes(str name, a, b):
    """The sizes that two shapes broadcast to. Raises RuntimeError."""
    cdef Py_ssize_t dims_a[MAX_NDIM]
    cdef Py_ssize_t dims_b[MAX_NDIM]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim_a = parse_shape(name, a, dims_a), ndim_b = parse_shape(name, b, dims_b), d
    return tuple([dims[d] for d in range(broadcast(name, ndim_a, dims_a, ndim_b, dims_b, dims))])


def in_pytorchs_words(a, b):
    """PyTorch's words for matrices that can't be multiplied, by which users search for the error;
    "" for other shapes."""
    if not a or len(b) != 2:
        return ""
    return ("; mat1 and mat2 shapes cannot be multiplied "
            f"({prod(a[:-1])}x{a[-1]} and {b[0]}x{b[1]})")
