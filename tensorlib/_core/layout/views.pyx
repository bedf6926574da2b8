"""Views: the same memory under other sizes and strides; and copies that keep the order of dims.

All of it is outside autograd.
"""

from tensorlib._core.base.dtypes cimport ITEMSIZE, dtype_id
from tensorlib._core.base.shape cimport (
    MAX_NDIM, clipped, count, items, parse_shape, row_major, settled, sizes_of, wrap_dim,
)
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.reduce.arrange cimport sum_to
from tensorlib._core.tensor.tensor cimport (
    ALONE, AMONG_OTHERS, Tensor, UNRECORDED, new_like, new_tensor, new_view, over_storage,
    set_base,
)
from tensorlib._core.tiles.copies cimport (
    arranged_copy, copy_into, new_arranged_as, packed, packed_copy, zero,
)

from tensorlib._core.base.formats import check_rank

cdef Tensor view_of(Tensor x, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                    char* data):
    """A tensor over the storage of `x` that knows what it is a view of."""
    cdef Tensor view = new_view(x, ndim, dims, steps, data)
    set_base(view, x)
    if not mode().grad:
        view.origin = UNRECORDED
    return view


def among_others(tuple views):
    """The views, each marked as one of several that an operation made. Proxies stay as they are."""
    for view in views:
        if isinstance(view, Tensor) and (<Tensor>view).origin == ALONE:
            (<Tensor>view).origin = AMONG_OTHERS
    return views


# ---- sizes ---------------------------------------------------------------------------------------

cdef Tensor reshaped(str name, Tensor x, int ndim, Py_ssize_t* dims, bint may_copy):
    """`x` under other sizes (one of which may be -1): a view, or a copy where it must be one."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor result
    infer_size(name, x, ndim, dims)
    if x.packed:
        row_major(ndim, dims, steps)
        return view_of(x, ndim, dims, steps, x.data_pointer)
    if split_steps(x, ndim, dims, steps):
        return view_of(x, ndim, dims, steps, x.data_pointer)
    if not may_copy:
        raise RuntimeError(
            f"{name}: view size is not compatible with input tensor's size and stride: "
            f"{tuple(x.shape)} with strides {x.stride()} can't be seen as "
            f"{sizes_of(ndim, dims)} without a copy; use reshape")
    result = packed_copy(x, x.type)
    row_major(ndim, dims, steps)
    return new_view(result, ndim, dims, steps, result.data_pointer)


cdef int infer_size(str name, Tensor x, int ndim, Py_ssize_t* dims) except -1:
    """Replaces a size of -1, and checks that the number of elements stays."""
    cdef Py_ssize_t known = 1
    cdef int d, free = -1
    for d in range(ndim):
        if dims[d] == -1 and free < 0:
            free = d
        elif dims[d] < 0:
            raise RuntimeError(
                f"{name}: only one dimension can be inferred and the others must be 0 or more, got "
                f"{list(sizes_of(ndim, dims))}")
    if free >= 0:
        dims[free] = 1
    known = count(name, ndim, dims)
    if free >= 0:
        if known == 0:
            raise RuntimeError(
                f"{name}: cannot reshape tensor of {x.numel_} elements into shape "
                f"{given_sizes(ndim, dims, free)} because the unspecified dimension size -1 can be "
                "any value and is ambiguous")
        dims[free] = x.numel_ // known
        known *= dims[free]
    if known != x.numel_:
        raise RuntimeError(
            f"{name}: shape '{given_sizes(ndim, dims, free)}' is invalid for input of size "
            f"{x.numel_} (shape {tuple(x.shape)})")
    return 0


cdef list given_sizes(int ndim, const Py_ssize_t* dims, int free):
    """The sizes as they were given, with the -1 of the one that was inferred."""
    return [-1 if d == free else dims[d] for d in range(ndim)]


cdef bint split_steps(Tensor x, int ndim, const Py_ssize_t* dims, Py_ssize_t* steps) noexcept:
    """Finds strides for a view of `x` with other sizes; False if there are none.

    From the last dim on, groups of dims that are one step apart in memory are matched with new dims
    of the same number of elements.
    """
    cdef int old = x.ndim_ - 1, new = ndim - 1
    cdef Py_ssize_t base, have = 1, want = 1
    if x.numel_ == 0:
        row_major(ndim, dims, steps)
        return True
    while old >= 0:
        base = x.steps[old]
        have = x.dims[old]
        # a group ends where the next dim does not continue this one in memory
        while old > 0 and (x.dims[old - 1] == 1 or have == 1
                           or x.steps[old - 1] == have * base):
            if have == 1:
                base = x.steps[old - 1]
            have *= x.dims[old - 1]
            old -= 1
        want = 1
        while new >= 0 and (want < have or dims[new] == 1):
            steps[new] = want * base
            want *= dims[new]
            new -= 1
        if want != have:
            return False
        old -= 1
    while new >= 0:
        steps[new] = 1
        new -= 1
    return True


def reshape(Tensor x, shape):
    """`x` under other sizes: a view where that is possible, else a copy."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("reshape", shape, dims)
    return reshaped("reshape", x, ndim, dims, True)


def view(Tensor x, shape):
    """`x` under other sizes, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("view", shape, dims)
    return reshaped("view", x, ndim, dims, False)


cdef Tensor expanded(str name, Tensor x, int ndim, const Py_ssize_t* dims):
    """`x` repeated along dims of size 1 and new leading dims, with stride 0. -1 keeps a size."""
    cdef Py_ssize_t sizes[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, new = ndim - x.ndim_
    if new < 0:
        raise RuntimeError(
            f"{name}: the number of sizes provided ({ndim}) must be greater or equal to the number "
            f"of dimensions in the tensor ({x.ndim_})")
    for d in range(ndim):
        if d < new:
            sizes[d], steps[d] = dims[d], 0
        else:
            sizes[d] = x.dims[d - new] if dims[d] == -1 else dims[d]
            steps[d] = x.steps[d - new]
            if sizes[d] != x.dims[d - new]:
                if x.dims[d - new] != 1:
                    raise RuntimeError(
                        f"{name}: the expanded size of the tensor ({dims[d]}) must match the "
                        f"existing size ({x.dims[d - new]}) at non-singleton dimension {d}. "
                        f"Target sizes: {list(sizes_of(ndim, dims))}. "
                        f"Tensor sizes: {list(x.shape)}")
                steps[d] = 0
        if sizes[d] < 0:
            raise RuntimeError(f"{name}: size {sizes[d]} isn't allowed in dim {d}")
    count(name, ndim, sizes)
    return view_of(x, ndim, sizes, steps, x.data_pointer)


def expand(Tensor x, shape):
    """`x` repeated along dims of size 1 and new leading dims, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("expand", shape, dims)
    return expanded("expand", x, ndim, dims)


# ---- order of dims -------------------------------------------------------------------------------

cdef Tensor permuted(Tensor x, const int* order):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[order[d]]
        steps[d] = x.steps[order[d]]
    return view_of(x, x.ndim_, dims, steps, x.data_pointer)


def transpose(Tensor x, dim0, dim1):
    """`x` with two dims exchanged, as a view."""
    cdef int order[MAX_NDIM]
    cdef int a, b, d
    dim0, dim1 = settled(dim0), settled(dim1)
    a, b = wrap_dim("transpose", dim0, x.ndim_), wrap_dim("transpose", dim1, x.ndim_)
    for d in range(x.ndim_):
        order[d] = d
    if x.ndim_:
        order[a], order[b] = b, a
    return permuted(x, order)


def permute(Tensor x, dims):
    """`x` with its dims in another order, as a view."""
    cdef int order[MAX_NDIM]
    cdef bint seen[MAX_NDIM]
    cdef int d
    dims = settled(items(dims, MAX_NDIM))
    if len(dims) != x.ndim_:
        raise RuntimeError(
            "permute: number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions: {x.ndim_} is not equal to {len(dims)}")
    for d in range(x.ndim_):
        seen[d] = False
    for d in range(x.ndim_):
        order[d] = wrap_dim("permute", dims[d], x.ndim_)
        if seen[order[d]]:
            raise RuntimeError(f"permute: duplicate dims are not allowed, got {dims}")
        seen[order[d]] = True
    return permuted(x, order)


def squeeze(Tensor x, dim=None):
    """`x` without those of its dims, or of `dim`, that have size 1, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef bint named[MAX_NDIM]
    cdef int d, ndim = 0
    dim = settled(dim)
    for d in range(MAX_NDIM):                # without dims there is still dim 0
        named[d] = dim is None
    if dim is not None:
        for one in dim if isinstance(dim, tuple) else (dim,):
            named[wrap_dim("squeeze", one, x.ndim_)] = True
    for d in range(x.ndim_):
        if x.dims[d] != 1 or not named[d]:
            dims[ndim], steps[ndim] = x.dims[d], x.steps[d]
            ndim += 1
    return view_of(x, ndim, dims, steps, x.data_pointer)


def unsqueeze(Tensor x, dim):
    """`x` with a dim of size 1 inserted before `dim`, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, at
    dim = settled(dim)
    at = wrap_dim("unsqueeze", dim, x.ndim_ + 1)
    if x.ndim_ == MAX_NDIM:
        raise RuntimeError(f"unsqueeze: at most {MAX_NDIM} dims are supported")
    for d in range(x.ndim_ + 1):
        if d == at:
            dims[d] = 1
            steps[d] = x.dims[d] * x.steps[d] if d < x.ndim_ else 1
        else:
            dims[d] = x.dims[d - (d > at)]
            steps[d] = x.steps[d - (d > at)]
    return view_of(x, x.ndim_ + 1, dims, steps, x.data_pointer)


def flat_sizes(sizes, start_dim, end_dim):
    """Sizes with the dims from `start_dim` to `end_dim` as one; None where that is one already.

    Raises: IndexError, RuntimeError if `start_dim` comes after `end_dim`.
    """
    cdef tuple dims = tuple(sizes)           # slices of a `Size` are a `Size`, at 200 ns each
    cdef int ndim = len(dims)
    cdef int start = wrap_dim("flatten", settled(start_dim), ndim)
    cdef int end = wrap_dim("flatten", settled(end_dim), ndim)
    if start > end:
        raise RuntimeError("flatten: has invalid args: start_dim cannot come after end_dim")
    if start == end and ndim:
        return None
    together = 1
    for size in dims[start:end + 1]:
        together *= size
    return (*dims[:start], together, *dims[end + 1:])


def moved_order(int ndim, source, destination):
    """The order of dims with those of `source` at `destination`, and the others in their order.

    Raises: RuntimeError for dims given twice or of different numbers, IndexError.
    """
    cdef int at[MAX_NDIM]            # the dim at each place, or -1
    cdef bint moved[MAX_NDIM]
    cdef int d, place, dim, following = 0
    source, destination = settled(source), settled(destination)
    cdef tuple sources = source if isinstance(source, tuple) else (source,)
    cdef tuple targets = destination if isinstance(destination, tuple) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: got {len(sources)} source and {len(targets)} target dims")
    if ndim > MAX_NDIM:
        raise RuntimeError(f"movedim: at most {MAX_NDIM} dims are supported, got {ndim}")
    for d in range(MAX_NDIM):
        at[d], moved[d] = -1, False
    for one, other in zip(sources, targets):
        dim, place = wrap_dim("movedim", one, ndim), wrap_dim("movedim", other, ndim)
        if moved[dim] or at[place] >= 0:
            raise RuntimeError("movedim: repeated dims")
        at[place], moved[dim] = dim, True
    for d in range(ndim):
        if not moved[d]:
            while at[following] >= 0:
                following += 1
            at[following] = d
    return tuple([at[d] for d in range(ndim)])


# ---- parts ---------------------------------------------------------------------------------------

def narrow(Tensor x, dim, start, length):
    """Elements [start, start + length) along `dim`, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t begin, count, size
    cdef int d, along
    dim = settled(dim)
    try:
        begin, count = clipped(start, NULL), clipped(length, NULL)
    except TypeError:
        raise TypeError(f"narrow: start and length must be ints, got {start!r} and {length!r}")
    along = wrap_dim("narrow", dim, x.ndim_)
    if x.ndim_ == 0:
        raise RuntimeError("narrow: expects at least a 1-dimensional tensor")
    size = x.dims[along]
    if not -size <= begin <= size:
        raise IndexError(f"narrow: start {start} is out of range for a dim of {size} elements")
    begin += size if begin < 0 else 0
    if count < 0 or count > size - begin:
        raise RuntimeError(f"narrow: start ({start}) + length ({length}) exceeds dimension size "
                           f"({size})")
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    dims[along] = count
    return view_of(x, x.ndim_, dims, x.steps,
                   x.data_pointer + begin * x.steps[along] * ITEMSIZE[x.type])


def diagonal(Tensor x, offset=0, dim1=0, dim2=1):
    """The diagonal of two dims, which become one last dim, as a view."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t length, further
    cdef char* data = x.data_pointer
    cdef int first, second, d, ndim = 0
    offset, dim1, dim2 = settled(offset), settled(dim1), settled(dim2)
    further = offset
    first = wrap_dim("diagonal", dim1, x.ndim_)
    second = wrap_dim("diagonal", dim2, x.ndim_)
    if first == second:
        raise RuntimeError(f"diagonal: dimensions cannot be identical {dim1}, {dim2}")
    length = (min(x.dims[first], x.dims[second] - further) if further >= 0
              else min(x.dims[first] + further, x.dims[second]))
    if length > 0:
        data += ITEMSIZE[x.type] * (
            further * x.steps[second] if further >= 0 else -further * x.steps[first])
    for d in range(x.ndim_):
        if d != first and d != second:
            dims[ndim], steps[ndim] = x.dims[d], x.steps[d]
            ndim += 1
    dims[ndim], steps[ndim] = max(length, <Py_ssize_t>0), x.steps[first] + x.steps[second]
    return view_of(x, ndim + 1, dims, steps, data)


def sum_to_size(Tensor x, size):
    """`x` summed over the dims along which a tensor of sizes `size` was broadcast to it."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape("sum_to_size", size, dims), d
    for d in range(ndim):
        if ndim > x.ndim_ or (dims[d] != 1 and dims[d] != x.dims[x.ndim_ - ndim + d]):
            wanted = sizes_of(ndim, dims)
            raise RuntimeError(f"sum_to_size: a tensor of sizes {wanted} does not broadcast to the "
                               f"input's {tuple(x.shape)}")
    return sum_to("sum_to_size", x, ndim, dims)


# ---- copies --------------------------------------------------------------------------------------

def contiguous(Tensor x):
    """`x` itself if it is contiguous, else a contiguous copy."""
    return packed(x)


def contiguous_copy(Tensor x):
    """A copy in row-major order."""
    return packed_copy(x, x.type)


def clone(Tensor x):
    """A copy without gaps, its dims in the same order in memory."""
    return arranged_copy(x, x.type)


def flip(Tensor x, dims):
    """A copy without gaps with some dims in reverse order, its dims in the same order in memory."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef bint turned[MAX_NDIM]
    cdef Py_ssize_t first = 0
    cdef Tensor out
    cdef int d
    dims = settled(dims)
    for d in range(MAX_NDIM):                # without dims there is still dim 0
        turned[d] = False
    for d in range(x.ndim_):
        steps[d] = x.steps[d]
    for dim in (dims if isinstance(dims, tuple) else (dims,)):
        d = wrap_dim("flip", dim, x.ndim_)
        if turned[d]:
            raise RuntimeError(f"flip: a dim appears multiple times in {dims}")
        turned[d] = True
        if x.ndim_:
            first += (x.dims[d] - 1) * x.steps[d]
            steps[d] = -x.steps[d]
    out = new_arranged_as(x, x.type)
    if out.numel_:
        copy_into(out, new_view(x, x.ndim_, x.dims, steps,
                                x.data_pointer + first * ITEMSIZE[x.type]))
    return out


def to_dtype(Tensor x, dtype, bint copy=False):
    """`x` as another dtype, with its dims in the same order in memory. It is `x` itself if it has
    that dtype, unless `copy`."""
    cdef int id = dtype_id(dtype)
    return x if x.type == id and not copy else arranged_copy(x, id)


def assign(Tensor target, Tensor source):
    """target := source, cast and broadcast; the caller has checked that they do not overlap."""
    copy_into(target, source)
    target.storage.version += 1


def empty(shape, dtype, *, str name="empty"):
    """An uninitialised contiguous tensor."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim = parse_shape(name, shape, dims)
    count(name, ndim, dims)
    return new_tensor(dtype_id(dtype), ndim, dims)


def zeros(shape, dtype, *, str name="zeros"):
    """A contiguous tensor of zeros."""
    cdef Tensor result = empty(shape, dtype, name=name)
    zero(result)
    return result


cdef Tensor in_format(str name, Tensor x, object memory_format):
    """The memory of a new tensor as one in another format: channels last, or contiguous.

    Raises: RuntimeError for another number of dims.
    """
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t expected = x.dims[1] if x.ndim_ > 1 else 1
    cdef int d
    check_rank(name, x.ndim_, memory_format)
    for d in (*range(x.ndim_ - 1, 1, -1), 0):
        steps[d] = expected
        expected *= x.dims[d]
    steps[1] = 1
    return over_storage(x.storage, x.data_pointer, x.type, x.ndim_, x.dims, steps)


def zeros_like(Tensor x):
    """A contiguous tensor of zeros of the shape and dtype of `x`."""
    cdef Tensor result = new_like(x, x.type)
    zero(result)
    return result
