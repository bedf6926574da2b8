"""Products of small matrices, faster here than by a call of the BLAS.

A loop computes y := a @ b for row-major b and y of 4, 8 or 16 columns; `a` has any strides, in
elements. The BLAS takes a lock for its buffer and copies both operands first. Called by
`_core/products/product`.

    void run(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* b, T* y,
             Py_ssize_t m, Py_ssize_t k)

An outer product, y := a @ b for one column and one row, is one pass over y, limited by memory: for
256 pairs of 64 floats it takes 100 us, and 2,600 by the BLAS.

    void run(const T* a, Py_ssize_t a_row, const T* b, T* y, Py_ssize_t m, Py_ssize_t n)

Batches of products with 1 to 4 columns have a loop for each; steps: of the batch, rows and columns.

    void run(const T* a, const Py_ssize_t* a_steps, const T* b, const Py_ssize_t* b_steps, T* y,
             Py_ssize_t batch, Py_ssize_t m, Py_ssize_t k)
"""

from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for

cdef extern from "products/small_product.h" nogil:
    void product_4_float()
    void product_8_float()
    void product_16_float()
    void product_4_double()
    void product_8_double()
    void narrow_1_float()
    void narrow_2_float()
    void narrow_3_float()
    void narrow_4_float()
    void narrow_1_double()
    void narrow_2_double()
    void narrow_3_double()
    void narrow_4_double()
    const int REGISTER "__BIGGEST_ALIGNMENT__"      # bytes of the widest register


cdef void outer_run(const floating* a, Py_ssize_t a_row, const floating* b, floating* y,
                    Py_ssize_t m, Py_ssize_t n) noexcept nogil:
    """y := a @ b for a column `a` and a contiguous row `b`"""
    cdef Py_ssize_t i, j
    cdef floating factor, zero = 0
    for i in range(m):
        factor = a[i * a_row]
        for j in range(n):
            y[i * n + j] = zero + factor * b[j]     # a sum begins at +0: no -0, as from the BLAS


def table():
    """(name, input dtypes, output dtype, address) of every loop; small rows must fit a register"""
    return rows_for(FLOATS, [
        ("outer", <size_t>&outer_run[float], <size_t>&outer_run[double]),
        ("narrow_1", <size_t>&narrow_1_float, <size_t>&narrow_1_double),
        ("narrow_2", <size_t>&narrow_2_float, <size_t>&narrow_2_double),
        ("narrow_3", <size_t>&narrow_3_float, <size_t>&narrow_3_double),
        ("narrow_4", <size_t>&narrow_4_float, <size_t>&narrow_4_double),
    ]) + [(f"product_{n}", (dtype,), dtype, address) for n, dtype, size, address in (
        (4, "float32", 4, <size_t>&product_4_float),
        (8, "float32", 4, <size_t>&product_8_float),
        (16, "float32", 4, <size_t>&product_16_float),
        (4, "float64", 8, <size_t>&product_4_double),
        (8, "float64", 8, <size_t>&product_8_double)) if n * size <= REGISTER]
