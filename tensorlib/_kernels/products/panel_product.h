/* y := a @ b for a `b` that was packed into panels.

   A panel has two vectors of columns of b, row after row, filled with zeros behind the last column.
   ROWS rows of a at a time meet a panel, with all sums in registers: 12 vectors of the 16 that
   x86-64 has before AVX-512, or 16 of its 32 there, with which a Sapphire Rapids takes 3 to 6 %
   less time, and 10 to 20 % where a panel has one vector. Where two products of registers of 64
   bytes are done in a cycle, as on a Zen 5, this runs at 96 % of that, 130 multiplications of
   float32 in a nanosecond; what is not packed, `a`, is read row by row.

   Each element is one chain of sums over k, or a sum of such chains over parts of k, so that its
   bits do not depend on those beside it. */
#pragma once

#include <string.h>

#if defined(__AVX512F__)
#define PANEL_BYTES 64
#define PANEL_MIX_FLOAT_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define PANEL_MIX_FLOAT_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define PANEL_MIX_DOUBLE_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define PANEL_MIX_DOUBLE_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX2__)
#define PANEL_BYTES 32
#define PANEL_MIX_FLOAT_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define PANEL_MIX_FLOAT_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define PANEL_MIX_DOUBLE_LOW 0, 4, 1, 5
#define PANEL_MIX_DOUBLE_HIGH 2, 6, 3, 7
#else
#define PANEL_BYTES 16
#define PANEL_MIX_FLOAT_LOW 0, 4, 1, 5
#define PANEL_MIX_FLOAT_HIGH 2, 6, 3, 7
#define PANEL_MIX_DOUBLE_LOW 0, 2
#define PANEL_MIX_DOUBLE_HIGH 1, 3
#endif

/* The elements of two vectors that stand at places, of the first and then of the second. */
#if defined(__clang__)
#define PANEL_PICK(INDEX, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PANEL_PICK(INDEX, a, b, ...) __builtin_shuffle(a, b, (INDEX){__VA_ARGS__})
#endif

/* Part of a vector is written by a mask, or by a loop that is not there once more in each tile. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define PANEL_PART_INLINE static inline __attribute__((always_inline))
#define PANEL_PUT_PART(T, x, to, from, count)                                                    \
    if (sizeof(T) == sizeof(float)) {                                                            \
        const __mmask16 wanted = (__mmask16)((1u << (count)) - 1);                               \
        _mm512_mask_storeu_ps(to, wanted, _mm512_add_ps(                                         \
            (__m512)(x), _mm512_maskz_loadu_ps(wanted, from)));                                  \
    } else {                                                                                     \
        const __mmask8 wanted = (__mmask8)((1u << (count)) - 1);                                 \
        _mm512_mask_storeu_pd(to, wanted, _mm512_add_pd(                                         \
            (__m512d)(x), _mm512_maskz_loadu_pd(wanted, from)));                                 \
    }
#else
#define PANEL_PART_INLINE static __attribute__((noinline))
#define PANEL_PUT_PART(T, x, to, from, count)                                                    \
    for (Py_ssize_t j = 0; j < (count); j++) (to)[j] = (x)[j] + (from)[j]
#endif

/* After a call with a vector as argument GCC 12 leaves the upper halves of registers in use, for
   which each change to SSE instructions and back takes 35 ns. */
#if defined(__AVX__)
#define PANEL_CLEAR_UPPER __builtin_ia32_vzeroupper()
#else
#define PANEL_CLEAR_UPPER
#endif

/* What GCC leaves a loop at -O2 keeps its vectors in memory: turning a block took five times as
   long. */
#define PANEL_EACH _Pragma("GCC unroll 16")

enum { PANEL_ROWS = 6, PANEL_MOST = PANEL_BYTES == 64 ? 8 : 6, PANEL_DEEP = 128, PANEL_AHEAD = 24 };

#define PANEL_PRODUCT(T, I, NAME, LOW, HIGH)                                                     \
    typedef T NAME(vector) __attribute__((vector_size(PANEL_BYTES), aligned(sizeof(T)),          \
                                          may_alias));                                           \
    typedef I NAME(index) __attribute__((vector_size(PANEL_BYTES)));                             \
    enum { NAME(LANES) = PANEL_BYTES / sizeof(T), NAME(WIDTH) = 2 * NAME(LANES) };               \
                                                                                                 \
    /* to := from.T, of `rows` rows of LANES and zeros below them; each pass mixes rows i and    \
       i + LANES / 2 */                                                                          \
    static inline __attribute__((always_inline)) void NAME(turn_block)(                          \
            const T* from, Py_ssize_t from_row, Py_ssize_t rows, T* to, Py_ssize_t to_row) {     \
        NAME(vector) x[NAME(LANES)], mixed[NAME(LANES)];                                         \
        PANEL_EACH for (int i = 0; i < NAME(LANES); i++)                                         \
            x[i] = i < rows ? *(const NAME(vector)*)(from + i * from_row) : (NAME(vector)){0};   \
        PANEL_EACH for (int pass = 1; pass < NAME(LANES); pass *= 2) {                           \
            PANEL_EACH for (int i = 0; i < NAME(LANES) / 2; i++) {                               \
                mixed[2 * i] = PANEL_PICK(NAME(index), x[i], x[i + NAME(LANES) / 2], LOW);       \
                mixed[2 * i + 1] = PANEL_PICK(NAME(index), x[i], x[i + NAME(LANES) / 2], HIGH);  \
            }                                                                                    \
            PANEL_EACH for (int i = 0; i < NAME(LANES); i++) x[i] = mixed[i];                    \
        }                                                                                        \
        PANEL_EACH for (int i = 0; i < NAME(LANES); i++)                                         \
            *(NAME(vector)*)(to + i * to_row) = x[i];                                            \
    }                                                                                            \
                                                                                                 \
    /* to (n, m) := from.T, of m rows of n contiguous elements each */                           \
    static void NAME(turn)(const T* from, Py_ssize_t from_row, T* to, Py_ssize_t to_row,         \
                           Py_ssize_t m, Py_ssize_t n) {                                         \
        Py_ssize_t i = 0;                                                                        \
        for (; i + NAME(LANES) <= m; i += NAME(LANES)) {                                         \
            Py_ssize_t j = 0;                                                                    \
            for (; j + NAME(LANES) <= n; j += NAME(LANES))                                       \
                NAME(turn_block)(from + i * from_row + j, from_row, NAME(LANES),                 \
                                 to + j * to_row + i, to_row);                                   \
            for (; j < n; j++)                                                                   \
                for (Py_ssize_t l = i; l < i + NAME(LANES); l++)                                 \
                    to[j * to_row + l] = from[l * from_row + j];                                 \
        }                                                                                        \
        for (; i < m; i++)                                                                       \
            for (Py_ssize_t j = 0; j < n; j++) to[j * to_row + i] = from[i * from_row + j];      \
    }                                                                                            \
                                                                                                 \
    /* p := one panel: `count` columns of a b (k, n) of which each is contiguous. A vector of which\
       no column is there is left as it is: nobody reads it. */                                  \
    static void NAME(pack_turned)(const T* b, Py_ssize_t b_col, T* p, Py_ssize_t k,              \
                                  Py_ssize_t count) {                                            \
        for (Py_ssize_t i = 0; i < count; i += NAME(LANES)) {                                    \
            Py_ssize_t l = 0, here = count - i < NAME(LANES) ? count - i : NAME(LANES);          \
            for (; l + NAME(LANES) <= k; l += NAME(LANES))                                       \
                NAME(turn_block)(b + i * b_col + l, b_col, here, p + l * NAME(WIDTH) + i,        \
                                 NAME(WIDTH));                                                   \
            for (; l < k; l++)                                                                   \
                for (Py_ssize_t j = 0; j < NAME(LANES); j++)                                     \
                    p[l * NAME(WIDTH) + i + j] = j < here ? b[(i + j) * b_col + l] : 0;          \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* The same of a b with contiguous rows. A vector that goes on into the next row loses that. */\
    static void NAME(pack_narrow)(const T* b, Py_ssize_t b_row, T* p, Py_ssize_t k,              \
                                  Py_ssize_t count) {                                            \
        const Py_ssize_t end = (k - 1) * b_row + count;                                          \
        for (Py_ssize_t i = 0; i < count; i += NAME(LANES)) {                                    \
            NAME(index) mask;                                                                    \
            for (int j = 0; j < NAME(LANES); j++) mask[j] = i + j < count ? -1 : 0;              \
            for (Py_ssize_t l = 0; l < k; l++) {                                                 \
                T* to = p + l * NAME(WIDTH) + i;                                                 \
                const T* from = b + l * b_row + i;                                               \
                if (l * b_row + i + NAME(LANES) <= end)                                          \
                    *(NAME(vector)*)to = (NAME(vector))(                                         \
                        (NAME(index))*(const NAME(vector)*)from & mask);                         \
                else                                                                             \
                    for (Py_ssize_t j = 0; j < NAME(LANES); j++)                                 \
                        to[j] = i + j < count ? from[j] : 0;                                     \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* p := the panels of b (k, n) */                                                            \
    static void NAME(pack)(const T* b, Py_ssize_t b_row, Py_ssize_t b_col, T* p, Py_ssize_t k,   \
                           Py_ssize_t n) {                                                       \
        for (Py_ssize_t first = 0; first < n; first += NAME(WIDTH), p += k * NAME(WIDTH)) {      \
            Py_ssize_t count = n - first < NAME(WIDTH) ? n - first : NAME(WIDTH);                \
            const T* from = b + first * b_col;                                                   \
            if (b_row == 1 && b_col != 1) {                                                      \
                NAME(pack_turned)(from, b_col, p, k, count);                                     \
                continue;                                                                        \
            }                                                                                    \
            if (b_col == 1 && count == NAME(WIDTH)) {                                            \
                for (Py_ssize_t l = 0; l < k; l++)                                               \
                    memcpy(p + l * NAME(WIDTH), from + l * b_row, NAME(WIDTH) * sizeof(T));      \
            } else if (b_col == 1) {                                                             \
                NAME(pack_narrow)(from, b_row, p, k, count);                                     \
            } else {                                                                             \
                memset(p, 0, k * NAME(WIDTH) * sizeof(T));                                       \
                for (Py_ssize_t l = 0; l < k; l++)                                               \
                    for (Py_ssize_t j = 0; j < count; j++)                                       \
                        p[l * NAME(WIDTH) + j] = from[l * b_row + j * b_col];                    \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* What is added to a product, always, which needs no branches: elements row and col apart,  \
       which are one and the same where both are 0 */                                            \
    typedef struct { const T* at; Py_ssize_t row, col; } NAME(base);                             \
    static const T NAME(zeros)[NAME(WIDTH)];                                                     \
                                                                                                 \
    static inline NAME(base) NAME(base_of)(const T* at, Py_ssize_t row) {                        \
        return at ? (NAME(base)){at, row, 1} : (NAME(base)){NAME(zeros), 0, 0};                  \
    }                                                                                            \
                                                                                                 \
    /* to := from + a vector, of which `count` elements are wanted */                            \
    PANEL_PART_INLINE void NAME(put_part)(NAME(vector) x, T* to, const T* from,                  \
                                          Py_ssize_t count) {                                    \
        PANEL_PUT_PART(T, x, to, from, count);                                                   \
    }                                                                                            \
                                                                                                 \
    /* `rows` rows of y := base + sums in registers, of which `count` columns are wanted, in one \
       vector or two */                                                                          \
    static inline __attribute__((always_inline)) void NAME(put)(                                 \
            const NAME(vector)* left, const NAME(vector)* right, T* y, Py_ssize_t y_row,         \
            Py_ssize_t count, NAME(base) base, const int rows, const int vectors) {              \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                 \
            T* to = y + i * y_row;                                                               \
            const T* from = base.at + i * base.row;                                              \
            NAME(vector) first = left[i], last = vectors == 2 ? right[i] : left[i];              \
            Py_ssize_t rest = count;                                                             \
            if (vectors == 2) {                                                                  \
                *(NAME(vector)*)to = first + *(const NAME(vector)*)from;                         \
                to += NAME(LANES);                                                               \
                from += NAME(LANES);                                                             \
                rest -= NAME(LANES);                                                             \
            }                                                                                    \
            if (rest == NAME(LANES)) {                                                           \
                *(NAME(vector)*)to = last + *(const NAME(vector)*)from;                          \
            } else {                                                                             \
                NAME(put_part)(last, to, from, rest);                                            \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* `rows` rows of y := base + those of a @ one panel, of which rows are p_row apart */       \
    static inline __attribute__((always_inline)) void NAME(chain)(                               \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row, T* y,  \
            Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t count, NAME(base) base, const int rows,   \
            const int vectors) {                                                                 \
        NAME(vector) left[PANEL_MOST] = {{0}}, right[PANEL_MOST] = {{0}};                        \
        /* of eight offsets from one row most would lie in memory */                             \
        const T *row0 = a, *row3 = a + (rows > 3 ? 3 * a_row : 0),                               \
                *row6 = a + (rows > 6 ? 6 * a_row : 0);                                          \
        __asm__("" : "+r"(row3), "+r"(row6));                                                    \
        const T* at = p;                                                                         \
        for (Py_ssize_t rest = k; rest > 0;                                                      \
             rest--, at += p_row, row0 += a_col, row3 += a_col, row6 += a_col) {                 \
            /* of a b where it lies, which no prefetcher follows */                              \
            __builtin_prefetch(at + PANEL_AHEAD * p_row);                                        \
            if (vectors == 2) __builtin_prefetch(at + PANEL_AHEAD * p_row + NAME(LANES));        \
            NAME(vector) b0 = *(const NAME(vector)*)at, b1 = {0};                                \
            if (vectors == 2) b1 = *(const NAME(vector)*)(at + NAME(LANES));                     \
            _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                             \
                T x = (i < 3 ? row0 : i < 6 ? row3 : row6)[i % 3 * a_row];                       \
                left[i] += x * b0;                                                               \
                if (vectors == 2) right[i] += x * b1;                                            \
            }                                                                                    \
        }                                                                                        \
        NAME(put)(left, right, y, y_row, count, base, rows, vectors);                            \
    }                                                                                            \
                                                                                                 \
    /* y += x */                                                                                 \
    static __attribute__((noinline)) void NAME(add)(const T* x, T* y, Py_ssize_t n) {            \
        for (Py_ssize_t j = 0; j < n; j++) y[j] += x[j];                                         \
    }                                                                                            \
                                                                                                 \
    /* The same as `chain` for a k of several parts. Their sums are added near by, since y may be\
       far away; those of a few rows are added in y. */                                          \
    static inline __attribute__((always_inline)) void NAME(parts)(                               \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row, T* y,  \
            Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t count,                  \
            NAME(base) base, const int rows, const int vectors) {                                \
        T sums[PANEL_MOST * NAME(WIDTH)];                                                        \
        const int row_last = base.col && !base.row;                                              \
        /* a base that is read has no more columns than are wanted */                            \
        const int apart = rows >= PANEL_ROWS && (row_last || !base.col                           \
                                                 || count == vectors * NAME(LANES));             \
        const NAME(base) none = {NAME(zeros), 0, 0};                                             \
        const NAME(base) before = {apart ? sums : y, apart ? NAME(WIDTH) : y_row, 1};            \
        NAME(base) from = row_last ? none : base;                                                \
        for (Py_ssize_t l = 0; l < k; l += depth) {                                              \
            const int here = apart && k - l > depth;                                             \
            NAME(chain)(a + l * a_col, a_row, a_col, p + l * p_row, p_row, here ? sums : y,      \
                        here ? NAME(WIDTH) : y_row, k - l < depth ? k - l : depth,               \
                        here ? vectors * NAME(LANES) : count, from, rows, vectors);              \
            from = before;                                                                       \
        }                                                                                        \
        if (row_last)                                                                            \
            for (int i = 0; i < rows; i++) NAME(add)(base.at, y + i * y_row, count);             \
    }                                                                                            \
                                                                                                 \
    static inline __attribute__((always_inline)) void NAME(tile)(                                \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row, T* y,  \
            Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t count,                  \
            NAME(base) base, const int rows, const int vectors, const int deep) {                \
        for (int i = 0; k >= PANEL_DEEP && i < rows; i++) {                                      \
            __builtin_prefetch(y + i * y_row, 1);                                                \
            if (vectors == 2) __builtin_prefetch(y + i * y_row + NAME(LANES), 1);                \
        }                                                                                        \
        if (!deep)                                                                               \
            NAME(chain)(a, a_row, a_col, p, p_row, y, y_row, k, count, base, rows, vectors);     \
        else                                                                                     \
            NAME(parts)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, rows,        \
                        vectors);                                                                \
    }                                                                                            \
                                                                                                 \
    /* The same where row i of a is a window of an image: a + places[i] + taps[l] */             \
    static inline __attribute__((always_inline)) void NAME(window_tile)(                         \
            const T* a, const Py_ssize_t* places, const Py_ssize_t* taps, const T* p, T* y,      \
            Py_ssize_t y_row, Py_ssize_t k, Py_ssize_t count, NAME(base) base, const int rows,   \
            const int vectors) {                                                                 \
        NAME(vector) left[PANEL_MOST] = {{0}}, right[PANEL_MOST] = {{0}};                        \
        const T* at[PANEL_MOST];                                                                 \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) at[i] = a + places[i];            \
        for (Py_ssize_t l = 0; l < k; l++) {                                                     \
            NAME(vector) b0 = *(const NAME(vector)*)(p + l * NAME(WIDTH)), b1 = {0};             \
            if (vectors == 2) b1 = *(const NAME(vector)*)(p + l * NAME(WIDTH) + NAME(LANES));    \
            _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                             \
                T x = at[i][taps[l]];                                                            \
                left[i] += x * b0;                                                               \
                if (vectors == 2) right[i] += x * b1;                                            \
            }                                                                                    \
        }                                                                                        \
        NAME(put)(left, right, y, y_row, count, base, rows, vectors);                            \
    }                                                                                            \
                                                                                                 \
    /* The same for all rows of a; deep: whether k has several parts */                          \
    static inline __attribute__((always_inline)) void NAME(rows)(                                \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row, T* y,  \
            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t count,    \
            NAME(base) base, const int vectors, const int deep) {                                \
        /* one row alone or two take as long as three */                                         \
        while (PANEL_MOST > PANEL_ROWS                                                           \
               && (m == PANEL_MOST || m >= PANEL_MOST + 3)) {                                    \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, PANEL_MOST,   \
                       vectors, deep);                                                           \
            m -= PANEL_MOST;                                                                     \
            a += PANEL_MOST * a_row;                                                             \
            y += PANEL_MOST * y_row;                                                             \
            base.at += PANEL_MOST * base.row;                                                    \
        }                                                                                        \
        for (; m >= PANEL_ROWS; m -= PANEL_ROWS) {                                               \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, PANEL_ROWS,   \
                       vectors, deep);                                                           \
            a += PANEL_ROWS * a_row;                                                             \
            y += PANEL_ROWS * y_row;                                                             \
            base.at += PANEL_ROWS * base.row;                                                    \
        }                                                                                        \
        switch (m) {                                                                             \
        case 5:                                                                                  \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, 5, vectors,   \
                       deep);                                                                    \
            break;                                                                               \
        case 4:                                                                                  \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, 4, vectors,   \
                       deep);                                                                    \
            break;                                                                               \
        case 3:                                                                                  \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, 3, vectors,   \
                       deep);                                                                    \
            break;                                                                               \
        case 2:                                                                                  \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, 2, vectors,   \
                       deep);                                                                    \
            break;                                                                               \
        case 1:                                                                                  \
            NAME(tile)(a, a_row, a_col, p, p_row, y, y_row, k, depth, count, base, 1, vectors,   \
                       deep);                                                                    \
            break;                                                                               \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static inline __attribute__((always_inline)) void NAME(panels)(                              \
            const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p, Py_ssize_t p_row,        \
            Py_ssize_t panel, T* y, Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k,                \
            Py_ssize_t depth, Py_ssize_t n, NAME(base) base, const int deep) {                   \
        for (; n > NAME(LANES); n -= NAME(WIDTH), y += NAME(WIDTH), p += panel) {                \
            NAME(rows)(a, a_row, a_col, p, p_row, y, y_row, m, k, depth,                         \
                       n < NAME(WIDTH) ? n : NAME(WIDTH), base, 2, deep);                        \
            base.at += NAME(WIDTH) * base.col;                                                   \
        }                                                                                        \
        if (n > 0)                                                                               \
            NAME(rows)(a, a_row, a_col, p, p_row, y, y_row, m, k, depth, n, base, 1, deep);      \
    }                                                                                            \
                                                                                                 \
    /* y (m, n) := base + a (m, k) @ the b that was packed into p; or a b of whole panels where  \
       it lies: rows and panels are so many elements apart. The sums over k are of parts of      \
       `depth`. What is added to y is added first, but a row (base_row 0) last. */               \
    static void NAME(product)(const T* a, Py_ssize_t a_row, Py_ssize_t a_col, const T* p,        \
                              Py_ssize_t p_row, Py_ssize_t panel, T* y, Py_ssize_t y_row,        \
                              Py_ssize_t m, Py_ssize_t k, Py_ssize_t depth, Py_ssize_t n,        \
                              const T* base_at, Py_ssize_t base_row) {                           \
        NAME(base) base = NAME(base_of)(base_at, base_row);                                      \
        if (k > depth)                                                                           \
            NAME(panels)(a, a_row, a_col, p, p_row, panel, y, y_row, m, k, depth, n, base, 1);   \
        else                                                                                     \
            NAME(panels)(a, a_row, a_col, p, p_row, panel, y, y_row, m, k, k, n, base, 0);       \
        PANEL_CLEAR_UPPER;                                                                       \
    }                                                                                            \
                                                                                                 \
    static inline __attribute__((always_inline)) void NAME(window_rows)(                         \
            const T* a, const Py_ssize_t* at, const Py_ssize_t* taps, const T* p, T* y,          \
            Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t count, NAME(base) base,     \
            const int vectors) {                                                                 \
        while (PANEL_MOST > PANEL_ROWS                                                           \
               && (m == PANEL_MOST || m >= PANEL_MOST + 3)) {                                    \
            NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, PANEL_MOST, vectors);    \
            m -= PANEL_MOST;                                                                     \
            at += PANEL_MOST;                                                                    \
            y += PANEL_MOST * y_row;                                                             \
            base.at += PANEL_MOST * base.row;                                                    \
        }                                                                                        \
        for (; m >= PANEL_ROWS; m -= PANEL_ROWS, at += PANEL_ROWS, y += PANEL_ROWS * y_row) {    \
            NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 6, vectors);             \
            base.at += PANEL_ROWS * base.row;                                                    \
        }                                                                                        \
        switch (m) {                                                                             \
        case 5: NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 5, vectors); break;  \
        case 4: NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 4, vectors); break;  \
        case 3: NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 3, vectors); break;  \
        case 2: NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 2, vectors); break;  \
        case 1: NAME(window_tile)(a, at, taps, p, y, y_row, k, count, base, 1, vectors); break;  \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* y (m, n) := the windows at m places @ the b (all, n) that was packed into p, of their taps\
       [first, first + k); y += it for all parts but the first */                                \
    static void NAME(windows)(const T* a, const Py_ssize_t* places, const Py_ssize_t* taps,      \
                              const T* p, Py_ssize_t first, Py_ssize_t k, Py_ssize_t all, T* y,  \
                              Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t n) {                    \
        NAME(base) base = NAME(base_of)(first > 0 ? y : NULL, y_row);                            \
        taps += first;                                                                           \
        p += first * NAME(WIDTH);                                                                \
        for (; n > NAME(LANES); n -= NAME(WIDTH), y += NAME(WIDTH), p += all * NAME(WIDTH)) {    \
            NAME(window_rows)(a, places, taps, p, y, y_row, m, k,                                \
                              n < NAME(WIDTH) ? n : NAME(WIDTH), base, 2);                       \
            base.at += NAME(WIDTH) * base.col;                                                   \
        }                                                                                        \
        if (n > 0) NAME(window_rows)(a, places, taps, p, y, y_row, m, k, n, base, 1);            \
        PANEL_CLEAR_UPPER;                                                                       \
    }                                                                                            \
                                                                                                 \
    /* `rows` rows of y := those of w @ the runs at x + taps[l], one vector of each or two, of   \
       which the second is `apart` from the first */                                             \
    static inline __attribute__((always_inline)) void NAME(run_tile)(                            \
            const T* x, Py_ssize_t apart, const Py_ssize_t* taps, const T* w, Py_ssize_t k,      \
            T* y, Py_ssize_t y_row, const int rows, const int vectors) {                         \
        NAME(vector) left[PANEL_MOST] = {{0}}, right[PANEL_MOST] = {{0}};                        \
        for (Py_ssize_t l = 0; l < k; l++) {                                                     \
            const T* at = x + taps[l];                                                           \
            NAME(vector) b0 = *(const NAME(vector)*)at, b1 = {0};                                \
            if (vectors == 2) b1 = *(const NAME(vector)*)(at + apart);                           \
            _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                             \
                T a = w[i * k + l];                                                              \
                left[i] += a * b0;                                                               \
                if (vectors == 2) right[i] += a * b1;                                            \
            }                                                                                    \
        }                                                                                        \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                 \
            *(NAME(vector)*)(y + i * y_row) = left[i];                                           \
            if (vectors == 2) *(NAME(vector)*)(y + i * y_row + apart) = right[i];                \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static inline __attribute__((always_inline)) void NAME(run_rows)(                            \
            const T* x, Py_ssize_t apart, const Py_ssize_t* taps, const T* w, Py_ssize_t k,      \
            T* y, Py_ssize_t y_row, Py_ssize_t rows, const int vectors) {                        \
        switch (rows) {                                                                          \
        case 8:                                /* neither where PANEL_MOST is less */            \
            NAME(run_tile)(x, apart, taps, w, k, y, y_row, PANEL_MOST, vectors);                 \
            break;                                                                               \
        case 7:                                                                                  \
            NAME(run_tile)(x, apart, taps, w, k, y, y_row, PANEL_MOST == 8 ? 7 : 6, vectors);    \
            break;                                                                               \
        case 6: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 6, vectors); break;               \
        case 5: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 5, vectors); break;               \
        case 4: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 4, vectors); break;               \
        case 3: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 3, vectors); break;               \
        case 2: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 2, vectors); break;               \
        case 1: NAME(run_tile)(x, apart, taps, w, k, y, y_row, 1, vectors); break;               \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* y (m, n) := w (m, k) @ the runs of n elements, at least LANES, at x + taps[l]. The last   \
       vector of a run ends with it, over elements of the one before, which get the same bits. */\
    static void NAME(runs)(const T* x, const Py_ssize_t* taps, const T* w, T* y,                 \
                           Py_ssize_t y_row, Py_ssize_t m, Py_ssize_t k, Py_ssize_t n) {         \
        for (Py_ssize_t first = 0; first < n; first += NAME(WIDTH)) {                            \
            const Py_ssize_t last = n - NAME(LANES), at = first < last ? first : last;           \
            const Py_ssize_t apart = (at + NAME(LANES) < last ? at + NAME(LANES) : last) - at;   \
            Py_ssize_t tiles = (m + PANEL_MOST - 1) / PANEL_MOST, rows;                          \
            for (Py_ssize_t i = 0; i < m; i += rows) {     /* of nearly equal heights */         \
                rows = (m - i + tiles - 1) / tiles;                                              \
                tiles--;                                                                         \
                if (apart > 0)                                                                   \
                    NAME(run_rows)(x + at, apart, taps, w + i * k, k, y + i * y_row + at, y_row, \
                                   rows, 2);                                                     \
                else                                                                             \
                    NAME(run_rows)(x + at, 0, taps, w + i * k, k, y + i * y_row + at, y_row,     \
                                   rows, 1);                                                     \
            }                                                                                    \
        }                                                                                        \
    }

#define PANEL_FLOAT(x) panel_##x##_float
#define PANEL_DOUBLE(x) panel_##x##_double
PANEL_PRODUCT(float, int, PANEL_FLOAT, PANEL_MIX_FLOAT_LOW, PANEL_MIX_FLOAT_HIGH)
PANEL_PRODUCT(double, long long, PANEL_DOUBLE, PANEL_MIX_DOUBLE_LOW, PANEL_MIX_DOUBLE_HIGH)
