"""The library's own matrix products, by packed panels (`_kernels/products/panel_product.h`).

They are used for products so small that a BLAS is not worth its call, and for all sizes where the
BLAS has slower kernels. On a Zen 5 OpenBLAS and MKL run their AVX2 kernels, at half of what its
registers of 64 bytes allow: 256 x 256 @ 256 x 256 of float32 takes 138 us here and 276 by either.
On a Zen 3, with registers of 32 bytes, OpenBLAS reaches 82 % of the peak in 512 x 128 @ 128 x 512,
MKL 75 % and this module 91 %.

An element is a sum of partial sums, each a chain over at most DEPTH products. So its bits depend on
k alone, and not on other rows and columns, layouts or threads.
"""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, N_DTYPES
from tensorlib._core.base.items cimport complex128_t
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.products.complex_blocks cimport pack_complex

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
    LEAST_ROWS = 4          # with fewer, packing takes longer than it saves,
    LEAST_COMPLEX_ROWS = 2  # for complex numbers, which cost four times as much
    GATHERED = 16           # complex rows that are copied at once if they have gaps,
    ROWS_ON_STACK = 1 << 14 # and their bytes at most, of a b whose panels fit on the stack
    LEAST_BY_VECTOR = 128   # elements of a from which on the BLAS multiplies it by a vector
    LEAST_WIDTH = 40        # bytes of a row of b; with fewer, most of a panel is zeros
    CHUNK_ROWS = 240        # rows of a that are multiplied by all panels before the next ones
    ROUND = 24              # they are a multiple of this, and so of the rows of a tile
    NEAR = 1 << 17          # bytes of these rows
    FEW_SUMS = 1 << 20      # bytes of a y that is near enough to be read and written for each chain
    DEPTH = 256             # products in one chain of sums
    # Bytes of a row of a between which y is read and written. With a quarter of them 1024 x 1024 @
    # 1024 x 1024 of float32 takes 17.3 ms instead of 14.7 on a Xeon, whose L3 is slow.
    DEEP = 4096
    PART = 1 << 19          # bytes of panels that are packed at once
    TURNED_LEAST = 48       # columns of b from which on transposing rows of a pays
    TALLEST = 1024          # rows that are transposed at once
    # Transposed rows have so many elements between them that they are not a power of two apart, or
    # they would compete for few cache sets.
    GAP = 16
    SWAPPED_MOST = 2176     # bytes of a row of the transposed y
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
    MANY_ROWS = 48          # rows from which on packing a complex b pays
    FEW = 6                 # rows at least to read it unpacked, as memory is the limit with fewer
    BLAS_SMALL = 1000000    # multiplications up to which OpenBLAS does not pack either

ctypedef void (*pack_fn)(const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p, Py_ssize_t k,
                         Py_ssize_t n) noexcept nogil
ctypedef void (*panel_fn)(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                          Py_ssize_t p_row, Py_ssize_t panel, char* y, Py_ssize_t y_row,
                          Py_ssize_t m, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t n,
                          const char* base, Py_ssize_t base_row) noexcept nogil
ctypedef void (*turn_fn)(const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row, Py_ssize_t m,
                         Py_ssize_t n) noexcept nogil

ctypedef void (*windows_fn)(const char* a, const Py_ssize_t* places, const Py_ssize_t* taps,
                            const char* p, Py_ssize_t first, Py_ssize_t k, Py_ssize_t all, char* y,
                            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n) noexcept nogil

ctypedef void (*runs_fn)(const char* x, const Py_ssize_t* taps, const char* w, char* y,
                         Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil

# How a block of a large product is computed.
ctypedef struct Part:
    const MatmulArgs* args
    const char* added        # to each row of y, or NULL
    char* panels             # PART bytes
    char* near               # transposed rows of a, or of y
    int dtype
    bint turned              # whether rows of a are transposed
    Py_ssize_t depth, deep   # products of a chain, and those between which y is written
    Py_ssize_t rows, tall    # of a that meet all panels of a part; that are transposed at once
    Py_ssize_t most          # columns of a part

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
    """p := b, packed into panels"""
    pack_signed(dtype, b, b_row, b_col, False, False, p, k, n)


cdef void pack_signed(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                      bint conjugated, bint negated, char* p, Py_ssize_t k,
                      Py_ssize_t n) noexcept nogil:
    """p := b, or its conjugate, or minus these, packed into panels"""
    cdef Py_ssize_t i, count = panels_size(k, n) if negated and parts(dtype) == 1 else 0
    if parts(dtype) > 1:
        pack_complex(dtype, b, b_row, b_col, conjugated, negated, p, k, n)
        return
    packs[dtype](b, b_row, b_col, p, k, n)
    if dtype == FLOAT32:
        for i in range(count):
            (<float*>p)[i] = -(<float*>p)[i]
    else:
        for i in range(count):
            (<double*>p)[i] = -(<double*>p)[i]


cdef inline void multiply(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t depth, Py_ssize_t n, const char* base,
                          Py_ssize_t base_row) noexcept nogil:
    """y (m, n) := base + a (m, k) @ the matrix packed in p, in parts of so many sums"""
    cdef Py_ssize_t each = parts(dtype), width
    dtype = real_of(dtype)
    width = 2 * lanes[dtype]
    panels[dtype](a, each * a_row, a_col, p, width, each * k * width, y, each * y_row, m, each * k,
                  each * depth, each * n, base, each * base_row)


cdef void multiply_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n) noexcept nogil:
    """y (m, n) := a (m, k) @ the matrix packed in p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, k, n, NULL, 0)


cdef void add_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                     char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                     Py_ssize_t n) noexcept nogil:
    """y (m, n) += a (m, k) @ the matrix packed in p"""
    multiply(dtype, a, a_row, a_col, p, y, y_row, m, k, k, n, y, y_row)


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
    cdef Py_ssize_t i, j
    if dtype == COMPLEX128:
        for j in range(n):
            for i in range(m):
                (<complex128_t*>y)[j * y_row + i] = (<const complex128_t*>x)[i * x_row + j]
    else:                                # a complex64 has the size of a float64
        turns[FLOAT64 if dtype == COMPLEX64 else dtype](x, x_row, y, y_row, m, n)


# ---- a b that fits on the stack ------------------------------------------------------------------

cdef bint fits_panels(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether b is a small matrix, or a vector with so few elements that a nearly empty panel is
    faster than a call of the BLAS."""
    if parts(dtype) > 1:
        return (args.m >= LEAST_COMPLEX_ROWS and args.n > 1 and panels[real_of(dtype)] != NULL
                and times(panels_size(2 * args.k, 2 * args.n), args.y_col // 2) <= ON_STACK)
    return panels[dtype] != NULL and args.m >= LEAST_ROWS and (
        args.n > 1 or times(args.m, args.k) <= LEAST_BY_VECTOR) and (
        times(panels_size(args.k, args.n), args.y_col) <= ON_STACK)


cdef bint adds_row(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether panels compute a product in one part, and so can add a row in registers. The bits are
    the same as if it were added afterwards."""
    return parts(dtype) == 1 and args.k > 0 and (
        fits_panels(dtype, args) or args.k <= DEEP // args.y_col and panels_are_wide(dtype, args))


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
    cdef char[ROWS_ON_STACK] near
    cdef const char* a
    cdef const char* b
    cdef char* y
    cdef Py_ssize_t chunk, matrix, row, rows, few, b_row, b_col, packed = -1, size = args.y_col
    for chunk in range(begin, end):
        matrix, row = chunk // work.chunks, chunk % work.chunks * CHUNK_ROWS
        if packed < 0 or matrix != packed and args.b_batch != 0:
            b, b_row, b_col = args.b + matrix * args.b_batch, args.b_row // size, args.b_col // size
            if packs[work.dtype] != NULL:
                packs[work.dtype](b, b_row, b_col, p, args.k, args.n)
            else:
                pack_complex(work.dtype, b, b_row, b_col, False, False, p, args.k, args.n)
        packed = matrix
        a = args.a + matrix * args.a_batch + row * args.a_row
        y = args.y + matrix * args.y_batch + row * args.y_row
        rows = min(<Py_ssize_t>CHUNK_ROWS, args.m - row)
        if args.a_col == size or parts(work.dtype) == 1:
            multiply(work.dtype, a, args.a_row // size, args.a_col // size, p, y,
                     args.y_row // size, rows, args.k, args.k, args.n, work.row, 0)
            continue
        while rows > 0:             # the parts of complex numbers lie beside each other in a copy
            few = min(<Py_ssize_t>GATHERED, rows)
            turn_rows(work.dtype, args, a, near, args.k, args.k, few)
            multiply(work.dtype, near, args.k, 1, p, y, args.y_row // size, few, args.k, args.k,
                     args.n, NULL, 0)
            a, y, rows = a + few * args.a_row, y + few * args.y_row, rows - few


# ---- any b, part by part -------------------------------------------------------------------------

cdef bint panels_are_wide(int dtype, const MatmulArgs* args) noexcept nogil:
    """Whether a product of any size is faster by panels than by the BLAS."""
    cdef Py_ssize_t products = times(args.m * args.n, args.k)
    if (way == BLAS or panels[real_of(dtype)] == NULL or args.m < LEAST_ROWS or args.k == 0
            or args.n < LEAST_WIDTH // args.y_col):
        return False
    if parts(dtype) > 1:                 # b takes two rows for each
        return args.m >= MANY_ROWS and products >= MANY // 4
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
    cdef Part of
    cdef Py_ssize_t size = args.y_col, near = 0, each = parts(dtype)
    cdef Py_ssize_t chains = parts_of(args.k, DEPTH // each)
    cdef bint swapped = each == 1 and is_swapped(args, block)
    cdef bint unpacked = each == 1 and not swapped and args.b_col == size and block.rows < PACKED
    of.turned = args.a_col != size and (each > 1 or not swapped and not unpacked and (
        args.a_row == size and block.cols >= TURNED_LEAST))
    of.dtype, of.args, of.added = dtype, args, added
    of.depth = parts_of(args.k, chains)
    of.deep = of.depth * parts_of(chains, parts_of(args.k, DEEP // size))
    if of.turned and times(block.rows, block.cols) * size <= FEW_SUMS:
        of.deep = of.depth
    of.most = PART // (of.deep * size * each) // COLUMNS * COLUMNS
    of.rows = NEAR // (of.deep * size) // ROUND * ROUND
    of.rows = min(<Py_ssize_t>CHUNK_ROWS, max(<Py_ssize_t>ROUND, of.rows))
    of.tall = min(block.rows, of.rows if block.cols <= of.most else <Py_ssize_t>TALLEST)
    if swapped:
        near = of.rows * block.rows * size
    elif of.turned:
        near = of.tall * (of.deep + GAP) * size
    of.panels = take_scratch(PART + near)
    if of.panels == NULL:
        return False
    of.near = of.panels + PART
    if swapped:
        multiply_swapped(&of, block)
    elif unpacked:
        multiply_unpacked(&of, block)
    else:
        multiply_packed(&of, block)
    give_scratch(of.panels, PART + near)
    return True


cdef bint is_swapped(const MatmulArgs* args, Block block) noexcept nogil:
    """Whether y.T := b.T @ a.T is faster, as a transposed b need not be packed."""
    cdef Py_ssize_t size = args.y_col, columns = parts_of(block.rows, COLUMNS) * COLUMNS
    return (args.b_row == size and args.b_col != size and args.a_col == size
            and SWAPPED_LEAST <= block.rows and 2 * block.rows <= block.cols
            and block.rows * size <= SWAPPED_MOST and times(args.k, columns) * size <= PART)


cdef void multiply_swapped(const Part* of, Block block) noexcept nogil:
    """Computes a block of y as y.T := b.T @ a.T, with the same bits."""
    cdef const MatmulArgs* args = of.args
    cdef Py_ssize_t size = args.y_col, l = 0, cols, col = block.col, end = block.col + block.cols
    cdef Py_ssize_t width = parts_of(block.rows, COLUMNS) * COLUMNS * size
    cdef char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row
    cdef char* b
    cdef char* y
    while l < args.k:
        packs[of.dtype](a + l * size, 1, args.a_row // size, of.panels + l * width,
                        min(of.deep, args.k - l), block.rows)
        l += of.deep
    while col < end:
        cols = min(of.rows, end - col)
        b = args.b + block.matrix * args.b_batch + col * args.b_col
        y = args.y + block.matrix * args.y_batch + block.row * args.y_row + col * size
        l = 0
        while l < args.k:
            multiply(of.dtype, b + l * size, args.b_col // size, 1, of.panels + l * width, of.near,
                     block.rows, cols, min(of.deep, args.k - l), of.depth, block.rows,
                     of.near if l > 0 else NULL, block.rows)
            l += of.deep
        turn(of.dtype, of.near, block.rows, y, args.y_row // size, cols, block.rows)
        if of.added != NULL:
            add_row(of.added + col * size, size, y, args.y_row, block.rows, cols)
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


cdef void multiply_packed(const Part* of, Block block) noexcept nogil:
    """Computes a block of y. Parts of b that fit L2 are packed and meet a few rows of a at a time,
    which stay there too."""
    cdef const MatmulArgs* args = of.args
    cdef Py_ssize_t size = args.y_col, l = 0, deep, row, rows, col
    cdef bint packed
    while l < args.k:
        deep, packed, row = min(of.deep, args.k - l), False, 0
        while row < block.rows:
            rows, col = min(of.tall, block.rows - row), 0
            if of.turned:
                turn_rows(of.dtype, args, args.a + block.matrix * args.a_batch + l * args.a_col
                          + (block.row + row) * args.a_row, of.near, of.deep + GAP, deep, rows)
            while col < block.cols:
                multiply_part(of, Block(block.matrix, block.row + row, rows, block.col + col,
                                        min(of.most, block.cols - col)), l, packed)
                packed = block.cols <= of.most
                col += of.most
            row += of.tall
        l += of.deep
    if of.added != NULL and args.k > of.deep:
        add_row(of.added + block.col * size, size, args.y + block.matrix * args.y_batch
                + block.row * args.y_row + block.col * size, args.y_row, block.rows, block.cols)


cdef void turn_rows(int dtype, const MatmulArgs* args, const char* a, char* near,
                    Py_ssize_t near_row, Py_ssize_t deep, Py_ssize_t rows) noexcept nogil:
    """near := rows of a, which lie along its columns; complex ones with any strides"""
    cdef Py_ssize_t size = args.y_col, row, l
    if args.a_row == size:
        turn(dtype, a, args.a_col // size, near, near_row, deep, rows)
        return
    for row in range(rows):
        for l in range(deep):
            memcpy(near + (row * near_row + l) * size, a + row * args.a_row + l * args.a_col, size)


cdef void multiply_part(const Part* of, Block block, Py_ssize_t l, bint packed) noexcept nogil:
    """y += a[:, l:l + deep] @ b[l:l + deep] of a block, of which b may be packed already; for the
    first l := instead of +="""
    cdef const MatmulArgs* args = of.args
    cdef Py_ssize_t size = args.y_col, deep = min(of.deep, args.k - l), i = 0
    cdef Py_ssize_t a_row = of.deep + GAP if of.turned else args.a_row // size
    cdef Py_ssize_t a_col = 1 if of.turned else args.a_col // size
    cdef Py_ssize_t y_row = args.y_row // size
    cdef const char* base = NULL
    cdef char* b = args.b + block.matrix * args.b_batch + l * args.b_row + block.col * args.b_col
    cdef char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row + l * args.a_col
    cdef char* y = args.y + block.matrix * args.y_batch + block.row * args.y_row + block.col * size
    if of.turned:
        a = of.near
    if of.added != NULL and args.k <= of.deep:
        base = of.added + block.col * size
    if not packed:
        pack_panels(of.dtype, b, args.b_row // size, args.b_col // size, of.panels, deep,
                    block.cols)
    while i < block.rows:
        multiply(of.dtype, a, a_row, a_col, of.panels, y, y_row, min(of.rows, block.rows - i),
                 deep, of.depth, block.cols, y if l > 0 else base, y_row if l > 0 else 0)
        i += of.rows
        a += of.rows * a_row * size
        y += of.rows * args.y_row


cdef void multiply_unpacked(const Part* of, Block block) noexcept nogil:
    """Computes a block of few rows by whole panels of an unpacked b, and packs the rest."""
    cdef const MatmulArgs* args = of.args
    cdef Py_ssize_t size = args.y_col, y_row = args.y_row // size, l = 0
    cdef Py_ssize_t whole = block.cols // (2 * lanes[of.dtype]) * (2 * lanes[of.dtype])
    cdef const char* a = args.a + block.matrix * args.a_batch + block.row * args.a_row
    cdef const char* b = args.b + block.matrix * args.b_batch + block.col * size
    cdef char* y = args.y + block.matrix * args.y_batch + block.row * args.y_row + block.col * size
    cdef const char* base = NULL if of.added == NULL else of.added + block.col * size
    cdef bint added = base != NULL and args.k > of.depth
    while l < args.k:
        panels[of.dtype](a + l * args.a_col, args.a_row // size, args.a_col // size,
                         b + l * args.b_row, args.b_row // size, 2 * lanes[of.dtype], y, y_row,
                         block.rows, min(of.depth, args.k - l), of.depth, whole,
                         y if l > 0 else NULL if added else base, y_row if l > 0 else 0)
        l += of.depth
    if added:
        add_row(base, size, y, args.y_row, block.rows, whole)
    block.col += whole
    block.cols -= whole
    multiply_packed(of, block)


# ---- at import -----------------------------------------------------------------------------------

WAYS = ["BLAS", "panels", "mostly panels"]


def use_way(name):
    """Sets how products of any size are computed, by a name; returns the name before."""
    global way
    before = way
    way = WAYS.index(name)
    return WAYS[before]

