/* Systems with triangular matrices, and factors of Cholesky and of Gauss, of up to TRIANGLE rows.

   The file includes itself for each type, with REAL, ROOT and NAME(x) defined. Four rows at a time,
   all sums over the rows above in registers. What is subtracted from an element is summed first,
   from the first row to the last: so its bits do not depend on the columns beside it, and its error
   is half of what it is if the products are subtracted one by one. */

#ifndef REAL
enum {
    TRIANGLE = 64,          /* rows; as in _core/products/triangles.pyx */
    TRIANGLE_ROWS = 4,
    TRIANGLE_BYTES = __BIGGEST_ALIGNMENT__
};

#define REAL float
#define ROOT __builtin_sqrtf
#define NAME(x) triangle_##x##_float
#include "products/triangles.h"
#undef REAL
#undef ROOT
#undef NAME
#define REAL double
#define ROOT __builtin_sqrt
#define NAME(x) triangle_##x##_double
#include "products/triangles.h"
#undef REAL
#undef ROOT
#undef NAME

#else

#define LANES ((Py_ssize_t)(TRIANGLE_BYTES / sizeof(REAL)))
#define VEC NAME(vec)

typedef REAL VEC __attribute__((vector_size(TRIANGLE_BYTES), aligned(sizeof(REAL)), may_alias));

/* rows [j, j + rows) of t, two vectors wide: less what the rows above give by `l`, if it is the
   `first` thing, and then divided by their own triangle, if that is the `last` one */
static inline __attribute__((always_inline)) void NAME(subtract)(
        const REAL* l, Py_ssize_t l_row, Py_ssize_t l_col, REAL* t, Py_ssize_t t_row, Py_ssize_t j,
        const int rows, const int first, const int last, const int unit) {
    VEC x[TRIANGLE_ROWS][2] = {{{0}}};
    const REAL* at = l + j * l_row;
    for (Py_ssize_t k = 0; first && k < j; k++) {
        VEC y0 = *(const VEC*)(t + k * t_row), y1 = *(const VEC*)(t + k * t_row + LANES);
        _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) {
            REAL f = at[i * l_row + k * l_col];
            x[i][0] += f * y0;
            x[i][1] += f * y1;
        }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) {
        x[i][0] = *(const VEC*)(t + (j + i) * t_row) - x[i][0];
        x[i][1] = *(const VEC*)(t + (j + i) * t_row + LANES) - x[i][1];
    }
    _Pragma("GCC unroll 4") for (int i = 0; last && i < rows; i++) {
        _Pragma("GCC unroll 4") for (int k = 0; k < i; k++) {
            REAL f = at[i * l_row + (j + k) * l_col];
            x[i][0] -= f * x[k][0];
            x[i][1] -= f * x[k][1];
        }
        if (!unit) {
            REAL f = at[i * l_row + (j + i) * l_col];
            x[i][0] /= f;
            x[i][1] /= f;
        }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < rows; i++) {
        *(VEC*)(t + (j + i) * t_row) = x[i][0];
        *(VEC*)(t + (j + i) * t_row + LANES) = x[i][1];
    }
}

/* two vectors of columns of t (n, .) := inverse(l) @ t */
static void NAME(substitute_columns)(const REAL* l, Py_ssize_t l_row, Py_ssize_t l_col, REAL* t,
                                     Py_ssize_t t_row, Py_ssize_t n, int unit) {
    Py_ssize_t j = 0;
    for (; j + TRIANGLE_ROWS <= n; j += TRIANGLE_ROWS)
        if (unit) NAME(subtract)(l, l_row, l_col, t, t_row, j, TRIANGLE_ROWS, 1, 1, 1);
        else NAME(subtract)(l, l_row, l_col, t, t_row, j, TRIANGLE_ROWS, 1, 1, 0);
    for (; j < n; j++)
        if (unit) NAME(subtract)(l, l_row, l_col, t, t_row, j, 1, 1, 1, 1);
        else NAME(subtract)(l, l_row, l_col, t, t_row, j, 1, 1, 1, 0);
}

/* t (n, m) := inverse(l) @ t for a lower triangle l of n rows, at most TRIANGLE, with ones on its
   diagonal if it is `unit`; strides are any for l, and t_row for t, whose rows are contiguous */
static void NAME(substitute)(const REAL* l, Py_ssize_t l_row, Py_ssize_t l_col, REAL* t,
                             Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m, int unit) {
    REAL apart[TRIANGLE * 2 * (TRIANGLE_BYTES / sizeof(REAL))];
    for (; m >= 2 * LANES; m -= 2 * LANES, t += 2 * LANES)
        NAME(substitute_columns)(l, l_row, l_col, t, t_row, n, unit);
    if (m == 0) return;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t c = 0; c < 2 * LANES; c++)
            apart[i * 2 * LANES + c] = c < m ? t[i * t_row + c] : 0;
    NAME(substitute_columns)(l, l_row, l_col, apart, 2 * LANES, n, unit);
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t c = 0; c < m; c++) t[i * t_row + c] = apart[i * 2 * LANES + c];
}

/* d (m) := d - the squares of each column of t (n, m) */
static void NAME(squares)(const REAL* t, Py_ssize_t t_row, Py_ssize_t n, Py_ssize_t m, double* d) {
    for (Py_ssize_t k = 0; k < n; k++)
        for (Py_ssize_t c = 0; c < m; c++) d[c] -= (double)t[k * t_row + c] * t[k * t_row + c];
}

/* The upper triangle of u (n, n) := that U with U.T @ U = u, of which the upper triangle is read;
   what it gives is 0, or the order of the first minor that is not positive. Rows go on behind their
   end by two vectors, which are written to, as is the lower triangle. The diagonal is taken from d,
   which is written to, unless it is NULL: OpenBLAS sums its squares with double, too. */
static Py_ssize_t NAME(factor)(REAL* u, Py_ssize_t u_row, Py_ssize_t n, double* d) {
    Py_ssize_t rows = TRIANGLE_ROWS;
    for (Py_ssize_t j = 0; j < n; j += rows) {
        rows = n - j < TRIANGLE_ROWS ? 1 : TRIANGLE_ROWS;
        for (Py_ssize_t c = j; c < n; c += 2 * LANES)
            if (rows == 1) NAME(subtract)(u, 1, u_row, u + c, u_row, j, 1, 1, 0, 0);
            else NAME(subtract)(u, 1, u_row, u + c, u_row, j, TRIANGLE_ROWS, 1, 0, 0);
        for (Py_ssize_t i = j; i < j + rows; i++) {
            for (Py_ssize_t c = i; c < j + rows; c++) {
                REAL x = u[i * u_row + c];
                for (Py_ssize_t k = j; k < i; k++) x -= u[k * u_row + i] * u[k * u_row + c];
                if (c > i) {
                    x /= u[i * u_row + i];
                    if (d) d[c] -= (double)x * x;
                } else {
                    if (d) x = (REAL)d[i];
                    if (!(x > 0)) return i + 1;
                    x = ROOT(x);
                }
                u[i * u_row + c] = x;
            }
        }
        for (Py_ssize_t c = j + rows; c < n; c += 2 * LANES)
            if (rows == 1) NAME(subtract)(u, 1, u_row, u + c, u_row, j, 1, 0, 1, 0);
            else NAME(subtract)(u, 1, u_row, u + c, u_row, j, TRIANGLE_ROWS, 0, 1, 0);
        if (d) NAME(squares)(u + j * u_row + j + rows, u_row, rows, n - j - rows, d + j + rows);
    }
    return 0;
}

/* where of x (n) the first of the elements of the largest size is, or NaN among zeros */
static Py_ssize_t NAME(largest)(const REAL* x, Py_ssize_t n) {
    REAL most[TRIANGLE_BYTES / sizeof(REAL)] = {0}, found = 0;
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            REAL size = x[i + l] < 0 ? -x[i + l] : x[i + l];
            most[l] = size > most[l] ? size : most[l];
        }
    for (int l = 0; l < LANES; l++) found = most[l] > found ? most[l] : found;
    for (; i < n; i++) {
        REAL size = x[i] < 0 ? -x[i] : x[i];
        found = size > found ? size : found;
    }
    for (i = 0; i < n; i++)
        if (found > 0 ? x[i] == found || x[i] == -found : x[i] != x[i]) return i;
    return 0;
}

/* p (n, m) := L and U of its transpose, n columns of m rows: places[c] is the row, from 0, that was
   exchanged with row c, and the result 0, or the place, from 1, of the first zero on the diagonal
   of U. Rows of p go on behind their end by two vectors, which are written to. */
static Py_ssize_t NAME(eliminate)(REAL* p, Py_ssize_t p_row, Py_ssize_t n, Py_ssize_t m,
                                  Py_ssize_t* places) {
    Py_ssize_t info = 0, columns = TRIANGLE_ROWS;
    for (Py_ssize_t j = 0; j < n; j += columns) {
        columns = n - j < TRIANGLE_ROWS ? 1 : TRIANGLE_ROWS;
        for (Py_ssize_t c = j; c < j + columns; c++) {
            REAL* x = p + c * p_row;
            for (Py_ssize_t k = 0; k < j; k++)
                for (Py_ssize_t i = k + 1; i < j; i++) x[i] -= x[k] * p[k * p_row + i];
        }
        for (Py_ssize_t i = j; i < m; i += 2 * LANES)
            if (columns == 1) NAME(subtract)(p, p_row, 1, p + i, p_row, j, 1, 1, 0, 0);
            else NAME(subtract)(p, p_row, 1, p + i, p_row, j, TRIANGLE_ROWS, 1, 0, 0);
        for (Py_ssize_t c = j; c < j + columns; c++) {
            REAL* x = p + c * p_row;
            for (Py_ssize_t k = j; k < c; k++) {
                const REAL f = x[k], *y = p + k * p_row;
                for (Py_ssize_t i = k + 1; i < m; i++) x[i] -= f * y[i];
            }
            places[c] = c + NAME(largest)(x + c, m - c);
            for (Py_ssize_t i = 0; i < n && places[c] != c; i++) {
                REAL kept = p[i * p_row + c];
                p[i * p_row + c] = p[i * p_row + places[c]];
                p[i * p_row + places[c]] = kept;
            }
            const REAL pivot = x[c];
            if (pivot == 0) info = info ? info : c + 1;
            else for (Py_ssize_t i = c + 1; i < m; i++) x[i] /= pivot;
        }
    }
    return info;
}

#undef LANES
#undef VEC
#endif
