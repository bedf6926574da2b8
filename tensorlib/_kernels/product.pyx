"""Products of small matrices, which cost less here than a call of the BLAS.

A loop computes y := a @ b for row-major b and y of 4, 8 or 16 columns; `a` has any strides, in
elements. The BLAS takes a lock for its buffer and copies both operands first. Called by
`_core/product`.

    void run(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* b, T* y,
             Py_ssize_t m, Py_ssize_t k)
"""

cdef extern from "small_product.h" nogil:
    void product_4_float()
    void product_8_float()
    void product_16_float()
    void product_4_double()
    void product_8_double()
    const int REGISTER "__BIGGEST_ALIGNMENT__"      # bytes of the widest register


def table():
    """(name, input dtypes, output dtype, address) of every loop whose rows fit a register"""
    return [(f"product_{n}", (dtype,) * 2, dtype, address) for n, dtype, size, address in (
        (4, "float32", 4, <size_t>&product_4_float),
        (8, "float32", 4, <size_t>&product_8_float),
        (16, "float32", 4, <size_t>&product_16_float),
        (4, "float64", 8, <size_t>&product_4_double),
        (8, "float64", 8, <size_t>&product_8_double)) if n * size <= REGISTER]
