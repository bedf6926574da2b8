"""The library's own matrix products, by packed panels (`_kernels/panel_product.h`).

They take what is too small for a BLAS to be worth its call, and products of every size where the
BLAS has slower kernels. OpenBLAS and MKL run those of AVX2 on a Zen 5, half as fast as its
registers of 64 bytes allow: 256 x 256 @ 256 x 256 of float32 takes 138 us here and 276 by either.
On a Zen 3, whose registers have 32, OpenBLAS multiplies 512 x 128 @ 128 x 512 at 82 % of its peak,
MKL at 75 % and this at 91 %.

An element is a sum of sums over DEPTH products at most, each a chain from the first to the last. So
its bits follow from k alone, not from the rows and columns beside it, their layout or the threads.
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
    CALL = 1 << 11          # products that take as long as the call for one matrix of a batch
    # A matrix b that takes no more memory than this has its panels on the stack, and goes by them
    # whatever the BLAS is: 16 x 8 @ 8 x 16 of float32 in 0.2 us, by OpenBLAS in 0.7.
    ON_STACK = 1 << 15
    LINE = 64
    COLUMNS = 32            # to which the widest panels round columns up
    LEAST_ROWS = 4          # with fewer, packing takes longer than it saves
    LEAST_BY_VECTOR = 128   # elements of a from which on the BLAS multiplies it by a vector
    LEAST_WIDTH = 40        # bytes of a row of b; with fewer, most of a panel is zeros
    CHUNK_ROWS = 252        # rows of a that meet all panels before the next ones
    DEPTH = 256             # so many rows of a panel fit L1 beside those of a
    PART = 1 << 19          # bytes of panels
    # Rows of a that were turned or moved lie no power of two apart: they would share few lines of
    # the caches. 1024 x 1024 @ 1024 x 1024 where they lie took 1.2 times as long.
    TURNED_ROW = DEPTH + 16
    FEW_LINES = 1024        # bytes between rows of which that is true
    MOVED_LEAST = 256       # columns of b from which on moving them is worth it
    SCRATCH_BYTES = PART + CHUNK_ROWS * TURNED_ROW * 8
    TURNED_LEAST = 48       # and turning them
    # Rows of a from which on they are packed, in the place of more columns of a turned b: a vector
    # is nearly full then. 32 x 784 @ 784 x 512 of float32 takes 270 us so and 290 otherwise, 16 x
    # 1024 @ 1024 x 1024 340 and 464.
    SWAPPED_LEAST = 12

# What does products of any size: the BLAS; panels; or panels where the BLAS packs slowly. OpenBLAS
# for AVX-512 multiplies 8 x 128 @ 128 x 512 of float32 in 11 us, panels in 18; but with a b
# that is turned, as the weight of a layer, in 55 and 21, and 32 x 784 @ 784 x 512 in 516 and 291.
# A few rows read b where it lies: 16 x 512 @ 512 x 512 in 52 us; OpenBLAS packs it, in 100.
cdef enum Way:
    BLAS, PANELS, MOSTLY_PANELS

cdef enum:
    FLAT = 8                # rows from which on MOSTLY_PANELS takes a turned b; with fewer it takes
    MOST_FLAT = 1 << 21     # more than these multiplications
    PACKED = 96             # rows from which on another b is packed
    TALL = 64               # rows, and multiplications, that another b has at least
    MANY = 1 << 19
    FEW = 6                 # rows that keep up with reading it where it lies, and
    BLAS_SMALL = 1000000    # multiplications up to which OpenBLAS packs nothing either

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
    const char* row         # added to each row of y, unless it is NULL
    int dtype
    Py_ssize_t chunks       # of the rows of each matrix

cdef pack_fn packs[N_DTYPES]           # NULL where the BLAS does all
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
    """How many elements a packed matrix (k, n) takes."""
    return times(k, parts_of(n, COLUMNS) * COLUMNS)


cdef void pack_panels(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p,
                      Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """p := the panels of b; for float32 and float64"""
    packs[dtype](b, b_row, b_col, p, k, n)


cdef inline void multiply(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n, const char* base, Py_ssize_t base_row) noexcept nogil:
    """y (m, n) := base + a (m, k) @ the matrix that was packed into p"""
    cdef Py_ssize_t width = 2 * lanes[dtype]
    panels[dtype](a, a_row, a_col, p, width, k * width, y, y_row, m, k, n, base, base_row)


cdef void multiply_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n) noexcept nogil:
    """y (m, n) := a (m, k) @ the matrix that was packed into p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, n, NULL, 0)


cdef void add_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                     char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                     Py_ssize_t n) noexcept nogil:
    """y (m, n) += a (m, k) @ the matrix that was packed into p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, n, y, y_row)


cdef void multiply_windows(int dtype, const char* a, const Py_ssize_t* places,
                           const Py_ssize_t* taps, const char* p, char* y, Py_ssize_t m,
                           Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """y (m, n) := the elements a[places[i] + taps[l]] @ the matrix (k, n) packed into p

    Of BFLOAT16 elements are pairs, and y of float32.
    """
    cdef Py_ssize_t l = 0, depth = parts_of(k, parts_of(k, DEPTH))
    while l < k:
        windows[dtype](a, places, taps, p, l, min(depth, k - l), k, y, n, m, n)
        l += depth


cdef Py_ssize_t shortest_run(int dtype) noexcept nogil:
    """How many elements the runs that `multiply_runs` takes have at least."""
    return lanes[dtype]


cdef void multiply_runs(int dtype, const char* x, const Py_ssize_t* taps, const char* w, char* y,
                        Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """y (m, n) := w (m, k) @ the matrix whose rows are n elements each at x + taps[l]"""
    runs[dtype](x, taps, w, y, y_row, m, k, n)


cdef void turn(int dtype, const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row, Py_ssize_t m,
               Py_ssize_t n) noexcept nogil:
    """y (n, m) := x.T, of m rows of n contiguous elements each"""
    turns[dtype](x, x_row, y, y_row, m, n)


# ---- a b that fits on the stack -----------------------------------------------------------------

cdef bint fits_panels(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether b is a small matrix, or so small a vector that the call of the BLAS takes longer than
    a panel that is nearly empty."""
    return panels[dtype] != NULL and args.m >= LEAST_ROWS and (
        args.n > 1 or times(args.m, args.k) <= LEAST_BY_VECTOR) and (
        times(panels_size(args.k, args.n), args.y_col) <= ON_STACK)


cdef bint adds_row(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether panels do a product in one part, to which they can add a row while it is in
    registers: an element has the bits that it has if the row is added afterwards."""
    return args.k > 0 and (fits_panels(dtype, args) or args.k <= DEPTH and (
        panels_are_wide(dtype, args)))


cdef void run_by_panels(int dtype, const MatmulArgs* args, const char* row) noexcept nogil:
    """y := a @ b where a matrix of b fits, + a row or NULL"""
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
    """The rows and columns of a block of y, + a row where it is one that `adds_row` takes; false
    where there is no memory for panels."""
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
    """Whether y.T := b.T @ a.T packs less: of b, which is turned, nothing."""
    cdef Py_ssize_t size = args.y_col, columns = parts_of(block.rows, COLUMNS) * COLUMNS
    return (args.b_row == size and args.b_col != size and args.a_col == size
            and SWAPPED_LEAST <= block.rows and 2 * block.rows <= block.cols
            and block.rows * size <= TURNED_ROW * 8 and times(args.k, columns) * size <= PART)


cdef void multiply_swapped(int dtype, const MatmulArgs* args, const char* added, Block block,
                           char* scratch, Py_ssize_t depth) noexcept nogil:
    """The block of y by y.T := b.T @ a.T, with the bits that it has otherwise"""
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
    """y += a row, in each of its rows; of float32 or float64, by their size"""
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
    """y += a[:, l:l + depth] @ b[l:l + depth, col:col + cols]; y := it for the first l"""
    cdef const char* base = NULL if added == NULL else added + col * args.y_col
    cdef char* b = args.b + block.matrix * args.b_batch + l * args.b_row + col * args.b_col
    cdef char* near = scratch + PART
    cdef char* a
    cdef char* y
    cdef Py_ssize_t size = args.y_col, row = block.row, rows, end = block.row + block.rows
    cdef Py_ssize_t most = CHUNK_ROWS * 4 // size       # which is half of L2
    cdef Py_ssize_t a_row = args.a_row // size, a_col = args.a_col // size, i
    cdef Py_ssize_t whole               # columns of whole panels, which are read where they lie
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
    """The same for few rows of a, and whole panels of a b that is read where it lies"""
    cdef Py_ssize_t size = args.y_col, y_row = args.y_row // size
    cdef const char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row
    cdef char* y = args.y + block.matrix * args.y_batch + block.row * args.y_row + col * size
    panels[dtype](a + l * args.a_col, args.a_row // size, args.a_col // size, b,
                  args.b_row // size, 2 * lanes[dtype], y, y_row, block.rows, depth, cols,
                  y if l > 0 else base, y_row if l > 0 else 0)


# ---- at import -----------------------------------------------------------------------------------

WAYS = ["BLAS", "panels", "mostly panels"]


def use_way(name):
    """Takes another way for products of any size, by its name; gives the one before."""
    global way
    before = way
    way = WAYS.index(name)
    return WAYS[before]

