/* The greatest and the least element of rows of contiguous floats; NaN where there is one.

   A comparison with NaN is false, so that the extreme of the others goes on, and the NaN are
   counted apart. Four registers run down the row, and the last of them again over what is left. By
   the fold of `fold.pxi`, which asks for NaN at every step, 512 rows of 512 float32 take half as
   long again. */
#pragma once

#include "row_sum.h"

#define ROW_EXTREMES(T, I, NAME, WINS)                                                           \
    static inline T better_##NAME##_##T(T a, T b) {                                              \
        T most = b WINS a ? b : a;                                                               \
        return b != b ? b : most;                                                                \
    }                                                                                            \
                                                                                                 \
    /* y[i] := the extreme of row i, for rows of n elements, n at least four registers */        \
    static void row_##NAME##_##T(const T* x, T* y, Py_ssize_t rows, Py_ssize_t n) {              \
        enum { LANES = 4 * REGISTER / sizeof(T), LEFT = 4 };                                     \
        T ends[ROWS_AT_ONCE * LEFT];                                                             \
        for (Py_ssize_t first = 0; first < rows; first += ROWS_AT_ONCE) {                        \
            Py_ssize_t here = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;         \
            for (Py_ssize_t r = 0; r < here; r++, x += n) {                                      \
                T most[LANES];                                                                   \
                I unlike[LANES];                                                                 \
                for (int k = 0; k < LANES; k++) most[k] = x[k], unlike[k] = x[k] != x[k];        \
                for (Py_ssize_t i = LANES; i < n; i += LANES) {                                  \
                    const T* at = x + (i < n - LANES ? i : n - LANES);                           \
                    for (int k = 0; k < LANES; k++) {                                            \
                        most[k] = at[k] WINS most[k] ? at[k] : most[k];                          \
                        unlike[k] |= at[k] != at[k];                                             \
                    }                                                                            \
                }                                                                                \
                for (int half = LANES / 2; half >= LEFT; half /= 2)                              \
                    for (int k = 0; k < half; k++) {                                             \
                        most[k] = most[half + k] WINS most[k] ? most[half + k] : most[k];        \
                        unlike[k] |= unlike[half + k];                                           \
                    }                                                                            \
                for (int k = 0; k < LEFT; k++)                                                   \
                    ends[r * LEFT + k] = unlike[k] ? (T)__builtin_nan("") : most[k];             \
            }                                                                                    \
            for (Py_ssize_t r = 0; r < here; r++) {                                              \
                const T* end = ends + r * LEFT;                                                  \
                y[first + r] = better_##NAME##_##T(better_##NAME##_##T(end[0], end[1]),          \
                                                   better_##NAME##_##T(end[2], end[3]));         \
            }                                                                                    \
        }                                                                                        \
    }

ROW_EXTREMES(float, int, greatest, >)
ROW_EXTREMES(float, int, least, <)
ROW_EXTREMES(double, long long, greatest, >)
ROW_EXTREMES(double, long long, least, <)
