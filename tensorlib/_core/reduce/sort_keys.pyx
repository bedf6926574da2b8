"""Sort keys: integers that are ordered as the elements of a tensor.

Sorting integers is faster than finding the permutation that sorts them. So where both fit, an
element and its position are packed into one int64, the element in the upper bits. Once these are
sorted, their lower bits are the permutation, and equal elements are in their order.

NaN is greater than all numbers, and -0.0 is equal to 0.0.
"""

from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, FLOAT_KIND, INT16, INT32, INT64, INT8, ITEMSIZE,
    KIND, UINT8,
)
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.radix_sort cimport LONG_ROW, place_by_digits
from tensorlib._core.reduce.unsigned cimport signed_order
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed

cdef enum:
    HALF = 32                # bits of the position in a key, for elements of at most 32 bits
    BRIEF = 1024             # up to so many keys are made or sorted with the GIL: at most 2 us
    GRAIN = 4096             # keys that a thread sorts at once

ctypedef void (*rank_fn)(const int64_t* keys, int64_t* places, Py_ssize_t rows,
                         Py_ssize_t n) noexcept nogil
ctypedef void (*least_fn)(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                          Py_ssize_t k) noexcept nogil
ctypedef Py_ssize_t (*place_fn)(const int64_t* keys, Py_ssize_t n, Py_ssize_t k) noexcept nogil
cdef rank_fn rank_rows = <rank_fn>find_function("ranks", "order", "int64")
cdef least_fn least_of_rows = <least_fn>find_function("ranks", "least", "int64")
cdef place_fn place_of_least = <place_fn>find_function("ranks", "place of least", "int64")

ctypedef fused short_number:
    uint8_t
    int8_t
    int16_t
    int32_t
    float


cdef inline int64_t short_key(short_number x) noexcept nogil:
    """An integer of 32 bits that is ordered as `x` is among the numbers of its dtype."""
    cdef int32_t bits
    cdef float value
    if short_number is float:
        if x != x:
            return INT32_MAX
        value = x + <float>0                 # -0.0 to 0.0
        memcpy(&bits, &value, 4)
        return bits ^ ((bits >> 31) & INT32_MAX)
    else:
        return x


cdef inline int64_t double_key(double x) noexcept nogil:
    """The same for float64, of 64 bits."""
    cdef int64_t bits
    if x != x:
        return INT64_MAX
    x = x + 0.0
    memcpy(&bits, &x, 8)
    return bits ^ ((bits >> 63) & INT64_MAX)


cdef void pack_short(const short_number* x, int64_t* y, Py_ssize_t rows, Py_ssize_t n,
                     bint descending) noexcept nogil:
    """y := keys, with positions in the row in the lower bits"""
    cdef Py_ssize_t row, i
    cdef int64_t turned = -1 if descending else 0
    for row in range(rows):
        for i in range(n):
            y[i] = <int64_t>(<uint64_t>(short_key(x[i]) ^ turned) << HALF) | i
        x += n
        y += n


cdef void pack_whole(const int64_t* x, int64_t* y, Py_ssize_t rows, Py_ssize_t n, int64_t low,
                     int64_t high, int bits, bint descending) noexcept nogil:
    """y := how far the elements are above the least one (descending: below the greatest), with
    positions in the lower bits"""
    cdef Py_ssize_t row, i
    for row in range(rows):
        if descending:
            for i in range(n):
                y[i] = (<uint64_t>high - <uint64_t>x[i]) << bits | <uint64_t>i
        else:
            for i in range(n):
                y[i] = (<uint64_t>x[i] - <uint64_t>low) << bits | <uint64_t>i
        x += n
        y += n


cdef void bounds(const int64_t* x, Py_ssize_t n, int64_t* low, int64_t* high) noexcept nogil:
    cdef int64_t least = x[0], most = x[0]
    cdef Py_ssize_t i
    for i in range(n):
        least = min(least, x[i])
        most = max(most, x[i])
    low[0] = least
    high[0] = most


cdef void long_keys(const double* x, int64_t* y, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = double_key(x[i])


cdef void turn(const int64_t* x, int64_t* y, Py_ssize_t n, int64_t turned) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] ^ turned


cdef int bits_of(Py_ssize_t n) noexcept nogil:
    """The number of bits that positions below `n` take."""
    cdef int bits = 1
    while n - 1 >> bits:
        bits += 1
    return bits


def order_keys(Tensor input, bint descending):
    """int64 keys ordered as the elements, and how many of their lower bits are the positions.

    Positions count along the last dim, which there must be. 0 bits: they do not fit, and the keys
    have none.
    """
    cdef int dtype = (FLOAT32 if input.type in (FLOAT16, BFLOAT16) else
                      UINT8 if input.type == BOOL else input.type)     # 0 and 1 alone
    cdef Tensor x = packed(signed_order(cast(input, dtype)))
    cdef Tensor out = new_tensor(INT64, x.ndim_, x.dims)
    cdef Keys keys
    if x.numel_ == 0:
        return out, HALF
    keys.n, keys.total, keys.descending = x.dims[x.ndim_ - 1], x.numel_, descending
    keys.rows = keys.total // keys.n
    keys.bits = HALF if ITEMSIZE[x.type] <= 4 else 0
    if keys.bits and keys.n > <Py_ssize_t>1 << HALF:
        x, keys.bits = cast(x, FLOAT64), 0   # exact for all dtypes of 32 bits
    keys.dtype, keys.x, keys.y = x.type, x.data_pointer, <int64_t*>out.data_pointer
    share(make_keys, &keys, keys.y, keys.rows, keys.rows if keys.dtype == INT64
          else 1 + GRAIN // keys.n, keys.total <= BRIEF)
    return out, keys.bits


cdef struct Keys:
    const char* x
    int64_t* y
    Py_ssize_t rows, n, total
    int dtype, bits
    bint descending


cdef void make_keys(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Makes the keys of the rows [begin, end). For int64 these are all rows, since the range of all
    elements says how many bits are left for positions."""
    cdef Keys* of = <Keys*>context
    cdef Py_ssize_t rows = end - begin, n = of.n
    cdef const char* data = of.x + begin * n * ITEMSIZE[of.dtype]
    cdef int64_t* y = of.y + begin * n
    cdef int64_t low, high
    if of.dtype == UINT8:
        pack_short(<const uint8_t*>data, y, rows, n, of.descending)
    elif of.dtype == INT8:
        pack_short(<const int8_t*>data, y, rows, n, of.descending)
    elif of.dtype == INT16:
        pack_short(<const int16_t*>data, y, rows, n, of.descending)
    elif of.dtype == INT32:
        pack_short(<const int32_t*>data, y, rows, n, of.descending)
    elif of.dtype == FLOAT32:
        pack_short(<const float*>data, y, rows, n, of.descending)
    elif of.dtype == INT64:
        bounds(<const int64_t*>data, of.total, &low, &high)
        of.bits = bits_of(n)
        if (<uint64_t>high - <uint64_t>low) >> (63 - of.bits):
            of.bits = 0
            turn(<const int64_t*>data, y, of.total, -1 if of.descending else 0)
        else:
            pack_whole(<const int64_t*>data, y, rows, n, low, high, of.bits, of.descending)
    else:
        long_keys(<const double*>data, y, rows * n)
        if of.descending:
            turn(y, y, rows * n, -1)


# ---- places in rows ------------------------------------------------------------------------------

cdef struct Rows:
    const int64_t* keys
    int64_t* y
    Py_ssize_t n, k                  # elements of a row; how many are wanted, or which one
    int64_t unknown                  # the key of NaN, without the bits of positions
    int bits
    bint floating, failed
    Wanted wanted


cdef void find_places(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Rows* of = <Rows*>context
    cdef Py_ssize_t row, n = of.n, known, i, k = of.k
    cdef const int64_t* keys = of.keys + begin * n
    cdef uint64_t* aside = NULL
    if of.wanted == ALL:
        rank_rows(keys, of.y + begin * n, end - begin, n)
        return
    if of.wanted == FIRST:
        least_of_rows(keys, of.y + begin * k, end - begin, n, k)
        if k > RANKED and of.bits:           # the caller sorts these keys
            for row in range(begin, end):
                for i in range(row * k, row * k + k):
                    of.y[i] = of.keys[row * n + of.y[i]]
        return
    if n >= LONG_ROW:
        aside = <uint64_t*>take_scratch(n * sizeof(uint64_t))
        if aside == NULL:
            of.failed = True
            return
    for row in range(begin, end):
        if of.wanted != ONE:
            known = n
            for i in range(n if of.floating else 0):
                known -= keys[i] >> of.bits == of.unknown
            k = (max(known, <Py_ssize_t>1) + 1) // 2
            if known < n and of.wanted == MEDIAN:
                k = known + 1                # the first NaN
        of.y[row] = place_of_least(keys, n, k) if aside == NULL else place_by_digits(
            <const uint64_t*>keys, aside, n, k, of.bits)
        keys += n
    give_scratch(<char*>aside, n * sizeof(uint64_t))


cdef tuple places_of(Tensor input, bint descending, Wanted wanted, Py_ssize_t k):
    """The wanted places in each row, which must not be empty, and how many bits of the keys are
    positions. Raises: RuntimeError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Rows job
    cdef Tensor keys, out
    cdef int d
    if not input.ndim_:
        raise RuntimeError("sort: expects rows")
    keys, job.bits = order_keys(input, descending)
    for d in range(keys.ndim_):
        dims[d] = keys.dims[d]
    job.n, job.k = dims[keys.ndim_ - 1], k
    if not 0 < k <= job.n or wanted == ALL and job.n > RANKED:
        raise RuntimeError("sort: expects rows, and no more positions than they have")
    dims[keys.ndim_ - 1] = job.n if wanted == ALL else k if wanted == FIRST else 1
    out = new_tensor(INT64, keys.ndim_, dims)
    if out.numel_ == 0:
        return out, job.bits
    job.keys, job.y = <const int64_t*>keys.data_pointer, <int64_t*>out.data_pointer
    job.unknown, job.wanted = INT32_MAX if job.bits else INT64_MAX, wanted
    job.floating, job.failed = KIND[input.type] == FLOAT_KIND, False
    share(find_places, &job, job.y, keys.numel_ // job.n, 1 + GRAIN // job.n, keys.numel_ <= BRIEF)
    if job.failed:
        raise MemoryError("no memory to look for the k-th element in")
    return out, job.bits


def short_places(Tensor input, bint descending):
    """The int64 positions that sort each row, of 1 to RANKED elements.

    Equal elements stay in their order. Raises: RuntimeError.
    """
    return places_of(input, descending, ALL, 1)[0]


def least_places(Tensor input, bint descending, Py_ssize_t k):
    """The k > 0 least elements of each row, and how many bits of the keys are positions.

    k <= RANKED: their int64 positions, in the order of the elements. Greater k: their keys in any
    order, or, with 0 bits, their positions in ascending order. Of equal elements the first ones
    are taken, in their order. Raises: RuntimeError.
    """
    return places_of(input, descending, FIRST, k)


def kth_places(Tensor input, Py_ssize_t k):
    """The int64 position of the k-th least element of each row, k from 1 on: one column.
    Raises: RuntimeError."""
    return places_of(input, False, ONE, k)[0]


def median_places(Tensor input, bint skip_nan):
    """The int64 position of the median of each row: one column. In a row with NaN it is that of the
    first NaN, unless these are skipped. Raises: RuntimeError."""
    return places_of(input, False, MEDIAN_OF_KNOWN if skip_nan else MEDIAN, 1)[0]
