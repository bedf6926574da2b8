/* Sums and products of rows of contiguous floats, in the compiler's vector types.

   Plain loops leave the last additions of each row to gcc 12's scalar code: 4.0 us for 256 rows of
   256 float32, where these take 1.3. Four registers of partial results run down the row; LEAF
   rounds are added one after the other, leaves in a binary tree, so that the error grows with log
   n. The tree follows from n alone. The tests hold the results to those of the other loops.

   Elements with gaps, as those of x[:, 1:], are read where they lie, in the same tree: only what
   goes over the end of a row is copied together first, and leaves of elements in steps are. */
#pragma once

#include <string.h>

#include "layout/spaced.h"

#define REGISTER (__BIGGEST_ALIGNMENT__ < 64 ? __BIGGEST_ALIGNMENT__ : 64)
#define LEAF_ROUNDS 32
#define ROWS_AT_ONCE 64

/* -1 in the lanes that a mask for the last elements of a row keeps; read from an offset */
static const int row_mask_float[32] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static const long long row_mask_double[16] = {
    0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

#define LAST_float(op, e, i) ((e[4 * i] op e[4 * i + 2]) op (e[4 * i + 1] op e[4 * i + 3]))
#define LAST_double(op, e, i) (e[2 * i] op e[2 * i + 1])

/* Rows of `row` elements `step` apart, whose beginnings are `down` elements apart */
typedef struct { Py_ssize_t row, down, step; } gaps;

#define ROW_TYPES(T, I)                                                                          \
    typedef T row_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));     \
    typedef T quad_##T __attribute__((vector_size(16), may_alias));                              \
    typedef I bits_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));

#define ROW_GATHER(T)                                                                            \
    /* room := n elements from `at` on */                                                        \
    static inline void row_gather_##T(const T* x, Py_ssize_t at, Py_ssize_t n, const gaps* of,   \
                                      T* room) {                                                 \
        const Py_ssize_t row = of->row, down = of->down, step = of->step;                        \
        x += at / row * down, at %= row;                                                         \
        for (Py_ssize_t here; n; n -= here, room += here, x += down, at = 0) {                   \
            here = row - at < n ? row - at : n;                                                  \
            if (step == 1)                                                                       \
                memcpy(room, x + at, here * sizeof(T));                                          \
            else if (step == 2)                                                                  \
                take_spaced_##T(x + 2 * at, room, here);                                         \
            else if (step == 0)                                                                  \
                for (Py_ssize_t i = 0; i < here; i++) room[i] = *x;                              \
            else                                                                                 \
                for (Py_ssize_t i = 0; i < here; i++) room[i] = x[(at + i) * step];              \
        }                                                                                        \
    }

#define EACH(T, x) (*(const row_##T*)(x))
#define NAN_AS_ZERO(T, x) ((row_##T)((bits_##T)EACH(T, x) & (EACH(T, x) == EACH(T, x))))

/* NAME: of sums or of products, which `op` makes and which begin with `unit`, of what TAKE makes of
   elements E. most: how many T the widest register has */
#define ROW_FOLD(T, E, NAME, op, unit, most, TAKE)                                               \
    /* a, b, c and d op= the elements of `rounds` times four registers, `step` apart */          \
    static inline __attribute__((always_inline)) void NAME##_rounds_##T(                         \
            const E* x, Py_ssize_t rounds, row_##T* p, Py_ssize_t step) {                        \
        const Py_ssize_t width = REGISTER / sizeof(T);                                           \
        row_##T a = p[0], b = p[1], c = p[2], d = p[3];                                          \
        for (Py_ssize_t i = 0; i < rounds; i++, x += step) {                                     \
            a = a op TAKE(T, x);                                                                 \
            b = b op TAKE(T, x + width);                                                         \
            c = c op TAKE(T, x + 2 * width);                                                     \
            d = d op TAKE(T, x + 3 * width);                                                     \
        }                                                                                        \
        p[0] = a, p[1] = b, p[2] = c, p[3] = d;                                                  \
    }                                                                                            \
                                                                                                 \
    /* the elements of `rounds` times four registers, folded to one: those from `at` on, where   \
       there are gaps */                                                                         \
    static inline __attribute__((always_inline)) row_##T NAME##_leaf_##T(                        \
            const E* x, Py_ssize_t at, Py_ssize_t rounds, const gaps* of) {                      \
        enum { EACH_ROUND = 4 * REGISTER / sizeof(T) };                                          \
        row_##T first = (row_##T){0} + (T)unit, p[4] = {first, first, first, first};             \
        if (!of) {                                                                               \
            NAME##_rounds_##T(x + at, rounds, p, EACH_ROUND);                                    \
        } else if (of->step != 1) {                                                              \
            int same = of->step == 0 && at % of->row + rounds * EACH_ROUND <= of->row;           \
            E room[LEAF_ROUNDS * EACH_ROUND];                                                    \
            row_gather_##E(x, at, (same ? 1 : rounds) * EACH_ROUND, of, room);                   \
            NAME##_rounds_##T(room, rounds, p, same ? 0 : EACH_ROUND);                           \
        } else {                                                                                 \
            E room[EACH_ROUND];                                                                  \
            Py_ssize_t c = at % of->row;                                                         \
            for (x += at / of->row * of->down; rounds;) {                                        \
                Py_ssize_t here = (of->row - c) / EACH_ROUND;                                    \
                if (here > rounds) here = rounds;                                                \
                NAME##_rounds_##T(x + c, here, p, EACH_ROUND);                                   \
                rounds -= here, c += here * EACH_ROUND;                                          \
                if (rounds) {                                                                    \
                    row_gather_##E(x, c, EACH_ROUND, of, room);                                  \
                    NAME##_rounds_##T(room, 1, p, 0);                                            \
                    rounds--, c += EACH_ROUND;                                                   \
                    for (; c >= of->row; c -= of->row) x += of->down;                            \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
        return (p[0] op p[2]) op (p[1] op p[3]);                                                 \
    }                                                                                            \
                                                                                                 \
    static row_##T NAME##_tree_##T(const E* x, Py_ssize_t at, Py_ssize_t rounds,                 \
                                   const gaps* of) {                                             \
        if (rounds <= LEAF_ROUNDS)                                                               \
            return of ? NAME##_leaf_##T(x, at, rounds, of) : NAME##_leaf_##T(x, at, rounds, 0);  \
        Py_ssize_t half = (rounds / 2 + LEAF_ROUNDS - 1) / LEAF_ROUNDS * LEAF_ROUNDS;            \
        row_##T left = NAME##_tree_##T(x, at, half, of);                                         \
        return left op NAME##_tree_##T(x, at + half * 4 * (REGISTER / sizeof(T)),                \
                                       rounds - half, of);                                       \
    }                                                                                            \
                                                                                                 \
    /* the total and the elements from j on of n, folded to 16 bytes */                          \
    static inline __attribute__((always_inline)) quad_##T NAME##_end_##T(                        \
            const E* x, row_##T total, Py_ssize_t j, Py_ssize_t n) {                             \
        const Py_ssize_t width = REGISTER / sizeof(T);                                           \
        for (; j + width <= n; j += width)                                                       \
            total = total op TAKE(T, x + j);                                                     \
        if (j < n) {                                                                             \
            bits_##T mask = *(const bits_##T*)(row_mask_##T + most - width + (n - j));           \
            bits_##T rest = (bits_##T)TAKE(T, x + n - width) & mask;                             \
            rest |= (bits_##T)((row_##T){0} + (T)unit) & ~mask;                                  \
            total = total op (row_##T)rest;                                                      \
        }                                                                                        \
        quad_##T end = ((const quad_##T*)&total)[0];                                             \
        for (int k = 1; k < REGISTER / 16; k++) end = end op ((const quad_##T*)&total)[k];       \
        return end;                                                                              \
    }                                                                                            \
                                                                                                 \
    /* y[i] := row i folded, for rows of n elements, at least one register, `step` apart */      \
    static void row_##NAME##_##T(const E* x, T* y, Py_ssize_t rows, Py_ssize_t n,                \
                                 Py_ssize_t step) {                                              \
        const Py_ssize_t width = REGISTER / sizeof(T), rounds = n / (4 * width);                 \
        quad_##T ends[ROWS_AT_ONCE];                                                             \
        for (Py_ssize_t first = 0; first < rows; first += ROWS_AT_ONCE) {                        \
            Py_ssize_t here = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;         \
            for (Py_ssize_t i = 0; i < here; i++, x += step) {                                   \
                row_##T total = rounds > LEAF_ROUNDS ? NAME##_tree_##T(x, 0, rounds, 0)          \
                                                     : NAME##_leaf_##T(x, 0, rounds, 0);         \
                ends[i] = NAME##_end_##T(x, total, rounds * 4 * width, n);                       \
            }                                                                                    \
            const T* end = (const T*)ends;                                                       \
            for (Py_ssize_t i = 0; i < here; i++) y[first + i] = LAST_##T(op, end, i);           \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* y := n elements from `at` on, four registers and more, of rows with gaps, folded */       \
    static void gapped_##NAME##_##T(const E* x, T* y, Py_ssize_t at, Py_ssize_t n,               \
                                    const gaps* of) {                                            \
        enum { EACH_ROUND = 4 * REGISTER / sizeof(T) };                                          \
        Py_ssize_t rounds = n / EACH_ROUND, last = at + n - EACH_ROUND;                          \
        E room[EACH_ROUND];                                                                      \
        row_gather_##E(x, last, EACH_ROUND, of, room);                                           \
        quad_##T end = NAME##_end_##T(room, NAME##_tree_##T(x, at, rounds, of),                  \
                                      (rounds + 1) * EACH_ROUND - n, EACH_ROUND);                \
        y[0] = LAST_##T(op, ((const T*)&end), 0);                                                \
    }

ROW_TYPES(float, int)
ROW_TYPES(double, long long)
ROW_GATHER(float)
ROW_GATHER(double)
ROW_FOLD(float, float, sums, +, 0, 16, EACH)
ROW_FOLD(double, double, sums, +, 0, 8, EACH)
ROW_FOLD(float, float, nansum, +, 0, 16, NAN_AS_ZERO)
ROW_FOLD(double, double, nansum, +, 0, 8, NAN_AS_ZERO)
ROW_FOLD(float, float, products, *, 1, 16, EACH)
ROW_FOLD(double, double, products, *, 1, 8, EACH)
