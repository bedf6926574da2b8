/* What `grid_sample` sees between elements, a vector of places at a time.

   Of the four elements around a place two are neighbours in a row, twice: they are loaded as pairs,
   one load each, and parted into vectors of left and of right elements. Loads of single elements,
   each with its choice of whether it is inside of the image, took twice as long. */
#pragma once

#include <stdint.h>
#include <string.h>

/* I: integers as wide as T. COLLECT: loads the pairs of a vector's places into two vectors, of
   which the lanes LEFT and RIGHT have the elements on that side. */
#define GRID_PAIRS(T, I, COLLECT, LEFT, RIGHT)                                                   \
    typedef T grid_##T __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));          \
    typedef I grid_bits_##T __attribute__((vector_size(32), aligned(sizeof(I)), may_alias));     \
                                                                                                 \
    static inline __attribute__((always_inline)) grid_##T grid_row_##T(                          \
            const T* plane, const int32_t* at, const I* inside, grid_bits_##T left,              \
            grid_bits_##T right, grid_##T on_left, grid_##T on_right) {                          \
        grid_bits_##T row = *(const grid_bits_##T*)inside;                                       \
        grid_##T first, second;                                                                  \
        COLLECT(T, plane, at)                                                                    \
        grid_bits_##T a = (grid_bits_##T)__builtin_shufflevector(first, second, LEFT);           \
        grid_bits_##T b = (grid_bits_##T)__builtin_shufflevector(first, second, RIGHT);          \
        return (grid_##T)(a & left & row) * on_left + (grid_##T)(b & right & row) * on_right;    \
    }                                                                                            \
                                                                                                 \
    /* out[i] := what is seen of a plane at n places. above, under: where the pairs of the rows  \
       begin; masks: of what is inside on the left, on the right, above, under (`stride` apart); \
       parts: the weights of the left, the right, the row under. All are given up to a whole     \
       vector. */                                                                                \
    static inline void grid_blend_##T(                                                           \
            const T* plane, const int32_t* above, const int32_t* under, const I* masks,          \
            const T* parts, Py_ssize_t stride, T* out, Py_ssize_t n) {                           \
        enum { LANES = 32 / sizeof(T) };                                                         \
        for (Py_ssize_t i = 0; i < n; i += LANES) {                                              \
            grid_bits_##T left = *(const grid_bits_##T*)(masks + i);                             \
            grid_bits_##T right = *(const grid_bits_##T*)(masks + stride + i);                   \
            grid_##T on_left = *(const grid_##T*)(parts + i);                                    \
            grid_##T on_right = *(const grid_##T*)(parts + stride + i);                          \
            grid_##T below = *(const grid_##T*)(parts + 2 * stride + i);                         \
            grid_##T a = grid_row_##T(plane, above + i, masks + 2 * stride + i, left, right,     \
                                      on_left, on_right);                                        \
            grid_##T b = grid_row_##T(plane, under + i, masks + 3 * stride + i, left, right,     \
                                      on_left, on_right);                                        \
            a = a * (1 - below) + b * below;                                                     \
            if (i + LANES <= n) *(grid_##T*)(out + i) = a;                                       \
            else memcpy(out + i, &a, (n - i) * sizeof(T));                                       \
        }                                                                                        \
    }

typedef double pair_of_float __attribute__((aligned(4), may_alias));
typedef double pairs_of_float __attribute__((vector_size(32)));
typedef double pair_of_double __attribute__((vector_size(16), aligned(8), may_alias));

/* The pairs lie so that vectors of 32 bytes are parted without moves between their halves. */
#define PAIR_AT(i) *(const pair_of_float*)(plane + at[i])
#define COLLECT_EIGHT(T, plane, at)                                                              \
    first = (grid_##T)(pairs_of_float){PAIR_AT(0), PAIR_AT(1), PAIR_AT(4), PAIR_AT(5)};          \
    second = (grid_##T)(pairs_of_float){PAIR_AT(2), PAIR_AT(3), PAIR_AT(6), PAIR_AT(7)};
#define DOUBLES_AT(i, k) \
    __builtin_shufflevector(*(const pair_of_double*)(plane + at[i]), \
                            *(const pair_of_double*)(plane + at[k]), 0, 1, 2, 3)
#define COLLECT_FOUR(T, plane, at)                                                               \
    first = (grid_##T)DOUBLES_AT(0, 2);                                                          \
    second = (grid_##T)DOUBLES_AT(1, 3);
#define LANES_OF(...) __VA_ARGS__

GRID_PAIRS(float, int32_t, COLLECT_EIGHT, LANES_OF(0, 2, 8, 10, 4, 6, 12, 14),
           LANES_OF(1, 3, 9, 11, 5, 7, 13, 15))
GRID_PAIRS(double, int64_t, COLLECT_FOUR, LANES_OF(0, 4, 2, 6), LANES_OF(1, 5, 3, 7))
