/* Fourier transforms of as many rows at once as a vector has lanes.

   Included once for each type, with REAL, NAME(x) and the shuffles of its vectors defined. A point
   is the numbers of one place in all lanes: their real and their imaginary parts, a line of memory.
   The passes are Stockham's, which sort what they compute. All of them are forward: in the other
   direction real and imaginary parts change places before and after. Lanes know nothing of each
   other, so that a row has the same bits whatever lies beside it. */

#ifndef FOURIER
#define FOURIER
#include "fourier_plan.h"
#define PAGE 4096                       /* bytes between points that no prefetcher foresees */
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif
#endif

#define LANES ((int)(LINE / 2 / sizeof(REAL)))
#define VEC NAME(vec)
#define POINT NAME(point)
#define MASK NAME(mask)

typedef REAL VEC __attribute__((vector_size(LINE / 2)));
typedef INTEGER MASK __attribute__((vector_size(LINE / 2)));
typedef struct { VEC re, im; } POINT;

INLINE VEC NAME(all)(REAL x) {
    return x - (VEC){0};
}

INLINE POINT NAME(turned)(POINT a, VEC re, VEC im) {
    return (POINT){a.re * re - a.im * im, a.re * im + a.im * re};
}

/* ---- butterflies: the transform of as many points as a factor has, in place ---- */

INLINE void NAME(of_2)(POINT* a) {
    POINT b = a[1];
    a[1] = (POINT){a[0].re - b.re, a[0].im - b.im};
    a[0] = (POINT){a[0].re + b.re, a[0].im + b.im};
}

INLINE void NAME(of_4)(POINT* a) {
    VEC s_re = a[0].re + a[2].re, s_im = a[0].im + a[2].im;
    VEC d_re = a[0].re - a[2].re, d_im = a[0].im - a[2].im;
    VEC t_re = a[1].re + a[3].re, t_im = a[1].im + a[3].im;
    VEC u_re = a[1].re - a[3].re, u_im = a[1].im - a[3].im;
    a[0] = (POINT){s_re + t_re, s_im + t_im};
    a[1] = (POINT){d_re + u_im, d_im - u_re};
    a[2] = (POINT){s_re - t_re, s_im - t_im};
    a[3] = (POINT){d_re - u_im, d_im + u_re};
}

INLINE void NAME(of_8)(POINT* a) {
    const REAL half = (REAL)0.70710678118654752440;      /* the cosine of 45 degrees */
    POINT even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    NAME(of_4)(even);
    NAME(of_4)(odd);
    POINT w[4] = {odd[0],
                  {(odd[1].re + odd[1].im) * half, (odd[1].im - odd[1].re) * half},
                  {odd[2].im, -odd[2].re},
                  {(odd[3].im - odd[3].re) * half, -(odd[3].re + odd[3].im) * half}};
    for (int k = 0; k < 4; k++) {
        a[k] = (POINT){even[k].re + w[k].re, even[k].im + w[k].im};
        a[k + 4] = (POINT){even[k].re - w[k].re, even[k].im - w[k].im};
    }
}

/* of an odd number of points: those that lie opposite have the same cosines, and opposite sines */
INLINE void NAME(of_odd)(const int r, POINT* a, const REAL* cosines, const REAL* sines) {
    const int half = r / 2;
    POINT sum[MOST_ODD / 2], difference[MOST_ODD / 2], first = a[0], all = a[0];
    _Pragma("GCC unroll 8")
    for (int j = 0; j < half; j++) {
        POINT b = a[j + 1], c = a[r - 1 - j];
        sum[j] = (POINT){b.re + c.re, b.im + c.im};
        difference[j] = (POINT){b.re - c.re, b.im - c.im};
        all = (POINT){all.re + sum[j].re, all.im + sum[j].im};
    }
    a[0] = all;
    _Pragma("GCC unroll 8")
    for (int k = 1; k <= half; k++) {
        POINT even = first, odd = {{0}, {0}};
        _Pragma("GCC unroll 8")
        for (int j = 1; j <= half; j++) {
            REAL c = cosines[j * k % r], s = sines[j * k % r];
            even.re += c * sum[j - 1].re;
            even.im += c * sum[j - 1].im;
            odd.re = j == 1 ? s * difference[0].im : odd.re + s * difference[j - 1].im;
            odd.im = j == 1 ? s * difference[0].re : odd.im + s * difference[j - 1].re;
        }
        a[k] = (POINT){even.re + odd.re, even.im - odd.im};
        a[r - k] = (POINT){even.re - odd.re, even.im + odd.im};
    }
}

/* ---- passes ---- */

/* y[q + s (r p + k)] := the k-th of the transform of x[q + s (p + m j)] over j, turned by p k parts
   of r m; in the last pass m is 1, and nothing is turned. Where r is odd, the angles begin with
   those of j parts of r. */
INLINE void NAME(pass)(const int r, const int turns, const POINT* restrict x, POINT* restrict y,
                       ptrdiff_t s, ptrdiff_t m, const REAL* angles) {
    REAL cosines[MOST_ODD], sines[MOST_ODD];
    if (r % 2) {
        for (int j = 0; j < r; j++) cosines[j] = angles[2 * j], sines[j] = -angles[2 * j + 1];
        angles += 2 * r;
    }
    for (ptrdiff_t p = 0; p < m; p++, angles += 2 * (r - 1))
        for (ptrdiff_t q = 0; q < s; q++) {
            const POINT* from = x + q + s * p;
            POINT* to = y + q + s * r * p;
            POINT a[MOST_ODD];
            _Pragma("GCC unroll 16")
            for (int j = 0; j < r; j++) a[j] = from[s * m * j];
            if (r == 2) NAME(of_2)(a);
            else if (r == 4) NAME(of_4)(a);
            else if (r == 8) NAME(of_8)(a);
            else NAME(of_odd)(r, a, cosines, sines);
            to[0] = a[0];
            _Pragma("GCC unroll 16")
            for (int k = 1; k < r; k++)
                to[s * k] = turns ? NAME(turned)(a[k], NAME(all)(angles[2 * k - 2]),
                                                 NAME(all)(angles[2 * k - 1])) : a[k];
        }
}

#define PASS(r)                                                                                  \
    static __attribute__((noinline)) void NAME(pass_##r)(const POINT* x, POINT* y, ptrdiff_t s, \
                                                         ptrdiff_t m, const REAL* angles) {     \
        if (m == 1) NAME(pass)(r, 0, x, y, s, 1, angles);                                        \
        else NAME(pass)(r, 1, x, y, s, m, angles);                                               \
    }
PASS(2) PASS(3) PASS(4) PASS(5) PASS(7) PASS(8) PASS(11) PASS(13)
#undef PASS

/* where the transform of x is in the end: in one of two rooms for n points, and x in none of them,
   or in the second */
static POINT* NAME(passes)(const Passes* of, const POINT* x, POINT* first, POINT* second) {
    const REAL* angles = of->angles;
    ptrdiff_t s = 1, m = of->n;
    POINT* y = (POINT*)x;                   /* of one point */
    for (int i = 0; i < of->count; i++) {
        int r = of->factors[i];
        m /= r;
        y = i % 2 ? second : first;
        switch (r) {
            case 2: NAME(pass_2)(x, y, s, m, angles); break;
            case 3: NAME(pass_3)(x, y, s, m, angles); break;
            case 4: NAME(pass_4)(x, y, s, m, angles); break;
            case 5: NAME(pass_5)(x, y, s, m, angles); break;
            case 7: NAME(pass_7)(x, y, s, m, angles); break;
            case 8: NAME(pass_8)(x, y, s, m, angles); break;
            case 11: NAME(pass_11)(x, y, s, m, angles); break;
            default: NAME(pass_13)(x, y, s, m, angles);
        }
        angles += 2 * m * (r - 1) + (r % 2 ? 2 * r : 0);
        s *= r;
        x = y;
    }
    return y;
}

/* ---- from memory and back ---- */

typedef REAL NAME(loose) __attribute__((vector_size(LINE / 2), aligned(sizeof(REAL)), may_alias));

#define HALF (LANES / 2)                    /* complex numbers of a vector */
#define LOAD(at) ((VEC)*(const NAME(loose)*)(at))
#define STORE(at, v) (*(NAME(loose)*)(at) = (NAME(loose))(v))

/* Two vectors of complex numbers as a point, and back. The lanes of a point have this order, which
   takes one instruction for each part. */
INLINE POINT NAME(split)(VEC a, VEC b) {
    return (POINT){SHUFFLE(MASK, a, b, EVEN), SHUFFLE(MASK, a, b, ODD)};
}

INLINE VEC NAME(lower)(POINT x) { return SHUFFLE(MASK, x.re, x.im, LOWER); }
INLINE VEC NAME(upper)(POINT x) { return SHUFFLE(MASK, x.re, x.im, UPPER); }
INLINE VEC NAME(ordered)(VEC x) { return SHUFFLE(MASK, x, x, ORDER); }   /* is its own inverse */

static const int NAME(slot)[LANES] = {ORDER};

INLINE POINT NAME(exchanged)(POINT x, int turned) {
    return turned ? (POINT){x.im, x.re} : x;
}

/* HALF vectors of complex numbers, with rows and columns exchanged */
INLINE void NAME(transpose)(VEC* v) {
#if WIDE
    VEC a = v[0], b = v[1];
    v[0] = SHUFFLE(MASK, a, b, 0, 1, 4, 5);
    v[1] = SHUFFLE(MASK, a, b, 2, 3, 6, 7);
#else
    VEC a = SHUFFLE(MASK, v[0], v[1], 0, 1, 8, 9, 4, 5, 12, 13);
    VEC b = SHUFFLE(MASK, v[0], v[1], 2, 3, 10, 11, 6, 7, 14, 15);
    VEC c = SHUFFLE(MASK, v[2], v[3], 0, 1, 8, 9, 4, 5, 12, 13);
    VEC d = SHUFFLE(MASK, v[2], v[3], 2, 3, 10, 11, 6, 7, 14, 15);
    v[0] = SHUFFLE(MASK, a, c, 0, 1, 2, 3, 8, 9, 10, 11);
    v[1] = SHUFFLE(MASK, b, d, 0, 1, 2, 3, 8, 9, 10, 11);
    v[2] = SHUFFLE(MASK, a, c, 4, 5, 6, 7, 12, 13, 14, 15);
    v[3] = SHUFFLE(MASK, b, d, 4, 5, 6, 7, 12, 13, 14, 15);
#endif
}

/* x := n points of some lanes, from the given point on; of the other lanes something finite */
static void NAME(load)(Place of, int lanes, POINT* x, ptrdiff_t n) {
    const char* at = of.at;
    ptrdiff_t i = 0;
    int complete = lanes == LANES;
    if (of.part == sizeof(REAL) && of.lane == 2 * sizeof(REAL) && complete) {
        for (; i < n; i++, at += of.point) {
            if (of.point >= PAGE) __builtin_prefetch(at + LINE, 0, 2);      /* of the next group */
            x[i] = NAME(exchanged)(NAME(split)(LOAD(at), LOAD(at + LINE / 2)), of.turned);
        }
        return;
    }
    if (of.lane == sizeof(REAL) && complete) {
        for (; i < n; i++, at += of.point) {
            x[i].re = NAME(ordered)(LOAD(at));
            x[i].im = of.part ? NAME(ordered)(LOAD(at + of.part)) : NAME(all)(0);
            x[i] = NAME(exchanged)(x[i], of.turned);
        }
        return;
    }
    if (of.part == sizeof(REAL) && of.point == 2 * sizeof(REAL)) {
        const char* rows[LANES];
        for (int l = 0; l < LANES; l++) rows[l] = at + (l < lanes ? l : 0) * of.lane;
        for (; i + HALF <= n; i += HALF) {
            VEC low[HALF], high[HALF];
            for (int l = 0; l < HALF; l++) {
                low[l] = LOAD(rows[l] + i * of.point);
                high[l] = LOAD(rows[HALF + l] + i * of.point);
            }
            NAME(transpose)(low);
            NAME(transpose)(high);
            for (int p = 0; p < HALF; p++)
                x[i + p] = NAME(exchanged)(NAME(split)(low[p], high[p]), of.turned);
        }
    }
    for (; i < n; i++) {
        REAL re[LANES] = {0}, im[LANES] = {0};
        for (int l = 0; l < lanes; l++) {
            const char* here = at + i * of.point + l * of.lane;
            __builtin_memcpy(re + NAME(slot)[l], here, sizeof(REAL));
            if (of.part) __builtin_memcpy(im + NAME(slot)[l], here + of.part, sizeof(REAL));
        }
        x[i] = NAME(exchanged)((POINT){LOAD(re), LOAD(im)}, of.turned);
    }
}

/* n points of some lanes times a factor into memory */
static void NAME(store)(Place of, int lanes, const POINT* x, ptrdiff_t n, REAL factor) {
    char* at = of.at;
    VEC f = NAME(all)(factor);
    ptrdiff_t i = 0;
    int complete = lanes == LANES;
#define SCALED(i) NAME(exchanged)((POINT){x[i].re * f, x[i].im * f}, of.turned)
    if (of.part == sizeof(REAL) && of.lane == 2 * sizeof(REAL) && complete) {
        for (; i < n; i++, at += of.point) {
            POINT y = SCALED(i);
            if (of.point >= PAGE) __builtin_prefetch(at + LINE, 1, 2);
            STORE(at, NAME(lower)(y));
            STORE(at + LINE / 2, NAME(upper)(y));
        }
        return;
    }
    if (of.lane == sizeof(REAL) && complete) {
        for (; i < n; i++, at += of.point) {
            POINT y = SCALED(i);
            STORE(at, NAME(ordered)(y.re));
            if (of.part) STORE(at + of.part, NAME(ordered)(y.im));
        }
        return;
    }
    if (of.part == sizeof(REAL) && of.point == 2 * sizeof(REAL))
        for (; i + HALF <= n; i += HALF) {
            VEC low[HALF], high[HALF];
            for (int p = 0; p < HALF; p++) {
                POINT y = SCALED(i + p);
                low[p] = NAME(lower)(y);
                high[p] = NAME(upper)(y);
            }
            NAME(transpose)(low);
            NAME(transpose)(high);
            for (int l = 0; l < HALF && l < lanes; l++)
                STORE(at + l * of.lane + i * of.point, low[l]);
            for (int l = HALF; l < lanes; l++)
                STORE(at + l * of.lane + i * of.point, high[l - HALF]);
        }
    for (; i < n; i++) {
        POINT y = SCALED(i);
        REAL re[LANES], im[LANES];
        STORE(re, y.re);
        STORE(im, y.im);
        for (int l = 0; l < lanes; l++) {
            char* here = at + i * of.point + l * of.lane;
            __builtin_memcpy(here, re + NAME(slot)[l], sizeof(REAL));
            if (of.part) __builtin_memcpy(here + of.part, im + NAME(slot)[l], sizeof(REAL));
        }
    }
#undef SCALED
}
