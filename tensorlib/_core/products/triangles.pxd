"""Triangular systems by blocks, for modules that factor matrices."""

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, ITEMSIZE
from tensorlib._core.base.shape cimport times
from tensorlib._core.products.panel_products cimport parts
from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    # Sides of blocks, in the parts of numbers: a complex row or column counts twice.
    TRIANGLE = 64                   # rows of a block; as in the kernels
    COLUMNS = 128                   # of a right-hand side that stay in L2
    TURNED_ROWS = 256               # rows of a matrix that are transposed at once
    SYSTEM_BYTES = TRIANGLE * (COLUMNS + TURNED_ROWS) * 8
    RELEASE_GIL = 1 << 15           # multiplications from which on the GIL is released

ctypedef struct Systems:     # a @ x = x
    int dtype
    const char* a
    char* x
    Py_ssize_t n, m
    Py_ssize_t a_row, a_col  # in elements
    Py_ssize_t strips        # into which the columns of each x are cut
    bint upper, unit, failed

cdef inline Py_ssize_t size_of(int dtype) noexcept nogil:
    return ITEMSIZE[dtype]

cdef inline Py_ssize_t side(int dtype, Py_ssize_t most) noexcept nogil:
    """How many numbers a side of a block has."""
    return most // parts(dtype)

cdef inline bint takes(Tensor x) noexcept:
    """Whether these are square matrices of a dtype that there are kernels for."""
    return ((x.type == FLOAT32 or x.type == FLOAT64 or x.type == COMPLEX64 or x.type == COMPLEX128)
            and x.ndim_ >= 2 and x.dims[x.ndim_ - 1] == x.dims[x.ndim_ - 2])

cdef inline Py_ssize_t grain(Py_ssize_t each, Py_ssize_t depth) noexcept nogil:
    """How many matrices, of `each` by `depth` multiplications, are a piece of work."""
    return 1 + RELEASE_GIL // (1 + times(each, depth))

cdef void complete(int dtype, char* y, Py_ssize_t n, Py_ssize_t first,
                   Py_ssize_t rows) noexcept nogil
cdef void fill(int dtype, char* x, Py_ssize_t n, double value) noexcept nogil
cdef void substitute(int dtype, const char* l, Py_ssize_t l_row, char* t, Py_ssize_t t_row,
                     Py_ssize_t n, Py_ssize_t m) noexcept nogil
cdef void solve_columns(Systems* s, const char* a, char* x, Py_ssize_t cols,
                        char* scratch) noexcept nogil
