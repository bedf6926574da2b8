"""Products of matrices of integers, which wrap as integers do.

NumPy's loop for them goes down the columns of b: at 256 x 256 of int64 it took sixty times as long.
A loop has the signature of NumPy's for `np.matmul`, whose place it takes in `_core/products/blas`:

    void run(char** operands, const Py_ssize_t* sizes, const Py_ssize_t* strides, void* data)

with operands a, b, y, sizes (matrices, m, k, n) and strides in bytes: of the matrices of each, then
of rows and columns of each. Rows of y are contiguous.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

ctypedef fused integer:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t


cdef inline integer at(const char* x, Py_ssize_t offset, integer like) noexcept nogil:
    return (<const integer*>(x + offset))[0]


cdef inline integer wrapped(integer a, integer b) noexcept nogil:
    """a * b without a signed overflow"""
    return <integer>(<uint64_t>a * <uint64_t>b)


cdef void add_rows(const integer* b0, const integer* b1, const integer* b2, const integer* b3,
                   const integer* factors, integer* y, Py_ssize_t n) noexcept nogil:
    """y += four rows of b, each times its factor"""
    cdef Py_ssize_t j
    cdef integer f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3]
    for j in range(n):
        y[j] = <integer>(<uint64_t>y[j] + wrapped(f0, b0[j]) + wrapped(f1, b1[j])
                         + wrapped(f2, b2[j]) + wrapped(f3, b3[j]))


cdef enum:
    # Sides of a block of b, which stays in the first-level cache while all rows of y pass
    DEPTH = 16
    WIDTH = 256
    NARROW = 8           # columns of y below which each is a sum of its own


cdef void by_rows(const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* b,
                  Py_ssize_t b_row, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                  Py_ssize_t n, integer like) noexcept nogil:
    """One matrix y, where the rows of b are contiguous."""
    cdef Py_ssize_t i, j, l, first, width
    cdef integer* row
    for i in range(m):
        row = <integer*>(y + i * y_row)
        for j in range(n):
            row[j] = 0
    for j in range(0, n, 256):                   # WIDTH; Cython wants the sign of a step
        width = min(<Py_ssize_t>WIDTH, n - j)
        for first in range(0, k, 16):            # DEPTH
            for i in range(m):
                for l in range(first, min(k, first + DEPTH), 4):
                    add_products(a + i * a_row + l * a_col, a_col,
                                 b + l * b_row + j * <Py_ssize_t>sizeof(integer), b_row,
                                 <integer*>(y + i * y_row) + j, min(<Py_ssize_t>4, k - l), width)


cdef inline void add_products(const char* a, Py_ssize_t a_col, const char* b, Py_ssize_t b_row,
                              integer* y, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """y += k elements of a row of a, at most four, times as many rows of b"""
    cdef integer factors[4]
    cdef const char* rows[4]
    cdef Py_ssize_t l
    for l in range(4):
        factors[l] = at(a, l * a_col, y[0]) if l < k else 0
        rows[l] = b + (l if l < k else 0) * b_row
    add_rows(<const integer*>rows[0], <const integer*>rows[1], <const integer*>rows[2],
             <const integer*>rows[3], factors, y, n)


cdef void by_columns(const char* a, Py_ssize_t a_col, const char* b, Py_ssize_t b_row,
                     Py_ssize_t b_col, integer* y, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
    """One row of y, each element a product of a row of a with a column of b."""
    cdef Py_ssize_t j, l
    cdef uint64_t total
    cdef const char* column
    for j in range(n):
        column = b + j * b_col
        total = 0
        if a_col == sizeof(integer) and b_row == sizeof(integer):
            for l in range(k):
                total += wrapped((<const integer*>a)[l], (<const integer*>column)[l])
        else:
            for l in range(k):
                total += wrapped(at(a, l * a_col, y[0]), at(column, l * b_row, y[0]))
        y[j] = <integer>total


cdef void product(char** operands, const Py_ssize_t* sizes, const Py_ssize_t* strides,
                  const integer* data) noexcept nogil:
    """y[i] := a[i] @ b[i] for each matrix i"""
    cdef Py_ssize_t matrix, i
    cdef integer kind = 0
    cdef const char* a
    cdef const char* b
    cdef char* y
    for matrix in range(sizes[0]):
        a = operands[0] + matrix * strides[0]
        b = operands[1] + matrix * strides[1]
        y = operands[2] + matrix * strides[2]
        if strides[6] == sizeof(integer) and sizes[3] >= NARROW:
            by_rows(a, strides[3], strides[4], b, strides[5], y, strides[7], sizes[1], sizes[2],
                    sizes[3], kind)
            continue
        for i in range(sizes[1]):
            by_columns(a + i * strides[3], strides[4], b, strides[5], strides[6],
                       <integer*>(y + i * strides[7]), sizes[2], sizes[3])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return [("product", (dtype,) * 2, dtype, address) for dtype, address in (
        ("uint8", <size_t>&product[uint8_t]), ("int8", <size_t>&product[int8_t]),
        ("int16", <size_t>&product[int16_t]), ("int32", <size_t>&product[int32_t]),
        ("int64", <size_t>&product[int64_t]))]
