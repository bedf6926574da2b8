"""Reductions of contiguous memory: which loop runs, and how its work is cut for the pool.

Memory is seen as (outer, n, inner), and reduced over n to (outer, inner). Each function
returns 0, NO_LOOP if there is no loop for the dtype, or NO_MEMORY.

Reductions take five `sizes`: outer, n, inner, the step from one slice (of outer) to the next, and
the step from one row (of n) to the next, both in elements; a step is 0 where all slices or rows are
the same. Rows may have gaps between them, or be the same, only if they are at least GAPPED_BYTES
long. Half types have no gaps at all.
"""

from libc.stdint cimport int64_t

cdef enum:  # reductions
    SUM
    PROD
    SQUARES
    ANY
    ALL
    MAX
    MIN
    ARGMAX
    ARGMIN
    NANSUM                   # float32 and float64

cdef enum:  # row kinds
    SOFTMAX
    LOG_SOFTMAX
    LOGSUMEXP
    SOFTMAX_BACKWARD
    LOG_SOFTMAX_BACKWARD

cdef enum:
    NO_LOOP = -1
    NO_MEMORY = -2
    RELEASE_GIL = 16384      # elements from which on the callers release the GIL
    GAPPED_BYTES = 256       # LANE_BYTES of the kernels

# How the n elements of a slice lie: in rows of `row` elements, each `apart` from the next; the rows
# begin `down` apart. Both steps are in elements.
ctypedef struct Gaps:
    Py_ssize_t row, down, apart

ctypedef void (*fold_fn)(void* tag, const char* x, const char* c, char* y, Py_ssize_t outer,
                         Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                         Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil

# The results of half types are float32, those of sums and products of integers int64.
cdef int reduce_run(int kind, int dtype, const char* x, const char* center, char* y,
                    const Py_ssize_t* sizes) noexcept nogil

cdef fold_fn fold_loop(int kind, int dtype) noexcept nogil

cdef Py_ssize_t short_row() noexcept nogil

cdef bint has_gapped(int kind, int dtype) noexcept nogil

cdef int gapped_run(int kind, int dtype, const char* x, char* y, const Py_ssize_t* sizes,
                    const Gaps* gaps) noexcept nogil

cdef int reduced_in(int kind, int dtype) noexcept nogil

cdef int added_up(int kind) noexcept nogil

cdef int index_run(int kind, int dtype, const char* x, char* y, int64_t* at,
                   const Py_ssize_t* sizes) noexcept nogil

cdef int rows_run(int kind, int dtype, const char* g, const char* x, char* y, Py_ssize_t rows,
                  Py_ssize_t n) noexcept nogil

cdef int scan_run(int dtype, const char* x, char* y, Py_ssize_t outer, Py_ssize_t n,
                  Py_ssize_t inner) noexcept nogil
