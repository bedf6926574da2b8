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

/* y := a @ b for each of many pairs of matrices, b of so few columns that plain numbers hold a row
   of sums; strides in elements, y contiguous. A panel or a register would be mostly zeros: 1,000
   products of 3 x 3 take 10 us so, and 60 by panels. */
#define NARROW_PRODUCTS(name, T, columns)                                                        \
    static void name(const T* a, const Py_ssize_t* a_steps, const T* b,                          \
                     const Py_ssize_t* b_steps, T* y, Py_ssize_t batch, Py_ssize_t m,            \
                     Py_ssize_t k) {                                                             \
        const Py_ssize_t a_row = a_steps[1], a_col = a_steps[2];                                 \
        const Py_ssize_t b_row = b_steps[1], b_col = b_steps[2];                                 \
        for (; batch > 0; batch--, a += a_steps[0], b += b_steps[0])                             \
            for (Py_ssize_t i = 0; i < m; i++, y += columns) {                                   \
                T total[columns] = {0};                                                          \
                for (Py_ssize_t l = 0; l < k; l++) {                                             \
                    const T x = a[i * a_row + l * a_col];                                        \
                    const T* row = b + l * b_row;                                                \
                    for (int j = 0; j < columns; j++) total[j] += x * row[j * b_col];            \
                }                                                                                \
                for (int j = 0; j < columns; j++) y[j] = total[j];                               \
            }                                                                                    \
    }

NARROW_PRODUCTS(narrow_1_float, float, 1)
NARROW_PRODUCTS(narrow_2_float, float, 2)
NARROW_PRODUCTS(narrow_3_float, float, 3)
NARROW_PRODUCTS(narrow_4_float, float, 4)
NARROW_PRODUCTS(narrow_1_double, double, 1)
NARROW_PRODUCTS(narrow_2_double, double, 2)
NARROW_PRODUCTS(narrow_3_double, double, 3)
NARROW_PRODUCTS(narrow_4_double, double, 4)
