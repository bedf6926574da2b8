/* The greatest elements of windows beside each other and their places, and the means of such
   windows, in the compiler's vector types.

   Plain loops over the windows of a row, one for each element of a window, spend most of their time
   before the first and after the last whole vector: a row of a plane often has 7 or 14 windows.
   Here some windows go through all of their elements in registers, and the last ones of a row,
   where they are fewer, together with some that were there before. 2 x 2 windows of 28 x 28 planes
   take a quarter of the time. */
#pragma once

#include <stdint.h>

#if defined(__clang__)
#define EVERY_SECOND(MASK, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EVERY_SECOND(MASK, a, b, ...) __builtin_shuffle(a, b, (MASK){__VA_ARGS__})
#endif

/* N windows; I: integers as wide as T, which hold the places of a plane. The rest are the lanes of
   every second element of two vectors, the second of which begins N - 1 elements after the first.
*/
#define POOL_WINDOWS(T, I, N, ...)                                                                \
    typedef T pool_##T##N __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)),          \
                                         may_alias));                                             \
    typedef I pool_places_##T##N __attribute__((vector_size(N * sizeof(I)), may_alias));          \
                                                                                                  \
    static inline pool_##T##N pool_read_##T##N(const T* x, Py_ssize_t step) {                     \
        pool_##T##N read = *(const pool_##T##N*)x;                                                \
        if (step == 2)                                                                            \
            return EVERY_SECOND(pool_places_##T##N, read, *(const pool_##T##N*)(x + N - 1),       \
                                __VA_ARGS__);                                                     \
        if (step != 1)                                                                            \
            for (int k = 1; k < N; k++) read[k] = x[k * step];                                    \
        return read;                                                                              \
    }                                                                                             \
                                                                                                  \
    static inline __attribute__((always_inline)) void pool_maxima_##T##N(                         \
            const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps, Py_ssize_t step,               \
            Py_ssize_t first, T* y, int64_t* at) {                                                \
        pool_places_##T##N beside, places, better;                                                \
        pool_##T##N best = pool_read_##T##N(x + taps[0] + first * step, step);                    \
        for (int k = 0; k < N; k++) beside[k] = (I)((first + k) * step);                          \
        places = beside + (I)taps[0];                                                             \
        for (Py_ssize_t tap = 1; tap < n_taps; tap++) {                                           \
            pool_##T##N value = pool_read_##T##N(x + taps[tap] + first * step, step);             \
            better = (pool_places_##T##N)(value > best) | (pool_places_##T##N)(value != value);   \
            best = (pool_##T##N)((better & (pool_places_##T##N)value)                             \
                                 | (~better & (pool_places_##T##N)best));                         \
            if (at) places = (better & (beside + (I)taps[tap])) | (~better & places);             \
        }                                                                                         \
        *(pool_##T##N*)(y + first) = best;                                                        \
        for (int k = 0; k < (at ? N : 0); k++) at[first + k] = places[k];                         \
    }                                                                                             \
                                                                                                  \
    static inline void pool_means_##T##N(const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps,   \
                                         Py_ssize_t step, Py_ssize_t first, T divisor, T* y) {    \
        pool_##T##N total = {0};                                                                  \
        for (Py_ssize_t tap = 0; tap < n_taps; tap++)                                             \
            total += pool_read_##T##N(x + taps[tap] + first * step, step);                        \
        *(pool_##T##N*)(y + first) = total / divisor;                                             \
    }

/* WIDE and FEW: lanes of the vectors that rows of many and of few windows are looked at with */
#define POOL_ROW(T, WIDE, FEW)                                                                    \
    static inline __attribute__((always_inline)) void pool_windows_##T(                           \
            const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps, Py_ssize_t step, Py_ssize_t n, \
            T* y, int64_t* at) {                                                                  \
        Py_ssize_t k = 0;                                                                         \
        for (; k + WIDE <= n; k += WIDE)                                                          \
            pool_maxima_##T##WIDE(x, taps, n_taps, step, k, y, at);                               \
        if (n < WIDE) pool_maxima_##T##FEW(x, taps, n_taps, step, 0, y, at);                      \
        if (n < WIDE) pool_maxima_##T##FEW(x, taps, n_taps, step, n - FEW, y, at);                \
        else if (k < n) pool_maxima_##T##WIDE(x, taps, n_taps, step, n - WIDE, y, at);            \
    }                                                                                             \
                                                                                                  \
    /* y, at := the greatest elements, NaN before others, of n windows `step` apart, at least     \
       four, and, unless `at` is NULL, their places in the plane x. taps: those of the elements   \
       of the first window */                                                                     \
    static void pool_row_##T(const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps,               \
                             Py_ssize_t step, Py_ssize_t n, T* y, int64_t* at) {                  \
        if (at) pool_windows_##T(x, taps, n_taps, step, n, y, at);                                \
        else pool_windows_##T(x, taps, n_taps, step, n, y, NULL);                                 \
    }                                                                                             \
                                                                                                  \
    /* y := the sums of such windows, each in the order of the taps, over a number */             \
    static void pool_mean_row_##T(const T* x, const Py_ssize_t* taps, Py_ssize_t n_taps,          \
                                  Py_ssize_t step, Py_ssize_t n, T divisor, T* y) {               \
        Py_ssize_t k = 0;                                                                         \
        for (; k + WIDE <= n; k += WIDE)                                                          \
            pool_means_##T##WIDE(x, taps, n_taps, step, k, divisor, y);                           \
        if (n < WIDE) pool_means_##T##FEW(x, taps, n_taps, step, 0, divisor, y);                  \
        if (n < WIDE) pool_means_##T##FEW(x, taps, n_taps, step, n - FEW, divisor, y);            \
        else if (k < n) pool_means_##T##WIDE(x, taps, n_taps, step, n - WIDE, divisor, y);        \
    }

/* Of vectors that the processor does not have GCC 12 makes scalar code. */
POOL_WINDOWS(float, int32_t, 4, 0, 2, 5, 7)
#if defined(__AVX2__)
POOL_WINDOWS(float, int32_t, 8, 0, 2, 4, 6, 9, 11, 13, 15)
POOL_WINDOWS(double, int64_t, 4, 0, 2, 5, 7)
POOL_ROW(float, 8, 4)
POOL_ROW(double, 4, 4)
#else
POOL_WINDOWS(double, int64_t, 2, 0, 3)
POOL_ROW(float, 4, 4)
POOL_ROW(double, 2, 2)
#endif
