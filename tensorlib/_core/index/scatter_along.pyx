"""Writes to a tensor, or to a copy of it, at positions along a dim. Outside autograd."""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport BFLOAT16, FLOAT16, FLOAT32, INT64, ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, reach
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.index.gather cimport (
    GRAIN, as_vector, check_index, in_range, line_loop, line_of_gather, line_of_scatter, walk,
    wrapped_positions,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport (
    arranged_copy, copy_into, may_meet, packed, packed_copy,
)
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

cdef enum:
    BLOCK = 2048             # elements of a half type summed in float32 at once: half the L1 cache
    RUN = 8                  # the shortest contiguous run for which calling the cast loops pays
    LONG_RUN = 128           # from such runs on, block by block is as fast as a copy in float32
    NUMBERED = 32            # elements that a copy moves in the time that one hash look-up takes
    BRIEF = 4096             # up to so many elements the GIL is kept


cdef Tensor checked_positions(Tensor index, Tensor x, int dim, Py_ssize_t size, str name):
    """The index with all positions in range and counted from the front, in memory that writing to
    `x` does not touch: the index itself, or a copy. Along expanded dims each position is checked
    once. Raises: IndexError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Tensor once
    cdef int d
    for d in range(index.ndim_):
        dims[d], steps[d] = index.dims[d], index.steps[d]
        if dims[d] > 1 and steps[d] == 0:
            dims[d] = 1
    once = new_view(index, index.ndim_, dims, steps, index.data_pointer)
    if index.type == INT64 and once.packed and not may_meet(index, x) and in_range(once, size):
        return index
    once = wrapped_positions(once, size, dim, name)
    for d in range(index.ndim_):
        steps[d] = once.steps[d] if dims[d] == index.dims[d] else 0
    return new_view(once, index.ndim_, index.dims, steps, once.data_pointer)


cdef int walk_over(line_loop run, Tensor x, Tensor values, int dim, Tensor index) except -1:
    """Checks the positions, and then runs a loop along all lines of `x` itself.

    Raises: IndexError, RuntimeError.
    """
    cdef Tensor places
    cdef Py_ssize_t size = as_vector(x).dims[dim]
    if values.type != x.type or not same_shape(values, index):
        raise RuntimeError("scatter: values and positions differ")
    check_index("scatter", x, dim, index)
    places = checked_positions(index, x, dim, size, "scatter")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if not walk(run, as_vector(x), dim, as_vector(places), as_vector(values), True):
        raise IndexError("scatter: the index was written after it was checked")
    return 0


def write_along(Tensor x, Tensor values, int dim, Tensor index, bint adds):
    """Writes values to the elements of `x` itself at positions along a dim, or adds them.

    Nothing is written if a position is out of range. Raises: as `written_along`.
    """
    walk_over(line_of_scatter(x.type, adds), x, values, dim, index)


def write_slices(Tensor x, str name, Tensor values, int dim, Tensor index, bint adds):
    """Writes slices, or one number, to `x` itself at a vector of positions along a dim; or adds
    them, which `add_half_slices` does for half types.

    name: the operation that error messages name. Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t none[MAX_NDIM]
    cdef Tensor places
    cdef int d
    if not 0 <= dim < x.ndim_ or index.ndim_ != 1 or values.type != x.type or adds and is_half(x):
        raise RuntimeError("write_slices: no slices that can be written")
    check_index(name, index, 0, index)
    places = slice_positions(checked_positions(index, x, dim, x.dims[dim], name), x, dim)
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if values.ndim_ == 0:
        for d in range(x.ndim_):
            none[d] = 0
        values = new_view(values, x.ndim_, places.dims, none, values.data_pointer)
    if not walk(line_of_scatter(x.type, adds), x, dim, places, values, True):
        raise IndexError(f"{name}: the index was written after it was checked")


cdef inline bint is_half(Tensor x) noexcept:
    """Whether a tensor is of a half type."""
    return x.type == FLOAT16 or x.type == BFLOAT16


cdef Tensor slice_positions(Tensor places, Tensor x, int dim):
    """A view of a vector of positions along a dim, expanded to the slices of `x` there."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    for d in range(x.ndim_):
        dims[d] = places.dims[0] if d == dim else x.dims[d]
        steps[d] = places.steps[0] if d == dim else 0
    return new_view(places, x.ndim_, dims, steps, places.data_pointer)


# ---- sums of half types --------------------------------------------------------------------------
# A sum of half types is rounded once. So the slices that go to one position are added up together:
# a hash table finds the distinct positions, and for each a linked list of the slices to add there.

cdef struct HalfSlices:
    const volatile int64_t* places   # (n): the position of each slice of values
    const char* values               # (outer, n, inner)
    char* x                          # (outer, size, inner)
    int64_t* found                   # (count): the distinct positions, in the order of appearance
    int64_t* numbers                 # (n): which of the distinct positions each one is
    int64_t* firsts                  # (count): the first slice of values of each distinct position
    int64_t* lasts                   # (count): the last one
    int64_t* nexts                   # (n): the slice for the same position after this one, or -1
    int64_t* table                   # (mask + 1): the hash table of indices in `found`, or -1
    size_t mask                      # its size, a power of 2, less 1
    Py_ssize_t count, n, size, outer, inner
    cast_loop cast                   # from the half type to float32
    cast_loop back                   # and back
    bint failed                      # a position was out of range


cdef size_t GOLDEN_RATIO = 0x9E3779B97F4A7C15        # times 2**64: Fibonacci hashing


cdef void number_positions(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Finds the distinct positions, and for each of them the slices that go there, in order."""
    cdef HalfSlices* job = <HalfSlices*>context
    cdef int64_t place, number
    cdef size_t slot
    cdef Py_ssize_t i
    for slot in range(job.mask + 1):
        job.table[slot] = -1
    for i in range(begin, end):
        place = job.places[i]
        if not 0 <= place < job.size:
            job.failed = True
            return
        slot = (<size_t>place * GOLDEN_RATIO >> 20) & job.mask
        while job.table[slot] >= 0 and job.found[job.table[slot]] != place:
            slot = (slot + 1) & job.mask
        number = job.table[slot]
        if number < 0:
            number = job.table[slot] = job.count
            job.found[number], job.firsts[number] = place, i
            job.count += 1
        else:
            job.nexts[job.lasts[number]] = i
        job.numbers[i], job.lasts[number], job.nexts[i] = number, i, -1


cdef void add_runs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """x += the values of the distinct positions [begin, end), in blocks that fit the L1 cache"""
    cdef HalfSlices* job = <HalfSlices*>context
    cdef float sums[BLOCK]
    cdef float added[BLOCK]
    cdef Py_ssize_t number, o, j, t, width, inner = job.inner
    cdef int64_t i
    cdef char* run
    for number in range(begin, end):
        for o in range(job.outer):
            run = job.x + 2 * inner * (o * job.size + job.found[number])
            j = 0
            while j < inner:
                width = min(inner - j, <Py_ssize_t>BLOCK)
                job.cast(run + 2 * j, sums, width)
                i = job.firsts[number]
                while i >= 0:
                    job.cast(job.values + 2 * (inner * (o * job.n + i) + j), added, width)
                    for t in range(width):
                        sums[t] += added[t]
                    i = job.nexts[i]
                job.back(sums, run + 2 * j, width)
                j += width


cpdef int add_half_slices(Tensor x, str name, Tensor values, int dim, Tensor index) except -1:
    """Adds slices of a half type to those of `x` itself at a vector of positions along a dim.

    Each sum is rounded once. Few positions: only the slices there are copied to float32, all in
    one block (`add_by_gather`) or a block at a time (`add_runs`). Many: the whole tensor is.
    name: the operation that error messages name. Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t n = index.numel_, room = 2
    cdef HalfSlices job
    cdef Tensor places, memory, sums
    cdef int d
    if not 0 <= dim < x.ndim_ or index.ndim_ != 1 or values.type != x.type or not is_half(x):
        raise RuntimeError("add_half_slices: no slices that can be added")
    check_index(name, index, 0, index)
    places = packed(checked_positions(index, x, dim, x.dims[dim], name))
    if values.ndim_ != x.ndim_ or not same_shape(values, slice_positions(places, x, dim)):
        raise RuntimeError(f"{name}: values and positions differ")
    if values.numel_ == 0:
        return 0
    job.places, job.size, job.n = <int64_t*>places.data_pointer, x.dims[dim], n
    job.count, job.failed, job.outer, job.inner = 0, False, 1, 1
    for d in range(x.ndim_):
        if d < dim:
            job.outer *= x.dims[d]
        elif d > dim:
            job.inner *= x.dims[d]
    if n > min(job.size // 2, x.numel_ // NUMBERED) and not (x.packed and job.inner >= LONG_RUN):
        sums = packed_copy(x, FLOAT32)
        write_slices(sums, name, packed_copy(values, FLOAT32), dim, places, True)
        return copy_into(x, sums)
    while room < 2 * n:
        room *= 2
    job.mask, room = <size_t>(room - 1), 5 * n + room
    memory = new_tensor(INT64, 1, &room)
    job.found = <int64_t*>memory.data_pointer
    job.numbers, job.firsts, job.lasts = job.found + n, job.found + 2 * n, job.found + 3 * n
    job.nexts, job.table = job.found + 4 * n, job.found + 5 * n
    run_alone(number_positions, &job, x.data_pointer, n)
    if job.failed:
        raise IndexError(f"{name}: the index was written after it was checked")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if x.packed and job.inner >= RUN:
        values = packed(values)
        job.x, job.values = x.data_pointer, values.data_pointer
        job.cast, job.back = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
        share(add_runs, &job, job.x, job.count, 1 + GRAIN // (job.outer * job.inner),
              values.numel_ <= BRIEF)
        return 0
    return add_by_gather(x, name, packed_copy(values, FLOAT32), dim, &job, memory)


cdef int add_by_gather(Tensor x, str name, Tensor values, int dim, HalfSlices* job,
                       Tensor memory) except -1:
    """Adds float32 slices to a copy in float32 of the slices at the distinct positions, which are
    in `memory`, and writes the rounded sums back. For short runs, or where `x` has gaps."""
    cdef Py_ssize_t one = 1
    cdef Tensor numbers = new_view(memory, 1, &job.n, &one, <char*>job.numbers)
    cdef Tensor vector = new_view(memory, 1, &job.count, &one, <char*>job.found)
    cdef Tensor found = slice_positions(vector, x, dim), part, sums
    part = new_tensor(x.type, x.ndim_, found.dims)
    walk(line_of_gather(x.type), x, dim, found, part, False)
    sums = packed_copy(part, FLOAT32)
    write_slices(sums, name, values, dim, numbers, True)
    walk(line_of_scatter(x.type, False), x, dim, found, packed_copy(sums, x.type), True)
    return 0


# ---- at positions that count all elements row by row ---------------------------------------------

cdef struct FlatPositions:
    const volatile int64_t* places   # positions in the elements, row by row
    int64_t* offsets                 # of these elements in memory, from the lowest one
    const Py_ssize_t* dims
    const Py_ssize_t* steps
    int ndim
    Py_ssize_t first, numel          # the offset of the first element, and their number
    bint failed                      # a position was out of range


cdef void find_offsets(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """offsets := the offsets in memory of the elements at `places`"""
    cdef FlatPositions* job = <FlatPositions*>context
    cdef Py_ssize_t i, offset, first = job.first
    cdef const volatile int64_t* places = job.places
    cdef int64_t* offsets = job.offsets
    cdef size_t place, rows, numel = <size_t>job.numel
    cdef int d, last = job.ndim - 1
    for i in range(begin, end):
        place = <size_t>places[i]
        if place >= numel:
            job.failed = True
            return
        offset = first
        for d in range(last, 0, -1):
            rows = place // <size_t>job.dims[d]
            offset += <Py_ssize_t>(place - rows * <size_t>job.dims[d]) * job.steps[d]
            place = rows
        offsets[i] = offset + <Py_ssize_t>place * job.steps[0]


cdef Tensor flattened(Tensor x):
    """The elements of `x`, row by row, as a vector, which may be a copy."""
    cdef Py_ssize_t one = 1
    x = packed(x)
    return new_view(x, 1, &x.numel_, &one, x.data_pointer)


cdef bint fits_flat(Tensor x, index, source, accumulate) except -1:
    """Whether `put_flat` supports these arguments of `put`."""
    return (isinstance(index, Tensor) and isinstance(source, Tensor)
            and isinstance(accumulate, bool) and (<Tensor>index).type == INT64
            and (<Tensor>index).numel_ == (<Tensor>source).numel_
            and (<Tensor>source).type == x.type)


cdef int put_flat(Tensor x, Tensor index, Tensor values, bint adds) except -1:
    """Writes values to the elements of `x` at positions that count row by row, or adds them.

    Only for arguments that `fits_flat` accepts. Raises: IndexError.
    """
    cdef Py_ssize_t low = 0, high = 0, size = x.numel_, one = 1
    cdef Tensor places = checked_positions(flattened(index), x, 0, size, "put")
    cdef Tensor vector, offsets, whole
    cdef FlatPositions steps
    cdef int d
    if places.numel_ == 0:
        return 0
    if adds and is_half(x):                  # in a packed copy if `x` has gaps
        whole = packed(x)
        add_half_slices(new_view(whole, 1, &size, &one, whole.data_pointer), "put",
                        flattened(values), 0, places)
        return copy_into(x, whole) if whole is not x else 0
    values = flattened(packed_copy(values, values.type) if may_meet(values, x) else values)
    if not x.packed:
        for d in range(x.ndim_):
            reach(&low, &high, x.dims[d], x.steps[d])
        offsets = new_tensor(INT64, 1, &places.numel_)
        steps.places, steps.offsets = <int64_t*>places.data_pointer, <int64_t*>offsets.data_pointer
        steps.dims, steps.steps, steps.ndim = x.dims, x.steps, x.ndim_
        steps.first, steps.numel, steps.failed = -low, size, False
        run_alone(find_offsets, &steps, x.data_pointer, places.numel_)
        if steps.failed:
            raise IndexError("put: the index was written after it was checked")
        places, size = offsets, high - low + 1
    vector = new_view(x, 1, &size, &one, x.data_pointer + low * ITEMSIZE[x.type])
    if not walk(line_of_scatter(x.type, adds), vector, 0, places, values, True):
        raise IndexError("put: the index was written after it was checked")
    return 0


def put_in_copy(Tensor x, index, source, accumulate):
    """A copy of `x`, in its layout, to which the source is written or added as by `put`.

    None for arguments that have to be converted or refused. Raises: IndexError.
    """
    cdef Tensor out
    if not fits_flat(x, index, source, accumulate):
        return None
    out = arranged_copy(x, x.type)
    put_flat(out, index, source, accumulate)
    return out


# ---- in a copy -----------------------------------------------------------------------------------

cdef bint are_slices(Tensor x, Tensor index, int dim) noexcept:
    """Whether an index is a vector of positions that was expanded to whole slices of `x`."""
    cdef int d
    for d in range(index.ndim_):
        if d != dim and (index.dims[d] != x.dims[d] or index.steps[d] != 0 and index.dims[d] != 1):
            return False
    return index.ndim_ > 0 and index.numel_ > 0


def written_along(Tensor input, Tensor values, int dim, Tensor index, bint adds):
    """A copy of `input` to which values are written or added at positions along a dim.

    The positions may be those of an expanded tensor. Raises: IndexError, RuntimeError.
    """
    cdef int given = input.type
    cdef bint half = adds and is_half(input)
    cdef int dtype = FLOAT32 if half else given              # halves are rounded once, at the end
    cdef Tensor out
    if values.type != given or not same_shape(values, index):
        check_index("scatter", input, dim, index)
        raise RuntimeError(f"scatter: values of shape {tuple(values.shape)} and {values.dtype} "
                           f"can't go to positions of shape {tuple(index.shape)} in {input.dtype}")
    if half:                                 # other dtypes: `written_copy` checks the index
        check_index("scatter", input, dim, index)
    if half and are_slices(input, index, dim):
        out = packed_copy(input, given)
        add_half_slices(as_vector(out), "scatter", values, dim, new_view(
            index, 1, &index.dims[dim], &index.steps[dim], index.data_pointer))
        return out
    if half:
        input, values = packed_copy(input, FLOAT32), packed_copy(values, FLOAT32)
    out = written_copy(line_of_scatter(dtype, adds), input, values, dim, index)
    return packed_copy(out, given) if half else out


cdef Tensor written_copy(line_loop run, Tensor x, Tensor values, int dim, Tensor index):
    """A copy of `x` along all lines of which a loop has run. Raises: as `written_along`."""
    cdef Tensor out = packed_copy(x, x.type), like = as_vector(out), y = as_vector(values)
    cdef Tensor places = index
    check_index("scatter", x, dim, index)
    if index.type != INT64:
        places = packed_copy(index, INT64)
    if not walk(run, like, dim, as_vector(places), y, True):
        # a position was negative or out of range: begin again with all counted from the front
        out = packed_copy(x, x.type)
        places = wrapped_positions(index, like.dims[dim], dim, "scatter")
        if not walk(run, as_vector(out), dim, as_vector(places), y, True):
            raise IndexError("scatter: the index was written after it was checked")
    return out
