"""Writes at positions along a dim, over the elements of the tensor itself or of a copy. Outside of
autograd."""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport BFLOAT16, FLOAT16, FLOAT32, INT64, ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, reach
from tensorlib._core.base.work cimport run_alone, share
from tensorlib._core.index.gather cimport (
    GRAIN, as_vector, check_index, in_range, line, line_of_gather, line_of_scatter, walk, wrapped,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport (
    arranged_copy, copy_into, may_meet, packed, packed_copy,
)
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

cdef enum:
    BLOCK = 2048             # elements of a half type in float32 at a time: half of the L1 cache
    RUN = 8                  # elements that are worth a call of a loop,
    LONG_RUN = 128           # and that take no longer than in a whole tensor in float32
    NUMBERED = 32            # elements of that which take as long as to number a position
    BRIEF = 4096             # elements that are added with the GIL


cdef Tensor counted(Tensor index, Tensor x, int dim, Py_ssize_t size, str name):
    """The positions, all in range and counted from the front, that a write into `x` leaves alone.
    Those of expanded dims are checked once. Raises: IndexError."""
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
    once = wrapped(once, size, dim, name)
    for d in range(index.ndim_):
        steps[d] = once.steps[d] if dims[d] == index.dims[d] else 0
    return new_view(once, index.ndim_, index.dims, steps, once.data_pointer)


cdef int walk_over(line run, Tensor x, Tensor values, int dim, Tensor index) except -1:
    """Runs along all lines of positions, which are checked before, over the elements of `x` itself.

    Raises: IndexError, RuntimeError.
    """
    cdef Tensor places
    cdef Py_ssize_t size = as_vector(x).dims[dim]
    if values.type != x.type or not same_shape(values, index):
        raise RuntimeError("scatter: values and positions differ")
    check_index("scatter", x, dim, index)
    places = counted(index, x, dim, size, "scatter")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if not walk(run, as_vector(x), dim, as_vector(places), as_vector(values), True):
        raise IndexError("scatter: the index was written after it was checked")
    return 0


def write_along(Tensor x, Tensor values, int dim, Tensor index, bint adds):
    """Writes values over, or adds them to, the elements of `x` itself at positions along a dim.

    The positions are checked before. Raises: as `written_along`.
    """
    walk_over(line_of_scatter(x.type, adds), x, values, dim, index)


def write_slices(Tensor x, str name, Tensor values, int dim, Tensor index, bint adds):
    """Writes slices, or a number, over those of `x` itself at the positions of a vector along a
    dim, or adds them to these; half types are not added.

    Raises: IndexError for positions out of range, which names `name`, RuntimeError.
    """
    cdef Py_ssize_t none[MAX_NDIM]
    cdef Tensor places
    cdef int d
    if not 0 <= dim < x.ndim_ or index.ndim_ != 1 or values.type != x.type or adds and is_half(x):
        raise RuntimeError("write_slices: no slices that can be written")
    check_index(name, index, 0, index)
    places = spread(counted(index, x, dim, x.dims[dim], name), x, dim)
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if values.ndim_ == 0:
        for d in range(x.ndim_):
            none[d] = 0
        values = new_view(values, x.ndim_, places.dims, none, values.data_pointer)
    if not walk(line_of_scatter(x.type, adds), x, dim, places, values, True):
        raise IndexError(f"{name}: the index was written after it was checked")


cdef inline bint is_half(Tensor x) noexcept:
    return x.type == FLOAT16 or x.type == BFLOAT16


cdef Tensor spread(Tensor places, Tensor x, int dim):
    """A vector of positions along a dim as one for each element of the slices of `x` there."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d
    for d in range(x.ndim_):
        dims[d] = places.dims[0] if d == dim else x.dims[d]
        steps[d] = places.steps[0] if d == dim else 0
    return new_view(places, x.ndim_, dims, steps, places.data_pointer)


# ---- sums of half types --------------------------------------------------------------------------

cdef struct HalfSlices:
    const volatile int64_t* places
    const char* values
    char* x
    int64_t* found                   # each position once
    int64_t* numbers                 # which of these each is
    int64_t* firsts                  # the values that are added there: the first of each position,
    int64_t* lasts                   # the last,
    int64_t* nexts                   # and after each the next, or -1
    int64_t* table                   # of a power of 2 numbers, -1 where none is
    size_t mask
    Py_ssize_t count, n, size, outer, inner
    cast_loop cast
    cast_loop back
    bint failed


cdef void number_positions(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Which positions there are, and which values go to each, in their order"""
    cdef HalfSlices* of = <HalfSlices*>context
    cdef int64_t place, number
    cdef size_t slot
    cdef Py_ssize_t i
    for slot in range(of.mask + 1):
        of.table[slot] = -1
    for i in range(begin, end):
        place = of.places[i]
        if not 0 <= place < of.size:
            of.failed = True
            return
        slot = (<size_t>place * <size_t>0x9E3779B97F4A7C15 >> 20) & of.mask
        while of.table[slot] >= 0 and of.found[of.table[slot]] != place:
            slot = (slot + 1) & of.mask
        number = of.table[slot]
        if number < 0:
            number = of.table[slot] = of.count
            of.found[number], of.firsts[number] = place, i
            of.count += 1
        else:
            of.nexts[of.lasts[number]] = i
        of.numbers[i], of.lasts[number], of.nexts[i] = number, i, -1


cdef void add_runs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The sums at the positions [begin, end) that were found, by blocks in the L1 cache"""
    cdef HalfSlices* of = <HalfSlices*>context
    cdef float sums[BLOCK]
    cdef float added[BLOCK]
    cdef Py_ssize_t number, o, j, t, width, inner = of.inner
    cdef int64_t i
    cdef char* run
    for number in range(begin, end):
        for o in range(of.outer):
            run = of.x + 2 * inner * (o * of.size + of.found[number])
            j = 0
            while j < inner:
                width = min(inner - j, <Py_ssize_t>BLOCK)
                of.cast(run + 2 * j, sums, width)
                i = of.firsts[number]
                while i >= 0:
                    of.cast(of.values + 2 * (inner * (o * of.n + i) + j), added, width)
                    for t in range(width):
                        sums[t] += added[t]
                    i = of.nexts[i]
                of.back(sums, run + 2 * j, width)
                j += width


cpdef int add_half_slices(Tensor x, str name, Tensor values, int dim, Tensor index) except -1:
    """Adds slices of a half type to those of `x` itself at the positions of a vector along a dim.

    The sums are rounded once: the slices that take part are in float32 meanwhile, and no others.
    Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t n = index.numel_, room = 2, one = 1
    cdef HalfSlices of
    cdef Tensor places, memory, found, numbers, part, sums
    cdef int d
    if not 0 <= dim < x.ndim_ or index.ndim_ != 1 or values.type != x.type or not is_half(x):
        raise RuntimeError("add_half_slices: no slices that can be added")
    check_index(name, index, 0, index)
    places = packed(counted(index, x, dim, x.dims[dim], name))
    if values.ndim_ != x.ndim_ or not same_shape(values, spread(places, x, dim)):
        raise RuntimeError(f"{name}: values and positions differ")
    if values.numel_ == 0:
        return 0
    of.places, of.size, of.n = <int64_t*>places.data_pointer, x.dims[dim], n
    of.count, of.failed, of.outer, of.inner = 0, False, 1, 1
    for d in range(x.ndim_):
        if d < dim:
            of.outer *= x.dims[d]
        elif d > dim:
            of.inner *= x.dims[d]
    if n > min(of.size // 2, x.numel_ // NUMBERED) and not (x.packed and of.inner >= LONG_RUN):
        sums = packed_copy(x, FLOAT32)
        write_slices(sums, name, packed_copy(values, FLOAT32), dim, places, True)
        return copy_into(x, sums)
    while room < 2 * n:
        room *= 2
    of.mask, room = <size_t>(room - 1), 5 * n + room
    memory = new_tensor(INT64, 1, &room)
    of.found = <int64_t*>memory.data_pointer
    of.numbers, of.firsts, of.lasts = of.found + n, of.found + 2 * n, of.found + 3 * n
    of.nexts, of.table = of.found + 4 * n, of.found + 5 * n
    run_alone(number_positions, &of, x.data_pointer, n)
    if of.failed:
        raise IndexError(f"{name}: the index was written after it was checked")
    if may_meet(values, x):
        values = packed_copy(values, values.type)
    if x.packed and of.inner >= RUN:
        values = packed(values)
        of.x, of.values = x.data_pointer, values.data_pointer
        of.cast, of.back = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
        share(add_runs, &of, of.x, of.count, 1 + GRAIN // (of.outer * of.inner),
              values.numel_ <= BRIEF)
        return 0
    values = packed_copy(values, FLOAT32)
    numbers = new_view(memory, 1, &n, &one, <char*>of.numbers)
    found = spread(new_view(memory, 1, &of.count, &one, memory.data_pointer), x, dim)
    part = new_tensor(x.type, x.ndim_, found.dims)
    walk(line_of_gather(x.type), x, dim, found, part, False)
    sums = packed_copy(part, FLOAT32)
    write_slices(sums, name, values, dim, numbers, True)
    walk(line_of_scatter(x.type, False), x, dim, found, packed_copy(sums, x.type), True)
    return 0


# ---- at positions in all elements ----------------------------------------------------------------

cdef struct Steps:
    const volatile int64_t* places
    int64_t* offsets
    const Py_ssize_t* dims
    const Py_ssize_t* steps
    int ndim
    Py_ssize_t first, numel
    bint failed


cdef void look_up_offsets(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where in memory the elements lie that positions count row by row."""
    cdef Steps* of = <Steps*>context
    cdef Py_ssize_t i, offset, first = of.first
    cdef const volatile int64_t* places = of.places
    cdef int64_t* offsets = of.offsets
    cdef size_t place, rows, numel = <size_t>of.numel
    cdef int d, last = of.ndim - 1
    for i in range(begin, end):
        place = <size_t>places[i]
        if place >= numel:
            of.failed = True
            return
        offset = first
        for d in range(last, 0, -1):
            rows = place // <size_t>of.dims[d]
            offset += <Py_ssize_t>(place - rows * <size_t>of.dims[d]) * of.steps[d]
            place = rows
        offsets[i] = offset + <Py_ssize_t>place * of.steps[0]


cdef Tensor vector_of(Tensor x):
    """The elements of `x`, row by row, as a vector, which may be a copy."""
    cdef Py_ssize_t one = 1
    x = packed(x)
    return new_view(x, 1, &x.numel_, &one, x.data_pointer)


cdef bint fits_flat(Tensor x, index, source, accumulate) except -1:
    """Whether `put_flat` takes these arguments of `put`."""
    return (isinstance(index, Tensor) and isinstance(source, Tensor)
            and isinstance(accumulate, bool) and (<Tensor>index).type == INT64
            and (<Tensor>index).numel_ == (<Tensor>source).numel_
            and (<Tensor>source).type == x.type)


cdef int put_flat(Tensor x, Tensor index, Tensor values, bint adds) except -1:
    """Writes values over, or adds them to, the elements of `x` at positions that count all of its
    elements row by row, where `fits_flat`. Raises: IndexError."""
    cdef Py_ssize_t low = 0, high = 0, size = x.numel_, one = 1
    cdef Tensor places = counted(vector_of(index), x, 0, size, "put"), line_of_x, offsets, whole
    cdef Steps steps
    cdef int d
    if places.numel_ == 0:
        return 0
    if adds and is_half(x):                  # what has gaps, in a copy
        whole = packed(x)
        add_half_slices(new_view(whole, 1, &size, &one, whole.data_pointer), "put",
                        vector_of(values), 0, places)
        return copy_into(x, whole) if whole is not x else 0
    values = vector_of(packed_copy(values, values.type) if may_meet(values, x) else values)
    if not x.packed:
        for d in range(x.ndim_):
            reach(&low, &high, x.dims[d], x.steps[d])
        offsets = new_tensor(INT64, 1, &places.numel_)
        steps.places, steps.offsets = <int64_t*>places.data_pointer, <int64_t*>offsets.data_pointer
        steps.dims, steps.steps, steps.ndim = x.dims, x.steps, x.ndim_
        steps.first, steps.numel, steps.failed = -low, size, False
        run_alone(look_up_offsets, &steps, x.data_pointer, places.numel_)
        if steps.failed:
            raise IndexError("put: the index was written after it was checked")
        places, size = offsets, high - low + 1
    line_of_x = new_view(x, 1, &size, &one, x.data_pointer + low * ITEMSIZE[x.type])
    if not walk(line_of_scatter(x.type, adds), line_of_x, 0, places, values, True):
        raise IndexError("put: the index was written after it was checked")
    return 0


def put_in_copy(Tensor x, index, source, accumulate):
    """A copy of `x`, laid out as it is, with the source put, or added, there; None for what is to
    be converted or refused. Raises: IndexError."""
    cdef Tensor out
    if not fits_flat(x, index, source, accumulate):
        return None
    out = arranged_copy(x, x.type)
    put_flat(out, index, source, accumulate)
    return out


# ---- in a copy -----------------------------------------------------------------------------------

cdef bint names_slices(Tensor x, Tensor index, int dim) noexcept:
    """Whether all that lie at one place along a dim of `x` are one position, which was expanded."""
    cdef int d
    for d in range(index.ndim_):
        if d != dim and (index.dims[d] != x.dims[d] or index.steps[d] != 0 and index.dims[d] != 1):
            return False
    return index.ndim_ > 0 and index.numel_ > 0


def written_along(Tensor input, Tensor values, int dim, Tensor index, bint adds):
    """A copy of `input` with values put, or added, at positions along a dim.

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
    if half:                                 # else it is checked where it is written
        check_index("scatter", input, dim, index)
    if half and names_slices(input, index, dim):
        out = packed_copy(input, given)
        add_half_slices(as_vector(out), "scatter", values, dim, new_view(
            index, 1, &index.dims[dim], &index.steps[dim], index.data_pointer))
        return out
    if half:
        input, values = packed_copy(input, FLOAT32), packed_copy(values, FLOAT32)
    out = written(line_of_scatter(dtype, adds), input, values, dim, index)
    return packed_copy(out, given) if half else out


cdef Tensor written(line run, Tensor x, Tensor values, int dim, Tensor index):
    """A copy of `x` that a walk along the positions has written to. Raises as `written_along`."""
    cdef Tensor out = packed_copy(x, x.type), like = as_vector(out), y = as_vector(values)
    cdef Tensor places = index
    check_index("scatter", x, dim, index)
    if index.type != INT64:
        places = packed_copy(index, INT64)
    if not walk(run, like, dim, as_vector(places), y, True):
        out = packed_copy(x, x.type)                         # again, with positions from the front
        places = wrapped(index, like.dims[dim], dim, "scatter")
        if not walk(run, as_vector(out), dim, as_vector(places), y, True):
            raise IndexError("scatter: the index was written after it was checked")
    return out
