/* Of one contiguous row: its greatest element, and the sums of its elements, of their squared
   distances from a mean, and of what the gradient of a normalisation needs.

   Blocks of MOMENTS_BLOCK elements are added in four registers each, whose lanes are added in
   pairs, and the blocks in double. By the loops of `fold.pxi` a row of 64 float32 was normalised
   in 54 ns, most of it around the loops, and in 18 with these. */
#pragma once

#include <string.h>

#include "rows/row_fold.h"

enum { MOMENTS_BLOCK = 2048 };
enum { MOMENTS_SUM, MOMENTS_SQUARES, MOMENTS_SLOPES };

#define MOMENTS(T, I, most)                                                                      \
    /* total := the lanes of a sum that is one vector */                                         \
    static inline __attribute__((always_inline)) T moments_total_##T(row_##T x) {                \
        quad_##T end = ((const quad_##T*)&x)[0];                                                 \
        for (int k = 1; k < REGISTER / 16; k++) end += ((const quad_##T*)&x)[k];                 \
        return LAST_##T(+, ((const T*)&end), 0);                                                 \
    }                                                                                            \
                                                                                                 \
    /* a and b += the terms of one vector; lanes that the mask has not, of none */               \
    static inline __attribute__((always_inline)) void moments_term_##T(                          \
            const T* x, const T* g, const T* w, T mean, bits_##T mask, int kind, row_##T* a,     \
            row_##T* b) {                                                                        \
        row_##T value = *(const row_##T*)x;                                                      \
        if (kind != MOMENTS_SUM) value -= mean;                                                  \
        if (kind == MOMENTS_SQUARES) value *= value;                                             \
        if (kind == MOMENTS_SLOPES) {                                                            \
            row_##T h = *(const row_##T*)g;                                                      \
            if (w) h *= *(const row_##T*)w;                                                      \
            *b += (row_##T)((bits_##T)(h * value) & mask);                                       \
            value = h;                                                                           \
        }                                                                                        \
        *a += (row_##T)((bits_##T)value & mask);                                                 \
    }                                                                                            \
                                                                                                 \
    /* first and second += the sums over a block */                                              \
    static inline __attribute__((always_inline)) void moments_block_##T(                         \
            const T* x, const T* g, const T* w, T mean, Py_ssize_t n, int kind, double* first,   \
            double* second) {                                                                    \
        enum { WIDTH = REGISTER / sizeof(T) };                                                   \
        const bits_##T all = (bits_##T){0} - 1;                                                  \
        row_##T a[4] = {{0}}, b[4] = {{0}};                                                      \
        Py_ssize_t i = 0;                                                                        \
        for (; i + 4 * WIDTH <= n; i += 4 * WIDTH)                                               \
            _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)                                  \
                moments_term_##T(x + i + k * WIDTH, g + i + k * WIDTH, w ? w + i + k * WIDTH : w,\
                                 mean, all, kind, a + k, b + k);                                 \
        for (int k = 0; i + WIDTH <= n; i += WIDTH, k++)                                         \
            moments_term_##T(x + i, g + i, w ? w + i : w, mean, all, kind, a + (k & 1), b);      \
        if (i < n && n >= WIDTH) {         /* the last vector, without what was added */         \
            bits_##T mask = *(const bits_##T*)(row_mask_##T + most - WIDTH + (n - i));           \
            moments_term_##T(x + n - WIDTH, g + n - WIDTH, w ? w + n - WIDTH : w, mean, mask,    \
                             kind, a + 2, b + 2);                                                \
        } else if (i < n) {                                                                      \
            T part[3][WIDTH] = {{0}};                                                            \
            bits_##T mask;                                                                       \
            for (int k = 0; k < WIDTH; k++) mask[k] = k < n ? -1 : 0;                            \
            for (int k = 0; k < n; k++) {                                                        \
                part[0][k] = x[k];                                                               \
                if (kind == MOMENTS_SLOPES) part[1][k] = g[k], part[2][k] = w ? w[k] : 1;        \
            }                                                                                    \
            moments_term_##T(part[0], part[1], part[2], mean, mask, kind, a, b);                 \
        }                                                                                        \
        *first += moments_total_##T((a[0] + a[2]) + (a[1] + a[3]));                              \
        if (kind == MOMENTS_SLOPES)                                                              \
            *second += moments_total_##T((b[0] + b[2]) + (b[1] + b[3]));                         \
    }                                                                                            \
                                                                                                 \
    static inline double moments_sum_##T(const T* x, Py_ssize_t n) {                             \
        double total = 0;                                                                        \
        for (; n > 0; n -= MOMENTS_BLOCK, x += MOMENTS_BLOCK)                                    \
            moments_block_##T(x, x, 0, 0, n < MOMENTS_BLOCK ? n : MOMENTS_BLOCK, MOMENTS_SUM,    \
                              &total, &total);                                                   \
        return total;                                                                            \
    }                                                                                            \
                                                                                                 \
    static inline double moments_squares_##T(const T* x, T mean, Py_ssize_t n) {                 \
        double total = 0;                                                                        \
        for (; n > 0; n -= MOMENTS_BLOCK, x += MOMENTS_BLOCK)                                    \
            moments_block_##T(x, x, 0, mean, n < MOMENTS_BLOCK ? n : MOMENTS_BLOCK,              \
                              MOMENTS_SQUARES, &total, &total);                                  \
        return total;                                                                            \
    }                                                                                            \
                                                                                                 \
    /* plain and moved := the sums of g * w and of g * w * (x - mean); w may be NULL */          \
    static inline void moments_slopes_##T(const T* g, const T* w, const T* x, T mean,            \
                                          Py_ssize_t n, double* plain, double* moved) {          \
        *plain = *moved = 0;                                                                     \
        for (; n > 0; n -= MOMENTS_BLOCK, x += MOMENTS_BLOCK, g += MOMENTS_BLOCK) {              \
            Py_ssize_t here = n < MOMENTS_BLOCK ? n : MOMENTS_BLOCK;                             \
            if (w) {                                                                             \
                moments_block_##T(x, g, w, mean, here, MOMENTS_SLOPES, plain, moved);            \
                w += MOMENTS_BLOCK;                                                              \
            } else {                                                                             \
                moments_block_##T(x, g, 0, mean, here, MOMENTS_SLOPES, plain, moved);            \
            }                                                                                    \
        }                                                                                        \
    }

/* Lane by lane a where it is greater, else b. */
#define GREATER(a, b) ({                                                                         \
    __typeof__((a) > (b)) first = (a) > (b);                                                     \
    (__typeof__(a))((first & (__typeof__(first))(a)) | (~first & (__typeof__(first))(b))); })

/* The greatest element, NaN where there is one; -inf of none. A comparison with NaN is false, so
   that the greatest of the others goes on, and the NaN are counted apart. */
#define ROW_MAX(T, I)                                                                            \
    static inline T row_max_##T(const T* x, Py_ssize_t n) {                                      \
        enum { WIDTH = REGISTER / sizeof(T), WORDS = REGISTER / sizeof(long long) };             \
        T greatest = -__builtin_inf();                                                           \
        long long words[WORDS], any = 0;                                                         \
        Py_ssize_t i = 0;                                                                        \
        if (n < WIDTH) {                                                                         \
            for (; i < n; i++) {                                                                 \
                greatest = x[i] > greatest ? x[i] : greatest;                                    \
                any |= x[i] != x[i];                                                             \
            }                                                                                    \
            return any ? (T)__builtin_nan("") : greatest;                                        \
        }                                                                                        \
        row_##T a = *(const row_##T*)x, b = a, p, q;                                             \
        bits_##T unlike = (bits_##T)(a != a), apart = unlike;                                    \
        for (; i + 2 * WIDTH <= n; i += 2 * WIDTH) {                                             \
            p = *(const row_##T*)(x + i), q = *(const row_##T*)(x + i + WIDTH);                  \
            a = GREATER(p, a), b = GREATER(q, b);                                                \
            unlike |= (bits_##T)(p != p), apart |= (bits_##T)(q != q);                           \
        }                                                                                        \
        for (; i < n; i += WIDTH) {                                                              \
            p = *(const row_##T*)(x + (i < n - WIDTH ? i : n - WIDTH));                          \
            a = GREATER(p, a), unlike |= (bits_##T)(p != p);                                     \
        }                                                                                        \
        a = GREATER(a, b), unlike |= apart;                                                      \
        memcpy(words, &unlike, REGISTER);                                                        \
        for (int w = 0; w < WORDS; w++) any |= words[w];                                         \
        if (any) return (T)__builtin_nan("");                                                    \
        quad_##T end = ((const quad_##T*)&a)[0];                                                 \
        for (int k = 1; k < REGISTER / 16; k++) end = GREATER(((const quad_##T*)&a)[k], end);    \
        for (int k = 0; k < (int)(16 / sizeof(T)); k++)                                          \
            greatest = end[k] > greatest ? end[k] : greatest;                                    \
        return greatest;                                                                         \
    }

ROW_MAX(float, int)
ROW_MAX(double, long long)
MOMENTS(float, int, 16)
MOMENTS(double, long long, 8)
