"""Extremes of memory seen as (outer, n, inner) to (outer, inner), over n.

They are called as the sums of reduce.pyx. The kinds max, min, any and all have the same signature;
argmax and argmin, which write the extreme value as well as its index, first on ties, have

    void index(void* tag, const T* x, T* y, int64_t* at, Py_ssize_t outer, Py_ssize_t n,
               Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t slice_step,
               Py_ssize_t step)

NaN counts as the greatest and as the least value.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t

from tensorlib._kernels.rows.extreme_folds cimport (
    LANE_BYTES, TILE, Max, Min, element, fold_columns, fold_short_rows)
from tensorlib._kernels.types.half_types cimport brain, brain_value, half, half_value, short_float

from tensorlib._kernels import HALVES, rows_for

ctypedef fused Extreme:
    Max
    Min

cdef enum:
    SEARCH = 4096  # elements of the block in which the index of an extreme is searched
    TOGETHER = 16  # rows of at most SEARCH elements that are reduced before they are searched
    SHORT = 16     # elements: for shorter rows a lane each is faster than a search


cdef extern from "rows/row_extremes.h" nogil:
    # By the type of x: (largest, x, y, rows, n, step) and (value, x, n)
    void row_extremes(int largest, ...)
    Py_ssize_t row_find(...)
    const Py_ssize_t REGISTER


cdef inline bint beats(Extreme* op, element a, element b) noexcept nogil:
    if Extreme is Max:
        return (a > b) | ((a != a) & (b == b))
    else:
        return (a < b) | ((a != a) & (b == b))


cdef inline void extremes(Extreme* op, const element* x, element* y, Py_ssize_t outer,
                          Py_ssize_t n, Py_ssize_t slice_step) noexcept nogil:
    """The extremes of rows: by a loop of its own if they fill a register"""
    if n * <Py_ssize_t>sizeof(element) >= REGISTER:
        row_extremes(Extreme is Max, x, y, outer, n, slice_step)
    else:
        fold_short_rows(op, x, <const element*>NULL, y, outer, n, slice_step)


cdef inline Py_ssize_t find(const element* x, element value, Py_ssize_t n) noexcept nogil:
    """The first index of a value that occurs; NaN is equal to NaN."""
    return row_find(value, x, n)


cdef void fold_extremes(Extreme* op, const element* x, const element* c, element* y,
                        Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                        Py_ssize_t end, Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold of extremes, with the loop for rows"""
    if inner == 1:
        extremes(op, x, y, outer, n, slice_step)
    else:
        fold_columns(op, x, c, y, outer, n, inner, begin, end, slice_step, step)


cdef inline int16_t turned(int16_t bits) noexcept nogil:
    """An integer ordered as the half types, with -0.0 before 0.0; and back"""
    return bits ^ ((bits >> 15) & 0x7FFF)


cdef inline int16_t room_for_nan(Extreme* op, short_float* tag) noexcept nogil:
    """By how much less these integers wrap around so that NaN of both signs is the extreme"""
    cdef int16_t room = 1023 if short_float is half else 127
    return room if Extreme is Max else -room


cdef inline void integers(const int16_t* x, int16_t* y, Py_ssize_t n, int16_t room) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = turned(x[i]) - room


cdef inline void as_floats(const int16_t* x, float* y, Py_ssize_t n, int16_t room,
                           short_float* tag) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        if short_float is half:
            y[i] = half_value(<uint16_t>turned(x[i] + room))
        else:
            y[i] = brain_value(<uint16_t>turned(x[i] + room))


cdef void half_extremes(Extreme* op, const short_float* x, const void* c, float* y,
                        Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                        Py_ssize_t end, Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """The fold of extremes of half types, as of integers: rows of up to SEARCH by blocks in the L1
    cache, longer ones and columns in pieces of TILE."""
    cdef int16_t keys[SEARCH]
    cdef int16_t found[TILE]
    cdef int16_t room = room_for_nan(op, <short_float*>NULL), key
    cdef const int16_t* bits = <const int16_t*>x
    cdef Py_ssize_t o = 0, i, j, first, size
    while inner == 1 and n <= SEARCH and o < outer:
        size = min(outer - o, min(<Py_ssize_t>TILE, SEARCH // n))
        for i in range(size):
            integers(bits + (o + i) * slice_step, keys + i * n, n, room)
        extremes(op, <const int16_t*>keys, <int16_t*>found, size, n, n)
        as_floats(found, y + o, size, room, <short_float*>NULL)
        o += size
    for o in range(o, outer):
        first = begin
        while first < end:
            size = min(end - first, <Py_ssize_t>TILE)
            if inner == 1:
                for i in range(0, n, 4096):      # SEARCH, as a literal: the sign must be known
                    integers(bits + i, keys, min(n - i, <Py_ssize_t>SEARCH), room)
                    extremes(op, <const int16_t*>keys, &key, 1, min(n - i, <Py_ssize_t>SEARCH),
                             SEARCH)
                    found[0] = key if i == 0 or beats(op, key, found[0]) else found[0]
            else:
                integers(bits + first, found, size, room)
                for i in range(1, n):
                    for j in range(size):
                        key = turned(bits[i * step + first + j]) - room
                        found[j] = key if beats(op, key, found[j]) else found[j]
            as_floats(found, y + first, size, room, <short_float*>NULL)
            first += size
        bits += slice_step
        y += inner


cdef inline void index_rows(Extreme* op, const element* x, element* y, int64_t* at,
                            Py_ssize_t outer, Py_ssize_t n,
                            Py_ssize_t slice_step) noexcept nogil:
    """Rows of at most SEARCH elements."""
    cdef Py_ssize_t r, rows
    while outer > 0:
        rows = min(outer, <Py_ssize_t>TOGETHER)
        extremes(op, x, y, rows, n, slice_step)
        for r in range(rows):
            at[r] = find(x + r * slice_step, y[r], n)
        x += rows * slice_step
        y += rows
        at += rows
        outer -= rows


cdef inline void index_row(Extreme* op, const element* x, element* y, int64_t* at,
                           Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t best_begin = 0
    cdef Py_ssize_t size
    cdef element best = x[0]
    cdef element value
    while begin < n:
        size = min(<Py_ssize_t>SEARCH, n - begin)
        extremes(op, x + begin, &value, 1, size, size)
        if beats(op, value, best):
            best = value
            best_begin = begin
        begin += size
    y[0] = best
    at[0] = best_begin + find(x + best_begin, best, min(<Py_ssize_t>SEARCH, n - best_begin))


cdef inline void index_short_rows(Extreme* op, const element* x, element* y, int64_t* at,
                                  Py_ssize_t outer, Py_ssize_t n,
                                  Py_ssize_t slice_step) noexcept nogil:
    """With one lane for each row, as the end of a search would be mispredicted."""
    cdef Py_ssize_t i, l, rows
    cdef bint better
    while outer > 0:
        rows = min(outer, <Py_ssize_t>LANE_BYTES)
        for l in range(rows):
            y[l] = x[l * slice_step]
            at[l] = 0
        for i in range(1, n):
            for l in range(rows):
                better = beats(op, x[l * slice_step + i], y[l])
                y[l] = x[l * slice_step + i] if better else y[l]
                at[l] = i if better else at[l]
        x += rows * slice_step
        y += rows
        at += rows
        outer -= rows


cdef inline void index_columns(Extreme* op, const element* x, element* y, int64_t* at,
                               Py_ssize_t n, Py_ssize_t step, Py_ssize_t begin,
                               Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i, j, tile_end
    cdef bint better
    while begin < end:
        tile_end = min(begin + TILE, end)
        for j in range(begin, tile_end):
            y[j] = x[j]
            at[j] = 0
        for i in range(1, n):
            for j in range(begin, tile_end):
                better = beats(op, x[i * step + j], y[j])
                y[j] = x[i * step + j] if better else y[j]
                at[j] = i if better else at[j]
        begin = tile_end


cdef void index(Extreme* op, const element* x, element* y, int64_t* at, Py_ssize_t outer,
                Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """y[o, j], at[o, j] := the extreme of x[o, :, j] and its first index"""
    cdef Py_ssize_t o
    if inner == 1 and n < SHORT:
        index_short_rows(op, x, y, at, outer, n, slice_step)
        return
    if inner == 1 and n <= SEARCH:
        index_rows(op, x, y, at, outer, n, slice_step)
        return
    for o in range(outer):
        if inner == 1:
            index_row(op, x, y, at, n)
        else:
            index_columns(op, x, y, at, n, step, begin, end)
        x += slice_step
        y += inner
        at += inner


cdef list rows_of(Extreme* op, str name):
    """The rows of max or min, and of its index"""
    numbers = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
    return rows_for(numbers, [
        (name, <size_t>&fold_extremes[Extreme, uint8_t], <size_t>&fold_extremes[Extreme, uint8_t],
         <size_t>&fold_extremes[Extreme, int8_t], <size_t>&fold_extremes[Extreme, int16_t],
         <size_t>&fold_extremes[Extreme, int32_t], <size_t>&fold_extremes[Extreme, int64_t],
         <size_t>&fold_extremes[Extreme, float], <size_t>&fold_extremes[Extreme, double]),
    ]) + rows_for(HALVES, [
        (name, <size_t>&half_extremes[Extreme, half], <size_t>&half_extremes[Extreme, brain]),
    ], output="float32") + rows_for(numbers, [
        ("arg" + name, <size_t>&index[Extreme, uint8_t], <size_t>&index[Extreme, uint8_t],
         <size_t>&index[Extreme, int8_t], <size_t>&index[Extreme, int16_t],
         <size_t>&index[Extreme, int32_t], <size_t>&index[Extreme, int64_t],
         <size_t>&index[Extreme, float], <size_t>&index[Extreme, double]),
    ], output="int64")


def table():
    return [("any", ("bool",), "bool", <size_t>&fold_extremes[Max, uint8_t]),
            ("all", ("bool",), "bool", <size_t>&fold_extremes[Min, uint8_t]),
            *rows_of[Max](NULL, "max"), *rows_of[Min](NULL, "min")]
