"""Joining tensors (`cat` and `stack`) and cutting them into views. Outside autograd."""

from cpython.number cimport PyNumber_Index
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tensorlib._core.base.blocks cimport copy_blocks
from tensorlib._core.base.dtypes cimport ITEMSIZE, promote
from tensorlib._core.base.shape cimport MAX_NDIM, add_sizes, settled, times, wrap_dim
from tensorlib._core.base.work cimport share
from tensorlib._core.layout.views cimport view_of
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport copy_into

cdef enum:
    GRAIN = 1 << 16                  # bytes that a thread takes at once; fewer keep the GIL
    BAND = 1 << 11                   # bytes of each tensor that are copied in turn
    MANY = 4                         # tensors: from so many on a thread copies several whole ones


cdef bint is_nothing(Tensor x) noexcept:
    """Whether `x` is a vector of no elements, which joins with any tensor as in PyTorch."""
    return x.ndim_ == 1 and x.numel_ == 0


def cat(tuple tensors, dim=0):
    """The tensors joined along `dim` in a new tensor. Vectors of no elements join with anything."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int along = 0, dtype
    cdef Tensor x, first = None
    if not tensors:
        raise ValueError("cat: expects a non-empty sequence of Tensors")
    dim = settled(dim)
    dtype = (<Tensor?>tensors[0]).type
    for given in tensors:
        x = <Tensor?>given
        if x.type != dtype:
            dtype = promote("cat", dtype, x.type)
        if x.ndim_ == 0:
            raise RuntimeError("cat: zero-dimensional tensors cannot be concatenated; use stack")
        if is_nothing(x):
            continue
        if first is None:
            first = x
            along = wrap_dim("cat", dim, x.ndim_)
            memcpy(dims, x.dims, x.ndim_ * sizeof(Py_ssize_t))
            continue
        if x.ndim_ != first.ndim_:
            raise RuntimeError("cat: Tensors must have same number of dimensions: got "
                               f"{first.ndim_} and {x.ndim_}")
        if not fits_beside(x, first, along):
            raise RuntimeError(
                f"cat: Sizes of tensors must match except in dimension {along}. Expected "
                f"{list(first.shape)} but got {list(x.shape)}")
        dims[along] = add_sizes("cat", dims[along], x.dims[along])
    if first is None:                # only vectors of no elements: the dim does not matter
        PyNumber_Index(dim)
        first = <Tensor>tensors[0]
        dims[0] = 0
    return joined(tensors, first.ndim_, dims, along, dtype)


cdef bint fits_beside(Tensor x, Tensor y, int along) noexcept:
    """Whether two tensors have the same sizes but for those of one dim."""
    cdef int d
    for d in range(y.ndim_):
        if x.ndim_ != y.ndim_ or (d != along and x.dims[d] != y.dims[d]):
            return False
    return True


def stack(tuple tensors, dim=0):
    """The tensors, all of one shape, joined along a new dim, as a new tensor."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor x, first
    cdef int along, d, i, dtype
    if not tensors:
        raise RuntimeError("stack: expects a non-empty sequence of Tensors")
    dim = settled(dim)
    first = <Tensor?>tensors[0]
    dtype = first.type
    along = wrap_dim("stack", dim, first.ndim_ + 1)
    for i, given in enumerate(tensors):
        x = <Tensor?>given
        if not same_shape(x, first):
            raise RuntimeError(
                f"stack: stack expects each tensor to be equal size, but got {list(first.shape)} "
                f"at entry 0 and {list(x.shape)} at entry {i}")
        dtype = promote("stack", dtype, x.type)
    if first.ndim_ == MAX_NDIM:
        raise RuntimeError(f"stack: at most {MAX_NDIM} dims are supported")
    for d in range(first.ndim_):
        dims[d + (d >= along)] = first.dims[d]
    dims[along] = len(tensors)
    return joined(tensors, first.ndim_ + 1, dims, along, dtype)


cdef struct Blocks:
    const char* x
    char* y
    Py_ssize_t nbytes                # of a block
    Py_ssize_t step                  # from one block to the next in y


cdef void copy_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the blocks [begin, end) of a tensor."""
    cdef Blocks* blocks = <Blocks*>context
    copy_blocks(blocks.x + begin * blocks.nbytes, blocks.nbytes, blocks.y + begin * blocks.step,
                blocks.step, end - begin, blocks.nbytes)


cdef struct Several:
    const Blocks* parts              # one for each tensor
    Py_ssize_t n
    Py_ssize_t outer                 # blocks of each tensor
    Py_ssize_t band                  # blocks of each tensor that are copied in turn


cdef void copy_several(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the tensors [begin, end)."""
    cdef Several* several = <Several*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        copy_range(<void*>&several.parts[i], 0, several.outer)


cdef void copy_bands(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Copies the blocks [begin, end) of all tensors in turn: the result is written sequentially."""
    cdef Several* several = <Several*>context
    cdef Py_ssize_t i, last
    while begin < end:
        last = min(begin + several.band, end)
        for i in range(several.n):
            copy_range(<void*>&several.parts[i], begin, last)
        begin = last


cdef bint join_packed(tuple tensors, Tensor out, Py_ssize_t outer, Py_ssize_t step) except -1:
    """Copies contiguous tensors in parallel; False, with nothing done, where copying one after the
    other is no slower, or some have gaps."""
    cdef Py_ssize_t nbytes = out.numel_ * ITEMSIZE[out.type], start = 0, i, n = len(tensors)
    cdef Several several
    cdef Blocks* parts
    cdef Tensor x
    if outer == 1 and (n < MANY or nbytes < 2 * GRAIN or nbytes // n > GRAIN):
        return False
    for x in tensors:
        if not (x.packed and x.type == out.type):
            return False
    parts = <Blocks*>malloc(n * sizeof(Blocks))
    if parts == NULL:
        raise MemoryError("cat: no memory for the list of tensors")
    for i in range(n):
        x = <Tensor>tensors[i]
        parts[i].x, parts[i].y = x.data_pointer, out.data_pointer + start
        parts[i].nbytes, parts[i].step = x.numel_ * ITEMSIZE[x.type] // outer, step
        start += parts[i].nbytes
    several.parts, several.n, several.outer = parts, n, outer
    several.band = 1 + BAND // step
    if outer > 1:
        share(copy_bands, &several, out.data_pointer, outer, 1 + GRAIN // step, nbytes <= GRAIN)
    else:
        share(copy_several, &several, out.data_pointer, n, 1 + GRAIN // (nbytes // n), False)
    free(parts)
    return True


cdef Tensor joined(tuple tensors, int ndim, const Py_ssize_t* dims, int along, int dtype):
    """A new tensor of these sizes, filled from the tensors one after the other along a dim.

    The tensors may have one dim less: then each fills one place of a new dim.
    """
    cdef Py_ssize_t part[MAX_NDIM]
    cdef Py_ssize_t start = 0, outer = 1, inner, size, d
    cdef Tensor x, out = new_tensor(dtype, ndim, dims)
    cdef Blocks blocks
    cdef char* target
    if all_lanes(tensors, ndim):
        lay_lanes(out)
        for x in tensors:
            memcpy(part, dims, ndim * sizeof(Py_ssize_t))
            part[along] = x.dims[along]
            target = out.data_pointer + start * out.steps[along] * ITEMSIZE[dtype]
            copy_into(new_view(out, ndim, part, out.steps, target), x)
            start += x.dims[along]
        return out
    inner = out.steps[along] * ITEMSIZE[dtype]       # bytes
    for d in range(along):
        outer *= dims[d]
    if out.numel_ and join_packed(tensors, out, outer, dims[along] * inner):
        return out
    for x in tensors:
        if x.numel_ == 0:
            continue
        size = x.dims[along] if x.ndim_ == ndim else 1
        target = out.data_pointer + start * inner
        blocks.nbytes = size * inner
        if x.packed and x.type == dtype and (outer > 1 or blocks.nbytes <= GRAIN):
            blocks.x, blocks.y, blocks.step = x.data_pointer, target, dims[along] * inner
            share(copy_range, &blocks, blocks.y, outer, GRAIN // max(blocks.nbytes, 1) + 1,
                  times(outer, blocks.nbytes) <= GRAIN)
        else:
            memcpy(part, dims, ndim * sizeof(Py_ssize_t))
            part[along] = size
            fill(new_view(out, ndim, part, out.steps, target), x, along)
        start += size
    return out


cdef bint all_lanes(tuple tensors, int ndim) noexcept:
    """Whether all are images or volumes in a channels-last layout."""
    if ndim != 4 and ndim != 5:
        return False
    for x in tensors:
        if (<Tensor>x).ndim_ != ndim or not gives_lanes(<Tensor>x):
            return False
    return True


cdef int fill(Tensor target, Tensor x, int along) except -1:
    """target := x, which may lack the dim `along`, of size 1 in the target."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    if x.ndim_ < target.ndim_:
        for d in range(target.ndim_):
            steps[d] = 0 if d == along else x.steps[d - (d > along)]
        x = new_view(x, target.ndim_, target.dims, steps, x.data_pointer)
    return copy_into(target, x)


# ---- cut -----------------------------------------------------------------------------------------

def views_along(Tensor x, int dim, list sizes):
    """A list of consecutive views along a dim, with these sizes, which the caller has checked.
    A size of None gives one place, without the dim."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t size
    cdef char* data = x.data_pointer
    cdef list parts = []
    cdef int d, ndim
    for given in sizes:
        size, ndim = 1 if given is None else given, 0
        for d in range(x.ndim_):
            if d != dim or given is not None:
                dims[ndim], steps[ndim] = size if d == dim else x.dims[d], x.steps[d]
                ndim += 1
        parts.append(view_of(x, ndim, dims, steps, data))
        data += size * x.steps[dim] * ITEMSIZE[x.type]
    return parts
