"""The library's own matrix products, by packed panels (`_kernels/panel_product.h`).

They are used for products so small that a BLAS is not worth its call, and for all sizes where the
BLAS has slower kernels. On a Zen 5 OpenBLAS and MKL run their AVX2 kernels, at half of what its
registers of 64 bytes allow: 256 x 256 @ 256 x 256 of float32 takes 138 us here and 276 by either.
On a Zen 3, with registers of 32 bytes, OpenBLAS reaches 82 % of the peak in 512 x 128 @ 128 x 512,
MKL 75 % and this module 91 %.

An element is a sum of partial sums, each a chain over at most DEPTH products. So its bits depend on
k alone, and not on other rows and columns, layouts or threads.
"""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport N_DTYPES
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times

cdef enum:
    # Below this many products nothing is shared.
    SERIAL_BELOW = 8192
    CHUNK = 1 << 18         # products in one chunk of a batch: some 2 to 5 us
    CALL = 1 << 11          # products that take as long as a call for one matrix of a batch
    # Matrices b up to this size are packed on the stack, and multiplied by panels whatever the BLAS
    # is: 16 x 8 @ 8 x 16 of float32 takes 0.2 us, and by OpenBLAS 0.7.
    ON_STACK = 1 << 15
    LINE = 64
    COLUMNS = 32            # of the widest panels
    LEAST_ROWS = 4          # with fewer, packing takes longer than it saves
    LEAST_BY_VECTOR = 128   # elements of a from which on the BLAS multiplies it by a vector
    LEAST_WIDTH = 40        # bytes of a row of b; with fewer, most of a panel is zeros
    CHUNK_ROWS = 252        # rows of a that are multiplied by all panels before the next ones
    DEPTH = 256             # rows of a panel that fit L1 together with rows of a
    PART = 1 << 19          # bytes of panels that are packed at once
    # Copied or transposed rows of a are not a power of two apart, or they would compete for few
    # cache sets: 1024 x 1024 @ 1024 x 1024 without a copy took 1.2 times as long.
    TURNED_ROW = DEPTH + 16
    FEW_LINES = 1024        # bytes between rows, or a multiple, for which that holds
    MOVED_LEAST = 256       # columns of b from which on copying them pays,
    SCRATCH_BYTES = PART + CHUNK_ROWS * TURNED_ROW * 8
    TURNED_LEAST = 48       # and transposing them
    # From so many rows on, a is packed instead of a transposed b with more columns, as vectors are
    # nearly full then: 32 x 784 @ 784 x 512 of float32 takes 270 us, and 290 otherwise; 16 x 1024 @
    # 1024 x 1024 takes 340 and 464.
    SWAPPED_LEAST = 12

# How products of any size are computed: by the BLAS, by panels, or by panels where the BLAS packs
# slowly. OpenBLAS for AVX-512 multiplies 8 x 128 @ 128 x 512 of float32 in 11 us, panels in 18; but
# with a transposed b, such as the weight of a layer, in 55 and 21, and 32 x 784 @ 784 x 512 in 516
# and 291. With few rows of a, panels do not pack b: 16 x 512 @ 512 x 512 takes 52 us, and 100 by
# OpenBLAS, which does.
cdef enum Way:
    BLAS, PANELS, MOSTLY_PANELS

cdef enum:
    # MOSTLY_PANELS takes a transposed b by panels if a has so many rows, or the product has more
    # than so many multiplications,
    FLAT = 8
    MOST_FLAT = 1 << 21
    # and another b if a product has so many rows and multiplications.
    TALL = 64
    MANY = 1 << 19
    PACKED = 96             # rows from which on such a b is packed
    FEW = 6                 # rows at least to read it unpacked, as memory is the limit with fewer
    BLAS_SMALL = 1000000    # multiplications up to which OpenBLAS does not pack either

ctypedef void (*pack_fn)(const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p, Py_ssize_t k,
                         Py_ssize_t n) noexcept nogil
ctypedef void (*panel_fn)(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                          Py_ssize_t p_row, Py_ssize_t panel, char* y, Py_ssize_t y_row,
                          Py_ssize_t m, Py_ssize_t k, Py_ssize_t n, const char* base,
                          Py_ssize_t base_row) noexcept nogil
ctypedef void (*turn_fn)(const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row, Py_ssize_t m,
                         Py_ssize_t n) noexcept nogil

ctypedef void (*windows_fn)(const char* a, const Py_ssize_t* places, const Py_ssize_t* taps,
                            const char* p, Py_ssize_t first, Py_ssize_t k, Py_ssize_t all, char* y,
                            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n) noexcept nogil

ctypedef void (*runs_fn)(const char* x, const Py_ssize_t* taps, const char* w, char* y,
                         Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil

ctypedef struct Panels:
    const MatmulArgs* args
    const char* row         # added to each row of y, or NULL
    int dtype
    Py_ssize_t chunks       # into which the rows of each matrix are cut

cdef pack_fn packs[N_DTYPES]           # NULL for dtypes without panels
cdef panel_fn panels[N_DTYPES]
cdef turn_fn turns[N_DTYPES]
cdef windows_fn windows[N_DTYPES]
cdef runs_fn runs[N_DTYPES]
cdef Py_ssize_t lanes[N_DTYPES]        # elements in a vector
find_by_dtype("panels", "pack", <void**>packs)
find_by_dtype("panels", "product", <void**>panels)
find_by_dtype("panels", "turn", <void**>turns)
find_by_dtype("panels", "windows", <void**>windows)
find_by_dtype("panels", "runs", <void**>runs)
find_by_dtype("panels", "lanes", <void**>lanes)
cdef Way way = BLAS


cdef inline Py_ssize_t parts_of(Py_ssize_t side, Py_ssize_t part) noexcept nogil:
    return (side + part - 1) // part


cdef Py_ssize_t panels_size(Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """The number of elements of a packed matrix (k, n)."""
    return times(k, parts_of(n, COLUMNS) * COLUMNS)


cdef void pack_panels(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p,
                      Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """p := b, float32 or float64, packed into panels"""
    packs[dtype](b, b_row, b_col, p, k, n)


cdef inline void multiply(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n, const char* base, Py_ssize_t base_row) noexcept nogil:
    """y (m, n) := base + a (m, k) @ the matrix packed in p"""
    cdef Py_ssize_t width = 2 * lanes[dtype]
    panels[dtype](a, a_row, a_col, p, width, k * width, y, y_row, m, k, n, base, base_row)


cdef void multiply_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n) noexcept nogil:
    """y (m, n) := a (m, k) @ the matrix packed in p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, n, NULL, 0)


cdef void add_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                     char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                     Py_ssize_t n) noexcept nogil:
    """y (m, n) += a (m, k) @ the matrix packed in p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, n, y, y_row)


cdef void multiply_windows(int dtype, const char* a, const Py_ssize_t* places,
                           const Py_ssize_t* taps, const char* p, char* y, Py_ssize_t m,
                           Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """y (m, n) := the matrix of elements a[places[i] + taps[l]] @ the matrix (k, n) packed in p

    BFLOAT16: the elements are pairs, and y is float32.
    """
    cdef Py_ssize_t l = 0, depth = parts_of(k, parts_of(k, DEPTH))
    while l < k:
        windows[dtype](a, places, taps, p, l, min(depth, k - l), k, y, n, m, n)
        l += depth


cdef Py_ssize_t shortest_run(int dtype) noexcept nogil:
    """The least length of the runs that `multiply_runs` takes."""
    return lanes[dtype]


cdef void multiply_runs(int dtype, const char* x, const Py_ssize_t* taps, const char* w, char* y,
                        Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """y (m, n) := w (m, k) @ the matrix whose row l is the n elements from x + taps[l] on"""
    runs[dtype](x, taps, w, y, y_row, m, k, n)


cdef void turn(int dtype, const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row, Py_ssize_t m,
               Py_ssize_t n) noexcept nogil:
    """y (n, m) := x.T, for x (m, n) with contiguous rows"""
    turns[dtype](x, x_row, y, y_row, m, n)


# ---- a b that fits on the stack ------------------------------------------------------------------

cdef bint fits_panels(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether b is a small matrix, or a vector with so few elements that a nearly empty panel is
    faster than a call of the BLAS."""
    return panels[dtype] != NULL and args.m >= LEAST_ROWS and (
        args.n > 1 or times(args.m, args.k) <= LEAST_BY_VECTOR) and (
        times(panels_size(args.k, args.n), args.y_col) <= ON_STACK)


cdef bint adds_row(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether panels compute a product in one part, and so can add a row in registers. The bits are
    the same as if it were added afterwards."""
    return args.k > 0 and (fits_panels(dtype, args) or args.k <= DEPTH and (
        panels_are_wide(dtype, args)))


cdef void run_by_panels(int dtype, const MatmulArgs* args, const char* row) noexcept nogil:
    """y := a @ b + row, for matrices b that `fits_panels`; row may be NULL"""
    cdef Panels work
    cdef Py_ssize_t each = times(args.m * args.n, args.k)
    work.args, work.dtype, work.chunks = args, dtype, parts_of(args.m, CHUNK_ROWS)
    work.row = row
    if times(each, args.batch) < SERIAL_BELOW:
        run_panels(&work, 0, args.batch * work.chunks)
    else:
        parallel_for(run_panels, &work, args.batch * work.chunks,
                     1 + CHUNK * work.chunks // (CALL + each))


cdef void run_panels(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Panels* work = <Panels*>context
    cdef const MatmulArgs* args = work.args
    cdef char[ON_STACK + LINE] scratch
    cdef char* p = scratch + (LINE - <size_t>scratch % LINE)
    cdef Py_ssize_t chunk, matrix, row, packed = -1, size = args.y_col
    for chunk in range(begin, end):
        matrix, row = chunk // work.chunks, chunk % work.chunks * CHUNK_ROWS
        if packed < 0 or matrix != packed and args.b_batch != 0:
            packs[work.dtype](args.b + matrix * args.b_batch, args.b_row // size,
                              args.b_col // size, p, args.k, args.n)
        packed = matrix
        multiply(work.dtype, args.a + matrix * args.a_batch + row * args.a_row,
                 args.a_row // size, args.a_col // size, p,
                 args.y + matrix * args.y_batch + row * args.y_row, args.y_row // size,
                 min(<Py_ssize_t>CHUNK_ROWS, args.m - row), args.k, args.n, work.row, 0)


# ---- any b, part by part -------------------------------------------------------------------------

cdef bint panels_are_wide(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether a product of any size is faster by panels than by the BLAS."""
    cdef Py_ssize_t products = times(args.m * args.n, args.k)
    if (way == BLAS or panels[dtype] == NULL or args.m < LEAST_ROWS or args.k == 0
            or args.n < LEAST_WIDTH // args.y_col):
        return False
    if way == PANELS:
        return True
    if args.b_row == args.y_col:
        return args.m >= FLAT or products > MOST_FLAT
    if args.m >= TALL:
        return products >= MANY
    return args.m >= FEW and args.n >= COLUMNS and products > BLAS_SMALL


cdef bint block_by_panels(int dtype, const MatmulArgs* args, const char* added,
                          Block block) noexcept nogil:
    """Computes a block of y, plus a row if `adds_row` accepts the product; false if there is no
    memory for panels."""
    cdef char* scratch = take_scratch(SCRATCH_BYTES)
    cdef Py_ssize_t size = args.y_col, depth = parts_of(args.k, parts_of(args.k, DEPTH))
    cdef Py_ssize_t most = PART // (depth * size) // COLUMNS * COLUMNS
    cdef Py_ssize_t l = 0, col, end = block.col + block.cols
    if scratch == NULL:
        return False
    if is_swapped(args, block):
        multiply_swapped(dtype, args, added, block, scratch, depth)
        give_scratch(scratch, SCRATCH_BYTES)
        return True
    while l < args.k:
        col = block.col
        while col < end:
            multiply_part(dtype, args, added, block, scratch, l, min(depth, args.k - l), col,
                          min(most, end - col))
            col += most
        l += depth
    give_scratch(scratch, SCRATCH_BYTES)
    return True


cdef bint is_swapped(const MatmulArgs* args, Block block) noexcept nogil:
    """Whether y.T := b.T @ a.T is faster, as a transposed b need not be packed."""
    cdef Py_ssize_t size = args.y_col, columns = parts_of(block.rows, COLUMNS) * COLUMNS
    return (args.b_row == size and args.b_col != size and args.a_col == size
            and SWAPPED_LEAST <= block.rows and 2 * block.rows <= block.cols
            and block.rows * size <= TURNED_ROW * 8 and times(args.k, columns) * size <= PART)


cdef void multiply_swapped(int dtype, const MatmulArgs* args, const char* added, Block block,
                           char* scratch, Py_ssize_t depth) noexcept nogil:
    """Computes a block of y as y.T := b.T @ a.T, with the same bits."""
    cdef Py_ssize_t size = args.y_col, l = 0, cols, col = block.col, end = block.col + block.cols
    cdef Py_ssize_t width = parts_of(block.rows, COLUMNS) * COLUMNS * size
    cdef char* near = scratch + PART
    cdef char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row
    cdef char* b
    cdef char* y
    while l < args.k:
        packs[dtype](a + l * size, 1, args.a_row // size, scratch + l * width,
                     min(depth, args.k - l), block.rows)
        l += depth
    while col < end:
        cols = min(<Py_ssize_t>CHUNK_ROWS, end - col)
        b = args.b + block.matrix * args.b_batch + col * args.b_col
        y = args.y + block.matrix * args.y_batch + block.row * args.y_row + col * size
        l = 0
        while l < args.k:
            multiply(dtype, b + l * size, args.b_col // size, 1, scratch + l * width, near,
                     block.rows, cols, min(depth, args.k - l), block.rows,
                     near if l > 0 else NULL, block.rows)
            l += depth
        turn(dtype, near, block.rows, y, args.y_row // size, cols, block.rows)
        if added != NULL:
            add_row(added + col * size, size, y, args.y_row, block.rows, cols)
        col += cols


cdef void add_row(const char* row, Py_ssize_t size, char* y, Py_ssize_t y_row, Py_ssize_t rows,
                  Py_ssize_t cols) noexcept nogil:
    """y += row, for each row of y; float32 or float64, by the size of an element"""
    cdef Py_ssize_t i, j
    for i in range(rows):
        if size == sizeof(float):
            for j in range(cols):
                (<float*>y)[j] += (<const float*>row)[j]
        else:
            for j in range(cols):
                (<double*>y)[j] += (<const double*>row)[j]
        y += y_row


cdef void multiply_part(int dtype, const MatmulArgs* args, const char* added, Block block,
                        char* scratch, Py_ssize_t l, Py_ssize_t depth, Py_ssize_t col,
                        Py_ssize_t cols) noexcept nogil:
    """y += a[:, l:l + depth] @ b[l:l + depth, col:col + cols]; for the first l := instead of +="""
    cdef const char* base = NULL if added == NULL else added + col * args.y_col
    cdef char* b = args.b + block.matrix * args.b_batch + l * args.b_row + col * args.b_col
    cdef char* near = scratch + PART
    cdef char* a
    cdef char* y
    cdef Py_ssize_t size = args.y_col, row = block.row, rows, end = block.row + block.rows
    cdef Py_ssize_t most = CHUNK_ROWS * 4 // size       # rows: half of L2
    cdef Py_ssize_t a_row = args.a_row // size, a_col = args.a_col // size, i
    cdef Py_ssize_t whole               # columns of whole panels, which are read unpacked
    cdef bint turned = a_row == 1 and a_col != 1 and cols >= TURNED_LEAST
    cdef bint moved = (a_col == 1 and args.a_row % FEW_LINES == 0 and depth < args.k
                       and cols >= MOVED_LEAST)
    if args.b_col == size and block.rows < PACKED:
        whole = cols // (2 * lanes[dtype]) * (2 * lanes[dtype])
        multiply_unpacked(dtype, args, base, block, b, l, depth, col, whole)
        if whole == cols:
            return
        b += whole * size
        col += whole
        cols -= whole
        base = NULL if base == NULL else base + whole * size
    if turned or moved:
        a_row, a_col = TURNED_ROW, 1
    packs[dtype](b, args.b_row // size, args.b_col // size, scratch, depth, cols)
    while row < end:
        rows = min(most, end - row)
        a = args.a + block.matrix * args.a_batch + row * args.a_row + l * args.a_col
        y = args.y + block.matrix * args.y_batch + row * args.y_row + col * args.y_col
        if turned:
            turn(dtype, a, args.a_col // size, near, TURNED_ROW, depth, rows)
        for i in range(rows if moved else 0):
            memcpy(near + i * TURNED_ROW * size, a + i * args.a_row, depth * size)
        multiply(dtype, near if turned or moved else a, a_row, a_col, scratch, y,
                 args.y_row // size, rows, depth, cols, y if l > 0 else base,
                 args.y_row // size if l > 0 else 0)
        row += rows


cdef void multiply_unpacked(int dtype, const MatmulArgs* args, const char* base, Block block,
                            const char* b, Py_ssize_t l, Py_ssize_t depth, Py_ssize_t col,
                            Py_ssize_t cols) noexcept nogil:
    """The same for few rows of a, and whole panels of a b that is not packed"""
    cdef Py_ssize_t size = args.y_col, y_row = args.y_row // size
    cdef const char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row
    cdef char* y = args.y + block.matrix * args.y_batch + block.row * args.y_row + col * size
    panels[dtype](a + l * args.a_col, args.a_row // size, args.a_col // size, b,
                  args.b_row // size, 2 * lanes[dtype], y, y_row, block.rows, depth, cols,
                  y if l > 0 else base, y_row if l > 0 else 0)


# ---- at import -----------------------------------------------------------------------------------

WAYS = ["BLAS", "panels", "mostly panels"]


def use_way(name):
    """Sets how products of any size are computed, by a name; returns the name before."""
    global way
    before = way
    way = WAYS.index(name)
    return WAYS[before]

