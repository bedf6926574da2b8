/* y := a @ b of bfloat16 in float32, two products at once, where a processor has AVX512-BF16.

   `vdpbf16ps` adds two products of pairs to a sum of float32, so that a cycle does twice as many as
   of float32; it takes subnormal numbers for zero. A panel has 32 columns of b, two rows in each of
   its elements; pairs of a row of `a` meet them as they lie. Each element of y is one chain of sums
   over k, so that its bits do not depend on those beside it. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "products/panel_product.h"

enum { PAIR_ROWS = 6, PAIR_WIDTH = 32, PAIR_FEW = 3 };

#if defined(__AVX512F__) && defined(__AVX512BW__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define HAS_PAIRS __builtin_cpu_supports("avx512bf16")
#define PAIR_CODE __attribute__((target("avx512bf16")))
#define PAIR_INLINE static inline __attribute__((always_inline, target("avx512bf16")))

/* p := a panel of `count` columns of b (k, n), zeros behind them */
static void pair_pack(const uint16_t* b, Py_ssize_t b_row, Py_ssize_t b_col, uint32_t* p,
                      Py_ssize_t k, Py_ssize_t count) {
    Py_ssize_t l = 0;
    if (count < PAIR_WIDTH) memset(p, 0, (k + 1) / 2 * PAIR_WIDTH * sizeof(*p));
    if (b_row == 1 && b_col % 2 == 0) {     /* pairs lie together: they turn as 4 bytes do */
        panel_pack_turned_float((const float*)b, b_col / 2, (float*)p, k / 2, count);
        l = k - k % 2;
    }
    for (; l < k; l += 2) {
        const uint16_t *first = b + l * b_row, *second = first + b_row;
        uint32_t* to = p + l / 2 * PAIR_WIDTH;
        if (l + 1 == k)
            for (Py_ssize_t j = 0; j < count; j++) to[j] = first[j * b_col];
        else if (b_col == 1 && count == PAIR_WIDTH) {
            __builtin_prefetch(first + 8 * b_row);
            __builtin_prefetch(second + 8 * b_row);
            for (Py_ssize_t j = 0; j < PAIR_WIDTH; j++)
                to[j] = first[j] | (uint32_t)second[j] << 16;
        }
        else
            for (Py_ssize_t j = 0; j < count; j++)
                to[j] = first[j * b_col] | (uint32_t)second[j * b_col] << 16;
    }
}

/* The bfloat16 nearest to each, ties to even, as `brain_bits` has it */
static inline __m256i pair_rounded(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), last);
    const __mmask16 unknown = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(up, 16), unknown,
                                                       _mm512_set1_epi32(0x7FC0)));
}

enum { PAIR_SETS, PAIR_ADDS, PAIR_ROUNDS };

/* `rows` rows of y := those of a @ a panel; + y where it `how` adds; y is of bfloat16 where it
   rounds. A column that is not there is not written. */
PAIR_INLINE void pair_tile(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, void* to,
                           Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t count, int how,
                           const int rows) {
    float* y = to;
    uint16_t* rounded = to;
    const __mmask16 first = count >= 16 ? 0xFFFF : (1u << count) - 1;
    const __mmask16 last = count >= 32 ? 0xFFFF : count > 16 ? (1u << (count - 16)) - 1 : 0;
    __m512 left[PAIR_ROWS], right[PAIR_ROWS];
    _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
        left[i] = right[i] = _mm512_setzero_ps();
        if (how != PAIR_ADDS) continue;
        left[i] = _mm512_maskz_loadu_ps(first, y + i * y_row);
        right[i] = _mm512_maskz_loadu_ps(last, y + i * y_row + 16);
        /* of the next tile, where there is one */
        __builtin_prefetch(y + (i + rows) * y_row, 1);
        __builtin_prefetch(y + (i + rows) * y_row + 16, 1);
    }
    for (Py_ssize_t l = 0; l < k; l += 2, p += PAIR_WIDTH) {
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(p);
        const __m512bh b1 = (__m512bh)_mm512_loadu_si512(p + 16);
        _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
            uint32_t pair = 0;
            if (l + 1 < k) memcpy(&pair, a + i * a_row + l, sizeof(pair));
            else pair = a[i * a_row + l];
            const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
            left[i] = _mm512_dpbf16_ps(left[i], x, b0);
            right[i] = _mm512_dpbf16_ps(right[i], x, b1);
        }
    }
    _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
        if (how == PAIR_ROUNDS) {
            _mm256_mask_storeu_epi16(rounded + i * y_row, first, pair_rounded(left[i]));
            _mm256_mask_storeu_epi16(rounded + i * y_row + 16, last, pair_rounded(right[i]));
        } else {
            _mm512_mask_storeu_ps(y + i * y_row, first, left[i]);
            _mm512_mask_storeu_ps(y + i * y_row + 16, last, right[i]);
        }
    }
}

/* y (m, n) := a (m, k), with contiguous rows, @ the panel of n columns, as a tile does it */
static PAIR_CODE void pair_product(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p,
                                   char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                                   Py_ssize_t n, int how) {
    const Py_ssize_t size = how == PAIR_ROUNDS ? sizeof(uint16_t) : sizeof(float);
    Py_ssize_t tiles = (m + PAIR_ROWS - 1) / PAIR_ROWS, rows;
    for (; tiles > 0; tiles--, m -= rows, a += rows * a_row, y += rows * y_row * size) {
        rows = (m + tiles - 1) / tiles;                      /* of nearly equal heights */
        switch (rows) {
        case 6: pair_tile(a, a_row, p, y, y_row, k, n, how, 6); break;
        case 5: pair_tile(a, a_row, p, y, y_row, k, n, how, 5); break;
        case 4: pair_tile(a, a_row, p, y, y_row, k, n, how, 4); break;
        case 3: pair_tile(a, a_row, p, y, y_row, k, n, how, 3); break;
        case 2: pair_tile(a, a_row, p, y, y_row, k, n, how, 2); break;
        case 1: pair_tile(a, a_row, p, y, y_row, k, n, how, 1); break;
        }
    }
}

/* `rows` rows of y := those of pairs a[places[i] + taps[l]] @ a panel, of which one vector of
   columns is there or two; + y where it adds */
PAIR_INLINE void pair_window_tile(const uint32_t* a, const Py_ssize_t* places,
                                  const Py_ssize_t* taps, const uint32_t* p, float* y,
                                  Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t count, int adds,
                                  const int rows, const int vectors) {
    const __mmask16 first = count >= 16 ? 0xFFFF : (1u << count) - 1;
    const __mmask16 last = count >= 32 ? 0xFFFF : count > 16 ? (1u << (count - 16)) - 1 : 0;
    __m512 left[PAIR_ROWS], right[PAIR_ROWS];
    const uint32_t* at[PAIR_ROWS];
    _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
        at[i] = a + places[i];
        left[i] = right[i] = _mm512_setzero_ps();
        if (!adds) continue;
        left[i] = _mm512_maskz_loadu_ps(first, y + i * y_row);
        if (vectors == 2) right[i] = _mm512_maskz_loadu_ps(last, y + i * y_row + 16);
    }
    for (Py_ssize_t l = 0; l < k; l++, p += PAIR_WIDTH) {
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(p);
        const __m512bh b1 = (__m512bh)_mm512_loadu_si512(p + (vectors == 2 ? 16 : 0));
        const Py_ssize_t tap = taps[l];
        _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
            const __m512bh x = (__m512bh)_mm512_set1_epi32(at[i][tap]);
            left[i] = _mm512_dpbf16_ps(left[i], x, b0);
            if (vectors == 2) right[i] = _mm512_dpbf16_ps(right[i], x, b1);
        }
    }
    _Pragma("GCC unroll 6") for (int i = 0; i < rows; i++) {
        _mm512_mask_storeu_ps(y + i * y_row, first, left[i]);
        if (vectors == 2) _mm512_mask_storeu_ps(y + i * y_row + 16, last, right[i]);
    }
}

/* y (m, n) := the windows of pairs at m places @ the b (all, n) that was packed into p, of their
   taps [first, first + k); y += it for all parts but the first */
static PAIR_CODE void pair_windows(const uint32_t* a, const Py_ssize_t* places,
                                   const Py_ssize_t* taps, const uint32_t* p, Py_ssize_t first,
                                   Py_ssize_t k, Py_ssize_t all, float* y, Py_ssize_t y_row,
                                   Py_ssize_t m, Py_ssize_t n) {
    taps += first;
    p += first * PAIR_WIDTH;
    for (Py_ssize_t j = 0; j < n; j += PAIR_WIDTH, p += all * PAIR_WIDTH) {
        Py_ssize_t tiles = (m + PAIR_ROWS - 1) / PAIR_ROWS, rows;
        for (Py_ssize_t i = 0; i < m; i += rows, tiles--) {     /* of nearly equal heights */
            rows = (m - i + tiles - 1) / tiles;
            switch (n - j > 16 ? rows : rows + PAIR_ROWS) {
#define PAIR_WINDOWS(R, VECTORS) \
    case R + (2 - VECTORS) * PAIR_ROWS: \
        pair_window_tile(a, places + i, taps, p, y + i * y_row + j, y_row, k, n - j, first > 0, \
                         R, VECTORS); \
        break;
            PAIR_WINDOWS(6, 2) PAIR_WINDOWS(5, 2) PAIR_WINDOWS(4, 2)
            PAIR_WINDOWS(3, 2) PAIR_WINDOWS(2, 2) PAIR_WINDOWS(1, 2)
            PAIR_WINDOWS(6, 1) PAIR_WINDOWS(5, 1) PAIR_WINDOWS(4, 1)
            PAIR_WINDOWS(3, 1) PAIR_WINDOWS(2, 1) PAIR_WINDOWS(1, 1)
#undef PAIR_WINDOWS
            }
        }
    }
}

/* y (n) := x rounded to bfloat16, for products: subnormal numbers are 0 */
static PAIR_CODE void pair_round(const float* x, uint16_t* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i*)(y + i), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + i)));
    if (i < n) {
        const __mmask16 here = (1u << (n - i)) - 1;
        _mm256_mask_storeu_epi16(
            y + i, here, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(here, x + i)));
    }
}

/* y (n) := x rounded to bfloat16, as the results of products are */
static void pair_nearest(const float* x, uint16_t* y, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i += 16) {
        const __mmask16 here = n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFF;
        _mm256_mask_storeu_epi16(y + i, here, pair_rounded(_mm512_maskz_loadu_ps(here, x + i)));
    }
}

/* p (n) := pairs of a and b, or of a and 0 where b is NULL */
static void pair_mix(const uint16_t* a, const uint16_t* b, uint32_t* p, Py_ssize_t n) {
    if (b == NULL)
        for (Py_ssize_t i = 0; i < n; i++) p[i] = a[i];
    else
        for (Py_ssize_t i = 0; i < n; i++) p[i] = a[i] | (uint32_t)b[i] << 16;
}

/* y (rows, n) := a (rows, k) @ b, of which each column is contiguous: dot products, four at once */
PAIR_INLINE void pair_dots_of(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b,
                              Py_ssize_t b_col, float* y, Py_ssize_t y_row, Py_ssize_t k,
                              Py_ssize_t n, const int rows) {
    for (Py_ssize_t j = 0; j < n; j += 4) {
        const Py_ssize_t count = n - j < 4 ? n - j : 4;
        __m512 sums[PAIR_FEW][4] = {{{0}}};
        for (Py_ssize_t l = 0; l < k; l += 32) {
            const __mmask32 here = k - l >= 32 ? ~0u : (1u << (k - l)) - 1;
            __m512bh x[PAIR_FEW];
            _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
                x[i] = (__m512bh)_mm512_maskz_loadu_epi16(here, a + i * a_row + l);
            _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) {
                const uint16_t* from = b + (j + (c < count ? c : 0)) * b_col + l;
                const __m512bh w = (__m512bh)_mm512_maskz_loadu_epi16(here, from);
                _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
                    sums[i][c] = _mm512_dpbf16_ps(sums[i][c], x[i], w);
            }
        }
        _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
            _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++)
                if (c < count) y[i * y_row + j + c] = _mm512_reduce_add_ps(sums[i][c]);
    }
}

/* The same where each row of b is contiguous: eight of them at a time, from end to end as memory is
   read fastest. Two rows are mixed into pairs, four columns from every eight in each register. */
PAIR_INLINE void pair_rows_of(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b,
                              Py_ssize_t b_row, float* y, Py_ssize_t y_row, Py_ssize_t k,
                              Py_ssize_t n, const int rows) {
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const __m512i even = _mm512_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11,
                                           16, 17, 18, 19, 24, 25, 26, 27);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
    for (Py_ssize_t l = 0; l < k; l += 8) {
        const Py_ssize_t depth = k - l < 8 ? k - l : 8;
        uint16_t near[PAIR_FEW][8] = {{0}};
        uint32_t pairs[PAIR_FEW][4];
        for (int i = 0; i < rows; i++) memcpy(near[i], a + i * a_row + l, 2 * depth);
        memcpy(pairs, near, sizeof(pairs));
        for (Py_ssize_t j = 0; j < n; j += 32) {
            const uint32_t here = n - j >= 32 ? ~0u : (1u << (n - j)) - 1;
            __m512 sums[PAIR_FEW][2] = {{{0}}};
            if (l > 0)
                _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++) {
                    const __m512 s0 = _mm512_maskz_loadu_ps(here, y + i * y_row + j);
                    const __m512 s1 = _mm512_maskz_loadu_ps(here >> 16, y + i * y_row + j + 16);
                    sums[i][0] = _mm512_permutex2var_ps(s0, even, s1);
                    sums[i][1] = _mm512_permutex2var_ps(s0, odd, s1);
                }
            _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) {
                const uint16_t* from = b + (l + 2 * c) * b_row + j;
                const __m512i first = _mm512_maskz_loadu_epi16(2 * c < depth ? here : 0, from);
                const __m512i second = _mm512_maskz_loadu_epi16(2 * c + 1 < depth ? here : 0,
                                                                from + b_row);
                const __m512bh w0 = (__m512bh)_mm512_unpacklo_epi16(first, second);
                const __m512bh w1 = (__m512bh)_mm512_unpackhi_epi16(first, second);
                _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++) {
                    const __m512bh x = (__m512bh)_mm512_set1_epi32(pairs[i][c]);
                    sums[i][0] = _mm512_dpbf16_ps(sums[i][0], x, w0);
                    sums[i][1] = _mm512_dpbf16_ps(sums[i][1], x, w1);
                }
            }
            _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++) {
                const __m512 s0 = sums[i][0], s1 = sums[i][1];
                float* to = y + i * y_row + j;
                _mm512_mask_storeu_ps(to, here, _mm512_permutex2var_ps(s0, low, s1));
                _mm512_mask_storeu_ps(to + 16, here >> 16, _mm512_permutex2var_ps(s0, high, s1));
            }
        }
    }
}

/* y (m, n) := a (m, k) @ b for at most PAIR_FEW rows, contiguous, which are worth no packing */
static PAIR_CODE void pair_few(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b,
                               Py_ssize_t b_row, Py_ssize_t b_col, float* y, Py_ssize_t y_row,
                               Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {
    switch (b_col == 1 ? m : m + PAIR_FEW) {
    case 1: pair_rows_of(a, a_row, b, b_row, y, y_row, k, n, 1); break;
    case 2: pair_rows_of(a, a_row, b, b_row, y, y_row, k, n, 2); break;
    case 3: pair_rows_of(a, a_row, b, b_row, y, y_row, k, n, 3); break;
    case 4: pair_dots_of(a, a_row, b, b_col, y, y_row, k, n, 1); break;
    case 5: pair_dots_of(a, a_row, b, b_col, y, y_row, k, n, 2); break;
    case 6: pair_dots_of(a, a_row, b, b_col, y, y_row, k, n, 3); break;
    }
}
#else
#define HAS_PAIRS 0
static void pair_windows(const uint32_t* a, const Py_ssize_t* places, const Py_ssize_t* taps,
                         const uint32_t* p, Py_ssize_t first, Py_ssize_t k, Py_ssize_t all,
                         float* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n) {}
static void pair_mix(const uint16_t* a, const uint16_t* b, uint32_t* p, Py_ssize_t n) {}
static void pair_nearest(const float* x, uint16_t* y, Py_ssize_t n) {}
static void pair_round(const float* x, uint16_t* y, Py_ssize_t n) {}
static void pair_pack(const uint16_t* b, Py_ssize_t b_row, Py_ssize_t b_col, uint32_t* p,
                      Py_ssize_t k, Py_ssize_t count) {}
static void pair_product(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, char* y,
                         Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n, int how) {}
static void pair_few(const uint16_t* a, Py_ssize_t a_row, const uint16_t* b, Py_ssize_t b_row,
                     Py_ssize_t b_col, float* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                     Py_ssize_t n) {}
#endif
