"""Decompositions of small matrices, for batches: `small_matrices.h`, once for each dtype.

All have one signature; what a function does not take or give is NULL. Matrices of n rows lie one
after the other, by rows; k is the number of columns on the right-hand side.

    void run(const T* a, const T* b, T* x, T* y, T* z, Py_ssize_t count, Py_ssize_t n, Py_ssize_t k)
"""

from tensorlib._kernels import FLOATS, rows_for

cdef extern from *:
    """
    #include <stdint.h>
    #define REAL float
    #define INT int32_t
    #define ROOT __builtin_sqrtf
    #define NAME(x) small_##x##_float
    #include "products/small_matrices.h"
    #undef REAL
    #undef INT
    #undef ROOT
    #undef NAME
    #define REAL double
    #define INT int64_t
    #define ROOT __builtin_sqrt
    #define NAME(x) small_##x##_double
    #include "products/small_matrices.h"
    """
    void small_cholesky_float()
    void small_solve_float()
    void small_inverse_float()
    void small_determinant_float()
    void small_eigen_float()
    void small_lu_float()
    void small_qr_float()
    void small_singular_float()
    void small_cholesky_double()
    void small_solve_double()
    void small_inverse_double()
    void small_determinant_double()
    void small_eigen_double()
    void small_lu_double()
    void small_qr_double()
    void small_singular_double()


def table():
    """(name, input dtypes, output dtype, address) of every function"""
    return rows_for(FLOATS, [
        ("cholesky", <size_t>&small_cholesky_float, <size_t>&small_cholesky_double),
        ("solve", <size_t>&small_solve_float, <size_t>&small_solve_double),
        ("inverse", <size_t>&small_inverse_float, <size_t>&small_inverse_double),
        ("determinant", <size_t>&small_determinant_float, <size_t>&small_determinant_double),
        ("eigen", <size_t>&small_eigen_float, <size_t>&small_eigen_double),
        ("lu", <size_t>&small_lu_float, <size_t>&small_lu_double),
        ("qr", <size_t>&small_qr_float, <size_t>&small_qr_double),
        ("singular", <size_t>&small_singular_float, <size_t>&small_singular_double),
    ])
