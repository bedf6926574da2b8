/* Sums of half types, which are converted to float32 in registers.

   For 65,536 elements they take 2.9 us along rows and 3.0 us along columns; with a block of float32
   in the L1 cache it took 4.8 and 5.8. */
#pragma once

#include "types/half.h"
#include "rows/row_fold.h"

#define COLUMNS 512          /* that are summed together */

typedef uint16_t row_short __attribute__((vector_size(REGISTER / 2), aligned(2), may_alias));
typedef uint32_t row_word __attribute__((vector_size(REGISTER)));

/* a register of float32 of bfloat16 and of float16, as in half_types.pxd */
static inline row_float of_brains(const uint16_t* x) {
#if defined(__AVX512F__)     /* of the plain line GCC 12 makes what takes 1.6 times as long */
    return (row_float)_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)x)), 16);
#elif defined(__AVX2__)
    return (row_float)_mm256_slli_epi32(
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)x)), 16);
#else
    return (row_float)(__builtin_convertvector(*(const row_short*)x, row_word) << 16);
#endif
}

static inline row_float of_halves(const uint16_t* x) {
#if defined(HALF_WIDTH)
    return (row_float)load_half(x);
#else
    row_word wide = __builtin_convertvector(*(const row_short*)x, row_word);
    row_word value = (row_word)((row_float)((wide & 0x7FFF) << 13) * 0x1p112f);
    value |= (row_word)((wide & 0x7C00) == 0x7C00) & 0x7F800000;
    return (row_float)(value | (wide & 0x8000) << 16);
#endif
}

#define BRAIN(T, x) of_brains(x)
#define HALF(T, x) of_halves(x)

/* NAME: of what TAKE makes of uint16_t */
#define COLUMN_SUMS(NAME, TAKE)                                                                  \
    /* y[j] := x[0, j] + x[1, j] + ... of n rows `stride` apart, j < width <= COLUMNS, and width  \
       no less than a register. Four rows are read together; LEAF_ROUNDS of them are added one   \
       after the other. */                                                                       \
    static void NAME##_tile(const uint16_t* x, float* y, Py_ssize_t n, Py_ssize_t stride,        \
                            Py_ssize_t width) {                                                  \
        enum { LANES = REGISTER / 4, LEAF_ROWS = 4 * LEAF_ROUNDS };                              \
        row_float sums[COLUMNS / LANES];                                                         \
        Py_ssize_t blocks = (width + LANES - 1) / LANES, i, b;                                   \
        if (n > LEAF_ROWS) {                                                                     \
            float right[COLUMNS];                                                                \
            Py_ssize_t half = (n / 2 + LEAF_ROWS - 1) / LEAF_ROWS * LEAF_ROWS;                   \
            NAME##_tile(x, y, half, stride, width);                                              \
            NAME##_tile(x + half * stride, right, n - half, stride, width);                      \
            for (b = 0; b < width; b++) y[b] += right[b];                                        \
            return;                                                                              \
        }                                                                                        \
        for (b = 0; b < blocks; b++) sums[b] = (row_float){0} - 0.0f;                            \
        for (i = 0; i < n; i += 4, x += 4 * stride)                                              \
            for (b = 0; b < blocks; b++) {                                                       \
                const uint16_t* p = x + (b < blocks - 1 ? b * LANES : width - LANES);            \
                row_float more = TAKE(float, p);                                                 \
                if (i + 1 < n) more += TAKE(float, p + stride);                                  \
                if (i + 3 < n) more += TAKE(float, p + 2 * stride) + TAKE(float, p + 3 * stride);\
                else if (i + 2 < n) more += TAKE(float, p + 2 * stride);                         \
                sums[b] += more;                                                                 \
            }                                                                                    \
        memcpy(y, sums, (blocks - 1) * REGISTER);                                                \
        memcpy(y + width - LANES, sums + blocks - 1, REGISTER);                                  \
    }                                                                                            \
                                                                                                 \
    static void column_##NAME(const uint16_t* x, float* y, Py_ssize_t n, Py_ssize_t stride,      \
                              Py_ssize_t begin, Py_ssize_t end) {                                \
        for (Py_ssize_t width; begin < end; begin += width) {                                    \
            width = end - begin;                                                                 \
            if (width > COLUMNS) width = width < 2 * COLUMNS ? width / 2 : COLUMNS;              \
            NAME##_tile(x + begin, y + begin, n, stride, width);                                 \
        }                                                                                        \
    }

ROW_GATHER(uint16_t)
ROW_FOLD(float, uint16_t, brain_sums, +, 0, 16, BRAIN)
ROW_FOLD(float, uint16_t, half_sums, +, 0, 16, HALF)
COLUMN_SUMS(brain_sums, BRAIN)
COLUMN_SUMS(half_sums, HALF)
