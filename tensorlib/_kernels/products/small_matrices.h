/* Decompositions of many small matrices: each lane of a vector is an element of another matrix.

   Included once for each type, with REAL, INT (an integer of its size), ROOT and NAME(x) defined.
   All matrices have n rows, at most MOST, and lie one after the other by rows. What is done to a
   matrix does not depend on those beside it: a step that it does not need leaves it as it is. A
   matrix that has not what was asked for has NaN in its result. A LAPACK call for 8x8 takes 0.7 us
   for a Cholesky factor and 8 us for eigenvectors; these take 0.1 and 1 to 2. */

#ifndef SMALL_MATRICES
#define SMALL_MATRICES
#define MOST 16
#define SWEEPS 40                       /* of rotations; 5 to 8 are usual */
#define LARGE 0.6                       /* as in _core/products/lapack.pyx */
#define BYTES __BIGGEST_ALIGNMENT__     /* of a register */
#endif

#define LANES ((int)(BYTES / sizeof(REAL)))
#define VEC NAME(vec)
#define MASK NAME(mask)

typedef REAL VEC __attribute__((vector_size(BYTES)));
typedef INT MASK __attribute__((vector_size(BYTES)));

static inline VEC NAME(pick)(MASK m, VEC a, VEC b) {
    return (VEC)((m & (MASK)a) | (~m & (MASK)b));
}

static inline VEC NAME(all)(REAL x) {
    return x - (VEC){0};
}

static inline VEC NAME(root)(VEC x) {
    REAL y[LANES];
    __builtin_memcpy(y, &x, sizeof(x));
    for (int l = 0; l < LANES; l++) y[l] = ROOT(y[l]);
    __builtin_memcpy(&x, y, sizeof(x));
    return x;
}

static inline VEC NAME(size)(VEC x) {
    return NAME(pick)(x < 0, -x, x);
}

static inline int NAME(any)(MASK m) {
    INT found = 0;
    for (int l = 0; l < LANES; l++) found |= m[l];
    return found != 0;
}

/* the matrices of up to LANES lanes; lanes beyond the last have the first one */
static inline void NAME(load)(const REAL* a, VEC* v, Py_ssize_t elements, Py_ssize_t lanes) {
    REAL* to = (REAL*)v;
    for (int l = 0; l < LANES; l++) {
        const REAL* from = a + (l < lanes ? l : 0) * elements;
        for (Py_ssize_t i = 0; i < elements; i++) to[i * LANES + l] = from[i];
    }
}

static inline void NAME(store)(const VEC* v, REAL* a, Py_ssize_t elements, Py_ssize_t lanes) {
    const REAL* from = (const REAL*)v;
    for (Py_ssize_t l = 0; l < lanes; l++)
        for (Py_ssize_t i = 0; i < elements; i++) a[l * elements + i] = from[i * LANES + l];
}

/* ---- Cholesky: x := L with L @ L.T = a, of which the lower triangle is read ------------------ */

static void NAME(cholesky)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                           Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC l[MOST * MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, l, n * n, lanes);
        for (int j = 0; j < n; j++) {
            VEC d = l[j * n + j];
            d = NAME(root)(NAME(pick)(d > 0, d, NAME(all)(__builtin_nan(""))));
            l[j * n + j] = d;
            for (int i = j + 1; i < n; i++) {
                l[i * n + j] /= d;
                l[j * n + i] = (VEC){0};
            }
            for (int i = j + 1; i < n; i++) {
                VEC f = l[i * n + j];
                for (int c = j + 1; c <= i; c++) l[i * n + c] -= f * l[c * n + j];
            }
        }
        NAME(store)(l, x + first * n * n, n * n, lanes);
    }
}

/* ---- LU with rows exchanged, the k columns of `right` with them ------------------------------ */

/* -1 in the lanes of singular matrices. `sign`, `pivots` and L below the diagonal, all with
   `pivots`, may be NULL: the sign of the exchanges, and the rows exchanged, from 0. */
static inline MASK NAME(eliminate)(VEC* a, VEC* right, Py_ssize_t n, Py_ssize_t k, VEC* sign,
                                   VEC* pivots) {
    MASK singular = {0};
    for (int j = 0; j < n; j++) {
        VEC best = NAME(size)(a[j * n + j]), row = NAME(all)((REAL)j);
        for (int i = j + 1; i < n; i++) {
            VEC found = NAME(size)(a[i * n + j]);
            MASK larger = found > best;
            best = NAME(pick)(larger, found, best);
            row = NAME(pick)(larger, NAME(all)((REAL)i), row);
        }
        for (int l = 0; l < LANES; l++) {
            int i = (int)row[l];
            if (i == j) continue;
            REAL* here = (REAL*)(a + j * n) + l;
            REAL* there = (REAL*)(a + i * n) + l;
            for (int c = pivots ? 0 : j; c < n; c++) {
                REAL kept = here[c * LANES];
                here[c * LANES] = there[c * LANES];
                there[c * LANES] = kept;
            }
            here = (REAL*)(right + j * k) + l;
            there = (REAL*)(right + i * k) + l;
            for (int c = 0; c < k; c++) {
                REAL kept = here[c * LANES];
                here[c * LANES] = there[c * LANES];
                there[c * LANES] = kept;
            }
            if (sign) (*sign)[l] = -(*sign)[l];
        }
        if (pivots) pivots[j] = row;
        VEC pivot = a[j * n + j];
        MASK zero = pivot == 0;
        singular |= zero;
        pivot = NAME(pick)(zero, NAME(all)(1), pivot);
        for (int i = j + 1; i < n; i++) {
            VEC f = a[i * n + j] / pivot;
            if (pivots) a[i * n + j] = f;
            for (int c = j + 1; c < n; c++) a[i * n + c] -= f * a[j * n + c];
            for (int c = 0; c < k; c++) right[i * k + c] -= f * right[j * k + c];
        }
    }
    return singular;
}

/* right := inverse(U) @ right, NaN in singular lanes */
static inline void NAME(substitute)(const VEC* u, VEC* right, Py_ssize_t n, Py_ssize_t k,
                                    MASK singular) {
    for (int j = n - 1; j >= 0; j--) {
        VEC pivot = NAME(pick)(singular, NAME(all)(__builtin_nan("")), u[j * n + j]);
        for (int c = 0; c < k; c++) right[j * k + c] /= pivot;
        for (int i = 0; i < j; i++) {
            VEC f = u[i * n + j];
            for (int c = 0; c < k; c++) right[i * k + c] -= f * right[j * k + c];
        }
    }
}

/* x := the solution of a @ x = b with k columns, at most MOST */
static void NAME(solve)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                        Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC u[MOST * MOST], right[MOST * MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, u, n * n, lanes);
        NAME(load)(b + first * n * k, right, n * k, lanes);
        MASK singular = NAME(eliminate)(u, right, n, k, NULL, NULL);
        NAME(substitute)(u, right, n, k, singular);
        NAME(store)(right, x + first * n * k, n * k, lanes);
    }
}

/* x := the inverse of a */
static void NAME(inverse)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                          Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC u[MOST * MOST], right[MOST * MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, u, n * n, lanes);
        for (int i = 0; i < n * n; i++) right[i] = (VEC){0};
        for (int i = 0; i < n; i++) right[i * n + i] = NAME(all)(1);
        MASK singular = NAME(eliminate)(u, right, n, n, NULL, NULL);
        NAME(substitute)(u, right, n, n, singular);
        NAME(store)(right, x + first * n * n, n * n, lanes);
    }
}

/* x := L and U in one matrix, y := the rows exchanged, from 0, as numbers of their type */
static void NAME(lu)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                     Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC u[MOST * MOST], rows[MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, u, n * n, lanes);
        NAME(eliminate)(u, u, n, 0, NULL, rows);
        NAME(store)(u, x + first * n * n, n * n, lanes);
        NAME(store)(rows, y + first * n, n, lanes);
    }
}

/* ---- QR: x := Q and y := R, by reflections with LAPACK's signs; where z is not NULL, x := R and
   the vectors of the reflections below it, by columns, and z := their factors ----------------- */

static void NAME(qr)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                     Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC r[MOST * MOST], q[MOST * MOST], tau[MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, r, n * n, lanes);
        for (int j = 0; j < n; j++) {
            VEC largest = {0}, head = r[j * n + j], total = {0};
            for (int i = j + 1; i < n; i++) {
                VEC size = NAME(size)(r[i * n + j]);
                largest = NAME(pick)(size > largest, size, largest) + 0 * size;
            }
            VEC size = NAME(size)(head);
            VEC scale = NAME(pick)(size > largest, size, largest);
            scale = NAME(pick)(scale > 0, scale, NAME(all)(1));
            for (int i = j; i < n; i++) {
                VEC part = r[i * n + j] / scale;
                total += part * part;
            }
            VEC beta = scale * NAME(root)(total);
            beta = NAME(pick)(head < 0, beta, -beta);
            MASK idle = largest == 0;             /* nothing below: left as it is */
            VEC one = NAME(all)(1);
            tau[j] = NAME(pick)(idle, (VEC){0}, (beta - head) / NAME(pick)(idle, one, beta));
            VEC divisor = NAME(pick)(idle, one, head - beta);
            for (int i = j + 1; i < n; i++) r[i * n + j] /= divisor;
            r[j * n + j] = NAME(pick)(idle, head, beta);
            for (int c = j + 1; c < n; c++) {
                VEC dot = r[j * n + c];
                for (int i = j + 1; i < n; i++) dot += r[i * n + j] * r[i * n + c];
                dot *= tau[j];
                r[j * n + c] -= dot;
                for (int i = j + 1; i < n; i++) r[i * n + c] -= dot * r[i * n + j];
            }
        }
        for (int i = 0; i < n; i++)
            for (int c = 0; c < n; c++) q[i * n + c] = z ? r[c * n + i] : NAME(all)(i == c);
        if (z) {
            NAME(store)(q, x + first * n * n, n * n, lanes);
            NAME(store)(tau, z + first * n, n, lanes);
            continue;
        }
        for (int j = n - 1; j >= 0; j--)
            for (int c = j; c < n; c++) {
                VEC dot = q[j * n + c];
                for (int i = j + 1; i < n; i++) dot += r[i * n + j] * q[i * n + c];
                dot *= tau[j];
                q[j * n + c] -= dot;
                for (int i = j + 1; i < n; i++) q[i * n + c] -= dot * r[i * n + j];
            }
        for (int i = 1; i < n; i++)
            for (int c = 0; c < i; c++) r[i * n + c] = (VEC){0};
        NAME(store)(q, x + first * n * n, n * n, lanes);
        NAME(store)(r, y + first * n * n, n * n, lanes);
    }
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* x := the determinant of a */
static void NAME(determinant)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                              Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC u[MOST * MOST];
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, u, n * n, lanes);
        VEC product = NAME(all)(1);
        NAME(eliminate)(u, u, n, 0, &product, NULL);
        for (int j = 0; j < n; j++) product *= u[j * n + j];
        NAME(store)(&product, x + first, 1, lanes);
    }
}

/* ---- rotations ------------------------------------------------------------------------------- */

/* The tangent, cosine and sine that make 0 of `off` between `first` and `second`; 0, 1, 0 where
   `idle`. Source: Golub and Van Loan, "Matrix Computations", 8.5. */
static inline VEC NAME(rotation)(VEC first, VEC second, VEC off, MASK idle, VEC* c, VEC* s) {
    VEC one = NAME(all)(1);
    VEC theta = (second - first) / (2 * NAME(pick)(idle, one, off));
    VEC t = 1 / (NAME(size)(theta) + NAME(root)(1 + theta * theta));
    t = NAME(pick)(idle, (VEC){0}, NAME(pick)(theta < 0, -t, t));
    *c = 1 / NAME(root)(1 + t * t);
    *s = t * *c;
    return t;
}

/* the order of n values: places in ascending (or descending) order */
static inline void NAME(sort)(const REAL* values, int n, int descending, int* order) {
    for (int i = 0; i < n; i++) {
        int place = i;
        REAL x = values[i * LANES];
        while (place > 0 && (descending ? values[order[place - 1] * LANES] < x
                                        : values[order[place - 1] * LANES] > x)) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = i;
    }
}

/* 1 or -1: what makes the first element of a column that is large positive */
static inline REAL NAME(sign)(const REAL* column, Py_ssize_t n, Py_ssize_t step) {
    REAL largest = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        REAL size = column[i * step] < 0 ? -column[i * step] : column[i * step];
        largest = size > largest ? size : largest;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        REAL x = column[i * step];
        if ((x < 0 ? -x : x) >= (REAL)LARGE * largest) return x < 0 ? -1 : 1;
    }
    return 1;
}

/* x := eigenvalues in ascending order, y := eigenvectors as columns, unless it is NULL; of the
   lower triangle. NaN for what has NaN or is infinite. */
static void NAME(eigen)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                        Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC m[MOST * MOST], v[MOST * MOST];
    int order[MOST];
    REAL eps = sizeof(REAL) == 4 ? (REAL)1.1920929e-7 : (REAL)2.220446049250313e-16;
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, m, n * n, lanes);
        VEC norm = {0};
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) {
                VEC size = NAME(size)(m[i * n + j]);
                norm = NAME(pick)(size > norm, size, norm) + 0 * size;
                m[j * n + i] = m[i * n + j];
                v[i * n + j] = v[j * n + i] = NAME(all)(i == j);
            }
        /* elements of size 1 have squares; what is not finite stays so in `norm - norm` */
        VEC scale = 1 / NAME(pick)(norm > 0, norm, NAME(all)(1));
        for (int i = 0; i < n * n; i++) m[i] *= scale;
        VEC small = NAME(all)(eps / 16);
        for (int sweep = 0; sweep < SWEEPS; sweep++) {
            int moved = 0;
            for (int p = 0; p < n - 1; p++)
                for (int q = p + 1; q < n; q++) {
                    VEC off = m[p * n + q];
                    MASK idle = ~(NAME(size)(off) > small);
                    if (!NAME(any)(~idle)) continue;
                    moved = 1;
                    VEC c, s, t = NAME(rotation)(m[p * n + p], m[q * n + q], off, idle, &c, &s);
                    m[p * n + p] -= t * off;
                    m[q * n + q] += t * off;
                    m[p * n + q] = m[q * n + p] = NAME(pick)(idle, off, (VEC){0});
                    for (int r = 0; r < n; r++) {
                        if (r != p && r != q) {
                            VEC f = m[r * n + p], g = m[r * n + q];
                            m[r * n + p] = m[p * n + r] = c * f - s * g;
                            m[r * n + q] = m[q * n + r] = s * f + c * g;
                        }
                    }
                    if (y)
                        for (int r = 0; r < n; r++) {
                            VEC f = v[p * n + r], g = v[q * n + r];
                            v[p * n + r] = c * f - s * g;
                            v[q * n + r] = s * f + c * g;
                        }
                }
            if (!moved) break;
        }
        VEC values[MOST];
        norm = NAME(pick)(norm > 0, norm, NAME(all)(1)) + 0 * norm;
        for (int i = 0; i < n; i++) values[i] = m[i * n + i] * norm + (norm - norm);
        for (int l = 0; l < lanes; l++) {
            const REAL* found = (const REAL*)values + l;
            const REAL* rows = (const REAL*)v + l;
            NAME(sort)(found, n, 0, order);
            for (int i = 0; i < n; i++) {
                x[(first + l) * n + i] = found[order[i] * LANES];
                if (!y) continue;
                const REAL* vector = rows + order[i] * n * LANES;
                REAL sign = NAME(sign)(vector, n, LANES);
                for (int r = 0; r < n; r++)
                    y[((first + l) * n + r) * n + i] = sign * vector[r * LANES];
            }
        }
    }
}

/* x := U, y := singular values in descending order, z := V transposed, of square matrices; x and z
   may be NULL. Columns are turned in pairs until they are orthogonal. NaN values for a matrix that
   is singular to working precision and vectors asked for, or not finite. Source: Demmel and
   Veselic, "Jacobi's method is more accurate than QR", SIAM J. Matrix Anal. Appl. 13(4), 1992. */
static void NAME(singular)(const REAL* a, const REAL* b, REAL* x, REAL* y, REAL* z,
                           Py_ssize_t count, Py_ssize_t n, Py_ssize_t k) {
    VEC u[MOST * MOST], v[MOST * MOST];          /* columns as rows */
    int order[MOST];
    REAL eps = sizeof(REAL) == 4 ? (REAL)1.1920929e-7 : (REAL)2.220446049250313e-16;
    for (Py_ssize_t first = 0; first < count; first += LANES) {
        Py_ssize_t lanes = count - first < LANES ? count - first : LANES;
        NAME(load)(a + first * n * n, v, n * n, lanes);
        VEC norm = {0};
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                VEC size = NAME(size)(v[i * n + j]);
                norm = NAME(pick)(size > norm, size, norm) + 0 * size;
                u[j * n + i] = v[i * n + j];
            }
        VEC scale = 1 / NAME(pick)(norm > 0, norm, NAME(all)(1));
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                u[i * n + j] *= scale;
                v[i * n + j] = NAME(all)(i == j);
            }
        for (int sweep = 0; sweep < SWEEPS; sweep++) {
            int moved = 0;
            for (int p = 0; p < n - 1; p++)
                for (int q = p + 1; q < n; q++) {
                    VEC pp = {0}, qq = {0}, pq = {0};
                    for (int r = 0; r < n; r++) {
                        VEC f = u[p * n + r], g = u[q * n + r];
                        pp += f * f;
                        qq += g * g;
                        pq += f * g;
                    }
                    MASK idle = ~(pq * pq > (n * n * eps * eps) * (pp * qq))
                                | (pp + qq <= NAME(all)(eps * eps / 16));
                    if (!NAME(any)(~idle)) continue;
                    moved = 1;
                    VEC c, s;
                    NAME(rotation)(pp, qq, pq, idle, &c, &s);
                    for (int r = 0; r < n; r++) {
                        VEC f = u[p * n + r], g = u[q * n + r];
                        u[p * n + r] = c * f - s * g;
                        u[q * n + r] = s * f + c * g;
                    }
                    if (z)
                        for (int r = 0; r < n; r++) {
                            VEC f = v[p * n + r], g = v[q * n + r];
                            v[p * n + r] = c * f - s * g;
                            v[q * n + r] = s * f + c * g;
                        }
                }
            if (!moved) break;
        }
        VEC values[MOST], largest = {0}, smallest = NAME(all)(__builtin_inf());
        for (int i = 0; i < n; i++) {
            VEC total = {0};
            for (int r = 0; r < n; r++) total += u[i * n + r] * u[i * n + r];
            values[i] = NAME(root)(total);
            largest = NAME(pick)(values[i] > largest, values[i], largest);
            smallest = NAME(pick)(values[i] < smallest, values[i], smallest);
        }
        MASK singular = ~(smallest > (8 * n * eps) * largest);
        norm = NAME(pick)(norm > 0, norm, NAME(all)(1)) + 0 * norm;
        for (int l = 0; l < lanes; l++) {
            const REAL* found = (const REAL*)values + l;
            int lost = x && singular[l];
            NAME(sort)(found, n, 1, order);
            for (int i = 0; i < n; i++) {
                REAL value = found[order[i] * LANES];
                y[(first + l) * n + i] = lost ? (REAL)__builtin_nan("") : value * norm[l];
                if (!x) continue;
                const REAL* left = (const REAL*)u + order[i] * n * LANES + l;
                const REAL* right = (const REAL*)v + order[i] * n * LANES + l;
                REAL sign = NAME(sign)(left, n, LANES);
                for (int r = 0; r < n; r++) {
                    x[((first + l) * n + r) * n + i] = sign * left[r * LANES] / value;
                    z[((first + l) * n + i) * n + r] = sign * right[r * LANES];
                }
            }
        }
    }
}

#undef LANES
#undef VEC
#undef MASK
