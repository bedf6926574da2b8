/* Householder reflections of up to REFLECTIONS columns, and the triangle that makes them one.

   The file includes itself for each type, with REAL, ROOT, SIGNED, LEAST, MOST and NAME(x) defined.
   A column lies along a row of memory, whose end is filled with zeros up to a whole vector. What a
   reflection takes from the columns beside it is subtracted while the next one is multiplied by
   them, so that each is read and written once. */

#ifndef REAL
enum {
    REFLECTIONS = 32,       /* as in _core/products/householder.pyx */
    REFLECTED = 4,          /* columns at once */
    REFLECTION_BYTES = __BIGGEST_ALIGNMENT__
};

#define REAL float
#define ROOT __builtin_sqrtf
#define SIGNED __builtin_copysignf
#define LEAST 1e-28f        /* of a sum of squares: those of what is small beside it may be lost */
#define MOST 1e37f
#define NAME(x) reflection_##x##_float
#include "products/reflections.h"
#undef REAL
#undef ROOT
#undef SIGNED
#undef LEAST
#undef MOST
#undef NAME
#define REAL double
#define ROOT __builtin_sqrt
#define SIGNED __builtin_copysign
#define LEAST 1e-280
#define MOST 1e300
#define NAME(x) reflection_##x##_double
#include "products/reflections.h"
#undef REAL
#undef ROOT
#undef SIGNED
#undef LEAST
#undef MOST
#undef NAME

#else

#define LANES ((Py_ssize_t)(REFLECTION_BYTES / sizeof(REAL)))
#define VEC NAME(vec)
#define QUAD NAME(quad)

typedef REAL VEC __attribute__((vector_size(REFLECTION_BYTES), aligned(sizeof(REAL)), may_alias));
typedef REAL QUAD __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));

static inline __attribute__((always_inline)) REAL NAME(total)(VEC x) {
    QUAD all = ((const QUAD*)&x)[0];
    for (int k = 1; k < REFLECTION_BYTES / 16; k++) all += ((const QUAD*)&x)[k];
    return sizeof(REAL) == 4 ? (all[0] + all[2]) + (all[1] + all[3 % (16 / sizeof(REAL))])
                             : all[0] + all[1];
}

/* the sum of squares of x (end) below c */
static inline REAL NAME(squares)(const REAL* x, Py_ssize_t c, Py_ssize_t end) {
    Py_ssize_t i = c / LANES * LANES;
    REAL first[REFLECTION_BYTES / sizeof(REAL)];
    VEC a, b = {0};
    for (Py_ssize_t l = 0; l < LANES; l++) first[l] = i + l > c ? x[i + l] : 0;
    a = *(const VEC*)first * *(const VEC*)first;
    for (i += LANES; i + LANES < end; i += 2 * LANES) {
        a += *(const VEC*)(x + i) * *(const VEC*)(x + i);
        b += *(const VEC*)(x + i + LANES) * *(const VEC*)(x + i + LANES);
    }
    if (i < end) a += *(const VEC*)(x + i) * *(const VEC*)(x + i);
    return NAME(total)(a + b);
}

/* The length of x (m) from c on, of which the sum of squares is too large or too small; 0 if
   nothing is below c. */
static REAL NAME(length)(const REAL* x, Py_ssize_t c, Py_ssize_t m) {
    REAL most = 0, total = 0;
    int found = 0;
    for (Py_ssize_t i = c; i < m; i++) {
        REAL size = x[i] < 0 ? -x[i] : x[i];
        most = size > most ? size : most;
        found |= i > c && x[i] != 0;
    }
    if (!found) return 0;
    for (Py_ssize_t i = c; i < m; i++) total += x[i] / most * (x[i] / most);
    return most * ROOT(total);
}

/* y (end) := the vector of the reflection that makes zeros of x (m) below c, and x[c] := what is
   there then; its factor */
static REAL NAME(reflection)(REAL* x, REAL* y, Py_ssize_t c, Py_ssize_t m, Py_ssize_t end) {
    const Py_ssize_t first = c / LANES * LANES;
    const REAL head = x[c], squares = NAME(squares)(x, c, end), all = squares + head * head;
    const int safe = squares >= LEAST && all <= MOST;
    const REAL length = safe ? ROOT(all) : NAME(length)(x, c, m);
    REAL factor = 0;
    for (Py_ssize_t i = 0; i < first; i += LANES) *(VEC*)(y + i) = (VEC){0};
    if (length == 0) {
        for (Py_ssize_t i = first; i < end; i += LANES) *(VEC*)(y + i) = (VEC){0};
    } else {
        const REAL there = -SIGNED(length, head), divisor = head - there;
        factor = -divisor / there;
        x[c] = there;
        if (safe) {
            const REAL by = 1 / divisor;
            for (Py_ssize_t i = first; i < end; i += LANES)
                *(VEC*)(y + i) = *(const VEC*)(x + i) * by;
        } else {
            for (Py_ssize_t i = first; i < end; i += LANES)
                *(VEC*)(y + i) = *(const VEC*)(x + i) / divisor;
        }
        for (Py_ssize_t i = first; i < c; i++) y[i] = 0;
    }
    y[c] = 1;
    return factor;
}

/* columns x of `end` elements from i on, less f * before each; f := factor * what y @ each is */
static inline __attribute__((always_inline)) void NAME(pass)(
        REAL* x, Py_ssize_t row, const REAL* before, const REAL* y, REAL* f, REAL factor,
        Py_ssize_t i, Py_ssize_t end, const int columns) {
    VEC sums[REFLECTED] = {{0}};
    REAL by[REFLECTED];
    for (int k = 0; k < columns; k++) by[k] = f[k];
    for (; i < end; i += LANES) {
        const VEC a = *(const VEC*)(before + i), b = *(const VEC*)(y + i);
        _Pragma("GCC unroll 4") for (int k = 0; k < columns; k++) {
            VEC z = *(const VEC*)(x + k * row + i) - by[k] * a;
            *(VEC*)(x + k * row + i) = z;
            sums[k] += z * b;
        }
    }
    _Pragma("GCC unroll 4") for (int k = 0; k < columns; k++) f[k] = factor * NAME(total)(sums[k]);
}

/* p (n, m), n columns of m rows, n <= m: on the diagonal and above it := R of their QR
   decomposition; v (n, m) := the vectors of the reflections, with ones and zeros above them, and
   factors (n) := those of the reflections */
static void NAME(reflect)(REAL* p, REAL* v, Py_ssize_t row, REAL* factors, Py_ssize_t n,
                          Py_ssize_t m) {
    const Py_ssize_t end = (m + LANES - 1) / LANES * LANES;
    REAL f[REFLECTIONS] = {0};
    for (Py_ssize_t c = 0; c < n; c++) {
        REAL *x = p + c * row, *y = v + c * row, *before = c ? y - row : y;
        const Py_ssize_t begin = (c ? c - 1 : 0) / LANES * LANES;
        for (Py_ssize_t i = begin; c && i < end; i += LANES)
            *(VEC*)(x + i) -= f[c] * *(const VEC*)(before + i);
        const REAL factor = factors[c] = NAME(reflection)(x, y, c, m, end);
        Py_ssize_t k = c + 1;
        for (; k + REFLECTED <= n; k += REFLECTED)
            NAME(pass)(p + k * row, row, before, y, f + k, factor, begin, end, REFLECTED);
        for (; k < n; k++) NAME(pass)(p + k * row, row, before, y, f + k, factor, begin, end, 1);
    }
}

/* t (n, n) := minus the upper triangle T of 1 - V @ T @ V.T, which is the product of n reflections
   with these factors, for s = V.T @ V; zeros below it. Rows of t and s have REFLECTIONS elements.
   */
static void NAME(weigh)(const REAL* s, const REAL* factors, REAL* t, Py_ssize_t n) {
    REAL columns[REFLECTIONS * REFLECTIONS];        /* T, column by column */
    for (Py_ssize_t j = 0; j < n; j++) {
        REAL* column = columns + j * REFLECTIONS;
        VEC sums[REFLECTIONS * sizeof(REAL) / REFLECTION_BYTES] = {{0}};
        for (Py_ssize_t l = 0; l < j; l++)
            _Pragma("GCC unroll 16") for (Py_ssize_t i = 0; i < REFLECTIONS / LANES; i++)
                sums[i] += s[j * REFLECTIONS + l]
                           * *(const VEC*)(columns + l * REFLECTIONS + i * LANES);
        _Pragma("GCC unroll 16") for (Py_ssize_t i = 0; i < REFLECTIONS / LANES; i++)
            *(VEC*)(column + i * LANES) = -factors[j] * sums[i];
        column[j] = factors[j];
        for (Py_ssize_t i = j + 1; i < REFLECTIONS; i++) column[i] = 0;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j < n; j++) t[i * REFLECTIONS + j] = -columns[j * REFLECTIONS + i];
}

#undef LANES
#undef VEC
#undef QUAD
#endif
