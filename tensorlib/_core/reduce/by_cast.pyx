"""Reductions of half types by the loops of float32, on blocks that are cast in the L1 cache.

As a whole in float32, 262,144 elements are 1 MB to write and to read again, and take twice as long.
"""

ctypedef void (*fold_fn)(void* tag, const float* x, const float* c, float* y, Py_ssize_t outer,
                         Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                         Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil
ctypedef void (*row_fn)(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*row_backward_fn)(const float* g, const float* out, float* y, Py_ssize_t rows,
                                 Py_ssize_t n) noexcept nogil

cdef enum:
    COLUMNS = 256            # of a block; schedule.pyx cuts at multiples
    WIDE = 1024              # columns of blocks beside each other


cdef void fold_by_cast(void* loop, cast_loop cast, const uint16_t* x, float* y, Py_ssize_t outer,
                       Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil:
    """y[o, j] := x[o, 0, j] + x[o, 1, j] + ..., begin <= j < end, or what `loop` does"""
    cdef float buffer[BLOCK]
    cdef Py_ssize_t o, j, width, count
    if n * inner <= BLOCK and end - begin == inner:
        while outer > 0:
            count = min(outer, BLOCK // (n * inner))
            cast(<const char*>x, <char*>buffer, count * n * inner)
            (<fold_fn>loop)(NULL, buffer, NULL, y, count, n, inner, 0, inner, n * inner, inner)
            x += count * n * inner
            y += count * inner
            outer -= count
        return
    for o in range(outer):
        j = begin
        while j < end:
            width = min(end - j, <Py_ssize_t>WIDE)
            if width > COLUMNS:
                width = width // COLUMNS * COLUMNS
            fold_columns(loop, cast, x + j, y + j, n, inner, width, buffer)
            j += width
        x += n * inner
        y += inner


cdef void fold_columns(void* loop, cast_loop cast, const uint16_t* x, float* y, Py_ssize_t n,
                       Py_ssize_t stride, Py_ssize_t width, float* buffer) noexcept nogil:
    """`width` columns of rows that are `stride` elements apart: by blocks, and pairs of these

    They are a number of blocks wide, or less than one. All blocks of some rows come before those of
    the next: in columns of one block, memory was read in twice the time.
    """
    cdef Py_ssize_t block = min(width, <Py_ssize_t>COLUMNS), rows = BLOCK // block, half, i, j = 0
    cdef float parts[2 * WIDE]
    if n <= rows:
        while j < width:
            if block == stride:
                cast(<const char*>x, <char*>buffer, n * block)
            else:
                for i in range(n):
                    cast(<const char*>(x + i * stride + j), <char*>(buffer + i * block), block)
            (<fold_fn>loop)(NULL, buffer, NULL, y + j, 1, n, block, 0, block, n * block, block)
            j += block
        return
    half = (n // 2 + rows - 1) // rows * rows
    fold_columns(loop, cast, x, parts, half, stride, width, buffer)
    fold_columns(loop, cast, x + half * stride, parts + width, n - half, stride, width, buffer)
    (<fold_fn>loop)(NULL, parts, NULL, y, 1, 2, width, 0, width, 2 * width, width)


cdef void rows_by_cast(void* loop, cast_loop cast, cast_loop back, const uint16_t* g,
                       const uint16_t* x, uint16_t* y, Py_ssize_t rows,
                       Py_ssize_t n) noexcept nogil:
    """y := what `loop` makes of rows of x, at most BLOCK elements long; with `g` its gradient"""
    cdef float a[BLOCK]
    cdef float b[BLOCK]
    cdef Py_ssize_t count, size
    while rows > 0:
        count = min(rows, BLOCK // n)
        size = count * n
        cast(<const char*>x, <char*>a, size)
        if g != NULL:
            cast(<const char*>g, <char*>b, size)
            (<row_backward_fn>loop)(b, a, a, count, n)
            g += size
        else:
            (<row_fn>loop)(a, a, count, n)
        back(<const char*>a, <char*>y, size)
        x += size
        y += size
        rows -= count
