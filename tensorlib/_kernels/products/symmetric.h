/* Rotations and reflections of a symmetric matrix, from which its eigenvalues follow.

   The file includes itself for each type, with REAL, EPS, LEAST and NAME(x) defined. The largest
   element of a matrix is about 1; rows are `row` elements apart, whole vectors, and 0 beyond n.
   Reflections that make the matrix tridiagonal are subtracted while the next product with a vector
   is summed, so that all of it is read and written once for each; their product is found in the
   same way. Rotations (QL with shifts of Wilkinson) are found in double, each from the last: while
   it waits for a root and a quotient, the processor turns rows by others.
   Source: Golub and Van Loan, "Matrix Computations", 8.3. */

#ifndef REAL
#include <math.h>
#include <string.h>

enum {
    SYMMETRIC_BYTES = __BIGGEST_ALIGNMENT__,
    STEPS = 40              /* rounds for each eigenvalue, of which 1 to 2 are usual */
};
#define TINY 1e-290         /* nothing, beside an element of 1; numbers near 0 have lost digits */

#define REAL float
#define EPS 1.1920929e-7
#define LEAST 1e-24
#define NAME(x) symmetric_##x##_float
#include "products/symmetric.h"
#undef REAL
#undef EPS
#undef LEAST
#undef NAME
#define REAL double
#define EPS 2.220446049250313e-16
#define LEAST 1e-270
#define NAME(x) symmetric_##x##_double
#include "products/symmetric.h"
#undef REAL
#undef EPS
#undef LEAST
#undef NAME

#else

#define LANES ((Py_ssize_t)(SYMMETRIC_BYTES / sizeof(REAL)))
#define VEC NAME(vec)
#define AT(x) (*(VEC*)(x))

typedef REAL VEC __attribute__((vector_size(SYMMETRIC_BYTES), aligned(sizeof(REAL)), may_alias));

/* rows i to i + ROWS: x -= v[i] * w + w[i] * v, of columns [first, row); y += x * u[i], columns */
#define UPDATE_ROWS(ROWS)                                                                          \
    for (; i + ROWS <= end; i += ROWS) {                                                           \
        REAL* x = a + i * row;                                                                     \
        for (Py_ssize_t j = first; j < row; j += LANES) {                                          \
            VEC vj = AT(v + j), wj = AT(w + j), sum = AT(y + j);                                   \
            for (int k = 0; k < ROWS; k++) {                                                       \
                VEC now = AT(x + k * row + j) - v_of[i + k] * wj - w_of[i + k] * vj;               \
                AT(x + k * row + j) = now;                                                         \
                sum += now * u[i + k];                                                             \
            }                                                                                      \
            AT(y + j) = sum;                                                                       \
        }                                                                                          \
    }

static void NAME(update)(REAL* a, Py_ssize_t row, Py_ssize_t i, Py_ssize_t end, Py_ssize_t first,
                         const REAL* v_of, const REAL* w, const REAL* w_of, const REAL* v,
                         const REAL* u, REAL* y) {
    for (Py_ssize_t j = first; j < row; j += LANES) AT(y + j) = (VEC){0};
    UPDATE_ROWS(4)
    UPDATE_ROWS(1)
}
#undef UPDATE_ROWS

/* The reflection that makes x (n) 0 beyond k + 1: its vector to u, and zeros before; its factor.
   *e := what stands at k + 1 then. */
static REAL NAME(reflection)(const REAL* x, REAL* u, Py_ssize_t row, Py_ssize_t k, Py_ssize_t n,
                             double* e) {
    double total = 0, most = 0, size, head = x[k + 1];
    Py_ssize_t j, first = k / LANES * LANES;
    VEC sum = {0};
    for (j = first; j < row; j += LANES) AT(u + j) = AT(x + j);
    for (j = first; j < k + 2 && j < n; j++) u[j] = 0;
    for (j = first; j < row; j += LANES) sum += AT(u + j) * AT(u + j);
    for (j = 0; j < LANES; j++) total += sum[j];
    *e = head;
    if (!(total > LEAST)) {                 /* squares may have lost digits */
        for (total = 0, j = k + 2; j < n; j++) {
            size = fabs((double)x[j]);
            most = size > most ? size : most;
        }
        if (most < TINY) return 0;
        for (j = k + 2; j < n; j++) total += (x[j] / most) * (x[j] / most);
        total = sqrt(total) * most;
        size = hypot(head, total);
    } else {
        size = sqrt(total + head * head);
    }
    size = head < 0 ? size : -size;
    for (j = k + 2; j < n; j++) u[j] = (REAL)(x[j] / (head - size));
    u[k + 1] = 1;
    *e = size;
    return (REAL)((size - head) / size);
}

/* a (n, row), symmetric := the vectors of the reflections, as rows, whose factors go to tau; d and
   e := the diagonals of the tridiagonal matrix. `work` has 4 rows. */
static void NAME(reduce)(REAL* a, Py_ssize_t row, Py_ssize_t n, double* d, double* e, REAL* tau,
                         REAL* work) {
    REAL *v = work, *w = v + row, *u = w + row, *y = u + row;
    memset(v, 0, row * sizeof(REAL));
    memset(w, 0, row * sizeof(REAL));
    for (Py_ssize_t k = 0; k < n; k++) {
        REAL* x = a + k * row;
        Py_ssize_t first = (k + 1) / LANES * LANES;
        for (Py_ssize_t j = k / LANES * LANES; j < row; j += LANES)
            AT(x + j) -= v[k] * AT(w + j) + w[k] * AT(v + j);
        d[k] = x[k];
        e[k] = 0;
        if (k == n - 1) break;
        memset(u, 0, first * sizeof(REAL));
        tau[k] = NAME(reflection)(x, u, row, k, n, e + k);
        NAME(update)(a, row, k + 1, n, first, v, w, w, v, u, y);
        memcpy(x, u, row * sizeof(REAL));
        double dot = 0;
        VEC sum = {0};
        for (Py_ssize_t j = first; j < k + 1; j++) y[j] = 0;
        for (Py_ssize_t j = first; j < row; j += LANES) sum += AT(y + j) * AT(u + j);
        for (Py_ssize_t j = 0; j < LANES; j++) dot += sum[j];
        REAL half = (REAL)(tau[k] * tau[k] / 2 * dot);
        memcpy(v, u, row * sizeof(REAL));
        memset(w, 0, first * sizeof(REAL));
        for (Py_ssize_t j = first; j < row; j += LANES)
            AT(w + j) = tau[k] * AT(y + j) - half * AT(u + j);
    }
}

/* q (n, row) := the product of the reflections, whose vectors are the rows of a */
static void NAME(multiply)(const REAL* a, REAL* q, Py_ssize_t row, Py_ssize_t n, const REAL* tau,
                           REAL* work) {
    REAL *v = work, *w = v + row, *y = w + row;
    memset(q, 0, n * row * sizeof(REAL));
    memset(v, 0, 2 * row * sizeof(REAL));          /* w, too */
    for (Py_ssize_t i = 0; i < n; i++) q[i * row + i] = 1;
    const REAL* pending = v;
    for (Py_ssize_t k = n - 3; k >= -1; k--) {
        const REAL* u = k < 0 ? v : a + k * row;
        Py_ssize_t first = (k + 1) / LANES * LANES;
        NAME(update)(q, row, k + 1, n, first, pending, w, v, v, u, y);
        for (Py_ssize_t j = first; k >= 0 && j < row; j += LANES) AT(w + j) = tau[k] * AT(y + j);
        pending = u;
    }
}

/* turns a row (row) and the one below it by a rotation */
static inline void NAME(turn)(REAL* x, Py_ssize_t row, REAL c, REAL s) {
    for (Py_ssize_t j = 0; j < row; j += LANES) {
        VEC a = AT(x + j), b = AT(x + row + j);
        AT(x + row + j) = s * a + c * b;
        AT(x + j) = c * a - s * b;
    }
}

/* a round of rotations from row m to row l of the tridiagonal matrix, and of z if it is not NULL */
static void NAME(round)(double* d, double* e, Py_ssize_t l, Py_ssize_t m, REAL* z, Py_ssize_t row) {
    double g = (d[l + 1] - d[l]) / (2 * e[l]);
    double r = sqrt(g * g + 1), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    for (Py_ssize_t i = m - 1; i >= l; i--) {
        double f = s * e[i], b = c * e[i];
        r = f * f + g * g;
        if (r < TINY) {
            d[i + 1] -= p;
            e[i + 1] = e[m] = 0;
            return;
        }
        double inverse = 1 / r;
        e[i + 1] = r = sqrt(r);
        if (sizeof(REAL) == 4) {            /* quotients wait for the root, these do not: a sixth */
            s = f * inverse * r;            /* less time, for some bits that float32 has not */
            c = g * inverse * r;
        } else {
            s = f / r;
            c = g / r;
        }
        if (z) NAME(turn)(z + i * row, row, (REAL)c, (REAL)s);
        g = d[i + 1] - p;
        r = (d[i] - g) * s + c * (b + b);
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

/* d := the eigenvalues of the tridiagonal matrix; rows of z, unless it is NULL, are turned with it.
   False if there are too many rounds. */
static int NAME(rotate)(double* d, double* e, Py_ssize_t n, REAL* z, Py_ssize_t row) {
    Py_ssize_t steps = 0;
    for (Py_ssize_t l = 0; l < n; l++)
        for (;;) {
            Py_ssize_t m = l;
            while (m < n - 1 && e[m] * e[m] > EPS * EPS * fabs(d[m]) * fabs(d[m + 1]) + TINY) m++;
            if (m < n - 1) e[m] = 0;
            if (m == l) break;
            if (++steps > STEPS * n) return 0;
            NAME(round)(d, e, l, m, z, row);
        }
    return 1;
}

#undef LANES
#undef VEC
#undef AT
#endif
