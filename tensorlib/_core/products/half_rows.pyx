"""Products of matrices of half types by a vector: some rows at a time become float32.

Each element is read once, so that a copy of the whole matrix would take most of the time: a matrix
of 1,000 x 1,000 took 370 us with it.
"""

from tensorlib._core.base.dtypes cimport FLOAT32, ITEMSIZE
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

from tensorlib._core.base.storage import OutOfMemoryError

cdef enum:
    TILE = 1 << 13       # elements that are widened together, for which no BLAS uses threads
    PIECE = 1 << 15      # elements in a piece of work

cdef struct HalfRows:
    cast_loop widen
    const char* a
    const char* b
    char* y
    Py_ssize_t k
    bint failed


cdef bint takes_half_rows(Tensor a, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept:
    return (n == 1 and ITEMSIZE[a.type] == 2 and a.packed and 0 < k <= TILE // 4
            and times(m, k) >= TILE)


cdef int multiply_half_rows(Tensor a, const char* b, char* y, Py_ssize_t m,
                            Py_ssize_t k) except -1:
    """y (m) := a (m, k) @ b (k), for matrices that `takes_half_rows`; b and y are float32

    Raises: OutOfMemoryError.
    """
    cdef HalfRows work
    work.widen, work.k, work.failed = find_cast(a.type, FLOAT32), k, False
    work.a, work.b, work.y = a.data_pointer, b, y
    share(multiply_rows, &work, y, m, 1 + PIECE // k, times(m, k) < PIECE)
    if work.failed:
        raise OutOfMemoryError("no memory for rows of a half type as float32")
    return 0


cdef void multiply_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Rows [begin, end) of the product, a tile at a time."""
    cdef HalfRows* work = <HalfRows*>context
    cdef Py_ssize_t k = work.k, rows = (TILE - 1) // k
    cdef char* tile = take_scratch(TILE * sizeof(float))
    if tile == NULL:
        work.failed = True
        return
    while begin < end:
        rows = min(rows, end - begin)
        work.widen(work.a + 2 * begin * k, tile, rows * k)
        multiply_matrices(FLOAT32, tile, k, 1, work.b, 1, 1,
                          work.y + begin * <Py_ssize_t>sizeof(float), 1, rows, k, 1)
        begin += rows
    give_scratch(tile, TILE * sizeof(float))
