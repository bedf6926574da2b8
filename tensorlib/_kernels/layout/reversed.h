/* Rows of items back to front, in the compiler's vector types.

   The last items of a row are turned together with some that were turned before, so that nothing is
   left for a loop over single items. Short rows took most of their time before and after it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#define BACK_TO_FRONT(MASK, a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)
#else
#define BACK_TO_FRONT(MASK, a, ...) __builtin_shuffle(a, (MASK){__VA_ARGS__})
#endif

#define FROM_1 1, 0
#define FROM_3 3, 2, FROM_1
#define FROM_7 7, 6, 5, 4, FROM_3
#define FROM_15 15, 14, 13, 12, 11, 10, 9, 8, FROM_7
#define FROM_31 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, FROM_15

/* y := the n items at x, x - 1, ..., at least N of them */
#define REVERSE(T, N, ...)                                                                        \
    typedef T reversed_##T##N __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)),      \
                                             may_alias));                                         \
    static inline void reverse_##T##N(const T* x, T* y, ptrdiff_t n) {                            \
        ptrdiff_t i = 0;                                                                          \
        for (; i + N <= n; i += N)                                                                \
            *(reversed_##T##N*)(y + i) = BACK_TO_FRONT(                                           \
                reversed_##T##N, *(const reversed_##T##N*)(x - i - (N - 1)), __VA_ARGS__);        \
        if (i < n)                                                                                \
            *(reversed_##T##N*)(y + n - N) = BACK_TO_FRONT(                                       \
                reversed_##T##N, *(const reversed_##T##N*)(x - n + 1), __VA_ARGS__);              \
    }

/* y := rows of n items; those of x begin `down` bytes apart, and go back from there */
#define REVERSE_ROWS(T, WIDE, FEW)                                                                \
    static void reverse_rows_##T(const T* x, ptrdiff_t down, T* y, ptrdiff_t n,                   \
                                 ptrdiff_t rows) {                                                \
        for (; rows > 0; rows--) {                                                                \
            if (n >= WIDE) reverse_##T##WIDE(x, y, n);                                            \
            else if (n >= FEW) reverse_##T##FEW(x, y, n);                                         \
            else for (ptrdiff_t i = 0; i < n; i++) y[i] = x[-i];                                  \
            x = (const T*)((const char*)x + down);                                                \
            y += n;                                                                               \
        }                                                                                         \
    }

REVERSE(uint8_t, 16, FROM_15)
REVERSE(uint16_t, 8, FROM_7)
REVERSE(uint32_t, 4, FROM_3)
REVERSE(uint64_t, 2, FROM_1)
/* Of vectors that the processor does not have GCC 12 makes scalar code. */
#if defined(__AVX2__)
REVERSE(uint8_t, 32, FROM_31)
REVERSE(uint16_t, 16, FROM_15)
REVERSE(uint32_t, 8, FROM_7)
REVERSE(uint64_t, 4, FROM_3)
REVERSE_ROWS(uint8_t, 32, 16)
REVERSE_ROWS(uint16_t, 16, 8)
REVERSE_ROWS(uint32_t, 8, 4)
REVERSE_ROWS(uint64_t, 4, 2)
#else
REVERSE_ROWS(uint8_t, 16, 16)
REVERSE_ROWS(uint16_t, 8, 8)
REVERSE_ROWS(uint32_t, 4, 4)
REVERSE_ROWS(uint64_t, 2, 2)
#endif
