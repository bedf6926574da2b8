"""The positions of sparse tensors: their extent, their order, and their union."""

from libc.stdint cimport int64_t, uint64_t

from tensorlib._core.base.dtypes cimport INT64
from tensorlib._core.base.work cimport run_once
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed

cdef enum:
    ONE_THREAD = 16384           # positions: fewer are not worth giving up the lock of Python

cdef struct Survey:
    const int64_t* positions         # (dims, count), in memory one dim after the other
    const int64_t* sizes             # (dims,)
    int64_t* out                     # (count,), or of `survey_bounds` the bounds are here
    Py_ssize_t dims, count, batches, lines
    int64_t least, most
    Py_ssize_t order                 # 2: ascending, 1: ascending with equal ones, 0: neither
    Py_ssize_t wrong                 # whether bounds do not ascend from 0 to the last entry


cdef Tensor int64s(str name, Tensor x, int ndim):
    """The tensor packed. Raises: RuntimeError unless it is int64 with as many dims, if not -1."""
    if x.type != INT64 or ndim >= 0 and x.ndim_ != ndim:
        raise RuntimeError(f"{name}: takes positions as int64, got shape {tuple(x.shape)} of "
                           f"{x.dtype}")
    return packed(x)


# Another thread may write to the positions: what is read is not used as an address here.

cdef void find_extent(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The least number of all, and the largest of each dim"""
    cdef Survey* of = <Survey*>context
    cdef Py_ssize_t d, i
    cdef int64_t x, most
    for d in range(of.dims):
        most = -1
        for i in range(of.count):
            x = of.positions[d * of.count + i]
            of.least = min(of.least, x)
            most = max(most, x)
        of.out[d] = most


def extents(Tensor indices):
    """The least of positions (dims, entries), at most 0, and the largest of each dim, or -1."""
    cdef Survey job
    cdef Tensor most
    indices = int64s("extents", indices, 2)
    most = new_tensor(INT64, 1, &indices.dims[0])
    job.positions, job.out = <const int64_t*>indices.data_pointer, <int64_t*>most.data_pointer
    job.dims, job.count, job.least = indices.dims[0], indices.dims[1], 0
    run_once(find_extent, &job, most.data_pointer, job.dims * job.count < ONE_THREAD)
    return job.least, [job.out[d] for d in range(job.dims)]


cdef void look_outside(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Whether a position is below 0 or past its size: one of two numbers is below 0 there"""
    cdef Survey* of = <Survey*>context
    cdef Py_ssize_t d, i
    cdef uint64_t x, last, found = 0
    for d in range(of.dims):
        last = <uint64_t>of.sizes[d] - 1
        for i in range(of.count):
            x = <uint64_t>of.positions[d * of.count + i]
            found |= x | (last - x)
    of.wrong = found >> 63


def within(Tensor indices, sizes):
    """Whether all positions (dims, entries) are in the sizes, whose product may be counted."""
    cdef Survey job
    cdef int64_t[64] known
    cdef Py_ssize_t d
    cdef double total = 1
    indices = int64s("within", indices, 2)
    if indices.dims[0] > 64 or len(sizes) < indices.dims[0]:
        return False
    for d in range(indices.dims[0]):
        known[d] = sizes[d]
        total *= known[d]
        if known[d] < 0 or total >= <double>(<int64_t>1 << 62):
            return False
    job.positions, job.sizes = <const int64_t*>indices.data_pointer, known
    job.dims, job.count, job.wrong = indices.dims[0], indices.dims[1], 0
    run_once(look_outside, &job, indices.data_pointer, job.dims * job.count < ONE_THREAD)
    return not job.wrong


cdef void number(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The positions as numbers in the order of elements, and whether they ascend"""
    cdef Survey* of = <Survey*>context
    cdef Py_ssize_t d, i
    cdef int64_t x, last = -1
    for i in range(of.count):
        x = 0
        for d in range(of.dims):
            x = <int64_t>(<uint64_t>x * <uint64_t>of.sizes[d]
                          + <uint64_t>of.positions[d * of.count + i])
        of.out[i] = x
        if x <= last and of.order:
            of.order = x == last
        last = x


def numbered(Tensor indices, sizes):
    """The positions (dims, entries) as numbers in the order of elements, and whether they are in
    order: 2 if they ascend, 1 if some are there twice, 0 if they do not ascend."""
    cdef Survey job
    cdef Tensor flat
    cdef int64_t[64] known
    cdef Py_ssize_t d
    indices = int64s("numbered", indices, 2)
    if indices.dims[0] > 64 or len(sizes) < indices.dims[0]:
        raise RuntimeError(f"numbered: takes positions of at most 64 dims with a size each, got "
                           f"{indices.dims[0]} and {len(sizes)}")
    for d in range(indices.dims[0]):
        known[d] = sizes[d]
    flat = new_tensor(INT64, 1, &indices.dims[1])
    job.positions, job.out = <const int64_t*>indices.data_pointer, <int64_t*>flat.data_pointer
    job.dims, job.count, job.sizes, job.order = indices.dims[0], indices.dims[1], known, 2
    run_once(number, &job, flat.data_pointer, job.dims * job.count < ONE_THREAD)
    return flat, job.order


cdef void survey(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Whether bounds are right, the extent of the others, and whether they ascend in each line"""
    cdef Survey* of = <Survey*>context
    cdef const int64_t* bounds = of.out
    cdef const int64_t* others = of.positions
    cdef Py_ssize_t b, i
    cdef int64_t e, until, x, last
    for b in range(of.batches):
        e = bounds[b * (of.lines + 1)]
        of.wrong |= e != 0
        for i in range(of.lines):
            until = bounds[b * (of.lines + 1) + i + 1]
            if of.wrong or not e <= until <= of.count:
                of.wrong = 1
                return
            last = -1
            while e < until:
                x = others[b * of.count + e]
                of.least, of.most = min(of.least, x), max(of.most, x)
                of.order &= x > last
                last = x
                e += 1
        of.wrong |= e != of.count


def survey_bounds(Tensor bounds, Tensor others):
    """Of bounds (*, lines + 1) and the places of entries in the lines (*, entries): whether bounds
    ascend from 0 to the last entry; then the least, the largest, and whether they ascend in each
    line."""
    cdef Survey job
    bounds, others = int64s("survey_bounds", bounds, -1), int64s("survey_bounds", others, -1)
    job.lines, job.count = bounds.dims[bounds.ndim_ - 1] - 1, others.dims[others.ndim_ - 1]
    job.batches = bounds.numel_ // (job.lines + 1)
    if job.batches * job.count != others.numel_:
        raise RuntimeError(f"survey_bounds: shapes {tuple(bounds.shape)} and "
                           f"{tuple(others.shape)} do not fit")
    job.positions = <const int64_t*>others.data_pointer
    job.out = <int64_t*>bounds.data_pointer
    job.least, job.most, job.order, job.wrong = 0, -1, 1, 0
    run_once(survey, &job, bounds.data_pointer, others.numel_ < ONE_THREAD)
    return not job.wrong, job.least, job.most, bool(job.order)


# ---- equal ones ----------------------------------------------------------------------------------

cdef struct Groups:
    const int64_t* flat              # (count,), ascending in this order
    const int64_t* order             # (count,), or NULL
    int64_t* places                  # (count,): of which group an entry is
    int64_t* out                     # (size,): the first entry of each group
    Py_ssize_t count, size


cdef void find_groups(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The groups of equal positions, each with the number of the entry that begins it in `out`"""
    cdef Groups* of = <Groups*>context
    cdef Py_ssize_t i, e
    cdef int64_t x, last = -1
    of.size = 0
    for i in range(of.count):
        e = i
        if of.order != NULL:
            e = of.order[i]
        if not 0 <= e < of.count:
            return
        x = of.flat[e]
        if x != last:
            of.out[of.size] = e
            of.size += 1
        of.places[e] = of.size - 1
        last = x


def grouped(Tensor flat, Tensor order=None):
    """Of positions as numbers, which ascend in `order` (None: as they are): the entries that begin
    a group of equal ones, and of which group each entry is."""
    cdef Groups job
    cdef Tensor places, first
    cdef Py_ssize_t size
    flat = int64s("grouped", flat, 1)
    if order is not None:
        order = int64s("grouped", order, 1)
        if order.numel_ != flat.numel_:
            raise RuntimeError(f"grouped: takes an order of {flat.numel_} entries, got "
                               f"{order.numel_}")
    places, first = new_tensor(INT64, 1, &flat.numel_), new_tensor(INT64, 1, &flat.numel_)
    job.flat, job.count = <const int64_t*>flat.data_pointer, flat.numel_
    job.order = NULL if order is None else <const int64_t*>order.data_pointer
    job.places, job.out = <int64_t*>places.data_pointer, <int64_t*>first.data_pointer
    run_once(find_groups, &job, places.data_pointer, job.count < ONE_THREAD)
    size = job.size
    return first[:size], places


# ---- unions --------------------------------------------------------------------------------------

cdef struct Union:
    const int64_t* a
    const int64_t* b
    int64_t* places_a
    int64_t* places_b
    Py_ssize_t n, m, size


cdef void merge(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Where each number of two ascending vectors is in their union; its size.

    Without a branch on the order: the place of the larger number is written again later.
    """
    cdef Union* of = <Union*>context
    cdef Py_ssize_t i = 0, j = 0, k = 0
    cdef int64_t x, y
    while i < of.n and j < of.m:
        x, y = of.a[i], of.b[j]
        of.places_a[i] = of.places_b[j] = k
        i += x <= y
        j += y <= x
        k += 1
    while i < of.n:
        of.places_a[i] = k
        i += 1
        k += 1
    while j < of.m:
        of.places_b[j] = k
        j += 1
        k += 1
    of.size = k


def merged_places(Tensor a, Tensor b):
    """The size of the union of two vectors of ascending int64, and where theirs are in it.

    Raises: RuntimeError for other shapes and dtypes.
    """
    cdef Tensor first, second
    cdef Union job
    if a.type != INT64 or b.type != INT64 or a.ndim_ != 1 or b.ndim_ != 1:
        raise RuntimeError("merged_places: takes two vectors of int64, got shapes "
                           f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}")
    a, b = packed(a), packed(b)
    first, second = new_tensor(INT64, 1, &a.numel_), new_tensor(INT64, 1, &b.numel_)
    job.a, job.n = <const int64_t*>a.data_pointer, a.numel_
    job.b, job.m = <const int64_t*>b.data_pointer, b.numel_
    job.places_a, job.places_b = <int64_t*>first.data_pointer, <int64_t*>second.data_pointer
    job.size = 0
    run_once(merge, &job, first.data_pointer, job.n + job.m < 16384)
    return job.size, first, second
