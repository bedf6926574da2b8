/* y := a @ b for a `b` that was packed into panels: for products too small for a BLAS to be worth
   its call, and for a `b` that many products share.

   A panel has two vectors of columns of b, row after row, filled with zeros behind the last column.
   ROWS rows of a at a time meet a panel, with all sums in registers: 12 vectors of the 16 that
   x86-64 has before AVX-512. 16 x 64 @ 64 x 256 of float32 so takes 6 us on a core of an AMD EPYC
   7003, and by OpenBLAS 9. */
#pragma once

#include <string.h>

#if defined(__AVX512F__)
#define PANEL_BYTES 64
#elif defined(__AVX2__)
#define PANEL_BYTES 32
#else
#define PANEL_BYTES 16
#endif

enum { PANEL_ROWS = 6 };

#define PANEL_PRODUCT(T, NAME)                                                                   \
    typedef T NAME(vector) __attribute__((vector_size(PANEL_BYTES), aligned(sizeof(T)),          \
                                          may_alias));                                           \
    enum { NAME(LANES) = PANEL_BYTES / sizeof(T), NAME(WIDTH) = 2 * NAME(LANES) };               \
                                                                                                 \
    /* p := the panels of b (k, n) */                                                            \
    static void NAME(pack)(const T* b, Py_ssize_t b_row, Py_ssize_t b_col, T* p, Py_ssize_t k,   \
                           Py_ssize_t n) {                                                       \
        for (Py_ssize_t first = 0; first < n; first += NAME(WIDTH)) {                            \
            Py_ssize_t count = n - first < NAME(WIDTH) ? n - first : NAME(WIDTH);                \
            const T* from = b + first * b_col;                                                   \
            if (count < NAME(WIDTH)) memset(p, 0, k * NAME(WIDTH) * sizeof(T));                  \
            if (b_col == 1 && count == NAME(WIDTH)) {                                            \
                for (Py_ssize_t l = 0; l < k; l++)                                               \
                    memcpy(p + l * NAME(WIDTH), from + l * b_row, NAME(WIDTH) * sizeof(T));      \
            } else if (b_col == 1) {                                                             \
                for (Py_ssize_t l = 0; l < k; l++)                                               \
                    for (Py_ssize_t j = 0; j < count; j++)                                       \
                        p[l * NAME(WIDTH) + j] = from[l * b_row + j];                            \
            } else {                                                                             \
                for (Py_ssize_t j = 0; j < count; j++)                                           \
                    for (Py_ssize_t l = 0; l < k; l++)                                           \
                        p[l * NAME(WIDTH) + j] = from[l * b_row + j * b_col];                    \
            }                                                                                    \
            p += k * NAME(WIDTH);                                                                \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* `rows` rows of y := those of a @ one panel, of which `count` columns are wanted */        \
    static inline __attribute__((always_inline)) void NAME(tile)(                                \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, T* y, Py_ssize_t y_row,  \
            Py_ssize_t k, Py_ssize_t count, const int rows) {                                    \
        NAME(vector) left[PANEL_ROWS] = {{0}}, right[PANEL_ROWS] = {{0}};                        \
        for (Py_ssize_t l = 0; l < k; l++) {                                                     \
            NAME(vector) b0 = *(const NAME(vector)*)(p + l * NAME(WIDTH));                       \
            NAME(vector) b1 = *(const NAME(vector)*)(p + l * NAME(WIDTH) + NAME(LANES));         \
            _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {                             \
                T x = a[i * a_row + l * a_col];                                                  \
                left[i] += x * b0;                                                               \
                right[i] += x * b1;                                                              \
            }                                                                                    \
        }                                                                                        \
        _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {                                 \
            if (count == NAME(WIDTH)) {                                                          \
                *(NAME(vector)*)(y + i * y_row) = left[i];                                       \
                *(NAME(vector)*)(y + i * y_row + NAME(LANES)) = right[i];                        \
            } else {                                                                             \
                T part[NAME(WIDTH)];                                                             \
                *(NAME(vector)*)part = left[i];                                                  \
                *(NAME(vector)*)(part + NAME(LANES)) = right[i];                                 \
                for (Py_ssize_t j = 0; j < count; j++) y[i * y_row + j] = part[j];               \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* y (m, n) := a (m, k) @ the b that was packed into p */                                    \
    static void NAME(product)(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, T* y,  \
                              Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {      \
        for (Py_ssize_t first = 0; first < n; first += NAME(WIDTH)) {                            \
            Py_ssize_t count = n - first < NAME(WIDTH) ? n - first : NAME(WIDTH), i = 0;         \
            T* to = y + first;                                                                   \
            for (; i + PANEL_ROWS <= m; i += PANEL_ROWS)                                         \
                NAME(tile)(a + i * a_row, a_row, a_col, p, to + i * y_row, y_row, k, count, 6);  \
            const T* x = a + i * a_row;                                                          \
            to += i * y_row;                                                                     \
            switch (m - i) {                                                                     \
            case 5: NAME(tile)(x, a_row, a_col, p, to, y_row, k, count, 5); break;               \
            case 4: NAME(tile)(x, a_row, a_col, p, to, y_row, k, count, 4); break;               \
            case 3: NAME(tile)(x, a_row, a_col, p, to, y_row, k, count, 3); break;               \
            case 2: NAME(tile)(x, a_row, a_col, p, to, y_row, k, count, 2); break;               \
            case 1: NAME(tile)(x, a_row, a_col, p, to, y_row, k, count, 1); break;               \
            }                                                                                    \
            p += k * NAME(WIDTH);                                                                \
        }                                                                                        \
    }

#define PANEL_FLOAT(x) panel_##x##_float
#define PANEL_DOUBLE(x) panel_##x##_double
PANEL_PRODUCT(float, PANEL_FLOAT)
PANEL_PRODUCT(double, PANEL_DOUBLE)
