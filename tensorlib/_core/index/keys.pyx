"""Index expressions: `x[key]` and `x[key] = values` for all keys of NumPy and PyTorch.

A key has a basic part, which gives a view (ints, slices, None, ...), and an advanced part, which
gives positions in dims of that view (masks, integer tensors, arrays and lists). `basic_view`
(basic.pyx) is the short path of basic keys. `parse` understands every key once; `take` (which
reads) and `put` (which writes or adds, as PyTorch's index_put) then apply it, also to another
tensor of the same shape, as a gradient does.

Where PyTorch and NumPy differ, PyTorch is followed: an int, or a 0-d tensor of one, is basic; a
list with a sequence in it is a tuple (`as_parts`), other lists are positions or a mask; a uint8
tensor is a mask. But slices may step backwards, as in NumPy.

All of it is outside autograd, and `values` have the tensor's dtype.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

import numpy as np

from tensorlib._core.arrays.convert cimport existing, from_data
from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, UINT8, is_unsigned)
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast as broadcast_shapes, sizes_of
from tensorlib._core.base.work cimport share
from tensorlib._core.index.scatter_along cimport add_half_slices
from tensorlib._core.index.basic cimport (
    ADVANCED, ELLIPSIS, Kind, NEW, SLICE, basic_view, kind_of, require_dims, with_plain_integers,
)
from tensorlib._core.index.gather cimport wrapped_positions
from tensorlib._core.index.slices cimport fill_slices
from tensorlib._core.index.strided cimport (
    ADD, PUT, TAKE, Move, Walk, add_dim, expanded, move, order_as_read, require_writable, start,
)
from tensorlib._core.interpreters.foreign cimport is_proxy
from tensorlib._core.reduce.masks cimport nonzero_mask, number_true, true_positions
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, over_storage
from tensorlib._core.tiles.copies cimport (
    cast, copy_into, may_meet, may_overlap, packed, packed_copy)
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program

from tensorlib._core.base.warned import warn_of

cnp.import_array()

cdef object WHOLE = slice(None)


# ---- any key -------------------------------------------------------------------------------------

@cython.auto_pickle(False)
@cython.no_gc                       # so that gc.get_referents does not lead to its tensors
cdef class Index:
    """A parsed index expression."""

    @property
    def places(self):
        """Copies of its positions, one for each dim that has them."""
        return tuple([packed_copy(x, INT64) for x in self.positions or () if x is not None])

    @property
    def tensors(self):
        """Copies of its mask, or else of its positions."""
        return self.places if self.mask is None else (packed_copy(self.mask, BOOL),)

    @property
    def picks_once(self):
        """Whether it names no element twice for certain: it has no positions."""
        return self.mask is not None or n_index_dims(self) == 0


close_type(Index)


cdef Index new_index():
    """An index without any part."""
    return Index.__new__(Index)


cpdef Index parse(Tensor x, object key):
    """The parsed key, for tensors of the shape of `x`. Positions and masks are checked and copied.

    `used` and `dim` count dims of `x`, `place` those of the view that the basic part gives.
    Raises: IndexError, TypeError for what is not an index.
    """
    cdef Index index = new_index()
    cdef list parts = [], basic = [], slots = []
    cdef Tensor part
    cdef Kind kind
    cdef Py_ssize_t used = 0, dim = 0, place = 0
    cdef int d
    cdef bint advanced = False, rest = False        # rest: an ellipsis was seen
    for given in (key if type(key) is tuple else (key,)):
        kind = kind_of(given)
        if kind == ELLIPSIS and rest:               # a second ellipsis stands for no dims
            continue
        rest |= kind == ELLIPSIS
        if kind == ADVANCED:
            advanced = True
            given = as_index(given)
            used += (<Tensor>given).ndim_ if (<Tensor>given).type == BOOL else 1
        else:
            given = with_plain_integers(given, kind)
        used += kind <= SLICE
        parts.append(given)
    require_dims(used, x)
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
    return index


cdef Index of_view(Index index):
    """The same key for the view that its basic part gives."""
    cdef Index out = new_index()
    out.basic, out.positions, out.sizes = (Ellipsis,), index.positions, index.sizes
    out.mask, out.n_true = index.mask, index.n_true
    out.first_dim, out.result_dim = index.first_dim, index.result_dim
    return out


class SharedIndex(TypeError, RuntimeError):
    """A write to a tensor that a batch shares, by a key that differs between the examples."""


cdef Tensor as_index(object part):
    """The tensor of integers or bools that a part of a key stands for."""
    cdef Tensor found = None
    if isinstance(part, Tensor):
        found = part
    elif isinstance(part, (bool, np.bool_)):
        return from_data(bool(part), BOOL)
    elif isinstance(part, cnp.ndarray):
        if part.dtype.kind == "u" and part.itemsize > 1:
            part = positions_of(part)
        found = existing(part)
    elif is_proxy(part):
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
        warn_of("a uint8 tensor as an index is a mask, as in PyTorch, where that is deprecated; "
                "use .bool() for a mask or .long() for positions")
        return cast(found, BOOL)
    if KIND[found.type] >= FLOAT_KIND or is_unsigned(found.type):
        raise IndexError(
            f"index: tensors used as indices must be signed integers or bool, got {found.dtype}")
    return found


cdef object positions_of(object array):
    """An array of unsigned integers as int64. Raises: IndexError for those beyond."""
    if array.dtype.itemsize == 8 and array.size and array.max() > 2**63 - 1:
        raise IndexError(f"index: {array.max()} is out of bounds for any dimension")
    return array.astype(np.int64)


cdef int require_mask_shape(Tensor mask, Tensor x, Py_ssize_t dim) except -1:
    """Raises: IndexError unless a mask has the sizes of the dims of `x` from `dim` on."""
    cdef int d
    for d in range(mask.ndim_):
        if mask.dims[d] != x.dims[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape "
                f"of the indexed tensor {list(x.shape)} at index {dim + d}")
    return 0


cdef int set_positions(Index index, Tensor x, list slots, Py_ssize_t ndim) except -1:
    """Sets the advanced part of an index.

    slots: of each advanced part of the key the dim of the view, the dim of `x` and the tensor.
    """
    cdef list positions = [None] * ndim, sizes = [0] * ndim
    cdef Tensor part
    cdef Py_ssize_t place, dim, size
    cdef int d, last = -1
    place, dim, part = slots[0]
    index.first_dim = index.result_dim = <int>place
    part = slots[0][2]
    if len(slots) == 1 and part.type == BOOL and part.ndim_ > 0:
        index.mask = nonzero_mask(part)
        index.n_true = number_true(index.mask)
        return 0
    for place, dim, part in slots:
        if last >= 0 and place != last:
            index.result_dim = 0                 # indexed dims that are apart come first
        if part.type != BOOL:
            size = x.dims[dim]
            positions[place], sizes[place] = wrapped_positions(part, size, dim), size
            last = <int>place + 1
            continue
        for d, one in enumerate(true_positions(nonzero_mask(part))):
            positions[place + d], sizes[place + d] = one, part.dims[d]
        last = <int>place + max(part.ndim_, 1)
    index.positions, index.sizes = broadcast_positions(positions), tuple(sizes)
    return 0


cdef tuple broadcast_positions(list positions):
    """The positions, all of one shape and packed. Raises IndexError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t joined[MAX_NDIM]
    cdef Tensor one
    cdef int ndim = 0, d
    found = [one for one in positions if one is not None]
    if len(found) == 1:
        return tuple(positions)
    try:
        for one in found:
            ndim = broadcast_shapes("index", ndim, dims, one.ndim_, one.dims, joined)
            for d in range(ndim):        # not in place, since a shape with more dims shifts them
                dims[d] = joined[d]
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join([str(list(one.shape)) for one in found])) from None
    for d in range(len(positions)):
        if positions[d] is not None:
            one = expanded(positions[d], ndim, dims)
            positions[d] = packed(one)
    return tuple(positions)


# ---- applying a parsed key -----------------------------------------------------------------------

cdef bint is_indexed(Index index, int d):
    """Whether a dim of the view has positions, or is one of the mask."""
    if index.mask is not None:
        return index.first_dim <= d < index.first_dim + index.mask.ndim_
    return index.positions is not None and index.positions[d] is not None


cdef int n_index_dims(Index index):
    """How many dims of the result are those of the positions, or of the mask."""
    if index.mask is not None:
        return 1
    for one in index.positions or ():
        if one is not None:
            return (<Tensor>one).ndim_
    return 0


cdef int result_dims(Tensor view, Index index, Py_ssize_t* dims) except -1:
    """Writes the shape of the result; returns its number of dims."""
    cdef Tensor one
    cdef int n_index = n_index_dims(index), d, ndim = n_index
    for d in range(view.ndim_):
        ndim += not is_indexed(index, d)
    if ndim > MAX_NDIM:
        raise IndexError(f"an index makes at most {MAX_NDIM} dims, got {ndim}")
    ndim = 0
    for d in range(view.ndim_):
        if not is_indexed(index, d):
            dims[ndim if ndim < index.result_dim else ndim + n_index] = view.dims[d]
            ndim += 1
        elif index.mask is not None:
            dims[index.result_dim] = index.n_true
        else:
            one = index.positions[d]
            for k in range(n_index):
                dims[index.result_dim + k] = one.dims[k]
    return ndim + n_index


cdef bint uniform_step(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                       Py_ssize_t* step) noexcept:
    """Whether all elements of some dims, in order, are one step apart; sets that step."""
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
    """The same key, with positions in place of its mask."""
    cdef Index out = new_index()
    out.basic, out.sizes = index.basic, index.sizes
    out.first_dim, out.result_dim = index.first_dim, index.result_dim
    positions = (None,) * index.first_dim + tuple(true_positions(index.mask))
    out.positions = positions + (None,) * (ndim - len(positions))
    return out


cdef int apply(Tensor view, Index index, Tensor y, Move kind) except -1:
    """Moves elements between the view, at the index, and `y`, which has the shape of the result
    and whose index dims are one step apart (`uniform_step`)."""
    cdef Py_ssize_t itemsize = ITEMSIZE[view.type], step
    cdef int n_index = n_index_dims(index), d, k, own, rest = 0
    cdef int order[MAX_NDIM]             # of whole dims in y's memory, from the outermost inwards
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor one
    cdef Walk walk
    start(&walk, view.data_pointer, y.data_pointer)
    if index.mask is not None:
        if not uniform_step(index.mask.ndim_, view.dims + index.first_dim,
                            view.steps + index.first_dim, &step):
            index = with_positions(index, view.ndim_)
        else:
            walk.mask = index.mask.data_pointer
            walk.x_step = step * itemsize
            walk.n = index.n_true
    if n_index:
        uniform_step(n_index, y.dims + index.result_dim, y.steps + index.result_dim, &step)
        walk.y_step = step * itemsize
    for d in range(view.ndim_):
        if not is_indexed(index, d):
            own = rest if rest < index.result_dim else rest + n_index
            k = rest
            while kind == TAKE and k > 0 and steps[order[k - 1]] < y.steps[own]:
                order[k] = order[k - 1]
                k -= 1
            order[k], steps[d] = d, y.steps[own]
            rest += 1
        elif index.positions is not None:
            one = index.positions[d]
            walk.indices[walk.n_indices] = <const int64_t*>one.data_pointer
            walk.index_steps[walk.n_indices] = view.steps[d] * itemsize
            walk.n_indices += 1
            walk.n = one.numel_
    for d in order[:rest]:
        add_dim(&walk, view.dims[d], view.steps[d] * itemsize, steps[d] * itemsize)
    return move(&walk, kind, view.type)


cdef TileProgram where_program = TileProgram(3, [("where", (0, 1, 2))], boolean_inputs=[0])


cdef int put_where(Tensor x, Tensor mask, Tensor value) except -1:
    """x := value where the mask, of the shape of `x`, is true"""
    cdef PyObject* inputs[3]
    inputs[0], inputs[1], inputs[2] = <PyObject*>mask, <PyObject*>value, <PyObject*>x
    return run_program(where_program.at(x.type), inputs, x)


cdef int check_fits(Index index, Tensor view) except -1:
    """Raises IndexError unless the key was parsed for a tensor of this shape."""
    cdef bint fits = True
    cdef int d
    if index.positions is not None:
        fits = len(index.positions) == view.ndim_
        for d in range(view.ndim_ if fits else 0):
            fits &= <Py_ssize_t>index.sizes[d] <= view.dims[d]
    elif index.mask is not None:
        fits = index.first_dim + index.mask.ndim_ <= view.ndim_
        for d in range(index.mask.ndim_ if fits else 0):
            fits &= index.mask.dims[d] == view.dims[index.first_dim + d]
    if not fits:
        raise IndexError(f"index: the key was parsed for another shape than that of the view, "
                         f"{list(view.shape)}")
    return 0


cdef int dim_of_vector(Index index) noexcept:
    """The dim of the one vector of positions that is a key's advanced part; -1 for other keys."""
    cdef int d, found = -1
    if index.positions is None or index.mask is not None:
        return -1
    for d, one in enumerate(<tuple>index.positions):
        if one is not None:
            if found >= 0 or (<Tensor>one).ndim_ != 1:
                return -1
            found = d
    return found


cdef Tensor laid_as_read(Tensor out, Tensor view, Index index):
    """`out`, or its memory with the strides that PyTorch gives the result (`order_as_read`)."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t step
    cdef int n_index = n_index_dims(index), d, rest = 0
    for d in range(out.ndim_):
        steps[d] = 0
    for d in range(view.ndim_):
        if not is_indexed(index, d):
            if view.steps[d] < 0:
                return out
            if view.dims[d] > 1:
                steps[rest if rest < index.result_dim else rest + n_index] = view.steps[d]
            rest += 1
    order_as_read(out.ndim_, out.dims, index.result_dim, n_index, steps)
    if not uniform_step(n_index, out.dims + index.result_dim, steps + index.result_dim, &step):
        return out
    return over_storage(out.storage, out.data_pointer, out.type, out.ndim_, out.dims, steps)


cpdef Tensor take(Tensor x, Index index):
    """The elements at a parsed key: a view if it is basic, else a new tensor."""
    cdef Tensor view = basic_view(x, index.basic), out
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d
    if index.mask is None and index.positions is None:
        return view
    check_fits(index, view)
    out = new_tensor(x.type, result_dims(view, index, dims), dims)
    if not view.packed and out.numel_:
        out = laid_as_read(out, view, index)
    d = dim_of_vector(index) if out.packed and view.ndim_ > 1 else -1
    if d < 0 or not fill_slices(view, d, <Tensor>index.positions[d], out):
        apply(view, index, out, TAKE)
    return out


cpdef int put(Tensor x, Index index, Tensor values, bint accumulate) except -1:
    """Writes values, broadcast, to the elements at a parsed key; with `accumulate` adds them.

    Where several values go to one element the last one stays, or all are added in order. Values
    that share memory with `x` are read before it is written.
    """
    cdef Tensor view = basic_view(x, index.basic), y, wide
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t block[MAX_NDIM]
    cdef Py_ssize_t step
    cdef int ndim, n_index = n_index_dims(index), d
    check_fits(index, view)
    ndim = result_dims(view, index, dims)
    require_writable(x)
    if accumulate and (x.type == FLOAT16 or x.type == BFLOAT16):
        # in float32, so that each sum is rounded once
        d = dim_of_vector(index)
        y = expanded(values, ndim, dims) if d >= 0 else None
        if y is not None:
            return add_half_slices(view, "index_put", y, d, <Tensor>index.positions[d])
        wide = packed_copy(x, FLOAT32)
        put(wide, index, packed_copy(values, FLOAT32), True)
        return put(x, parse(x, Ellipsis), packed_copy(wide, x.type), False)
    y = expanded(values, ndim, dims)
    if y is None:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(sizes_of(ndim, dims))}")
    if may_meet(view, y) if n_index else may_overlap(view, y):
        values = packed_copy(values, values.type)
        y = expanded(values, ndim, dims)
    if not accumulate and n_index == 0:
        copy_into(view, y)
        return 0
    if not accumulate and n_index and values.numel_ == 1:
        if index.mask is not None and index.mask.ndim_ == view.ndim_:
            return put_where(view, index.mask, expanded(values, 0, dims))
        # one copy of the value over the dims taken whole, so that runs of it are moved
        for d in range(ndim):
            block[d] = 1 if index.result_dim <= d < index.result_dim + n_index else dims[d]
        y = expanded(packed_copy(expanded(values, ndim, block), values.type), ndim, dims)
    elif accumulate and not y.packed or n_index and (       # sums are taken of contiguous runs
            not uniform_step(n_index, y.dims + index.result_dim, y.steps + index.result_dim,
                             &step)):
        y = packed_copy(y, y.type)
    return apply(view, index, y, ADD if accumulate else PUT)
