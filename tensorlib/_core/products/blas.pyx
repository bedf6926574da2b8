"""Matrix products through the BLAS that NumPy has loaded.

The inner loops of `np.matmul` are C functions that need no GIL and take any strides; for float32
and float64 they call NumPy's BLAS. An 8x8 product of float32 through them costs about 60 ns.

Threads are ours, not the BLAS's. OpenBLAS 0.3.31 gives other bits with two threads than with one in
195 of 492 float32 shapes and in 76 of 521 float64 shapes tried (sides 1 to 2,000), because its
blocks follow the number of threads. Here a product is cut into blocks whose bounds follow from the
shape alone; the pool works on them and the BLAS does each with one thread. So results are the same
bits for any number of threads.
"""

from cpython.object cimport PyObject

import os
import re

import numpy

from tensorlib._core.base.dtypes cimport BFLOAT16, ITEMSIZE, N_DTYPES, dtype_id, signed_twin
from tensorlib._core.base.kernels cimport find_by_dtype
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.ufunc cimport PyUFuncObject, ufunc_loop
from tensorlib._core.products.pair_products cimport block_by_pairs, takes_pairs
from tensorlib._core.products.panel_products cimport (
    Block, add_row, adds_row, block_by_panels, fits_panels, panels_are_wide, run_by_panels,
)

from tensorlib import _kernels
from tensorlib._core.base import pool
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.products.panel_products import use_way

cdef extern from "<dlfcn.h>" nogil:
    int RTLD_LAZY
    int RTLD_NOLOAD
    void* dlopen(const char* path, int flags)
    void* dlsym(void* handle, const char* name)

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t blas_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void blas_renew_mutex(void) { pthread_mutex_init(&blas_mutex, NULL); }
    """
    ctypedef struct pthread_mutex_t:
        pass
    pthread_mutex_t blas_mutex
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_atfork(void (*)() noexcept nogil, void (*)() noexcept nogil,
                       void (*)() noexcept nogil)
    void blas_renew_mutex()

ctypedef int (*get_threads_fn)() noexcept nogil
ctypedef void (*set_threads_fn)(int) noexcept nogil
ctypedef const char* (*describe_fn)() noexcept nogil

cdef enum:
    # Below this many products no BLAS we know uses threads: OpenBLAS starts at 9,216 for gemv and
    # at 262,144 for gemm.
    SERIAL_BELOW = 8192
    # Least sides of a block. OpenBLAS packs both operands anew for each block: with these a product
    # costs 1 to 2 % over one plain call on one thread, with half of them 3 to 5 %.
    BLOCK_COLS = 192
    BLOCK_ROWS = 768
    BLOCK_ROWS_ALONE = 256  # if only the rows are cut
    # If that makes fewer than FEW blocks, they are cut into halves while a block has so many
    # products (some 20 us) and no side below SHORT_SIDE: 256 x 256 into 2 blocks, 512 x 512 into 4.
    FEW = 4
    BLOCK_PRODUCTS = 1 << 21
    SHORT_SIDE = 128
    # Products in one chunk of a batch, and elements of the matrix in one chunk of a
    # matrix-vector product: some 10 us either way.
    BATCH_CHUNK = 1 << 18
    CALL = 1 << 11          # products that take as long as a BLAS call, made for each matrix
    OUTER_CHUNK = 1 << 15   # elements of outer products in one chunk
    NARROW = 4              # columns of b for which batches of small products have own loops,
    NARROW_SIDE = 16        # and rows and columns of a
    NARROW_CHUNK = 1 << 15  # products in one chunk of these
    VECTOR_CHUNK = 1 << 16
    LONG = 512

ctypedef void (*outer_product)(const void* a, Py_ssize_t a_row, const void* b, void* y,
                               Py_ssize_t m, Py_ssize_t n) noexcept nogil
ctypedef void (*narrow_products)(const void* a, const Py_ssize_t* a_steps, const void* b,
                                 const Py_ssize_t* b_steps, void* y, Py_ssize_t batch,
                                 Py_ssize_t m, Py_ssize_t k) noexcept nogil

ctypedef struct Outer:
    const MatmulArgs* args
    outer_product run
    Py_ssize_t itemsize

ctypedef struct Narrow:
    const MatmulArgs* args
    narrow_products run
    Py_ssize_t[3] a_steps    # in elements
    Py_ssize_t[3] b_steps

ctypedef struct Blocks:
    const MatmulArgs* args
    const char* row          # which panels add to each row of y, or NULL
    int dtype
    bint wide                # whether the library's panels are used, and not the BLAS
    ufunc_loop loop
    void* data
    Py_ssize_t rows, cols    # sides of a block
    Py_ssize_t down, across  # how many blocks the rows, and the columns, are cut into

cdef ufunc_loop loops[N_DTYPES]
cdef void* loop_data[N_DTYPES]
cdef outer_product outers[N_DTYPES]      # of a column and a contiguous row; NULL if there is none
cdef narrow_products narrows[NARROW + 1][N_DTYPES]     # by columns
find_by_dtype("product", "outer", <void**>outers)
for _columns in range(1, NARROW + 1):
    find_by_dtype("product", f"narrow_{_columns}", <void**>narrows[<int>_columns])

cdef get_threads_fn blas_get_threads = NULL
cdef set_threads_fn blas_set_threads = NULL
cdef int users = 0     # running products that need the BLAS to use one thread
cdef int restore = 1   # the number of threads that the last of them restores
cdef int pool_threads = pool.get_num_threads()


cdef bint matmul_adds(int dtype, const MatmulArgs* args, const char* row) noexcept nogil:
    """y := a @ b + row, where a product can add the row itself; else False, with nothing done."""
    if args.batch != 1 or args.m == 0 or args.n == 0 or args.k == 1 or not adds_row(dtype, args):
        return False
    multiply(dtype, args, row)
    return True


cdef int matmul_run(int dtype, const MatmulArgs* args) noexcept nogil:
    """y := a @ b; -1 if there is no loop: for bfloat16 there is only where `takes_pairs`."""
    return multiply(dtype, args, NULL)


cdef void multiply_matrices(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                            const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* y,
                            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                            Py_ssize_t n) noexcept nogil:
    """y (m, n) := a @ b, float32 or float64; steps in elements"""
    cdef MatmulArgs args
    cdef Py_ssize_t size = ITEMSIZE[dtype]
    args.a, args.b, args.y = <char*>a, <char*>b, y
    args.batch, args.m, args.k, args.n = 1, m, k, n
    args.a_batch = args.b_batch = args.y_batch = 0
    args.a_row, args.a_col = a_row * size, a_col * size
    args.b_row, args.b_col = b_row * size, b_col * size
    args.y_row, args.y_col = y_row * size, size
    matmul_run(dtype, &args)


cdef int multiply(int dtype, const MatmulArgs* args, const char* row) noexcept nogil:
    cdef Blocks blocks
    cdef Py_ssize_t products = times(args.m * args.n, args.k)
    if args.batch == 0 or args.m == 0 or args.n == 0:
        return 0
    blocks.args, blocks.dtype, blocks.row = args, dtype, row
    if dtype == BFLOAT16:
        if not takes_pairs(args.m, args.k, args.n):
            return -1
        blocks.wide = True
        share_blocks(&blocks, products)
        return 0
    if loops[dtype] == NULL:
        return -1
    if args.k == 1 and outers[dtype] != NULL and run_outer(outers[dtype], args):
        return 0
    if args.batch > 1 and args.n <= NARROW and args.m <= NARROW_SIDE and (
            args.k <= NARROW_SIDE and run_narrow(narrows[args.n][dtype], args)):
        return 0
    if fits_panels(dtype, args):
        run_by_panels(dtype, args, row)
        return 0
    blocks.wide = panels_are_wide(dtype, args)
    blocks.loop = loops[dtype]
    blocks.data = loop_data[dtype]
    if times(products, args.batch) < SERIAL_BELOW:
        run_matrices(&blocks, 0, args.batch)
        return 0
    if not blocks.wide:
        hold_one_thread()
    share_blocks(&blocks, products)
    if not blocks.wide:
        release_one_thread()
    return 0


cdef void share_blocks(Blocks* blocks, Py_ssize_t products) noexcept nogil:
    """Shares products of `products` multiplications each among threads, by matrices or blocks."""
    cdef Py_ssize_t batch = blocks.args.batch
    if batch > 1 and products < BATCH_CHUNK:
        parallel_for(run_matrices, blocks, batch, 1 + BATCH_CHUNK // (CALL + products))
    else:
        choose_blocks(blocks)
        parallel_for(run_blocks, blocks, batch * blocks.down * blocks.across, 1)


cdef bint run_narrow(narrow_products run, const MatmulArgs* args) noexcept nogil:
    """y := a @ b for small matrices, b with few columns; False if there is no loop for it."""
    cdef Narrow narrow
    cdef Py_ssize_t size = args.y_col, each = args.m * args.n * args.k
    if run == NULL or args.y_row != args.n * size or args.y_batch != args.m * args.y_row:
        return False
    narrow.args, narrow.run = args, run
    narrow.a_steps[:] = [args.a_batch // size, args.a_row // size, args.a_col // size]
    narrow.b_steps[:] = [args.b_batch // size, args.b_row // size, args.b_col // size]
    parallel_for(run_narrow_part, &narrow, args.batch, 1 + NARROW_CHUNK // (1 + each))
    return True


cdef void run_narrow_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Narrow* narrow = <Narrow*>context
    cdef const MatmulArgs* args = narrow.args
    narrow.run(args.a + begin * args.a_batch, narrow.a_steps, args.b + begin * args.b_batch,
               narrow.b_steps, args.y + begin * args.y_batch, end - begin, args.m, args.k)


cdef bint run_outer(outer_product run, const MatmulArgs* args) noexcept nogil:
    """y := a @ b for columns `a` and rows `b`; False if the rows are not contiguous."""
    cdef Outer outer
    outer.args, outer.run, outer.itemsize = args, run, args.y_col
    if args.m * args.n * args.batch == 0:
        return True
    if args.b_col != args.y_col or args.y_row != args.n * args.y_col or args.a_row % args.y_col:
        return False
    if args.m * args.n * args.batch < OUTER_CHUNK:
        run_rows(&outer, 0, args.batch * args.m)
    else:
        parallel_for(run_rows, &outer, args.batch * args.m, 1 + OUTER_CHUNK // args.n)
    return True


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Outer* outer = <Outer*>context
    cdef const MatmulArgs* args = outer.args
    cdef Py_ssize_t matrix, row, rows
    while begin < end:
        matrix, row = begin // args.m, begin % args.m
        rows = min(end - begin, args.m - row)
        outer.run(args.a + matrix * args.a_batch + row * args.a_row,
                  args.a_row // outer.itemsize, args.b + matrix * args.b_batch,
                  args.y + matrix * args.y_batch + row * args.y_row, rows, args.n)
        begin += rows


cdef void choose_blocks(Blocks* blocks) noexcept nogil:
    """Sets the sides of the blocks: for the BLAS by the shape alone."""
    cdef const MatmulArgs* args = blocks.args
    if blocks.wide and pool_threads == 1:       # the bits of panels do not depend on blocks
        blocks.rows, blocks.cols = args.m, args.n
    elif args.m == 1 or args.n == 1:
        blocks.rows = even_part(args.m, VECTOR_CHUNK // max(1, args.k))
        blocks.cols = even_part(args.n, VECTOR_CHUNK // max(1, args.k))
        if blocks.wide:                         # panels read long rows of b fastest
            blocks.cols = max(blocks.cols, LONG)
    else:
        blocks.cols = even_part(args.n, BLOCK_COLS)
        blocks.rows = even_part(args.m, BLOCK_ROWS if blocks.cols < args.n else BLOCK_ROWS_ALONE)
        halve(blocks)
    blocks.down = parts_of(args.m, blocks.rows)
    blocks.across = parts_of(args.n, blocks.cols)


cdef void halve(Blocks* blocks) noexcept nogil:
    """Cuts blocks into halves while there are too few to share, the longer side first."""
    cdef const MatmulArgs* args = blocks.args
    cdef Py_ssize_t* side
    while (args.batch * parts_of(args.m, blocks.rows) * parts_of(args.n, blocks.cols) < FEW
           and times(blocks.rows * blocks.cols, args.k) >= 2 * BLOCK_PRODUCTS):
        side = &blocks.rows if blocks.rows > blocks.cols else &blocks.cols
        if side[0] < 2 * SHORT_SIDE:
            return
        side[0] = even_part(side[0], side[0] // 2)


cdef inline Py_ssize_t parts_of(Py_ssize_t side, Py_ssize_t part) noexcept nogil:
    return (side + part - 1) // part


cdef Py_ssize_t even_part(Py_ssize_t side, Py_ssize_t least) noexcept nogil:
    """The size of 2**i equal parts of `side`, each at least `least`, rounded up to 16."""
    cdef Py_ssize_t parts = 1
    while side // (2 * parts) >= max(16, least):
        parts *= 2
    return max(16, parts_of(parts_of(side, parts), 16) * 16)


cdef void run_blocks(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Blocks* blocks = <Blocks*>context
    cdef const MatmulArgs* args = blocks.args
    cdef Py_ssize_t block, matrix, row, col
    for block in range(begin, end):
        matrix = block // (blocks.down * blocks.across)
        row = block // blocks.across % blocks.down * blocks.rows
        col = block % blocks.across * blocks.cols
        call_loop(blocks, matrix, 1, row, min(blocks.rows, args.m - row),
                  col, min(blocks.cols, args.n - col))


cdef void run_matrices(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Blocks* blocks = <Blocks*>context
    call_loop(blocks, begin, end - begin, 0, blocks.args.m, 0, blocks.args.n)


cdef void call_loop(Blocks* blocks, Py_ssize_t matrix, Py_ssize_t matrices, Py_ssize_t row,
                    Py_ssize_t rows, Py_ssize_t col, Py_ssize_t cols) noexcept nogil:
    cdef const MatmulArgs* args = blocks.args
    cdef char* operands[3]
    cdef Py_ssize_t[4] sizes
    cdef Py_ssize_t[9] strides
    cdef Py_ssize_t i
    if blocks.dtype == BFLOAT16:
        for i in range(matrices):
            block_by_pairs(args, Block(matrix + i, row, rows, col, cols))
        return
    if blocks.wide:
        for i in range(matrices):
            if not block_by_panels(blocks.dtype, args, blocks.row,
                                   Block(matrix + i, row, rows, col, cols)):
                break
        else:
            return
    operands[0] = args.a + matrix * args.a_batch + row * args.a_row
    operands[1] = args.b + matrix * args.b_batch + col * args.b_col
    operands[2] = args.y + matrix * args.y_batch + row * args.y_row + col * args.y_col
    sizes[:] = [matrices, rows, args.k, cols]
    strides[:] = [args.a_batch, args.b_batch, args.y_batch, args.a_row, args.a_col,
                  args.b_row, args.b_col, args.y_row, args.y_col]
    blocks.loop(operands, sizes, strides, blocks.data)
    if blocks.row != NULL:              # no memory for panels: the BLAS did not add the row
        add_row(blocks.row + col * args.y_col, args.y_col, operands[2], args.y_row, rows, cols)


cdef void hold_one_thread() noexcept nogil:
    """Makes the BLAS use one thread until the matching release, which restores the number."""
    global users, restore
    if blas_set_threads == NULL:
        return
    pthread_mutex_lock(&blas_mutex)
    if users == 0:
        restore = blas_get_threads()
        if restore != 1:
            blas_set_threads(1)
    users += 1
    pthread_mutex_unlock(&blas_mutex)


cdef void release_one_thread() noexcept nogil:
    global users
    if blas_set_threads == NULL:
        return
    pthread_mutex_lock(&blas_mutex)
    users -= 1
    if users == 0 and restore != 1:
        blas_set_threads(restore)
    pthread_mutex_unlock(&blas_mutex)


cdef void forget_users() noexcept nogil:
    """In a forked child: forgets the products of threads that do not exist here."""
    global users
    blas_renew_mutex()
    if users > 0 and restore != 1:
        blas_set_threads(restore)
    users = 0


cdef class one_blas_thread:
    """A context in which the BLAS uses one thread, so that LAPACK's results have the same bits for
    any number of threads."""

    def __enter__(self):
        hold_one_thread()

    def __exit__(self, *_):
        release_one_thread()


def blas_info():
    """What is known of the BLAS that NumPy uses: a dict with name, version, threads and path.

    `threads` is the number that NumPy's own calls use (tensorlib's products have their own
    threads); None if the library has no function for it.
    """
    return {**_found, "threads": _blas_threads()}


def _blas_threads():
    if blas_get_threads == NULL:
        return None
    return restore if users else blas_get_threads()


def _set_blas_threads(int n):
    """Sets the threads of the BLAS as `set_num_threads` asks, for NumPy's calls of LAPACK."""
    global restore, pool_threads
    pool_threads = n
    if blas_set_threads == NULL:
        return
    with nogil:
        pthread_mutex_lock(&blas_mutex)
        if users:
            restore = n
        else:
            blas_set_threads(n)
        pthread_mutex_unlock(&blas_mutex)


# A library, and the names of its functions that get and set threads, and describe it.
_BLAS_FUNCTIONS = [
    *[("openblas", *[f"{prefix}openblas_{name}{suffix}" for name in (
        "get_num_threads", "set_num_threads", "get_config")])
      for prefix in ("scipy_", "") for suffix in ("64_", "")],
    ("mkl", "MKL_Get_Max_Threads", "MKL_Set_Num_Threads", None),
]


def _loaded_libraries():
    """Paths of the loaded libraries with the name of a BLAS, NumPy's own first."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line[line.index("/"):].rstrip("\n") for line in maps if "/" in line}
    except OSError:
        return []
    named = [path for path in paths if re.search("blas|mkl_rt", os.path.basename(path))]
    home = os.path.dirname(os.path.dirname(numpy.__file__))
    return sorted(named, key=lambda path: (not path.startswith(home), path))


def _find_blas():
    global blas_get_threads, blas_set_threads
    cdef void* library
    cdef void* get_threads
    cdef void* set_threads
    for path in _loaded_libraries():
        library = dlopen(os.fsencode(path), RTLD_LAZY | RTLD_NOLOAD)
        if library == NULL:
            continue
        for name, get_name, set_name, describe_name in _BLAS_FUNCTIONS:
            get_threads = dlsym(library, get_name.encode())
            set_threads = dlsym(library, set_name.encode())
            if get_threads != NULL and set_threads != NULL:
                blas_get_threads = <get_threads_fn>get_threads
                blas_set_threads = <set_threads_fn>set_threads
                return {"name": name, "version": _describe(<size_t>library, describe_name),
                        "path": path}
    return {"name": "unknown", "version": "", "path": ""}


def _describe(size_t library, name):
    if name is None:
        return ""
    cdef void* describe = dlsym(<void*>library, name.encode())
    return (<describe_fn>describe)().decode() if describe != NULL else ""


# The kernels of OpenBLAS, as its description names them, that use registers of 32 bytes. It runs
# them on AMD processors with wider ones, too. With such registers, ours reach 92 to 95 % of the
# peak of a Zen 3, and those 80 to 87 %. The kernels for AVX-512 are as fast as ours in large
# products, but pack more slowly, so that smaller products take up to twice as long.
_NARROW = {"Haswell", "Zen"}
_WIDE = {"SkylakeX", "Cooperlake", "SapphireRapids"}


def _fastest_way():
    """The fastest `Way` for products of any size, by the kernels that the BLAS has chosen."""
    words = set(_found["version"].split())
    if _kernels.level in ("v3", "v4") and words & _NARROW:
        return "panels"
    return "mostly panels" if _kernels.level == "v4" and words & _WIDE else "BLAS"


def _find_loops():
    """Fills `loops`: floats with those of np.matmul, integers with our own."""
    cdef PyUFuncObject* matmul = <PyUFuncObject*><PyObject*>numpy.matmul
    cdef int i, dtype
    numbers = {numpy.dtype(name).num: dtype_id(BY_NAME[name]) for name in BY_NAME
               if name not in ("float16", "bfloat16")}
    find_by_dtype("integer_product", "product", <void**>loops)
    for dtype in range(N_DTYPES):
        loops[dtype] = loops[signed_twin(dtype)]
    for i in range(matmul.ntypes):
        dtype = numbers.get(matmul.types[3 * i], -1)
        if dtype >= 0 and loops[dtype] == NULL:
            loops[dtype] = matmul.functions[i]
            loop_data[dtype] = matmul.data[i] if matmul.data != NULL else NULL


_find_loops()
_found = _find_blas()
use_way(_fastest_way())
pthread_atfork(NULL, NULL, forget_users)
pool.followers.append(_set_blas_threads)
