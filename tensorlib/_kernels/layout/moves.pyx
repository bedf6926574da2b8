"""Loops that move items whatever their dtype, by size: gather, reverse, scatter, transpose, where.

    gather     void run(const char* x, Py_ssize_t stride, T* y, Py_ssize_t n)
    reverse    void run(const T* x, Py_ssize_t down, T* y, Py_ssize_t n, Py_ssize_t rows)
    scatter    void run(const T* x, char* y, Py_ssize_t stride, Py_ssize_t n)
    transpose  void run(const T* x, Py_ssize_t x_stride, T* y, Py_ssize_t y_stride,
                        Py_ssize_t rows, Py_ssize_t columns)

The stride is in bytes and may be 0 or negative; the other side is contiguous. Rows that are
reversed begin `down` bytes apart. `where` is an
element-wise loop of three inputs (`tensorlib/_kernels/__init__.py`).
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "layout/spaced.h" nogil:
    size_t put_spaced(const void* x, char* y, size_t n, size_t size)
    void take_spaced_uint8_t(const uint8_t* x, uint8_t* y, size_t n)
    void take_spaced_uint16_t(const uint16_t* x, uint16_t* y, size_t n)
    void take_spaced_uint32_t(const uint32_t* x, uint32_t* y, size_t n)
    void take_spaced_uint64_t(const uint64_t* x, uint64_t* y, size_t n)

cdef extern from "layout/reversed.h" nogil:
    void reverse_rows_uint8_t(const uint8_t* x, Py_ssize_t down, uint8_t* y, Py_ssize_t n,
                              Py_ssize_t rows)
    void reverse_rows_uint16_t(const uint16_t* x, Py_ssize_t down, uint16_t* y, Py_ssize_t n,
                               Py_ssize_t rows)
    void reverse_rows_uint32_t(const uint32_t* x, Py_ssize_t down, uint32_t* y, Py_ssize_t n,
                               Py_ssize_t rows)
    void reverse_rows_uint64_t(const uint64_t* x, Py_ssize_t down, uint64_t* y, Py_ssize_t n,
                               Py_ssize_t rows)

cdef struct pair:  # complex128
    double real
    double imag

ctypedef fused item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    pair


cdef void gather_run(const char* x, Py_ssize_t stride, item* y, Py_ssize_t n) noexcept nogil:
    """y := the n items at x, x + stride, ..."""
    cdef Py_ssize_t i
    cdef item value
    if stride == sizeof(item):
        memcpy(y, x, n * sizeof(item))
    elif stride == 0 and n > 0:
        value = (<const item*>x)[0]
        for i in range(n):
            y[i] = value
    elif stride == -<Py_ssize_t>sizeof(item):
        if item is uint8_t:
            reverse_rows_uint8_t(<const item*>x, 0, y, n, 1)
        elif item is uint16_t:
            reverse_rows_uint16_t(<const item*>x, 0, y, n, 1)
        elif item is uint32_t:
            reverse_rows_uint32_t(<const item*>x, 0, y, n, 1)
        elif item is uint64_t:
            reverse_rows_uint64_t(<const item*>x, 0, y, n, 1)
        else:
            for i in range(n):
                y[i] = (<const item*>x)[-i]
    elif stride == 2 * sizeof(item):
        if item is uint8_t:
            take_spaced_uint8_t(<const item*>x, y, n)
        elif item is uint16_t:
            take_spaced_uint16_t(<const item*>x, y, n)
        elif item is uint32_t:
            take_spaced_uint32_t(<const item*>x, y, n)
        elif item is uint64_t:
            take_spaced_uint64_t(<const item*>x, y, n)
        else:
            for i in range(n):
                y[i] = (<const item*>x)[2 * i]
    else:
        for i in range(0, n - 3, 4):
            y[i] = (<const item*>x)[0]
            y[i + 1] = (<const item*>(x + stride))[0]
            y[i + 2] = (<const item*>(x + 2 * stride))[0]
            y[i + 3] = (<const item*>(x + 3 * stride))[0]
            x += 4 * stride
        for i in range(n & -4, n):
            y[i] = (<const item*>x)[0]
            x += stride


cdef void scatter_run(const item* x, char* y, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    """the n items at y, y + stride, ... := x; the last one stays for stride 0"""
    cdef Py_ssize_t i, done = 0
    if stride == sizeof(item):
        memcpy(y, x, n * sizeof(item))
    else:
        if stride == 2 * sizeof(item):
            done = put_spaced(x, y, n, sizeof(item))
        y += done * stride
        for i in range(done, n - 3, 4):
            (<item*>y)[0] = x[i]
            (<item*>(y + stride))[0] = x[i + 1]
            (<item*>(y + 2 * stride))[0] = x[i + 2]
            (<item*>(y + 3 * stride))[0] = x[i + 3]
            y += 4 * stride
        for i in range(done + ((n - done) & -4), n):
            (<item*>y)[0] = x[i]
            y += stride


cdef enum:
    BLOCK = 16               # a power of two
    HALF = 8                 # half of it
    AREA = 256               # BLOCK * BLOCK
    NARROW = 4               # columns that are interleaved at once


cdef void transpose_run(const item* x, Py_ssize_t x_stride, item* y, Py_ssize_t y_stride,
                        Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """y[i, j] := x[j, i], the strides between rows of x and y in bytes

    Blocks are transposed in a buffer, so that each cache line of x is read once and each of y is
    written once; with strides that are powers of two they would be evicted in between.
    """
    cdef item block[AREA]
    cdef item aside[AREA]
    cdef item* turned
    cdef Py_ssize_t i, j, k, l, height, width, down, across
    cdef const char* source
    cdef char* target
    if item is pair:
        transpose_pairs(x, x_stride, y, y_stride, rows, columns)
        return
    if y_stride == columns * <Py_ssize_t>sizeof(item) and 2 <= columns <= NARROW:
        if columns == 2:
            interleave(x, x_stride, y, rows, 2)
        elif columns == 3:
            interleave(x, x_stride, y, rows, 3)
        else:
            interleave(x, x_stride, y, rows, 4)
        return
    for j in range(0, columns, 16):          # BLOCK, as a literal: the sign must be known
        width = min(<Py_ssize_t>BLOCK, columns - j)
        across = BLOCK if width > HALF else HALF
        for i in range(0, rows, 16):
            height = min(<Py_ssize_t>BLOCK, rows - i)
            down = HALF if height <= HALF < width else BLOCK
            source = <const char*>(x + i) + j * x_stride
            target = <char*>(y + j) + i * y_stride
            if height == BLOCK:              # a memcpy of a constant size is no call
                for l in range(width):
                    memcpy(block + l * BLOCK, source + l * x_stride, BLOCK * sizeof(item))
            elif height == down == HALF:
                for l in range(width):
                    memcpy(block + l * HALF, source + l * x_stride, HALF * sizeof(item))
            else:
                for l in range(width):
                    memcpy(block + l * down, source + l * x_stride, height * sizeof(item))
            turned = turn(block, aside, down, across)
            if width == BLOCK:
                for k in range(height):
                    memcpy(target + k * y_stride, turned + k * BLOCK, BLOCK * sizeof(item))
            elif width == HALF:
                for k in range(height):
                    memcpy(target + k * y_stride, turned + k * HALF, HALF * sizeof(item))
            else:
                for k in range(height):
                    memcpy(target + k * y_stride, turned + k * across, width * sizeof(item))


cdef void transpose_pairs(const pair* x, Py_ssize_t x_stride, pair* y, Py_ssize_t y_stride,
                          Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """The same for items as long as a register, which need no shuffles: one by one, in blocks"""
    cdef Py_ssize_t i, j, k, l
    for j in range(0, columns, 8):           # HALF, as a literal
        for i in range(0, rows, 8):
            for k in range(i, min(i + HALF, rows)):
                for l in range(j, min(j + HALF, columns)):
                    (<pair*>(<char*>y + k * y_stride))[l] = (
                        <const pair*>(<const char*>x + l * x_stride))[k]


cdef inline void interleave(const item* x, Py_ssize_t x_stride, item* y, Py_ssize_t rows,
                            Py_ssize_t columns) noexcept nogil:
    """The same for few columns in rows without gaps: y[i, j] := x[j, i]"""
    cdef Py_ssize_t i, j
    for i in range(rows):
        for j in range(columns):
            y[i * columns + j] = (<const item*>(<const char*>x + j * x_stride))[i]


cdef inline item* turn(item* block, item* aside, Py_ssize_t down,
                       Py_ssize_t across) noexcept nogil:
    """The transpose of `across` rows of `down` items, BLOCK or HALF each, in one of the buffers.

    To take elements of the first and of the second half in turn moves the bits of their places
    round by one: what was the number of the row is that of the column once all its bits have moved.
    """
    if down == across:
        shuffle(block, aside, AREA // 2)
        shuffle(aside, block, AREA // 2)
        shuffle(block, aside, AREA // 2)
        shuffle(aside, block, AREA // 2)
        return block
    shuffle(block, aside, AREA // 4)
    shuffle(aside, block, AREA // 4)
    shuffle(block, aside, AREA // 4)
    if across == HALF:
        return aside
    shuffle(aside, block, AREA // 4)
    return block


cdef inline void shuffle(const item* x, item* y, int half) noexcept nogil:
    cdef int i
    for i in range(half):
        y[2 * i] = x[i]
        y[2 * i + 1] = x[half + i]


cdef void where_run(const uint8_t* condition, const item* a, const item* b, item* y,
                    Py_ssize_t n) noexcept nogil:
    """y := a where condition, else b"""
    cdef Py_ssize_t i
    cdef item left, right
    for i in range(n):
        left = a[i]  # both are read first: a choice between two loads is not vectorised
        right = b[i]
        if item is pair:
            y[i] = left if condition[i] else right
        else:        # by bits: a branch is hard to predict where few are left beside the vectors
            y[i] = right ^ ((left ^ right) & <item>(0 - <uint64_t>(condition[i] != 0)))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    sizes = {
        "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2,
        "int32": 4, "float32": 4, "int64": 8, "float64": 8, "complex64": 8, "complex128": 16,
        "uint16": 2, "uint32": 4, "uint64": 8,
    }
    gathers = {
        1: <size_t>&gather_run[uint8_t], 2: <size_t>&gather_run[uint16_t],
        4: <size_t>&gather_run[uint32_t], 8: <size_t>&gather_run[uint64_t],
        16: <size_t>&gather_run[pair],
    }
    reverses = {
        1: <size_t>&reverse_rows_uint8_t, 2: <size_t>&reverse_rows_uint16_t,
        4: <size_t>&reverse_rows_uint32_t, 8: <size_t>&reverse_rows_uint64_t,
    }
    scatters = {
        1: <size_t>&scatter_run[uint8_t], 2: <size_t>&scatter_run[uint16_t],
        4: <size_t>&scatter_run[uint32_t], 8: <size_t>&scatter_run[uint64_t],
        16: <size_t>&scatter_run[pair],
    }
    transposes = {
        1: <size_t>&transpose_run[uint8_t], 2: <size_t>&transpose_run[uint16_t],
        4: <size_t>&transpose_run[uint32_t], 8: <size_t>&transpose_run[uint64_t],
        16: <size_t>&transpose_run[pair],
    }
    wheres = {
        1: <size_t>&where_run[uint8_t], 2: <size_t>&where_run[uint16_t],
        4: <size_t>&where_run[uint32_t], 8: <size_t>&where_run[uint64_t],
        16: <size_t>&where_run[pair],
    }
    return [row for dtype, size in sizes.items() for row in (
        ("gather", (dtype,), dtype, gathers[size]),
        ("scatter", (dtype,), dtype, scatters[size]),
        ("transpose", (dtype,), dtype, transposes[size]),
        ("where", ("bool", dtype, dtype), dtype, wheres[size]),
    )] + [("reverse", (dtype,), dtype, reverses[size]) for dtype, size in sizes.items()
          if size in reverses]
