/* Depthwise convolutions: products of shifted rows with numbers, and of
   rows with shifted others; and the copies of planes that these need. Memory is read to the end
   of the vector that the last element of a row is in.

   Eight registers of sums at a time hide the latency of their additions: those of one row, or of
   several that are shorter. */
#pragma once

#include <string.h>

#include "rows/row_fold.h"

enum { DEPTHWISE_WIDE = 8, DEPTHWISE_TALL = 7, DEPTHWISE_LEAF = 2048, DEPTHWISE_LANE_TAPS = 9 };

#define DEPTHWISE(T)                                                                              \
    /* sums += the products of taps that are `tall` equal rows, one below the other: what is read \
       of a row of x meets all taps above it */                                                   \
    static inline __attribute__((always_inline)) void depthwise_tall_##T(                         \
            const T* x, Py_ssize_t x_row, const Py_ssize_t* taps, const T* w, Py_ssize_t wide,    \
            row_##T* sums, int rows, int count, int tall) {                                       \
        enum { WIDTH = REGISTER / sizeof(T) };                                                    \
        for (Py_ssize_t tap = 0; tap < wide; tap++) {                                             \
            const T* at = x + taps[tap];                                                          \
            row_##T factors[DEPTHWISE_TALL];                                                      \
            _Pragma("GCC unroll 8") for (int j = 0; j < tall; j++)                                \
                factors[j] = (row_##T){0} + w[j * wide + tap];                                    \
            _Pragma("GCC unroll 16") for (int i = 0; i < rows + tall - 1; i++)                    \
                _Pragma("GCC unroll 8") for (int k = 0; k < count; k++) {                         \
                    const row_##T seen = *(const row_##T*)(at + i * x_row + k * WIDTH);           \
                    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                        \
                        if (i - r >= 0 && i - r < tall)                                           \
                            sums[r * count + k] += factors[i - r] * seen;                         \
                }                                                                                 \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* y[r, i] := sum of w[k] * x[r, taps[k] + i], of some vectors of some rows. What is written  \
       after the end of a row of y is the beginning of the next one, and is written again. */     \
    static inline __attribute__((always_inline)) void depthwise_block_##T(                        \
            const T* x, Py_ssize_t x_row, const Py_ssize_t* taps, const T* w, Py_ssize_t n_taps,  \
            T* y, Py_ssize_t y_row, int rows, int count, int tall) {                              \
        enum { WIDTH = REGISTER / sizeof(T) };                                                    \
        row_##T sums[DEPTHWISE_WIDE] = {{0}};                                                     \
        if (tall == 3 && rows > 1)                                                                \
            depthwise_tall_##T(x, x_row, taps, w, n_taps / 3, sums, rows, count, 3);              \
        else if (tall == 5 && rows > 1)                                                           \
            depthwise_tall_##T(x, x_row, taps, w, n_taps / 5, sums, rows, count, 5);              \
        else if (tall == 7 && rows > 1)                                                           \
            depthwise_tall_##T(x, x_row, taps, w, n_taps / 7, sums, rows, count, 7);              \
        else for (Py_ssize_t tap = 0; tap < n_taps; tap++) {                                      \
            const T* at = x + taps[tap];                                                          \
            const row_##T factor = (row_##T){0} + w[tap];                                         \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)                                \
                _Pragma("GCC unroll 8") for (int k = 0; k < count; k++)                           \
                    sums[r * count + k] +=                                                        \
                        factor * *(const row_##T*)(at + r * x_row + k * WIDTH);                   \
        }                                                                                         \
        for (int r = 0; r < rows; r++)                                                            \
            for (int k = 0; k < count; k++)                                                       \
                *(row_##T*)(y + r * y_row + k * WIDTH) = sums[r * count + k];                     \
    }                                                                                             \
                                                                                                  \
    /* Rows of `vectors` vectors, the last of these first: those before them come after what is   \
       written behind the end of a row. */                                                        \
    static inline __attribute__((always_inline)) void depthwise_across_##T(                       \
            const T* x, Py_ssize_t x_row, const Py_ssize_t* taps, const T* w, Py_ssize_t n_taps,  \
            T* y, Py_ssize_t y_row, int rows, Py_ssize_t vectors, int tall) {                     \
        enum { WIDTH = REGISTER / sizeof(T) };                                                    \
        const int most = DEPTHWISE_WIDE / rows;                                                   \
        Py_ssize_t k = vectors;                                                                   \
        for (; k % most; k--)                                                                     \
            depthwise_block_##T(x + (k - 1) * WIDTH, x_row, taps, w, n_taps, y + (k - 1) * WIDTH, \
                                y_row, rows, 1, tall);                                            \
        for (; k; k -= most)                                                                      \
            depthwise_block_##T(x + (k - most) * WIDTH, x_row, taps, w, n_taps,                   \
                                y + (k - most) * WIDTH, y_row, rows, most, tall);                 \
    }                                                                                             \
                                                                                                  \
    static void depthwise_products_##T(const T* x, Py_ssize_t x_row, const Py_ssize_t* taps,      \
                                       const T* w, Py_ssize_t n_taps, T* y, Py_ssize_t y_row,     \
                                       Py_ssize_t rows, Py_ssize_t n, int tall) {                 \
        enum { WIDTH = REGISTER / sizeof(T) };                                                    \
        const Py_ssize_t vectors = (n + WIDTH - 1) / WIDTH;                                       \
        Py_ssize_t r = 0;                                                                         \
        for (; vectors == 1 && r + 8 <= rows; r += 8)                                             \
            depthwise_across_##T(x + r * x_row, x_row, taps, w, n_taps, y + r * y_row, y_row, 8,  \
                                 1, tall);                                                        \
        for (; r + 4 <= rows; r += 4)                                                             \
            depthwise_across_##T(x + r * x_row, x_row, taps, w, n_taps, y + r * y_row, y_row, 4,  \
                                 vectors, tall);                                                  \
        for (; r + 2 <= rows; r += 2)                                                             \
            depthwise_across_##T(x + r * x_row, x_row, taps, w, n_taps, y + r * y_row, y_row, 2,  \
                                 vectors, tall);                                                  \
        for (; r < rows; r++)                                                                     \
            depthwise_across_##T(x + r * x_row, x_row, taps, w, n_taps, y + r * y_row, y_row, 1,  \
                                 vectors, tall);                                                  \
    }                                                                                             \
                                                                                                  \
    /* totals[k] += sum of g[i] * x[taps[k] + i], of `count` taps; leaves are added in double */  \
    static inline __attribute__((always_inline)) void depthwise_leaf_##T(                         \
            const T* g, const T* x, const Py_ssize_t* taps, double* totals, Py_ssize_t n,         \
            int count) {                                                                          \
        enum { WIDTH = REGISTER / sizeof(T) };                                                    \
        row_##T sums[DEPTHWISE_WIDE] = {{0}};                                                     \
        for (Py_ssize_t i = 0; i < n; i += WIDTH) {                                               \
            const row_##T factor = *(const row_##T*)(g + i);                                      \
            _Pragma("GCC unroll 8") for (int k = 0; k < count; k++)                               \
                sums[k] += factor * *(const row_##T*)(x + taps[k] + i);                           \
        }                                                                                         \
        for (int k = 0; k < count; k++) {                                                         \
            quad_##T end = ((const quad_##T*)&sums[k])[0];                                        \
            for (int j = 1; j < REGISTER / 16; j++) end += ((const quad_##T*)&sums[k])[j];        \
            totals[k] += LAST_##T(+, ((const T*)&end), 0);                                        \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void depthwise_dots_##T(const T* g, const T* x, const Py_ssize_t* taps,                \
                                   Py_ssize_t n_taps, double* totals, Py_ssize_t n) {             \
        for (Py_ssize_t i = 0; i < n; i += DEPTHWISE_LEAF) {                                      \
            Py_ssize_t here = n - i < DEPTHWISE_LEAF ? n - i : DEPTHWISE_LEAF, k = 0;             \
            for (; k + DEPTHWISE_WIDE <= n_taps; k += DEPTHWISE_WIDE)                             \
                depthwise_leaf_##T(g + i, x + i, taps + k, totals + k, here, DEPTHWISE_WIDE);     \
            for (; k + 3 <= n_taps; k += 3)                                                       \
                depthwise_leaf_##T(g + i, x + i, taps + k, totals + k, here, 3);                  \
            for (; k < n_taps; k++)                                                               \
                depthwise_leaf_##T(g + i, x + i, taps + k, totals + k, here, 1);                  \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* y := n elements of each of some rows of x, by moves of `size` bytes, the last of which may \
       copy again what the one before it has copied */                                            \
    static inline __attribute__((always_inline)) void depthwise_moves_##T(                        \
            const T* x, Py_ssize_t x_row, T* y, Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n,  \
            size_t size) {                                                                        \
        const Py_ssize_t step = size / sizeof(T);                                                 \
        for (Py_ssize_t r = 0; r < rows; r++, x += x_row, y += y_row) {                           \
            for (Py_ssize_t i = 0; i + step < n; i += step) memcpy(y + i, x + i, size);           \
            memcpy(y + n - step, x + n - step, size);                                             \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void depthwise_copy_##T(const T* x, Py_ssize_t x_row, T* y, Py_ssize_t y_row,          \
                                   Py_ssize_t rows, Py_ssize_t n) {                               \
        const Py_ssize_t bytes = n * (Py_ssize_t)sizeof(T);                                       \
        if (bytes >= 64) depthwise_moves_##T(x, x_row, y, y_row, rows, n, 64);                    \
        else if (bytes >= 32) depthwise_moves_##T(x, x_row, y, y_row, rows, n, 32);               \
        else if (bytes >= 16) depthwise_moves_##T(x, x_row, y, y_row, rows, n, 16);               \
        else if (n > 0) depthwise_moves_##T(x, x_row, y, y_row, rows, n, sizeof(T));              \
    }                                                                                             \
                                                                                                  \
    /* Rows of n elements to those of the even and of the odd; `odd_first`: the first is odd, and \
       the even ones begin a place later */                                                       \
    static void depthwise_split_##T(const T* x, Py_ssize_t x_row, T* even, T* odd,                \
                                    Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n,              \
                                    int odd_first) {                                              \
        for (Py_ssize_t r = 0; r < rows && n > 0; r++, x += x_row, even += y_row, odd += y_row) { \
            const T* restrict from = x + odd_first;                                               \
            T* restrict a = even + odd_first;                                                     \
            T* restrict b = odd + odd_first;                                                      \
            const Py_ssize_t rest = n - odd_first, pairs = rest / 2;                              \
            if (odd_first) odd[0] = x[0];                                                         \
            for (Py_ssize_t i = 0; i < pairs; i++) {                                              \
                a[i] = from[2 * i];                                                               \
                b[i] = from[2 * i + 1];                                                           \
            }                                                                                     \
            if (rest % 2) a[pairs] = from[2 * pairs];                                             \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* Back, of one row */                                                                        \
    static void depthwise_join_##T(const T* even, const T* odd, T* x, Py_ssize_t n,               \
                                   int odd_first) {                                               \
        const T* restrict a = even + odd_first;                                                   \
        const T* restrict b = odd + odd_first;                                                    \
        T* restrict to = x + odd_first;                                                           \
        const Py_ssize_t rest = n - odd_first, pairs = rest / 2;                                  \
        if (n <= 0) return;                                                                       \
        if (odd_first) x[0] = odd[0];                                                             \
        for (Py_ssize_t i = 0; i < pairs; i++) {                                                  \
            to[2 * i] = a[i];                                                                     \
            to[2 * i + 1] = b[i];                                                                 \
        }                                                                                         \
        if (rest % 2) to[2 * pairs] = a[pairs];                                                   \
    }

DEPTHWISE(float)
DEPTHWISE(double)

/* ---- channels beside each other, of float32 ---- */

/* y[p, c] := sum of w[order[k] + c] * x[taps[k] + p x_step + c], of a vector of channels of some
   places, which lie beside each other */
static inline __attribute__((always_inline)) void depthwise_beside(
        const float* x, Py_ssize_t x_step, const Py_ssize_t* taps, const float* w,
        const Py_ssize_t* order, Py_ssize_t n_taps, float* y, Py_ssize_t y_step, int places) {
    row_float sums[DEPTHWISE_WIDE] = {{0}};
    for (Py_ssize_t tap = 0; tap < n_taps; tap++) {
        const row_float factor = *(const row_float*)(w + order[tap]);
        _Pragma("GCC unroll 8") for (int p = 0; p < places; p++)
            sums[p] += factor * *(const row_float*)(x + taps[tap] + p * x_step);
    }
    _Pragma("GCC unroll 8") for (int p = 0; p < places; p++)
        *(row_float*)(y + p * y_step) = sums[p];
}

/* The same of all channels, which are no fewer than a vector has. Where they are no whole vectors,
   or places no eights, some are computed once more. */
static void depthwise_lane_products(const float* x, Py_ssize_t x_step, const Py_ssize_t* taps,
                                    const float* w, const Py_ssize_t* order, Py_ssize_t n_taps,
                                    float* y, Py_ssize_t y_step, Py_ssize_t places,
                                    Py_ssize_t channels) {
    enum { WIDTH = REGISTER / sizeof(float) };
    const Py_ssize_t each = places < DEPTHWISE_WIDE ? 1 : DEPTHWISE_WIDE;
    for (Py_ssize_t p = 0; p < places; p += each) {
        const Py_ssize_t first = p < places - each ? p : places - each;
        for (Py_ssize_t c = 0; c < channels; c += WIDTH) {
            const Py_ssize_t at = c < channels - WIDTH ? c : channels - WIDTH;
            const float* from = x + first * x_step + at;
            if (each == 1)
                depthwise_beside(from, x_step, taps, w + at, order, n_taps,
                                 y + first * y_step + at, y_step, 1);
            else
                depthwise_beside(from, x_step, taps, w + at, order, n_taps,
                                 y + first * y_step + at, y_step, DEPTHWISE_WIDE);
        }
    }
}

/* totals[order[k] + c] += sum of g[p g_step + c] * x[taps[k] + p x_step + c], of `count` taps, for
   a vector of channels without those that the mask has not */
static inline __attribute__((always_inline)) void depthwise_lane_leaf(
        const float* g, Py_ssize_t g_step, const float* x, Py_ssize_t x_step,
        const Py_ssize_t* taps, const Py_ssize_t* order, float* totals, Py_ssize_t places,
        bits_float mask, int count) {
    row_float sums[DEPTHWISE_LANE_TAPS] = {{0}};
    for (Py_ssize_t p = 0; p < places; p++) {
        const row_float factor = *(const row_float*)(g + p * g_step);
        _Pragma("GCC unroll 9") for (int k = 0; k < count; k++)
            sums[k] += factor * *(const row_float*)(x + taps[k] + p * x_step);
    }
    _Pragma("GCC unroll 9") for (int k = 0; k < count; k++)
        *(row_float*)(totals + order[k]) += (row_float)((bits_float)sums[k] & mask);
}

static void depthwise_lane_dots(const float* g, const float* x, Py_ssize_t x_step,
                                const Py_ssize_t* taps, const Py_ssize_t* order, Py_ssize_t n_taps,
                                float* totals, Py_ssize_t g_step, Py_ssize_t places,
                                Py_ssize_t channels) {
    enum { WIDTH = REGISTER / sizeof(float), MOST = 64 / sizeof(float) };
    for (Py_ssize_t c = 0; c < channels; c += WIDTH) {
        const Py_ssize_t at = c < channels - WIDTH ? c : channels - WIDTH;
        const bits_float mask = *(const bits_float*)(row_mask_float + MOST - (c - at));
        Py_ssize_t k = 0;
        for (; k + DEPTHWISE_LANE_TAPS <= n_taps; k += DEPTHWISE_LANE_TAPS)
            depthwise_lane_leaf(g + at, g_step, x + at, x_step, taps + k, order + k, totals + at,
                                places, mask, DEPTHWISE_LANE_TAPS);
        for (; k < n_taps; k++)
            depthwise_lane_leaf(g + at, g_step, x + at, x_step, taps + k, order + k, totals + at,
                                places, mask, 1);
    }
}
