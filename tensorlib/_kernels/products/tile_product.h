/* y := a @ b of bfloat16 in float32, where a processor has AMX: tiles of 16 x 32 elements of a meet
   tiles of 16 pairs x 16 columns of b, which are eight thousand products in 16 cycles.

   The panels are those of `pair_product.h`, whose rows of pairs are what a tile of b takes. An
   element of y is one chain of sums over k as there; of 32 products the instruction adds those with
   an even place and those with an odd one, and then both (Intel's manual, TDPBF16PS), so that the
   last bits are others. It takes subnormal numbers for zero too. */
#pragma once

#include "products/pair_product.h"

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

typedef struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];              /* of a row */
    uint8_t rows[16];
} tile_shape;

/* All of 16 rows of 64 bytes */
TILE_INLINE tile_shape tile_full_shapes(void) {
    tile_shape shapes;
    memset(&shapes, 0, sizeof(shapes));
    shapes.palette = 1;
    for (int i = 0; i < 8; i++) {
        shapes.bytes[i] = 64;
        shapes.rows[i] = TILE_ROWS;
    }
    return shapes;
}

/* Tiles 0 to 3 are sums, of which 2 and 3 have the lower rows; 4 and 5 are of a, 6 and 7 of b. */
TILE_INLINE void tile_shapes(int upper, int lower) {
    tile_shape shapes = tile_full_shapes();
    shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = upper;
    shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = lower;
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

/* What is behind the last whole TILE_DEPTH of k, with zeros behind it */
typedef struct {
    Py_ssize_t depth;
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
    if (rest->depth) {
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

static TILE_CODE void tile_product_granted(const uint16_t* a, Py_ssize_t a_row, const uint32_t* p,
                                           char* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,
                                           Py_ssize_t n, int how) {
    const Py_ssize_t size = how == PAIR_ROUNDS ? sizeof(uint16_t) : sizeof(float);
    tile_rest rest;
    rest.depth = k % TILE_DEPTH;
    if (rest.depth) {
        const Py_ssize_t pairs = (rest.depth + 1) / 2 * PAIR_WIDTH;
        memset(rest.a, 0, sizeof(rest.a));
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
        tile_product_granted(a, a_row, p, y, y_row, m, k, n, how);
    else
        pair_product(a, a_row, p, y, y_row, m, k, n, how);
}

/* Windows. Taps that lie beside each other, such as those of a row of a window, are a run. It has
   whole tiles of 16 pairs, and one of what is left. Sixteen windows at equal distances are rows of
   such tiles where they lie; others are copied. Where runs would take many tiles, all windows are
   copied, and their taps are one run: so the order of sums depends on the taps alone. */

enum { WINDOW_ROWS = 4 * TILE_ROWS, WINDOW_DEPTH = 256, HALF_DEPTH = TILE_DEPTH / 2 };

/* Where each run begins, how long it is, and how many pairs are left of all of them */
typedef struct {
    Py_ssize_t count, left, begin[WINDOW_DEPTH], pairs[WINDOW_DEPTH];
} tile_runs;

/* Sixteen windows, so many bytes from each other. Run r of the first one is at + step[r]. */
typedef struct {
    const uint32_t* at;
    const Py_ssize_t* step;
    Py_ssize_t apart;
} tile_row;

/* The runs of k taps; one of all, where they have different rests or take many tiles */
static void tile_find_runs(const Py_ssize_t* taps, Py_ssize_t k, tile_runs* runs) {
    Py_ssize_t tiles = 0;
    runs->count = 0;
    for (Py_ssize_t l = 0, begin = 0; l < k; l++)
        if (l + 1 == k || taps[l + 1] != taps[l] + 1) {
            runs->begin[runs->count] = begin;
            runs->pairs[runs->count++] = l + 1 - begin;
            tiles += (l - begin) / HALF_DEPTH + 1;
            begin = l + 1;
        }
    runs->left = runs->pairs[0] % HALF_DEPTH;
    int alike = tiles <= (k + HALF_DEPTH - 1) / HALF_DEPTH * 2 + 1;
    for (Py_ssize_t r = 1; r < runs->count; r++)
        alike = alike && runs->pairs[r] % HALF_DEPTH == runs->left;
    if (alike) return;
    runs->count = 1;
    runs->begin[0] = 0;
    runs->pairs[0] = k;
    runs->left = k % HALF_DEPTH;
}

/* Tiles 0 to 3 are sums; 4 and 6 are of a, 5 and 7 of b, the latter of `left` pairs. */
TILE_INLINE void tile_window_shapes(int left) {
    tile_shape shapes = tile_full_shapes();
    if (left > 0) {
        shapes.bytes[6] = left * sizeof(uint32_t);
        shapes.rows[7] = left;
    }
    TILE_SEES(&shapes);
    _tile_loadconfig(&shapes);
}

/* near (rows, row) := the windows at these places */
TILE_INLINE void tile_copy(const uint32_t* a, const Py_ssize_t* places, const Py_ssize_t* taps,
                           Py_ssize_t k, uint32_t* near, Py_ssize_t row, Py_ssize_t rows) {
    for (Py_ssize_t l = 0, n; l < k; l += n) {
        for (n = 1; n < HALF_DEPTH && l + n < k && taps[l + n] == taps[l] + n; n++) continue;
        const __mmask16 here = 0xFFFF >> (HALF_DEPTH - n);
        const uint32_t* from = a + taps[l];
        for (Py_ssize_t i = 0; i < rows; i++)        /* what is behind is overwritten, or no tap */
            _mm512_storeu_si512(near + i * row + l,
                                _mm512_maskz_loadu_epi32(here, from + places[i]));
    }
}

/* y := or += some tiles of windows @ the first 16 columns of a panel, or @ all 32 where it is
   `wide`: up to four tiles, or two. Sums 2 and 3 are those of the last two, or of the columns
   behind the first 16. */
TILE_INLINE void tile_windows_block(const tile_row* x, int tiles, const tile_runs* runs,
                                    const uint32_t* p, float* y, Py_ssize_t y_row, int adds,
                                    const int wide) {
    const Py_ssize_t size = y_row * sizeof(*y), p_row = PAIR_WIDTH * sizeof(*p);
    float* y2 = wide ? y + 16 : y + 2 * TILE_ROWS * y_row;
    float* y1 = y + TILE_ROWS * y_row;
    float* y3 = y2 + TILE_ROWS * y_row;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (adds) {
        _tile_loadd(0, y, size);
        if (tiles > 1) _tile_loadd(1, y1, size);
        if (wide || tiles > 2) _tile_loadd(2, y2, size);
        if (wide ? tiles > 1 : tiles > 3) _tile_loadd(3, y3, size);
    }
#define TILE_STEP(A, B)                                                    \
    _tile_loadd(B, b, p_row);                                              \
    _tile_loadd(A, x[0].at + x[0].step[r] + l, x[0].apart);                \
    _tile_dpbf16ps(0, A, B);                                               \
    if (tiles > 1) {                                                       \
        _tile_loadd(A, x[1].at + x[1].step[r] + l, x[1].apart);            \
        _tile_dpbf16ps(1, A, B);                                           \
    }                                                                      \
    if (!wide && tiles > 2) {                                              \
        _tile_loadd(A, x[2].at + x[2].step[r] + l, x[2].apart);            \
        _tile_dpbf16ps(2, A, B);                                           \
        if (tiles > 3) {                                                   \
            _tile_loadd(A, x[3].at + x[3].step[r] + l, x[3].apart);        \
            _tile_dpbf16ps(3, A, B);                                       \
        }                                                                  \
    }                                                                      \
    if (wide) {                                                            \
        _tile_loadd(B, b + 16, p_row);                                     \
        if (tiles > 1) _tile_dpbf16ps(3, A, B);                            \
        _tile_loadd(A, x[0].at + x[0].step[r] + l, x[0].apart);            \
        _tile_dpbf16ps(2, A, B);                                           \
    }
    for (Py_ssize_t r = 0; r < runs->count; r++) {
        const uint32_t* b = p + runs->begin[r] * PAIR_WIDTH;
        Py_ssize_t l = 0;
        for (; l + HALF_DEPTH <= runs->pairs[r]; l += HALF_DEPTH, b += HALF_DEPTH * PAIR_WIDTH) {
            TILE_STEP(4, 5)
        }
        if (l < runs->pairs[r]) {
            TILE_STEP(6, 7)
        }
    }
#undef TILE_STEP
    _tile_stored(0, y, size);
    if (tiles > 1) _tile_stored(1, y1, size);
    if (wide || tiles > 2) _tile_stored(2, y2, size);
    if (wide ? tiles > 1 : tiles > 3) _tile_stored(3, y3, size);
}

/* y (rows, n) := or += these windows @ all panels */
TILE_INLINE void tile_windows_rows(const tile_row* x, const tile_runs* runs,
                                   const uint32_t* p, Py_ssize_t all, float* y, Py_ssize_t y_row,
                                   Py_ssize_t rows, Py_ssize_t n, int adds) {
    float near[WINDOW_ROWS * 16];
    for (Py_ssize_t j = 0; j < n; j += PAIR_WIDTH, p += all * PAIR_WIDTH) {
        const int wide = n - j > 16, high = (wide ? 2 : 4) * TILE_ROWS, across = wide ? 32 : 16;
        const uint32_t here = n - j < across ? (1u << (n - j)) - 1 : ~0u;
        for (Py_ssize_t i = 0; i < rows; i += high) {
            const Py_ssize_t some = rows - i < high ? rows - i : high;
            const int tiles = (some + TILE_ROWS - 1) / TILE_ROWS;
            const int straight = some % TILE_ROWS == 0 && n - j >= across;
            float* to = y + i * y_row + j;
            float* sums = straight ? to : near;
            const Py_ssize_t row = straight ? y_row : across;
            for (Py_ssize_t q = 0; adds && !straight && q < some; q++)
                for (int c = 0; c < across; c += 16)
                    _mm512_storeu_ps(near + q * row + c,
                                     _mm512_maskz_loadu_ps(here >> c, to + q * y_row + c));
            TILE_SEES(sums);
            if (wide)
                tile_windows_block(x + i / TILE_ROWS, tiles, runs, p, sums, row, adds, 1);
            else
                tile_windows_block(x + i / TILE_ROWS, tiles, runs, p, sums, row, adds, 0);
            for (Py_ssize_t q = 0; !straight && q < some; q++)
                for (int c = 0; c < across; c += 16)
                    _mm512_mask_storeu_ps(to + q * y_row + c, here >> c,
                                          _mm512_loadu_ps(near + q * row + c));
        }
    }
}

/* As `pair_windows` */
static TILE_CODE void tile_windows(const uint32_t* a, const Py_ssize_t* places,
                                   const Py_ssize_t* taps, const uint32_t* p, Py_ssize_t first,
                                   Py_ssize_t k, Py_ssize_t all, float* y, Py_ssize_t y_row,
                                   Py_ssize_t m, Py_ssize_t n) {
    uint32_t near[WINDOW_ROWS * (WINDOW_DEPTH + HALF_DEPTH)];
    Py_ssize_t steps[WINDOW_DEPTH];
    tile_row x[WINDOW_ROWS / TILE_ROWS];
    tile_runs runs;
    if (!tiles_granted()) {
        pair_windows(a, places, taps, p, first, k, all, y, y_row, m, n);
        return;
    }
    for (Py_ssize_t l = first; l < first + k; l += WINDOW_DEPTH) {
        const Py_ssize_t depth = first + k - l < WINDOW_DEPTH ? first + k - l : WINDOW_DEPTH;
        const Py_ssize_t row = depth + HALF_DEPTH;
        tile_find_runs(taps + l, depth, &runs);
        const int lie_there = runs.count > 1 || taps[l + depth - 1] == taps[l] + depth - 1;
        for (Py_ssize_t r = 0; r < runs.count; r++) steps[r] = taps[l + runs.begin[r]];
        tile_window_shapes(runs.left);
        for (Py_ssize_t i = 0; i < m; i += WINDOW_ROWS) {
            const Py_ssize_t rows = m - i < WINDOW_ROWS ? m - i : WINDOW_ROWS;
            for (Py_ssize_t r = 0; r < rows; r += TILE_ROWS) {
                const Py_ssize_t* at = places + i + r;
                tile_row* tile = &x[r / TILE_ROWS];
                int even = lie_there && rows - r >= TILE_ROWS;
                for (int s = 2; even && s < TILE_ROWS; s++)
                    even = at[s] - at[s - 1] == at[1] - at[0];
                if (even) {
                    *tile = (tile_row){a + at[0], steps, (at[1] - at[0]) * sizeof(*a)};
                    continue;
                }
                *tile = (tile_row){near + r * row, runs.begin, row * sizeof(*a)};
                tile_copy(a, at, taps + l, depth, near + r * row, row,
                          rows - r < TILE_ROWS ? rows - r : TILE_ROWS);
            }
            TILE_SEES(near);
            tile_windows_rows(x, &runs, p + l * PAIR_WIDTH, all, y + i * y_row, y_row, rows, n,
                              l > 0);
        }
    }
    _tile_release();
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
