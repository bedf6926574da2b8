/* The greatest and the least element of rows of contiguous numbers, and where it is, in the
   compiler's vector types; NaN where there is one.

   A comparison with NaN is false, so that the extreme of the others goes on, and the NaN are
   counted apart. Four registers run down the row, and one of them again over what is left. GCC 12
   leaves plain loops over four registers of doubles to scalar code, which took 170 us for 256 rows
   of 256, where these take 11. */
#pragma once

#include "rows/row_fold.h"

#include <stdint.h>
#include <string.h>

/* The one of two registers that wins a comparison, or the second where there is none. GCC 12 makes
   five instructions of that with AVX-512, which has one for each of these. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define WINNER(T, MAX, WINS, a, b)                                                               \
    (lanes_##T)_Generic((T)0,                                                                    \
        float: (__m512i)_mm512_##MAX##_ps((__m512)(a), (__m512)(b)),                             \
        double: (__m512i)_mm512_##MAX##_pd((__m512d)(a), (__m512d)(b)),                          \
        default: (__m512i)chosen_##T((flags_##T)((a) WINS (b)), a, b))
#else
#define WINNER(T, MAX, WINS, a, b) chosen_##T((flags_##T)((a) WINS (b)), a, b)
#endif

/* two numbers of 8 bytes, which hold the elements of 16 bytes */
typedef uint64_t pair_of_words __attribute__((vector_size(16), may_alias));

/* I: integers as wide as T. NAN_OF: what stands for NaN; 0 where there is none. */
#define ROW_EXTREMES(T, I, NAN_OF)                                                               \
    typedef T lanes_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));   \
    typedef I flags_##T __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));   \
    typedef T quarter_##T __attribute__((vector_size(16), may_alias));                           \
    typedef I signs_##T __attribute__((vector_size(16), may_alias));                             \
    static inline lanes_##T chosen_##T(flags_##T first, lanes_##T a, lanes_##T b) {              \
        return (lanes_##T)((first & (flags_##T)a) | (~first & (flags_##T)b));                    \
    }                                                                                            \
                                                                                                 \
    ONE_EXTREME(T, NAN_OF, greatest, max, >)                                                     \
    ONE_EXTREME(T, NAN_OF, least, min, <)                                                        \
                                                                                                 \
    /* y[i] := the extreme of row i, for rows of n elements, n at least one register */          \
    static void row_extremes_##T(int largest, const T* x, T* y, Py_ssize_t rows, Py_ssize_t n,   \
                                 Py_ssize_t step) {                                              \
        if (largest) row_greatest_##T(x, y, rows, n, step);                                      \
        else row_least_##T(x, y, rows, n, step);                                                 \
    }                                                                                            \
                                                                                                 \
    static inline flags_##T alike_##T(const T* x, T value, int nan) {                            \
        lanes_##T here = *(const lanes_##T*)x;                                                   \
        return nan ? (flags_##T)(here != here) : (flags_##T)(here == value);                     \
    }                                                                                            \
                                                                                                 \
    /* the first index of a value that is known to be there; NaN is equal to NaN */              \
    static inline Py_ssize_t row_find_##T(T value, const T* x, Py_ssize_t n) {                   \
        enum { LANES = REGISTER / sizeof(T), WORDS = REGISTER / sizeof(uint64_t) };              \
        int nan = value != value;                                                                \
        Py_ssize_t i = 0;                                                                        \
        for (int found = 0; i + 2 * LANES <= n; i += 2 * LANES) {                                \
            flags_##T both = alike_##T(x + i, value, nan) | alike_##T(x + i + LANES, value, nan);\
            uint64_t words[WORDS], any = 0;                                                      \
            memcpy(words, &both, REGISTER);                                                      \
            for (int w = 0; w < WORDS; w++) any |= words[w];                                     \
            found = any != 0;                                                                    \
            if (found) break;                                                                    \
        }                                                                                        \
        while (i < n - 1 && !(nan ? x[i] != x[i] : x[i] == value)) i++;                          \
        return i;                                                                                \
    }

#define ONE_EXTREME(T, NAN_OF, NAME, MAX, WINS)                                                  \
    static inline lanes_##T NAME##_of_##T(lanes_##T a, lanes_##T b) {                            \
        return WINNER(T, MAX, WINS, a, b);                                                       \
    }                                                                                            \
                                                                                                 \
    static inline quarter_##T NAME##_or_nan_##T(quarter_##T a, quarter_##T b) {                  \
        signs_##T first = (signs_##T)(b WINS a) | (signs_##T)(b != b);                           \
        return (quarter_##T)((first & (signs_##T)b) | (~first & (signs_##T)a));                  \
    }                                                                                            \
                                                                                                 \
    /* the extreme of a register, by halves of it, then of what is left */                       \
    static inline T NAME##_in_##T(const lanes_##T* all) {                                        \
        const quarter_##T* parts = (const quarter_##T*)all;                                      \
        quarter_##T a = parts[0];                                                                \
        for (int k = 1; k < REGISTER / 16; k++) a = NAME##_or_nan_##T(a, parts[k]);              \
        pair_of_words words = (pair_of_words)a;                                                  \
        a = NAME##_or_nan_##T(a, (quarter_##T)(pair_of_words){words[1], words[0]});              \
        for (int bits = 32; bits >= 8 * (int)sizeof(T); bits /= 2)                               \
            a = NAME##_or_nan_##T(a, (quarter_##T)((pair_of_words)a >> bits));                   \
        return a[0];                                                                             \
    }                                                                                            \
                                                                                                 \
    static void row_##NAME##_##T(const T* x, T* y, Py_ssize_t rows, Py_ssize_t n,                \
                                 Py_ssize_t step) {                                              \
        enum { LANES = REGISTER / sizeof(T) };                                                   \
        lanes_##T ends[ROWS_AT_ONCE], a, b, c, d, p, q, s, t;                                    \
        for (Py_ssize_t first = 0; first < rows; first += ROWS_AT_ONCE) {                        \
            Py_ssize_t here = rows - first < ROWS_AT_ONCE ? rows - first : ROWS_AT_ONCE;         \
            for (Py_ssize_t r = 0; r < here; r++, x += step) {                                   \
                a = *(const lanes_##T*)x, b = a, c = a, d = a;                                   \
                flags_##T unlike = (flags_##T)(a != a), apart = unlike;                          \
                Py_ssize_t i = 0;                                                                \
                for (; i + 4 * LANES <= n; i += 4 * LANES) {                                     \
                    p = *(const lanes_##T*)(x + i), q = *(const lanes_##T*)(x + i + LANES);      \
                    s = *(const lanes_##T*)(x + i + 2 * LANES);                                  \
                    t = *(const lanes_##T*)(x + i + 3 * LANES);                                  \
                    a = NAME##_of_##T(p, a), b = NAME##_of_##T(q, b);                            \
                    c = NAME##_of_##T(s, c), d = NAME##_of_##T(t, d);                            \
                    if (NAN_OF != 0) {                                                           \
                        unlike |= (flags_##T)(p != p) | (flags_##T)(q != q);                     \
                        apart |= (flags_##T)(s != s) | (flags_##T)(t != t);                      \
                    }                                                                            \
                }                                                                                \
                for (; i < n; i += LANES) {                                                      \
                    p = *(const lanes_##T*)(x + (i < n - LANES ? i : n - LANES));                \
                    a = NAME##_of_##T(p, a);                                                     \
                    if (NAN_OF != 0) unlike |= (flags_##T)(p != p);                              \
                }                                                                                \
                a = NAME##_of_##T(NAME##_of_##T(a, b), NAME##_of_##T(c, d));                     \
                if (NAN_OF != 0) {                                                               \
                    unlike |= apart;                                                             \
                    a = chosen_##T(unlike, a - a + (T)NAN_OF, a);                                \
                }                                                                                \
                ends[r] = a;                                                                     \
            }                                                                                    \
            for (Py_ssize_t r = 0; r < here; r++) y[first + r] = NAME##_in_##T(ends + r);        \
        }                                                                                        \
    }

ROW_EXTREMES(float, int32_t, __builtin_nan(""))
ROW_EXTREMES(double, int64_t, __builtin_nan(""))
ROW_EXTREMES(uint8_t, int8_t, 0)
ROW_EXTREMES(int8_t, int8_t, 0)
ROW_EXTREMES(int16_t, int16_t, 0)
ROW_EXTREMES(int32_t, int32_t, 0)
ROW_EXTREMES(int64_t, int64_t, 0)

/* by the type of the elements: NAME_float(first, x, ...) where x points to floats */
#define BY_ELEMENT(NAME, first, x, ...)                                                          \
    _Generic((x), const float*: NAME##_float, const double*: NAME##_double,                      \
             const uint8_t*: NAME##_uint8_t, const int8_t*: NAME##_int8_t,                       \
             const int16_t*: NAME##_int16_t, const int32_t*: NAME##_int32_t,                     \
             const int64_t*: NAME##_int64_t)(first, x, __VA_ARGS__)
#define row_extremes(largest, ...) BY_ELEMENT(row_extremes, largest, __VA_ARGS__)
#define row_find(value, ...) BY_ELEMENT(row_find, value, __VA_ARGS__)
