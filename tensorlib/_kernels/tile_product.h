/* y := a @ b of bfloat16 in float32, where a processor has AMX: tiles of 16 x 32 elements of a meet
   tiles of 16 pairs x 16 columns of b, which are eight thousand products in 16 cycles.

   The panels are those of `pair_product.h`, whose rows of pairs are what a tile of b takes. An
   element of y is one chain of sums over k as there; of 32 products the instruction adds those with
   an even place and those with an odd one, and then both (Intel's manual, TDPBF16PS), so that the
   last bits are others. It takes subnormal numbers for zero too. */
#pragma once

#include "pair_product.h"

/* by compilers that know these instructions and the names of the features */
#if defined(PAIR_CODE) && defined(__linux__) && __GNUC__ >= 12 && !defined(__clang__)
#include <sys/syscall.h>
#include <unistd.h>

#define TILE_CODE __attribute__((target("avx512bf16,amx-tile,amx-bf16")))
#define TILE_INLINE \
    static inline __attribute__((always_inline, target("avx512bf16,amx-tile,amx-bf16")))

enum { TILE_ROWS = 16, TILE_DEPTH = 32 };

/* What was written is in memory: GCC 12 does not know that tiles are loaded from there. */
#define TILE_SEES(address) __asm__ volatile("" : : "r"(address) : "memory")

/* Whether tiles may be used here: Linux has a process ask for their 8 KB of state, once. */
static int tiles_granted(void) {
    enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18, UNKNOWN = 0, GRANTED = 1, REFUSED = 2 };
    static int known = UNKNOWN;
    int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (state == UNKNOWN) {
        const int has = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16");
        state = has && syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA) == 0 ? GRANTED : REFUSED;
        __atomic_store_n(&known, state, __ATOMIC_RELAXED);
    }
    return state == GRANTED;
}

/* Tiles 0 to 3 are sums, of which 2 and 3 have the lower rows; 4 and 5 are of a, 6 and 7 of b. */
TILE_INLINE void tile_shapes(int upper, int lower) {
    struct { uint8_t palette, start, unused[14]; uint16_t bytes[16]; uint8_t rows[16]; } shapes;
    memset(&shapes, 0, sizeof(shapes));
    shapes.palette = 1;
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = 64;
        shapes.rows[i] = i == 2 || i == 3 || i == 5 ? lower : i > 5 ? TILE_ROWS : upper;
    }
    if (lower == 0)      /* no shape: what uses it is left out */
        shapes.bytes[2] = shapes.bytes[3] = shapes.bytes[5] = 0;
    TILE_SEES(&shapes);
    _tile_loadconfig(&shapes);
}

/* The sums, of so many rows of a and all columns of a panel; `both` where there are lower rows */
TILE_INLINE void tile_chain(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, Py_ssize_t k,
                            const int both) {
    const Py_ssize_t stride = a_row * sizeof(*a);
    for (Py_ssize_t l = 0; l < k; l += TILE_DEPTH, p += TILE_DEPTH / 2 * PAIR_WIDTH) {
        _tile_loadd(6, p, PAIR_WIDTH * sizeof(*p));
        _tile_loadd(4, a + l, stride);
        _tile_loadd(7, p + 16, PAIR_WIDTH * sizeof(*p));
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (!both) continue;
        _tile_loadd(5, a + TILE_ROWS * a_row + l, stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* What is behind the last whole TILE_DEPTH of k, with zeros behind it; those of a may lie there */
typedef struct {
    Py_ssize_t depth;
    int lies_there;
    uint16_t a[2 * TILE_ROWS][TILE_DEPTH];
    uint32_t p[TILE_DEPTH / 2 * PAIR_WIDTH];
} tile_rest;

/* `rows` rows of y := those of a @ a panel, as `how` says; the shapes of tiles are set */
TILE_INLINE void tile_block(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, char* to,
                            Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t count, int how, int rows,
                            tile_rest* rest, const int both) {
    const int straight = count == PAIR_WIDTH && how != PAIR_ROUNDS;
    const __mmask16 first = count >= 16 ? 0xFFFF : (1u << count) - 1;
    const __mmask16 last = count >= 32 ? 0xFFFF : count > 16 ? (1u << (count - 16)) - 1 : 0;
    float near[2 * TILE_ROWS][PAIR_WIDTH];
    float* y = (float*)to;
    float* sums = straight ? y : &near[0][0];
    const Py_ssize_t sums_row = straight ? y_row : PAIR_WIDTH;
    if (how == PAIR_ADDS && !straight)
        for (int i = 0; i < rows; i++) {
            _mm512_storeu_ps(near[i], _mm512_maskz_loadu_ps(first, y + i * y_row));
            _mm512_storeu_ps(near[i] + 16, _mm512_maskz_loadu_ps(last, y + i * y_row + 16));
        }
    TILE_SEES(near);
    if (how == PAIR_ADDS) {
        _tile_loadd(0, sums, sums_row * sizeof(*sums));
        _tile_loadd(1, sums + 16, sums_row * sizeof(*sums));
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    if (both && how == PAIR_ADDS) {
        _tile_loadd(2, sums + TILE_ROWS * sums_row, sums_row * sizeof(*sums));
        _tile_loadd(3, sums + TILE_ROWS * sums_row + 16, sums_row * sizeof(*sums));
    } else if (both) {
        _tile_zero(2);
        _tile_zero(3);
    }
    tile_chain(a, a_row, p, k - rest->depth, both);
    if (rest->depth && rest->lies_there)
        tile_chain(a + k - rest->depth, a_row, rest->p, TILE_DEPTH, both);
    else if (rest->depth) {
        for (int i = 0; i < rows; i++)
            memcpy(rest->a[i], a + i * a_row + k - rest->depth, rest->depth * sizeof(*a));
        TILE_SEES(rest);
        tile_chain(rest->a[0], TILE_DEPTH, rest->p, TILE_DEPTH, both);
    }
    _tile_stored(0, sums, sums_row * sizeof(*sums));
    _tile_stored(1, sums + 16, sums_row * sizeof(*sums));
    if (both) {
        _tile_stored(2, sums + TILE_ROWS * sums_row, sums_row * sizeof(*sums));
        _tile_stored(3, sums + TILE_ROWS * sums_row + 16, sums_row * sizeof(*sums));
    }
    if (straight) return;
    for (int i = 0; i < rows; i++) {
        const __m512 left = _mm512_loadu_ps(near[i]), right = _mm512_loadu_ps(near[i] + 16);
        if (how == PAIR_ROUNDS) {
            uint16_t* rounded = (uint16_t*)to + i * y_row;
            _mm256_mask_storeu_epi16(rounded, first, pair_rounded(left));
            _mm256_mask_storeu_epi16(rounded + 16, last, pair_rounded(right));
        } else {
            _mm512_mask_storeu_ps(y + i * y_row, first, left);
            _mm512_mask_storeu_ps(y + i * y_row + 16, last, right);
        }
    }
}

/* `zeros`: behind each row of a there are some, to a whole TILE_DEPTH */
static TILE_CODE void tile_product_granted(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p,
                                           char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                                           Py_ssize_t n, int how, int zeros) {
    const Py_ssize_t size = how == PAIR_ROUNDS ? sizeof(uint16_t) : sizeof(float);
    tile_rest rest;
    rest.depth = k % TILE_DEPTH;
    rest.lies_there = zeros;
    if (rest.depth) {
        const Py_ssize_t pairs = (rest.depth + 1) / 2 * PAIR_WIDTH;
        if (!zeros) memset(rest.a, 0, sizeof(rest.a));
        memset(rest.p, 0, sizeof(rest.p));
        memcpy(rest.p, p + (k - rest.depth) / 2 * PAIR_WIDTH, pairs * sizeof(*p));
    }
    if (m >= 2 * TILE_ROWS) tile_shapes(TILE_ROWS, TILE_ROWS);
    for (; m >= 2 * TILE_ROWS; m -= 2 * TILE_ROWS) {
        tile_block(a, a_row, p, y, y_row, k, n, how, 2 * TILE_ROWS, &rest, 1);
        a += 2 * TILE_ROWS * a_row;
        y += 2 * TILE_ROWS * y_row * size;
    }
    if (m > TILE_ROWS) {
        tile_shapes(TILE_ROWS, m - TILE_ROWS);
        tile_block(a, a_row, p, y, y_row, k, n, how, m, &rest, 1);
    } else if (m > 0) {
        tile_shapes(m, 0);
        tile_block(a, a_row, p, y, y_row, k, n, how, m, &rest, 0);
    }
    _tile_release();
}

/* y (m, n) := a (m, k), with contiguous rows, @ the panel of n columns, by tiles where there are
   some, or by vectors */
static void tile_product(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, char* y,
                         Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n, int how) {
    if (tiles_granted())
        tile_product_granted(a, a_row, p, y, y_row, m, k, n, how, 0);
    else
        pair_product(a, a_row, p, y, y_row, m, k, n, how);
}
/* y (n) := x */
TILE_INLINE void tile_copy(const uint32_t* x, uint32_t* y, Py_ssize_t n) {
    for (; n > 16; x += 16, y += 16, n -= 16)
        _mm512_storeu_si512(y, _mm512_loadu_si512(x));
    const __mmask16 here = 0xFFFF >> (16 - n);
    _mm512_mask_storeu_epi32(y, here, _mm512_maskz_loadu_epi32(here, x));
}

/* As `pair_windows`. The windows of some places are copied together, DEPTH pairs of each at a time
   and by runs of taps beside each other, and meet all panels. */
static TILE_CODE void tile_windows(const uint32_t* a, const Py_ssize_t* places,
                                   const Py_ssize_t* taps, const uint32_t* p, Py_ssize_t first,
                                   Py_ssize_t k, Py_ssize_t all, float* y, Py_ssize_t y_row,
                                   Py_ssize_t m, Py_ssize_t n) {
    enum { WINDOW_ROWS = 2 * TILE_ROWS, DEPTH = 288 };
    uint32_t near[WINDOW_ROWS * DEPTH];
    if (!tiles_granted()) {
        pair_windows(a, places, taps, p, first, k, all, y, y_row, m, n);
        return;
    }
    for (Py_ssize_t l = first; l < first + k; l += DEPTH) {
        const Py_ssize_t depth = first + k - l < DEPTH ? first + k - l : DEPTH;
        const Py_ssize_t row = (depth + TILE_DEPTH / 2 - 1) / (TILE_DEPTH / 2) * (TILE_DEPTH / 2);
        const Py_ssize_t most = WINDOW_ROWS * DEPTH / row / WINDOW_ROWS * WINDOW_ROWS;
        int run_of[DEPTH], runs = 0;                         /* how long each is */
        for (Py_ssize_t t = 0, begin = 0; t < depth; t++)
            if (t + 1 == depth || taps[l + t + 1] != taps[l + t] + 1) {
                run_of[runs++] = t + 1 - begin;
                begin = t + 1;
            }
        for (Py_ssize_t i = 0; i < m; i += most) {
            const Py_ssize_t rows = m - i < most ? m - i : most;
            for (Py_ssize_t r = 0; r < rows; r++) {
                uint32_t* to = near + r * row;
                const Py_ssize_t* tap = taps + l;
                for (int s = 0; s < runs; tap += run_of[s], to += run_of[s], s++)
                    tile_copy(a + places[i + r] + *tap, to, run_of[s]);
                for (; to < near + (r + 1) * row; to++) *to = 0;
            }
            for (Py_ssize_t j = 0; j < n; j += PAIR_WIDTH)
                tile_product_granted((const uint16_t*)near, 2 * row, p + j * all + l * PAIR_WIDTH,
                                     (char*)(y + i * y_row + j), y_row, rows, 2 * depth,
                                     n - j < PAIR_WIDTH ? n - j : PAIR_WIDTH,
                                     l > 0 ? PAIR_ADDS : PAIR_SETS, 1);
        }
    }
}
#else
static void tile_product(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p, char* y,
                         Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n, int how) {
    pair_product(a, a_row, p, y, y_row, m, k, n, how);
}

static void tile_windows(const uint32_t* a, const Py_ssize_t* places, const Py_ssize_t* taps,
                         const uint32_t* p, Py_ssize_t first, Py_ssize_t k, Py_ssize_t all,
                         float* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n) {
    pair_windows(a, places, taps, p, first, k, all, y, y_row, m, n);
}
#endif
