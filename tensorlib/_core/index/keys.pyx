"""Index expressions: `x[key]` and `x[key] = values` for all keys of NumPy and PyTorch.

A key has a basic part, which gives a view (ints, slices, None, ...), and an advanced part, which
gives positions in dims of that view (masks, integer tensors, arrays and lists). `basic_view` is the
short path of basic keys. `parse` understands every key once; `take` (which reads) and `put` (which
writes or adds, as PyTorch's index_put) then apply it, also to another tensor of the same shape, as
a gradient does.

Where PyTorch and NumPy differ: an int, also as a 0-d tensor, is basic, as in PyTorch; a list is
always one array of positions or a mask, as in NumPy and as PyTorch announces; slices may step
backwards, as in NumPy. A uint8 tensor is refused: it is a mask in one and positions in the other.

All of it is raw: nothing here is recorded for gradients, and `values` have the tensor's dtype.
"""

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check, PyNumber_AsSsize_t, PyNumber_Index
from libc.stdint cimport int64_t

import numpy as np

from tensorlib._core.arrays.convert cimport existing, from_data
from tensorlib._core.arrays.operands cimport stands_in
from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT_KIND, INT64, INTEGER_KIND, ITEMSIZE, KIND, UINT8,
)
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.shape cimport broadcast as broadcast_shapes
from tensorlib._core.index.gather cimport check_sizes, wrapped
from tensorlib._core.index.strided cimport (
    ADD, PUT, TAKE, Move, Walk, add_dim, expanded, move, require_writable, start,
)
from tensorlib._core.reduce.masks cimport count_true, fill_where, nonzero_mask, true_positions
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport may_overlap, packed, packed_copy

cnp.import_array()

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t* start, Py_ssize_t* stop,
                       Py_ssize_t* step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop,
                                     Py_ssize_t step)

cdef object WHOLE = slice(None)
cdef str ONE_ELLIPSIS = "an index can have only one ellipsis ('...')"

# What stands at one place of a key.
cdef enum Kind:
    INTEGER, SLICE, NEW, ELLIPSIS, ADVANCED

# The layout of the view that a basic key makes, as it grows.
cdef struct Layout:
    char* data
    int ndim
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t steps[MAX_NDIM]


# ---- basic keys -------------------------------------------------------------------------------

cdef inline Kind kind_of(object part):
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
    return INTEGER if PyIndex_Check(part) and not stands_in(part) else ADVANCED


cdef inline bint is_int_scalar(Tensor x) noexcept:
    return x.ndim_ == 0 and KIND[x.type] == INTEGER_KIND and x.type != UINT8


cdef int select(Layout* layout, Tensor x, int dim, object part) except -1:
    """Goes to one place of a dim of `x`."""
    cdef Py_ssize_t size = x.dims[dim], i
    i = PyNumber_AsSsize_t(part, IndexError)
    if i < -size or i >= size:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {size}")
    if i < 0:
        i += size
    layout.data += i * x.steps[dim] * ITEMSIZE[x.type]
    return 0


cdef int cut(Layout* layout, Tensor x, int dim, object part) except -1:
    """Keeps a slice of a dim of `x`."""
    cdef Py_ssize_t begin, end, step, size
    PySlice_Unpack(part, &begin, &end, &step)
    size = PySlice_AdjustIndices(x.dims[dim], &begin, &end, step)
    if size > 0:
        layout.data += begin * x.steps[dim] * ITEMSIZE[x.type]
    return push(layout, size, x.steps[dim] * step if size > 1 else x.steps[dim])


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
    cdef Kind kind
    cdef int dim = 0, used = 0, i, n
    cdef bint rest = False
    layout.data = x.data_pointer
    layout.ndim = 0
    if type(key) is not tuple:
        kind = kind_of(key)
        if kind == ADVANCED:
            return None
        if kind == INTEGER and x.ndim_ > 0:
            select(&layout, x, 0, key)
            return new_view(x, x.ndim_ - 1, x.dims + 1, x.steps + 1, layout.data)
        key = (key,)
    n = <int>len(<tuple>key)
    for part in <tuple>key:
        kind = kind_of(part)
        if kind == ADVANCED:
            return None
        used += kind <= SLICE
    require_dims(used, x)
    for i in range(n):
        part = (<tuple>key)[i]
        kind = kind_of(part)
        if kind == INTEGER:
            select(&layout, x, dim, part)
            dim += 1
        elif kind == SLICE:
            cut(&layout, x, dim, part)
            dim += 1
        elif kind == NEW:
            push(&layout, 1, 1)
        else:
            if rest:
                raise IndexError(ONE_ELLIPSIS)
            rest = True
            while dim < x.ndim_ - used:
                push(&layout, x.dims[dim], x.steps[dim])
                dim += 1
        used -= kind <= SLICE
    while dim < x.ndim_:
        push(&layout, x.dims[dim], x.steps[dim])
        dim += 1
    return new_view(x, layout.ndim, layout.dims, layout.steps, layout.data)


# ---- any key ----------------------------------------------------------------------------------

cdef class Index:
    """A parsed index expression."""

    @property
    def tensors(self):
        """What it holds of positions and masks, copies that are its own."""
        held = [self.mask, *(self.positions or ())]
        return tuple([x for x in held if x is not None])


close_type(Index)


cdef Index new_index():
    return Index.__new__(Index)


cpdef Index parse(Tensor x, object key):
    """The parsed key; positions and masks are checked and copied, the view is made when applied.

    Raises: IndexError, TypeError for what is no index.
    """
    cdef Index index = new_index()
    cdef list parts = [], basic = [], slots = []
    cdef Tensor part
    cdef Kind kind
    cdef Py_ssize_t used = 0, dim = 0, place = 0
    cdef int d, n_ellipses = 0
    cdef bint advanced = False
    for given in (key if type(key) is tuple else (key,)):
        kind = kind_of(given)
        if kind == ADVANCED:
            advanced = True
            given = as_index(given)
            used += (<Tensor>given).ndim_ if (<Tensor>given).type == BOOL else 1
        elif kind == INTEGER:
            given = PyNumber_Index(given)
        used += kind <= SLICE
        n_ellipses += kind == ELLIPSIS
        parts.append(given)
    require_dims(used, x)
    if n_ellipses > 1:
        raise IndexError(ONE_ELLIPSIS)
    if not advanced:
        index.basic = tuple(parts)
        return index
    for given in parts:
        if not isinstance(given, Tensor):
            basic.append(given)
            kind = kind_of(given)
            if kind == ELLIPSIS:
                dim += x.ndim_ - used
                place += x.ndim_ - used
            dim += kind <= SLICE
            place += kind == SLICE or kind == NEW
            continue
        part = given
        slots.append((place, dim, part))
        if part.type == BOOL:
            require_mask_shape(part, x, dim)
        if part.type == BOOL and part.ndim_ == 0:
            basic.append(None)
            place += 1
            continue
        for d in range(part.ndim_ if part.type == BOOL else 1):
            basic.append(WHOLE)
            dim += 1
            place += 1
    index.basic = tuple(basic)
    set_positions(index, x, slots, place + x.ndim_ - dim)
    index.sizes = tuple([x.dims[d] for d in range(x.ndim_)])
    return index


class SharedIndex(TypeError, RuntimeError):
    """A key for many tensors beside one. Reading has its own way to deal with it."""


cdef Tensor as_index(object part):
    """The tensor of integers or bools that a part of a key stands for."""
    cdef Tensor found = None
    if isinstance(part, Tensor):
        found = part
    elif isinstance(part, (bool, np.bool_)):
        return from_data(bool(part), BOOL)
    elif isinstance(part, cnp.ndarray):
        if part.dtype.kind == "u" and part.itemsize > 1:
            part = part.astype(np.int64)
        found = existing(part)
    elif stands_in(part):
        raise SharedIndex("index: vmap: a tensor that all examples of a batch share can't be "
                          "written at positions that differ between them")
    elif not isinstance(part, str) and hasattr(part, "__len__"):
        try:
            found = from_data(part, -1)
        except (TypeError, ValueError, RuntimeError) as error:
            raise IndexError(
                f"index: a {type(part).__name__} used as an index must hold ints or bools; for "
                f"several parts use a tuple ({error})") from None
        if found.numel_ == 0:
            return packed_copy(found, INT64)
    else:
        raise (IndexError if isinstance(part, float) else TypeError)(
            "index: only integers, slices (`:`), ellipsis (`...`), None and integer or bool "
            f"tensors are valid indices (got {type(part).__name__})")
    if found.type == UINT8:
        raise IndexError(
            "index: a uint8 tensor is ambiguous: use .bool() for a mask or .long() for positions")
    if KIND[found.type] == FLOAT_KIND:
        raise IndexError(
            f"index: tensors used as indices must be integer or bool, got {found.dtype}")
    return found


cdef int require_mask_shape(Tensor mask, Tensor x, Py_ssize_t dim) except -1:
    cdef int d
    for d in range(mask.ndim_):
        if mask.dims[d] != x.dims[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape "
                f"of the indexed tensor {list(x.shape)} at index {dim + d}")
    return 0


cdef int set_positions(Index index, Tensor x, list slots, Py_ssize_t ndim) except -1:
    """Fills in the advanced part from (dim of the view, dim of x, tensor) of each indexed place."""
    cdef list positions = [None] * ndim
    cdef Tensor part
    cdef Py_ssize_t place, dim, size
    cdef int d, last = -1
    place, dim, part = slots[0]
    index.first = index.at = <int>place
    if len(slots) == 1 and part.type == BOOL and part.ndim_ > 0:
        index.mask = nonzero_mask(part)
        index.n_true = count_true(index.mask.data_pointer, part.numel_)
        return 0
    for place, dim, part in slots:
        if last >= 0 and place != last:
            index.at = 0                 # indexed dims that are apart come first
        if part.type != BOOL:
            size = x.dims[dim]
            positions[place] = wrapped(part, size, dim)
            last = <int>place + 1
            continue
        for d, one in enumerate(true_positions(nonzero_mask(part))):
            positions[place + d] = one
        last = <int>place + max(part.ndim_, 1)
    index.positions = broadcast_positions(positions)
    return 0


cdef tuple broadcast_positions(list positions):
    """The positions, all of one shape and packed. Raises IndexError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor one
    cdef int ndim = 0, d
    found = [one for one in positions if one is not None]
    if len(found) == 1:
        return tuple(positions)
    try:
        for one in found:
            ndim = broadcast_shapes("index", ndim, dims, one.ndim_, one.dims, dims)
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join([str(list(one.shape)) for one in found])) from None
    for d in range(len(positions)):
        if positions[d] is not None:
            one = expanded(positions[d], ndim, dims)
            positions[d] = packed(one)
    return tuple(positions)


# ---- applying a parsed key --------------------------------------------------------------------

cdef bint is_indexed(Index index, int d):
    if index.mask is not None:
        return index.first <= d < index.first + index.mask.ndim_
    return index.positions is not None and index.positions[d] is not None


cdef int n_index_dims(Index index):
    """How many dims of the result the positions make."""
    if index.mask is not None:
        return 1
    for one in index.positions or ():
        if one is not None:
            return (<Tensor>one).ndim_
    return 0


cdef int result_dims(Tensor view, Index index, Py_ssize_t* dims):
    """Writes the shape of the result; returns its number of dims."""
    cdef Tensor one
    cdef int n_index = n_index_dims(index), d, ndim = 0
    for d in range(view.ndim_):
        if not is_indexed(index, d):
            dims[ndim if ndim < index.at else ndim + n_index] = view.dims[d]
            ndim += 1
        elif index.mask is not None:
            dims[index.at] = index.n_true
        else:
            one = index.positions[d]
            for k in range(n_index):
                dims[index.at + k] = one.dims[k]
    return ndim + n_index


cdef bint one_step(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                   Py_ssize_t* step) noexcept:
    """Whether dims can be walked as one, and its step."""
    cdef Py_ssize_t expected = 0
    cdef bint begun = False
    cdef int d
    step[0] = 0
    for d in range(ndim - 1, -1, -1):
        if dims[d] == 1:
            continue
        if not begun:
            step[0] = steps[d]
            begun = True
        elif steps[d] != expected:
            return False
        expected = steps[d] * dims[d]
    return True


cdef Index with_positions(Index index, int ndim):
    """The same key, with the positions of the ones of its mask in place of the mask."""
    cdef Index out = new_index()
    out.basic, out.first, out.at, out.sizes = index.basic, index.first, index.at, index.sizes
    positions = (None,) * index.first + tuple(true_positions(index.mask))
    out.positions = positions + (None,) * (ndim - len(positions))
    return out


cdef int apply(Tensor view, Index index, Tensor y, Move kind) except -1:
    """Moves between the indexed elements of the view and `y`, which has the shape of the result.

    The index dims of `y` can be walked as one.
    """
    cdef Py_ssize_t itemsize = ITEMSIZE[view.type], step
    cdef int n_index = n_index_dims(index), d, own, rest = 0
    cdef Tensor one
    cdef Walk walk
    start(&walk, view.data_pointer, y.data_pointer)
    if index.mask is not None:
        if not one_step(index.mask.ndim_, view.dims + index.first, view.steps + index.first, &step):
            index = with_positions(index, view.ndim_)
        else:
            walk.mask = index.mask.data_pointer
            walk.x_step = step * itemsize
            walk.n = index.n_true
    if n_index:
        one_step(n_index, y.dims + index.at, y.steps + index.at, &step)
        walk.y_step = step * itemsize
    for d in range(view.ndim_):
        if not is_indexed(index, d):
            own = rest if rest < index.at else rest + n_index
            add_dim(&walk, view.dims[d], view.steps[d] * itemsize, y.steps[own] * itemsize)
            rest += 1
        elif index.positions is not None:
            one = index.positions[d]
            walk.indices[walk.n_indices] = <const int64_t*>one.data_pointer
            walk.index_steps[walk.n_indices] = view.steps[d] * itemsize
            walk.n_indices += 1
            walk.n = one.numel_
    move(&walk, kind, view.type)
    return 0


cpdef Tensor take(Tensor x, Index index):
    """The elements at a parsed key: a view if it is basic, else a new tensor."""
    cdef Tensor view = basic_view(x, index.basic), out
    cdef Py_ssize_t dims[MAX_NDIM]
    if index.mask is None and index.positions is None:
        return view
    check_sizes(index.sizes, x)
    out = new_tensor(x.type, result_dims(view, index, dims), dims)
    apply(view, index, out, TAKE)
    return out


cpdef int put(Tensor x, Index index, Tensor values, bint accumulate) except -1:
    """Writes values, broadcast, to the elements at a parsed key; with `accumulate` adds them.

    Of values for the same element the last one stays, or all are added in order. Values that share
    memory with `x` count as they were before.
    """
    cdef Tensor view = basic_view(x, index.basic), y, wide
    cdef Py_ssize_t dims[MAX_NDIM], block[MAX_NDIM]
    cdef Py_ssize_t step
    cdef int ndim, n_index = n_index_dims(index), d
    if index.sizes is not None:
        check_sizes(index.sizes, x)
    ndim = result_dims(view, index, dims)
    require_writable(x)
    if accumulate and (x.type == FLOAT16 or x.type == BFLOAT16):
        # sums of halves are rounded once, at the end
        wide = packed_copy(x, FLOAT32)
        put(wide, index, packed_copy(values, FLOAT32), True)
        return put(x, parse(x, Ellipsis), packed_copy(wide, x.type), False)
    y = expanded(values, ndim, dims)
    if y is None:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {[dims[d] for d in range(ndim)]}")
    if may_overlap(view, y):
        values = packed_copy(values, values.type)
        y = expanded(values, ndim, dims)
    if not accumulate and n_index and values.numel_ == 1:
        if index.mask is not None and index.mask.numel_ == view.numel_ and view.packed:
            fill_where(view, index.mask.data_pointer, values.data_pointer)
            return 0
        # one block of the other dims, so that whole runs of it are moved
        for d in range(ndim):
            block[d] = 1 if index.at <= d < index.at + n_index else dims[d]
        y = expanded(packed_copy(expanded(values, ndim, block), values.type), ndim, dims)
    elif n_index and not one_step(n_index, y.dims + index.at, y.steps + index.at, &step):
        y = packed_copy(y, y.type)
    return apply(view, index, y, ADD if accumulate else PUT)
