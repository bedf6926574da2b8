"""Products of matrices of integers, which wrap as integers do.

NumPy's loop goes down the columns of b, and took sixty times as long for 256 x 256 of int64. These
have the signature of NumPy's loops for `np.matmul`, which they replace in `_core/products/blas`:

    void run(char** operands, const Py_ssize_t* sizes, const Py_ssize_t* strides, void* data)

with operands a, b, y, sizes (matrices, m, k, n) and strides in bytes: of the matrices of each, then
of rows and columns of each. Rows of y are contiguous.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._kernels import rows_for

ctypedef void strided_product(
    const char* a, Py_ssize_t a_row, Py_ssize_t a_col, const char* b, Py_ssize_t b_row,
    Py_ssize_t b_col, char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
    Py_ssize_t n) noexcept nogil

cdef extern from "products/integer_product.h" nogil:
    strided_product product_of_8_bits, product_of_16_bits, product_of_32_bits, product_of_64_bits

ctypedef fused integer:         # signed ones have the same bits
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void product(char** operands, const Py_ssize_t* sizes, const Py_ssize_t* strides,
                  const integer* data) noexcept nogil:
    """y[i] := a[i] @ b[i] for each matrix i"""
    cdef Py_ssize_t matrix
    cdef strided_product* run
    if integer is uint8_t:
        run = product_of_8_bits
    elif integer is uint16_t:
        run = product_of_16_bits
    elif integer is uint32_t:
        run = product_of_32_bits
    else:
        run = product_of_64_bits
    for matrix in range(sizes[0]):
        run(operands[0] + matrix * strides[0], strides[3], strides[4],
            operands[1] + matrix * strides[1], strides[5], strides[6],
            operands[2] + matrix * strides[2], strides[7], sizes[1], sizes[2], sizes[3])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(("uint8", "int8", "int16", "int32", "int64"), [
        ("product", <size_t>&product[uint8_t], <size_t>&product[uint8_t],
         <size_t>&product[uint16_t], <size_t>&product[uint32_t], <size_t>&product[uint64_t]),
    ], 2)
