/* y := a @ b for row-major b and y of a fixed number of columns, in the compiler's vector types.

   Plain loops over a row of 8 floats are not vectorised by gcc 12 (100 ns for 8x8, where these take
   20). A row must fit one register: gcc 12 sends wider ones through memory. The tests hold the
   results equal to those of the BLAS. */
#pragma once

#define SMALL_PRODUCT(name, T, columns)                                                          \
    static void name(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* b, T* y,           \
                     Py_ssize_t m, Py_ssize_t k) {                                               \
        typedef T row __attribute__((vector_size(columns * sizeof(T)), aligned(sizeof(T)),       \
                                     may_alias));                                                \
        for (Py_ssize_t i = 0; i < m; i++) {                                                     \
            row total = {0};                                                                     \
            for (Py_ssize_t l = 0; l < k; l++)                                                   \
                total += a[i * a_row + l * a_col] * *(const row*)(b + l * columns);              \
            *(row*)(y + i * columns) = total;                                                    \
        }                                                                                        \
    }

SMALL_PRODUCT(product_4_float, float, 4)
SMALL_PRODUCT(product_8_float, float, 8)
SMALL_PRODUCT(product_16_float, float, 16)
SMALL_PRODUCT(product_4_double, double, 4)
SMALL_PRODUCT(product_8_double, double, 8)
