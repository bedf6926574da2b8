"""The library's own matrix products, by packed panels, on memory given by pointers."""

from tensorlib._core.base.dtypes cimport COMPLEX64, COMPLEX128, FLOAT32, FLOAT64

ctypedef struct MatmulArgs:
    # y[i] := a[i] @ b[i] for each i < batch. Strides are in bytes, and may be any that NumPy has; a
    # broadcast operand has batch stride 0. y overlaps neither a nor b.
    char* a
    char* b
    char* y
    Py_ssize_t batch, m, k, n
    Py_ssize_t a_batch, b_batch, y_batch
    Py_ssize_t a_row, a_col, b_row, b_col, y_row, y_col

ctypedef struct Block:       # of the rows and columns of one product
    Py_ssize_t matrix, row, rows, col, cols

cdef bint fits_panels(int dtype, const MatmulArgs* args) noexcept nogil
cdef bint adds_row(int dtype, const MatmulArgs* args) noexcept nogil
cdef void run_by_panels(int dtype, const MatmulArgs* args, const char* row) noexcept nogil

# Whether a product of any size is faster by panels; a block of one, false if there is no memory.
cdef bint panels_are_wide(int dtype, const MatmulArgs* args) noexcept nogil
cdef bint block_by_panels(int dtype, const MatmulArgs* args, const char* added,
                          Block block) noexcept nogil

# The dtype of the parts of numbers, and how many a number has.
cdef inline int real_of(int dtype) noexcept nogil:
    return FLOAT32 if dtype == COMPLEX64 else FLOAT64 if dtype == COMPLEX128 else dtype

cdef inline Py_ssize_t parts(int dtype) noexcept nogil:
    return 2 if dtype == COMPLEX64 or dtype == COMPLEX128 else 1

# For other modules: products with a `b` that is packed once and used often; strides in elements.
# Of complex numbers rows of `a` are contiguous, and b takes twice the memory of as many elements.
cdef Py_ssize_t panels_size(Py_ssize_t k, Py_ssize_t n) noexcept nogil
cdef void pack_panels(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col, char* p,
                      Py_ssize_t k, Py_ssize_t n) noexcept nogil
cdef void pack_signed(int dtype, const char* b, Py_ssize_t b_row, Py_ssize_t b_col,
                      bint conjugated, bint negated, char* p, Py_ssize_t k,
                      Py_ssize_t n) noexcept nogil
cdef void multiply_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col,
                          const char* p, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                          Py_ssize_t n) noexcept nogil
cdef void add_panels(int dtype, const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* p,
                     char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                     Py_ssize_t n) noexcept nogil
cdef void turn(int dtype, const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row, Py_ssize_t m,
               Py_ssize_t n) noexcept nogil
cdef void multiply_windows(int dtype, const char* a, const Py_ssize_t* places,
                           const Py_ssize_t* taps, const char* p, char* y, Py_ssize_t m,
                           Py_ssize_t k, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t shortest_run(int dtype) noexcept nogil
cdef void multiply_runs(int dtype, const char* x, const Py_ssize_t* taps, const char* w, char* y,
                        Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) noexcept nogil
cdef void add_row(const char* row, Py_ssize_t size, char* y, Py_ssize_t y_row, Py_ssize_t rows,
                  Py_ssize_t cols) noexcept nogil
