"""Basic index keys, which give a view: ints, slices, None and an ellipsis.

A key is converted to C integers before the tensor is read: what `__index__` runs may be
anything, and may change the tensor.
"""

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check, PyNumber_AsSsize_t, PyNumber_Index

from collections.abc import Sequence

import numpy as np

from tensorlib._core.base.dtypes cimport INTEGER_KIND, ITEMSIZE, KIND, UINT8
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.interpreters.foreign cimport is_tensor_like
from tensorlib._core.tensor.tensor cimport Tensor, new_view

from tensorlib._core.base.warned import warn_of

cnp.import_array()

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t* start, Py_ssize_t* stop,
                       Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop,
                                     Py_ssize_t step)

# The layout of the view that a basic key makes, as it grows.
cdef struct Layout:
    char* data
    int ndim
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t steps[MAX_NDIM]


cdef Kind kind_of(object part):
    if PyLong_CheckExact(part):
        return INTEGER
    if type(part) is slice:
        return SLICE
    if part is None:
        return NEW
    if part is Ellipsis:
        return ELLIPSIS
    if isinstance(part, Tensor):
        return INTEGER if is_int_scalar(part) else ADVANCED
    if isinstance(part, cnp.ndarray):
        return INTEGER if part.ndim == 0 and part.dtype.kind in "iu" else ADVANCED
    if isinstance(part, (bool, np.bool_)):
        return ADVANCED
    return INTEGER if PyIndex_Check(part) and not is_tensor_like(part) else ADVANCED


cdef object as_parts(object key):
    """A list as PyTorch reads it: as a tuple of its parts where one of them is a slice, a tensor or
    a sequence, and as positions where all are numbers or where it has 32 parts or more."""
    if len(key) >= 32:
        return key
    for part in key:
        if part is None or part is Ellipsis or isinstance(part, (slice, Tensor)) or (
                isinstance(part, Sequence) and not isinstance(part, (str, bytes))
                or isinstance(part, cnp.ndarray) and part.ndim):
            warn_of("a list that holds slices, tensors or sequences is read as a tuple of them; "
                    "write x[tuple(key)], or x[tensor(key)] for positions")
            return tuple(key)
    return key


cdef inline bint is_int_scalar(Tensor x) noexcept:
    return x.ndim_ == 0 and KIND[x.type] == INTEGER_KIND and x.type != UINT8


cdef struct Part:
    Kind kind
    Py_ssize_t begin, end, step      # of a slice; an integer is in `begin`


cdef int convert(object given, Part* part) except -1:
    """Reads one part of a key that is not advanced."""
    if part.kind == INTEGER:
        part.begin = PyNumber_AsSsize_t(given, IndexError)
    elif part.kind == SLICE:
        PySlice_Unpack(given, &part.begin, &part.end, &part.step)
    return 0


cdef object settled(object given, Kind kind):
    """A part of a key whose integers are Python's own, which run no code when they are read."""
    cdef Part part
    if kind == INTEGER:
        return PyNumber_Index(given)
    if kind == SLICE and not (plain(given.start) and plain(given.stop) and plain(given.step)):
        PySlice_Unpack(given, &part.begin, &part.end, &part.step)
        return slice(part.begin, part.end, part.step)
    return given


cdef inline bint plain(object one):
    return one is None or PyLong_CheckExact(one)


cdef int select(Layout* layout, Tensor x, int dim, Py_ssize_t i) except -1:
    """Goes to one place of a dim of `x`."""
    cdef Py_ssize_t size = x.dims[dim]
    if i < -size or i >= size:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    if i < 0:
        i += size
    layout.data += i * x.steps[dim] * ITEMSIZE[x.type]
    return 0


cdef int cut(Layout* layout, Tensor x, int dim, const Part* part) except -1:
    """Keeps a slice of a dim of `x`."""
    cdef Py_ssize_t begin = part.begin, end = part.end, size
    size = PySlice_AdjustIndices(x.dims[dim], &begin, &end, part.step)
    if size > 0 or part.step > 0:                # of no element, too, as in PyTorch
        layout.data += begin * x.steps[dim] * ITEMSIZE[x.type]
    return push(layout, size, x.steps[dim] * part.step if size > 1 else x.steps[dim])


cdef inline int push(Layout* layout, Py_ssize_t size, Py_ssize_t step) except -1:
    if layout.ndim == MAX_NDIM:
        raise IndexError(f"an index makes at most {MAX_NDIM} dims")
    layout.dims[layout.ndim] = size
    layout.steps[layout.ndim] = step
    layout.ndim += 1
    return 0


cdef int require_dims(Py_ssize_t used, Tensor x) except -1:
    if used > x.ndim_:
        raise IndexError(
            f"index: too many indices for tensor of dimension {x.ndim_}: the key has {used}")
    return 0


cdef Tensor basic_view(Tensor x, object key):
    """The view that a basic key gives, or None if the key has an advanced part."""
    cdef Layout layout
    cdef Part parts[2 * MAX_NDIM]
    cdef Kind kind
    cdef int dim = 0, used = 0, i, n
    layout.ndim = 0
    if type(key) is not tuple:
        kind = parts[0].kind = kind_of(key)
        if kind == ADVANCED:
            return None
        if kind == INTEGER:
            convert(key, parts)
            require_dims(1, x)
            layout.data = x.data_pointer
            select(&layout, x, 0, parts[0].begin)
            return new_view(x, x.ndim_ - 1, x.dims + 1, x.steps + 1, layout.data)
        key = (key,)
    if len(<tuple>key) > 2 * MAX_NDIM:
        raise IndexError(f"an index has at most {2 * MAX_NDIM} parts, got {len(<tuple>key)}")
    n = <int>len(<tuple>key)
    for i in range(n):
        kind = parts[i].kind = kind_of((<tuple>key)[i])
        if kind == ADVANCED:
            return None
        convert((<tuple>key)[i], &parts[i])
        used += kind <= SLICE
    require_dims(used, x)
    layout.data = x.data_pointer
    for i in range(n):
        kind = parts[i].kind
        if kind == INTEGER:
            select(&layout, x, dim, parts[i].begin)
            dim += 1
        elif kind == SLICE:
            cut(&layout, x, dim, &parts[i])
            dim += 1
        elif kind == NEW:
            push(&layout, 1, 1)
        else:
            while dim < x.ndim_ - used:                     # none, after an earlier ellipsis
                push(&layout, x.dims[dim], x.steps[dim])
                dim += 1
        used -= kind <= SLICE
    while dim < x.ndim_:
        push(&layout, x.dims[dim], x.steps[dim])
        dim += 1
    return new_view(x, layout.ndim, layout.dims, layout.steps, layout.data)
