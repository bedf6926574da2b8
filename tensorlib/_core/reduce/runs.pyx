"""Runs of equal neighbours: where they begin, how long they are, which is the longest.

NumPy does this in several passes, each with a new array. It returns arrays of several MB to the
system at once, so that it spends most of its time on page faults.
"""

from libc.stdint cimport INT32_MAX, INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._core.base.blocks cimport copy_run
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, COMPLEX128, COMPLEX64, COMPLEX_KIND, FLOAT16, FLOAT32, FLOAT64, INT64,
    ITEMSIZE, KIND, N_DTYPES,
)
from tensorlib._core.base.items cimport complex128_t, complex64_t, number
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.masks cimport count_true, nonzero_mask, number_true
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport cast, packed

ctypedef void (*differ_fn)(const char* x, char* marks, Py_ssize_t rows) noexcept nogil
ctypedef Py_ssize_t (*take_fn)(const char* x, const char* marks, char* y,
                               Py_ssize_t rows) noexcept nogil
ctypedef Py_ssize_t (*places_fn)(const char* marks, int64_t* places, Py_ssize_t rows,
                                 Py_ssize_t first) noexcept nogil
ctypedef void (*frequent_fn)(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                             int bits, int floating, int64_t unknown) noexcept nogil
ctypedef void (*sums_fn)(const char* marks, int64_t* sums, Py_ssize_t rows,
                         Py_ssize_t sum) noexcept nogil

cdef enum:
    BLOCK = 2048             # rows whose runs are found at once

cdef differ_fn[N_DTYPES] differ
cdef take_fn[9] take_of          # by the size of an element
cdef places_fn places_of = <places_fn>find_function("runs", "places", "bool")
cdef sums_fn sums_of = <sums_fn>find_function("runs", "sums", "bool")
cdef frequent_fn frequent_of_rows = <frequent_fn>find_function("ranks", "most frequent", "int64")


cdef int find_loops() except -1:
    cdef int dtype, size
    for dtype in range(N_DTYPES):
        if KIND[dtype] != COMPLEX_KIND and ITEMSIZE[dtype] <= 8:
            differ[dtype] = <differ_fn>find_function(
                "runs", "differ", "float32" if dtype == FLOAT32 else "float64"
                if dtype == FLOAT64 else f"uint{8 * ITEMSIZE[dtype]}")
    for size in (1, 2, 4, 8):
        take_of[size] = <take_fn>find_function("runs", "take", f"uint{8 * size}")
    return 0


find_loops()

# ---- their places --------------------------------------------------------------------------------

cdef struct Runs:
    const char* x
    char* begins
    char* values
    int64_t* inverse
    int64_t* lengths
    const int64_t* order
    int dtype
    Py_ssize_t rows, n, nbytes


cdef void compare(const number* x, char* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := whether each row of n numbers differs from the row before it; the first one does"""
    cdef Py_ssize_t row, i
    cdef bint differs
    y[0] = 1
    for row in range(1, rows):
        differs = False
        x += n
        for i in range(n):
            differs |= x[i] != x[i - n]
        y[row] = differs


cdef void compare_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Runs* of = <Runs*>context
    if of.n == 1 and differ[of.dtype] != NULL:
        differ[of.dtype](of.x, of.begins, of.rows)
    elif of.dtype == FLOAT32:
        compare(<const float*>of.x, of.begins, of.rows, of.n)
    elif of.dtype == FLOAT64:
        compare(<const double*>of.x, of.begins, of.rows, of.n)
    elif of.dtype == COMPLEX64:
        compare(<const complex64_t*>of.x, of.begins, of.rows, of.n)
    elif of.dtype == COMPLEX128:
        compare(<const complex128_t*>of.x, of.begins, of.rows, of.n)
    elif ITEMSIZE[of.dtype] == 1:
        compare(<const uint8_t*>of.x, of.begins, of.rows, of.n)
    elif ITEMSIZE[of.dtype] == 2:
        compare(<const uint16_t*>of.x, of.begins, of.rows, of.n)
    elif ITEMSIZE[of.dtype] == 4:
        compare(<const uint32_t*>of.x, of.begins, of.rows, of.n)
    else:
        compare(<const uint64_t*>of.x, of.begins, of.rows, of.n)


cdef void take_rows(const char* x, char* y, const char* begins, Py_ssize_t rows,
                    Py_ssize_t nbytes) noexcept nogil:
    """y := the rows with which runs begin"""
    cdef Py_ssize_t i
    for i in range(rows):
        if begins[i]:
            copy_run(x + i * nbytes, y, nbytes)
            y += nbytes


cdef void find_runs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """values := the rows with which runs begin; inverse := the run that each row is in; lengths :=
    those of the runs. Works by blocks, whose marks and places stay in the L1 cache."""
    cdef Runs* of = <Runs*>context
    cdef int64_t* lengths = of.lengths
    cdef take_fn take = take_of[of.nbytes] if of.nbytes <= 8 else NULL
    cdef const char* begins
    cdef Py_ssize_t first, n, i, number, k = 0      # k runs begin before a block, `number` up to it
    if take == NULL:
        take_rows(of.x, of.values, of.begins, of.rows, of.nbytes)
    for first in range(0, of.rows, 2048):    # BLOCK, as a literal: the sign must be known
        begins, n, number = of.begins + first, min(<Py_ssize_t>BLOCK, of.rows - first), k
        if take != NULL:
            take(of.x + first * of.nbytes, begins, of.values + k * of.nbytes, n)
        if of.inverse != NULL and of.order == NULL:
            sums_of(begins, of.inverse + first, n, k - 1)
        for i in range(n if of.order != NULL and of.inverse != NULL else 0):
            number += begins[i]
            of.inverse[of.order[first + i]] = number - 1
        number = k + count_true(begins, n)
        if lengths != NULL:
            places_of(begins, lengths + k, n, first)
            for i in range(max(k, <Py_ssize_t>1), number):
                lengths[i - 1] = lengths[i] - lengths[i - 1]
        k = number
    if lengths != NULL and k:
        lengths[k - 1] = of.rows - lengths[k - 1]


def runs_of_slices(Tensor input, bint inverse, bint lengths, Tensor order=None):
    """(values, inverse, lengths) of the runs of equal slices along dim 0, which there must be.

    values: the slices with which runs begin; inverse: the run that each slice is in, or None;
    lengths: of each run, or None; the two are of int64. order: the permutation by which the slices
    were sorted, so that `inverse` is of those before. NaN is not equal to itself.
    """
    cdef Tensor x = nonzero_mask(input) if input.type == BOOL else packed(input), wide = x
    cdef Tensor begins, values, run = None, length = None
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t count = 0, room, one = 1
    cdef int d
    cdef Runs job
    if not x.ndim_ or order is not None and not are_places(order, x.dims[0]):
        raise RuntimeError("unique: expects slices, and a place for each of them")
    if x.type == FLOAT16 or x.type == BFLOAT16:
        wide = cast(x, FLOAT32)
    job.dtype, job.rows = wide.type, x.dims[0]
    job.n = x.numel_ // max(job.rows, <Py_ssize_t>1)
    job.nbytes = job.n * ITEMSIZE[x.type]
    begins = new_tensor(BOOL, 1, &job.rows)
    job.x, job.begins = wide.data_pointer, begins.data_pointer
    if job.rows:
        run_once(compare_all, &job, job.x, False)
        count = number_true(begins)
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    dims[0] = count + 1
    values = new_tensor(x.type, x.ndim_, dims)
    dims[0] = count
    job.x, job.values = x.data_pointer, values.data_pointer
    job.order = NULL
    if order is not None:
        order = packed(order)
        job.order = <const int64_t*>order.data_pointer
    job.inverse = job.lengths = NULL
    if inverse:
        run = new_tensor(INT64, 1, &job.rows)
        job.inverse = <int64_t*>run.data_pointer
    if lengths:
        room = count + 1
        length = new_tensor(INT64, 1, &room)
        job.lengths = <int64_t*>length.data_pointer
        length = new_view(length, 1, &count, &one, length.data_pointer)
    run_once(find_runs, &job, job.values, False)
    return new_view(values, x.ndim_, dims, values.steps, values.data_pointer), run, length


cdef bint are_places(Tensor order, Py_ssize_t n) noexcept:
    """Whether `order` holds n positions."""
    return order.type == INT64 and order.numel_ == n


# ---- the longest ---------------------------------------------------------------------------------

cdef enum:
    GRAIN = 4096             # keys that a thread takes at least
    BRIEF = 1024             # up to so many keys the GIL is kept
    FREQUENT = 8             # elements: shorter rows, or such, are counted without being sorted


cdef struct Ranked:
    const int64_t* keys
    const int64_t* order
    int64_t* y
    int bits
    bint floating, counted
    Py_ssize_t n


cdef inline int64_t ranked_key(const int64_t* keys, const int64_t* order, int bits,
                               Py_ssize_t place) noexcept nogil:
    return keys[place if order == NULL else order[place]] >> bits


cdef void find_longest(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Finds the longest run of the rows [begin, end). Each NaN, whose keys come last, is a run of
    one element, and is preferred to other runs of one element."""
    cdef Ranked* of = <Ranked*>context
    cdef const int64_t* keys
    cdef const int64_t* order = NULL
    cdef int64_t unknown = INT32_MAX if of.bits else INT64_MAX, key, next_key
    cdef Py_ssize_t row, first, last, most, place
    if of.counted:
        frequent_of_rows(of.keys + begin * of.n, of.y + begin, end - begin, of.n, of.bits,
                         of.floating, unknown)
        return
    for row in range(begin, end):
        keys = of.keys + row * of.n
        if of.order != NULL:
            order = of.order + row * of.n
        first = place = most = 0
        next_key = ranked_key(keys, order, of.bits, 0)
        while first < of.n:
            key = next_key
            if of.floating and key == unknown:
                place = first if most < 2 else place
                break
            last = first
            while last + 1 < of.n:
                next_key = ranked_key(keys, order, of.bits, last + 1)
                if next_key != key:
                    break
                last += 1
            if last + 1 - first > most:
                most, place = last + 1 - first, last
            first = last + 1
        of.y[row] = keys[place] & (<int64_t>1 << of.bits) - 1 if order == NULL else order[place]


def last_of_longest(Tensor keys, int bits, Tensor order or None, bint floating):
    """For each row of `order_keys` the position of the last element of the longest run.

    order: the permutations that sort the rows, or None for keys that have been sorted. Of runs of
    one length the first is taken. Shapes: (*, N), (*, N) -> (*, 1), for N > 0.
    """
    return places_of_rows(keys, bits, order, floating, False)


def most_frequent_places(Tensor keys, int bits, bint floating):
    """The same for rows of at most FREQUENT keys, in any order."""
    return places_of_rows(keys, bits, None, floating, True)


cdef Tensor places_of_rows(Tensor keys, int bits, Tensor order, bint floating, bint counted):
    """The last position of the most frequent element of each row. Raises: RuntimeError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor ranked = packed(keys), places, out
    cdef Ranked job
    cdef int d
    if ranked.type != INT64 or not ranked.ndim_ or not ranked.dims[ranked.ndim_ - 1] or (
            counted and ranked.dims[ranked.ndim_ - 1] > FREQUENT or
            order is not None and not are_places(order, ranked.numel_)):
        raise RuntimeError("mode: expects elements along the dim, and a place for each of them")
    for d in range(ranked.ndim_):
        dims[d] = ranked.dims[d]
    job.n, dims[ranked.ndim_ - 1] = dims[ranked.ndim_ - 1], 1
    out = new_tensor(INT64, ranked.ndim_, dims)
    job.keys, job.y = <const int64_t*>ranked.data_pointer, <int64_t*>out.data_pointer
    job.order = NULL
    if order is not None:
        places = packed(order)
        job.order = <const int64_t*>places.data_pointer
    job.bits, job.floating, job.counted = bits, floating, counted
    share(find_longest, &job, job.y, out.numel_, 1 + GRAIN // job.n, ranked.numel_ <= BRIEF)
    return out
