/* Sums and products of rows of contiguous floats, in the compiler's vector types.

   Plain loops leave the last additions of each row to gcc 12's scalar code: 4.0 us for 256 rows of
   256 float32, where these take 1.3. Four registers of partial results run down the row; LEAF
   rounds are added one after the other, leaves in a binary tree, so that the error grows with log
   n. The tree follows from n alone. The tests hold the results to those of the other loops. */
#pragma once

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

#define ROW_TYPES(T, I)                                                                          \
    typedef T row_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));     \
    typedef T quad_##T __attribute__((vector_size(16), may_alias));                              \
    typedef I bits_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));

#define EACH(T, v) (v)
#define KNOWN(T, v) ((row_##T)((bits_##T)(v) & ((v) == (v))))        /* 0 for NaN */

/* NAME: of sums or of products, which `op` makes and which begin with `unit`, of what TAKE gives
   for elements. most: how many T the widest register has */
#define ROW_FOLD(T, NAME, op, unit, most, TAKE)                                                  \
    /* the elements of `rounds` times four registers, folded to one */                           \
    static row_##T NAME##_leaf_##T(const T* x, Py_ssize_t rounds) {                              \
        const Py_ssize_t width = REGISTER / sizeof(T);                                           \
        row_##T a = (row_##T){0} + (T)unit, b = a, c = a, d = a;                                 \
        for (Py_ssize_t i = 0; i < rounds; i++, x += 4 * width) {                                \
            a = a op TAKE(T, *(const row_##T*)x);                                                \
            b = b op TAKE(T, *(const row_##T*)(x + width));                                      \
            c = c op TAKE(T, *(const row_##T*)(x + 2 * width));                                  \
            d = d op TAKE(T, *(const row_##T*)(x + 3 * width));                                  \
        }                                                                                        \
        return (a op c) op (b op d);                                                             \
    }                                                                                            \
                                                                                                 \
    static row_##T NAME##_tree_##T(const T* x, Py_ssize_t rounds) {                              \
        if (rounds <= LEAF_ROUNDS) return NAME##_leaf_##T(x, rounds);                            \
        Py_ssize_t half = (rounds / 2 + LEAF_ROUNDS - 1) / LEAF_ROUNDS * LEAF_ROUNDS;            \
        row_##T left = NAME##_tree_##T(x, half);                                                 \
        return left op NAME##_tree_##T(x + half * 4 * (REGISTER / sizeof(T)), rounds - half);    \
    }                                                                                            \
                                                                                                 \
    /* y[i] := row i folded, for rows of n elements, at least one register, `step` apart */      \
    static void row_##NAME##_##T(const T* x, T* y, Py_ssize_t rows, Py_ssize_t n,                \
                                 Py_ssize_t step) {                                              \
        const Py_ssize_t width = REGISTER / sizeof(T), rounds = n / (4 * width);                 \
        quad_##T ends[ROWS_AT_ONCE];                                                             \
        for (Py_ssize_t first = 0; first < rows; first += ROWS_AT_ONCE) {                        \
            Py_ssize_t here = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;         \
            for (Py_ssize_t i = 0; i < here; i++, x += step) {                                   \
                row_##T total = NAME##_tree_##T(x, rounds);                                      \
                Py_ssize_t j = rounds * 4 * width;                                               \
                for (; j + width <= n; j += width)                                               \
                    total = total op TAKE(T, *(const row_##T*)(x + j));                          \
                if (j < n) {                                                                     \
                    bits_##T mask = *(const bits_##T*)(row_mask_##T + most - width + (n - j));   \
                    bits_##T rest = *(const bits_##T*)(x + n - width) & mask;                    \
                    rest |= (bits_##T)((row_##T){0} + (T)unit) & ~mask;                          \
                    total = total op TAKE(T, (row_##T)rest);                                     \
                }                                                                                \
                ends[i] = ((const quad_##T*)&total)[0];                                          \
                for (int k = 1; k < REGISTER / 16; k++)                                          \
                    ends[i] = ends[i] op ((const quad_##T*)&total)[k];                           \
            }                                                                                    \
            const T* end = (const T*)ends;                                                       \
            for (Py_ssize_t i = 0; i < here; i++) y[first + i] = LAST_##T(op, end, i);           \
        }                                                                                        \
    }

ROW_TYPES(float, int)
ROW_TYPES(double, long long)
ROW_FOLD(float, sums, +, 0, 16, EACH)
ROW_FOLD(double, sums, +, 0, 8, EACH)
ROW_FOLD(float, known, +, 0, 16, KNOWN)
ROW_FOLD(double, known, +, 0, 8, KNOWN)
ROW_FOLD(float, products, *, 1, 16, EACH)
ROW_FOLD(double, products, *, 1, 8, EACH)
