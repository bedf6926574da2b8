"""Products of bfloat16 in float32, two at a time (`_kernels/products/pair_product.h`).

As with panels of float32, an element is a sum of partial sums, each over at most DEPTH products, so
that its bits depend on k alone. On a Zen 4 512 x 512 @ 512 x 512 takes 1.4 ms, and 2.9 in float32.
The instructions take subnormal numbers as zero, in PyTorch, too.
"""

from libc.stdint cimport uint16_t, uint32_t
from libc.string cimport memcpy

from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times

cdef enum:
    WIDTH = PAIRED_WIDTH
    DEPTH = 512             # so many rows of a panel take L1; an even number
    PANEL = DEPTH // 2 * WIDTH       # pairs in a panel
    FEW = 3                 # rows of a: with so few, packing b takes longer than it saves
    TILE = 32               # rows of the largest register tile
    CHUNK_ROWS = 512        # rows of a at once: DEPTH columns of them fill half of L2
    # Rows of `a` that are a multiple of FEW_LINES bytes apart compete for few cache sets, and are
    # copied to others.
    FEW_LINES = 1024
    MOVED_LEAST = 256       # columns of b from which on copying the rows of a pays
    NEAR_MOST = 1 << 23     # bytes of such a copy at most
    LINE = 64               # bytes of a cache line
    GROUP = 256             # columns of y whose sums, for these rows, fill a quarter of L2
    GROUP_ROW = GROUP + 16  # elements from one row of sums to the next: an odd number of lines
    LEAST = 1 << 15         # multiplications from which on pairs are faster

cdef enum How:              # what a product does with y
    SETS, ADDS, ROUNDS

ctypedef void (*pack_fn)(const uint16_t* b, Py_ssize_t b_row, Py_ssize_t b_col, uint32_t* p,
                         Py_ssize_t k, Py_ssize_t count) noexcept nogil
ctypedef void (*product_fn)(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, void* y,
                            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t count,
                            int how) noexcept nogil

ctypedef void (*mix_fn)(const uint16_t* a, const uint16_t* b, uint32_t* p,
                        Py_ssize_t n) noexcept nogil
ctypedef void (*round_fn)(const float* x, uint16_t* y, Py_ssize_t n) noexcept nogil
ctypedef void (*few_fn)(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b, Py_ssize_t b_row,
                        Py_ssize_t b_col, float* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                        Py_ssize_t n) noexcept nogil

# NULL if the processor does not multiply pairs.
cdef pack_fn pack = <pack_fn>find_function("panels", "pack_pairs", "bfloat16", True)
cdef product_fn panel_product = <product_fn>find_function(
    "panels", "product_of_pairs", "bfloat16", True)
cdef few_fn few = <few_fn>find_function("panels", "few", "bfloat16", True)
cdef mix_fn mix = <mix_fn>find_function("panels", "mix", "bfloat16", True)
cdef round_fn round_to_half = <round_fn>find_function("panels", "round", "bfloat16", True)
cdef round_fn nearest = <round_fn>find_function("panels", "nearest", "bfloat16", True)


cdef bint takes_pairs(Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    return pack != NULL and n >= WIDTH // 2 and times(m * n, k) >= LEAST


cdef bint packs_pairs(Py_ssize_t m) noexcept nogil:
    return m > FEW


cdef bint has_pairs() noexcept nogil:
    return pack != NULL


cdef void mix_rows(const char* a, const char* b, char* p, Py_ssize_t n) noexcept nogil:
    mix(<const uint16_t*>a, <const uint16_t*>b, <uint32_t*>p, n)


cdef void round_rows(const char* x, Py_ssize_t m, Py_ssize_t n, char* y) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(m):
        round_to_half(<const float*>x + i * n, <uint16_t*>y + i * (n + n % 2), n)


cdef void round_results(const char* x, char* y, Py_ssize_t n) noexcept nogil:
    nearest(<const float*>x, <uint16_t*>y, n)


cdef void pack_paired_panel(const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p,
                            Py_ssize_t k, Py_ssize_t count) noexcept nogil:
    pack(<const uint16_t*>b, b_row, b_col, <uint32_t*>p, k, count)


cdef void multiply_paired_panel(const char* a, Py_ssize_t a_row, const char* p, char* y,
                                Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t count,
                                bint adds) noexcept nogil:
    panel_product(<const uint16_t*>a, a_row, <const uint32_t*>p, y, y_row, m, k, count,
                  ADDS if adds else SETS)


cdef void multiply_pairs(const char* a, Py_ssize_t a_row, const char* b, Py_ssize_t b_row,
                         Py_ssize_t b_col, char* y, Py_ssize_t m, Py_ssize_t k,
                         Py_ssize_t n) noexcept nogil:
    cdef MatmulArgs args
    cdef Block block
    args.a, args.b, args.y = <char*>a, <char*>b, y
    args.batch, args.m, args.k, args.n = 1, m, k, n
    args.a_batch = args.b_batch = args.y_batch = 0
    args.a_row, args.a_col, args.b_row, args.b_col = a_row * 2, 2, b_row * 2, b_col * 2
    args.y_row, args.y_col = n * 4, 4
    block.matrix = block.row = block.col = 0
    block.rows, block.cols = m, n
    block_by_pairs(&args, block)


cdef void block_by_pairs(const MatmulArgs* args, Block block) noexcept nogil:
    cdef Py_ssize_t size = sizeof(uint16_t)
    if args.m <= FEW:
        few(<const uint16_t*>(args.a + block.matrix * args.a_batch + block.row * args.a_row),
            args.a_row // size,
            <const uint16_t*>(args.b + block.matrix * args.b_batch + block.col * args.b_col),
            args.b_row // size, args.b_col // size,
            <float*>(args.y + block.matrix * args.y_batch + block.row * args.y_row) + block.col,
            args.n, block.rows, args.k, block.cols)
    else:
        multiply_block(args, block)


cdef void multiply_block(const MatmulArgs* args, Block block) noexcept nogil:
    """Computes a block by chunks of rows of `a` that stay in L2, with the sums of GROUP columns."""
    cdef bint summed = args.k > DEPTH, rounded = args.y_col == sizeof(uint16_t)
    cdef bint crowded = summed and args.a_row % FEW_LINES == 0 and block.cols >= MOVED_LEAST
    cdef size_t near_row = ((args.k * sizeof(uint16_t) + LINE - 1) // LINE | 1) * LINE
    cdef size_t near_bytes = near_row * CHUNK_ROWS
    cdef size_t sum_bytes = CHUNK_ROWS * GROUP_ROW * sizeof(float)
    cdef char* near = take_scratch(near_bytes) if crowded and near_bytes <= NEAR_MOST else NULL
    cdef char* sums = take_scratch(sum_bytes) if summed and rounded else NULL
    cdef float[TILE * GROUP_ROW] own_sums
    if summed and rounded and sums == NULL:
        multiply_chunks(args, block, TILE, near, near_row, own_sums)
    else:
        multiply_chunks(args, block, CHUNK_ROWS, near, near_row, <float*>sums)
    if near != NULL:
        give_scratch(near, near_bytes)
    if sums != NULL:
        give_scratch(sums, sum_bytes)


cdef void multiply_chunks(const MatmulArgs* args, Block block, Py_ssize_t most, char* near,
                          size_t near_row, float* sums) noexcept nogil:
    """The same, with chunks of nearly equal heights: whole tiles, and at most `most` rows."""
    cdef Py_ssize_t row = block.row, end = block.row + block.rows
    cdef Py_ssize_t chunks = (block.rows + most - 1) // most
    while row < end:
        block.row = row
        block.rows = min(((end - row + chunks - 1) // chunks + TILE - 1) // TILE * TILE, end - row)
        multiply_rows(args, block, near, near_row, sums)
        row += block.rows
        chunks -= 1


cdef void multiply_rows(const MatmulArgs* args, Block block, char* near, size_t near_row,
                        float* sums) noexcept nogil:
    """Computes a chunk of rows, group by group of columns; near: memory for a copy, or NULL."""
    cdef Py_ssize_t col = block.col, end = block.col + block.cols, i, size = sizeof(uint16_t)
    cdef Py_ssize_t group = GROUP if args.k > DEPTH else block.cols
    cdef MatmulArgs chunk = args[0]
    chunk.m = block.rows
    chunk.a += block.matrix * args.a_batch + block.row * args.a_row
    chunk.b += block.matrix * args.b_batch + block.col * args.b_col
    chunk.y += block.matrix * args.y_batch + block.row * args.y_row + block.col * args.y_col
    if near != NULL:
        for i in range(block.rows):
            memcpy(near + i * near_row, chunk.a + i * args.a_row, args.k * size)
        chunk.a, chunk.a_row = near, near_row
    while col < end:
        chunk.n = min(group, end - col)
        if sums == NULL:
            multiply_columns(&chunk, chunk.y, args.n, ROUNDS if args.y_col == size else SETS)
        else:
            multiply_columns(&chunk, <char*>sums, GROUP_ROW, SETS)
            for i in range(chunk.m):
                nearest(sums + i * GROUP_ROW, <uint16_t*>(chunk.y + i * args.y_row), chunk.n)
        chunk.b += chunk.n * args.b_col
        chunk.y += chunk.n * args.y_col
        col += chunk.n


cdef void multiply_columns(const MatmulArgs* args, char* y, Py_ssize_t y_row,
                           How first) noexcept nogil:
    """y := a @ b, part by part of k; the rows of y are y_row elements apart."""
    cdef uint32_t[PANEL] panel
    cdef Py_ssize_t l = 0, depth, col, cols, size = sizeof(uint16_t)
    cdef Py_ssize_t y_size = size if first == ROUNDS else sizeof(float)
    while l < args.k:
        depth = min(<Py_ssize_t>DEPTH, args.k - l)
        col = 0
        while col < args.n:
            cols = min(<Py_ssize_t>WIDTH, args.n - col)
            pack(<const uint16_t*>(args.b + l * args.b_row + col * args.b_col),
                 args.b_row // size, args.b_col // size, panel, depth, cols)
            panel_product(<const uint16_t*>(args.a + l * size), args.a_row // size, panel,
                          y + col * y_size, y_row, args.m, depth, cols, ADDS if l > 0 else first)
            col += cols
        l += depth
