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

# The layout of the view that a basic key gives, to which its parts are applied one by one.
cdef struct Layout:
    char* data
    int ndim
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t steps[MAX_NDIM]


cdef Kind kind_of(object part):
    """What a part of a key is."""
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
    """Whether a tensor is 0-d and of integers that are positions."""
    return x.ndim_ == 0 and KIND[x.type] == INTEGER_KIND and x.type != UINT8


cdef struct KeyPart:
    Kind kind
    Py_ssize_t begin, end, step      # of a slice; an integer is in `begin`


cdef int read_part(object given, KeyPart* part) except -1:
    """Reads one part of a key that is not advanced."""
    if part.kind == INTEGER:
        part.begin = PyNumber_AsSsize_t(given, IndexError)
    elif part.kind == SLICE:
        PySlice_Unpack(given, &part.begin, &part.end, &part.step)
    return 0


cdef object with_plain_integers(object given, Kind kind):
    """A part of a key with ints in place of other integers, so that to read it runs no code."""
    cdef KeyPart part
    if kind == INTEGER:
        return PyNumber_Index(given)
    if kind == SLICE and not (
            is_plain(given.start) and is_plain(given.stop) and is_plain(given.step)):
        PySlice_Unpack(given, &part.begin, &part.end, &part.step)
        return slice(part.begin, part.end, part.step)
    return given


cdef inline bint is_plain(object one):
    """Whether a member of a slice runs no code when it is read."""
    return one is None or PyLong_CheckExact(one)


cdef int select_position(Layout* layout, Tensor x, int dim, Py_ssize_t i) except -1:
    """Moves the layout to one position of a dim of `x`."""
    cdef Py_ssize_t size = x.dims[dim]
    if i < -size or i >= size:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    if i < 0:
        i += size
    layout.data += i * x.steps[dim] * ITEMSIZE[x.type]
    return 0


cdef int slice_dim(Layout* layout, Tensor x, int dim, const KeyPart* part) except -1:
    """Adds a slice of a dim of `x` to the layout."""
    cdef Py_ssize_t begin = part.begin, end = part.end, size
    size = PySlice_AdjustIndices(x.dims[dim], &begin, &end, part.step)
    if size > 0 or part.step > 0:                # of no element, too, as in PyTorch
        layout.data += begin * x.steps[dim] * ITEMSIZE[x.type]
    return add_dim(layout, size, x.steps[dim] * part.step if size > 1 else x.steps[dim])


cdef inline int add_dim(Layout* layout, Py_ssize_t size, Py_ssize_t step) except -1:
    """Adds an inner dim to the layout. Raises: IndexError for too many."""
    if layout.ndim == MAX_NDIM:
        raise IndexError(f"an index makes at most {MAX_NDIM} dims")
    layout.dims[layout.ndim] = size
    layout.steps[layout.ndim] = step
    layout.ndim += 1
    return 0


cdef int require_dims(Py_ssize_t used, Tensor x) except -1:
    """Raises: IndexError for a key that has parts for more dims than `x` has."""
    if used > x.ndim_:
        raise IndexError(
            f"index: too many indices for tensor of dimension {x.ndim_}: the key has {used}")
    return 0


cdef Tensor basic_view(Tensor x, object key):
    """The view that a basic key gives, or None if the key has an advanced part."""
    cdef Layout layout
    cdef KeyPart parts[2 * MAX_NDIM]
    cdef Kind kind
    cdef int dim = 0, used = 0, i, n
    layout.ndim = 0
    if type(key) is not tuple:
        kind = parts[0].kind = kind_of(key)
        if kind == ADVANCED:
            return None
        if kind == INTEGER:
            read_part(key, parts)
            require_dims(1, x)
            layout.data = x.data_pointer
            select_position(&layout, x, 0, parts[0].begin)
            return new_view(x, x.ndim_ - 1, x.dims + 1, x.steps + 1, layout.data)
        key = (key,)
    if len(<tuple>key) > 2 * MAX_NDIM:
        raise IndexError(f"an index has at most {2 * MAX_NDIM} parts, got {len(<tuple>key)}")
    n = <int>len(<tuple>key)
    for i in range(n):
        kind = parts[i].kind = kind_of((<tuple>key)[i])
        if kind == ADVANCED:
            return None
        read_part((<tuple>key)[i], &parts[i])
        used += kind <= SLICE
    require_dims(used, x)
    layout.data = x.data_pointer
    for i in range(n):
        kind = parts[i].kind
        if kind == INTEGER:
            select_position(&layout, x, dim, parts[i].begin)
            dim += 1
        elif kind == SLICE:
            slice_dim(&layout, x, dim, &parts[i])
            dim += 1
        elif kind == NEW:
            add_dim(&layout, 1, x.dims[dim] * x.steps[dim] if dim < x.ndim_ else 1)
        else:
            while dim < x.ndim_ - used:                     # none, after an earlier ellipsis
                add_dim(&layout, x.dims[dim], x.steps[dim])
                dim += 1
        used -= kind <= SLICE
    while dim < x.ndim_:
        add_dim(&layout, x.dims[dim], x.steps[dim])
        dim += 1
    return new_view(x, layout.ndim, layout.dims, layout.steps, layout.data)
