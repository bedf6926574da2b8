"""Reductions in a wider dtype, on blocks that are cast in the L1 cache: half types in float32, sums
of small integers in int64.

To cast the whole tensor first takes longer. For 262,144 elements it means 1 MB of float32 to write
and to read again, and twice the time. With two threads, the elements that the other one cast would
have to come from its cache: 65,536 bools, cast by two and summed by one, took three times as long.
"""

ctypedef void (*fold_fn)(void* tag, const char* x, const char* c, char* y, Py_ssize_t outer,
                         Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                         Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil
ctypedef void (*row_fn)(const float* x, float* y, Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*row_backward_fn)(const float* g, const float* out, float* y, Py_ssize_t rows,
                                 Py_ssize_t n) noexcept nogil

cdef enum:
    COLUMNS = 256            # of a block; schedule.pyx cuts at multiples of it
    WIDE = 1024              # columns that are read at once, as blocks side by side


cdef void fold_by_cast(const Cast* by, const char* x, const char* c, char* y, Py_ssize_t outer,
                       Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil:
    """y[o, j] := the reduction of x[o, :, j] by the loop, begin <= j < end

    c: NULL, or of the shape of y.
    """
    cdef float buffer[BLOCK]
    cdef Py_ssize_t block = BLOCK_BYTES // by.size, o, j, width, count
    if n * inner <= block and end - begin == inner:
        while outer > 0:
            count = min(outer, block // (n * inner))
            by.cast(x, <char*>buffer, count * n * inner)
            fold_block(by, <char*>buffer, c, y, count, n, inner)
            x += count * n * inner * by.from_size
            c = further(c, count * inner * by.size)
            y += count * inner * by.size
            outer -= count
        return
    for o in range(outer):
        j = begin
        while j < end:
            width = min(end - j, <Py_ssize_t>WIDE)
            if width > COLUMNS:
                width = width // COLUMNS * COLUMNS
            fold_columns(by, x + j * by.from_size, further(c, j * by.size), y + j * by.size, n,
                         inner, width, <char*>buffer)
            j += width
        x += n * inner * by.from_size
        c = further(c, inner * by.size)
        y += inner * by.size


cdef void fold_columns(const Cast* by, const char* x, const char* c, char* y, Py_ssize_t n,
                       Py_ssize_t stride, Py_ssize_t width, char* buffer) noexcept nogil:
    """Reduces `width` columns of rows that are `stride` elements apart: the two halves of the rows
    each, and then their results.

    width: a multiple of COLUMNS, or less. The blocks side by side are done before the rows below:
    one column of blocks after the other, memory took twice as long to read.
    """
    cdef Py_ssize_t block = min(width, <Py_ssize_t>COLUMNS), half, i, j = 0
    cdef Py_ssize_t rows = BLOCK_BYTES // by.size // block
    cdef double parts[2 * WIDE]
    if n <= rows:
        while j < width:
            if block == stride:
                by.cast(x, buffer, n * block)
            else:
                for i in range(n):
                    by.cast(x + (i * stride + j) * by.from_size, buffer + i * block * by.size,
                            block)
            fold_block(by, buffer, further(c, j * by.size), y + j * by.size, 1, n, block)
            j += block
        return
    half = (n // 2 + rows - 1) // rows * rows
    fold_columns(by, x, c, <char*>parts, half, stride, width, buffer)
    fold_columns(by, x + half * stride * by.from_size, c, <char*>parts + width * by.size, n - half,
                 stride, width, buffer)
    (<fold_fn>by.combine)(NULL, <char*>parts, NULL, y, 1, 2, width, 0, width, 2 * width, width)


cdef inline void fold_block(const Cast* by, const char* x, const char* c, char* y,
                            Py_ssize_t outer, Py_ssize_t n, Py_ssize_t inner) noexcept nogil:
    (<fold_fn>by.loop)(NULL, x, c, y, outer, n, inner, 0, inner, n * inner, inner)


cdef inline const char* further(const char* c, Py_ssize_t nbytes) noexcept nogil:
    return c + nbytes if c != NULL else NULL


cdef void rows_by_cast(void* loop, cast_loop cast, cast_loop back, const uint16_t* g,
                       const uint16_t* x, uint16_t* y, Py_ssize_t rows,
                       Py_ssize_t n) noexcept nogil:
    """y := loop(x) for rows of at most BLOCK elements; or, if g is given, loop(g, x), the gradient
    """
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
