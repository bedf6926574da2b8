/* Fourier transforms of as many rows at once as a vector has lanes.

   Included once for each type, with REAL, NAME(x) and the shuffles of its vectors defined. A point
   is the numbers of one place in all lanes: their real and their imaginary parts, a line of memory.
   The passes are Stockham's, which sort what they compute. All of them are forward: in the other
   direction imaginary parts change their signs before and after. Lanes know nothing of each other,
   so that a row has the same bits whatever lies beside it. */

#ifndef FOURIER
#define FOURIER
#include "fourier/fourier_plan.h"
#include <stdint.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#define DIRECT(factor) ((factor) < 7 || (factor) % 2 == 0)
#define SOON 4                          /* points from one that is read to one that is prefetched */
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define JOIN(a, b) __builtin_shufflevector(a, b, ALL)
#else
#define JOIN(a, b) \
    (((union { __typeof__(a) part[2]; VEC whole; }){{a, b}}).whole)
#define SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif
#endif

#include "fourier/fourier_lanes.h"
#define VEC NAME(vec)
#define POINT NAME(point)
#define MASK NAME(mask)
#define BESIDE NAME(beside)
#define ROOM (2 * (ptrdiff_t)sizeof(REAL))      /* bytes of a complex number */

typedef REAL VEC __attribute__((vector_size(LINE / 2)));
typedef INTEGER MASK __attribute__((vector_size(LINE / 2)));
typedef struct { VEC re, im; } POINT;

INLINE VEC NAME(all)(REAL x) {
    return x - (VEC){0};
}

INLINE POINT NAME(turned)(POINT a, VEC re, VEC im) {
    return (POINT){a.re * re - a.im * im, a.re * im + a.im * re};
}

INLINE POINT NAME(turned_eighth)(POINT a, VEC half) {       /* by -45 degrees */
    return (POINT){(a.re + a.im) * half, (a.im - a.re) * half};
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

#if MOST_POINTS == 16
INLINE void NAME(of_16)(POINT* a) {
    const REAL c = (REAL)0.92387953251128675613, s = (REAL)0.38268343236508977173;   /* 22.5 */
    const REAL half = (REAL)0.70710678118654752440;
    POINT b[4][4];
    _Pragma("GCC unroll 4")
    for (int j = 0; j < 4; j++) {
        POINT column[4] = {a[j], a[j + 4], a[j + 8], a[j + 12]};
        NAME(of_4)(column);
        _Pragma("GCC unroll 4")
        for (int k = 0; k < 4; k++) b[k][j] = column[k];
    }
    b[1][1] = NAME(turned)(b[1][1], NAME(all)(c), NAME(all)(-s));
    b[2][1] = NAME(turned_eighth)(b[2][1], NAME(all)(half));
    b[3][1] = NAME(turned)(b[3][1], NAME(all)(s), NAME(all)(-c));
    b[1][2] = NAME(turned_eighth)(b[1][2], NAME(all)(half));
    b[2][2] = (POINT){b[2][2].im, -b[2][2].re};
    b[3][2] = NAME(turned_eighth)((POINT){b[3][2].im, -b[3][2].re}, NAME(all)(half));
    b[1][3] = NAME(turned)(b[1][3], NAME(all)(s), NAME(all)(-c));
    b[2][3] = NAME(turned_eighth)((POINT){b[2][3].im, -b[2][3].re}, NAME(all)(half));
    b[3][3] = NAME(turned)(b[3][3], NAME(all)(-c), NAME(all)(s));
    _Pragma("GCC unroll 4")
    for (int k = 0; k < 4; k++) {
        NAME(of_4)(b[k]);
        a[k] = b[k][0], a[k + 4] = b[k][1], a[k + 8] = b[k][2], a[k + 12] = b[k][3];
    }
}
#endif

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

/* ---- numbers of memory ---- */

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

INLINE VEC NAME(sign)(int turned) {
    return NAME(all)(turned ? -1 : 1);
}

typedef REAL NAME(half) __attribute__((vector_size(LINE / 4), aligned(sizeof(REAL)), may_alias));

/* a vector of two halves in memory */
INLINE VEC NAME(of_halves)(const char* low, const char* high) {
    const NAME(half) a = *(const NAME(half)*)low, b = *(const NAME(half)*)high;
    return JOIN(a, b);
}

/* Points with their lanes side by side in memory, where neighbours of each are read or written
   soon, so many bytes further on; what is written is multiplied by the factors of its parts, and
   what is read has another sign. */
typedef struct {
    char* at;
    ptrdiff_t point, ahead;
    VEC re, im;
} BESIDE;

INLINE BESIDE NAME(beside_of)(Place of, ptrdiff_t ahead, REAL factor) {
    return (BESIDE){of.at, of.point, ahead, NAME(all)(factor), factor * NAME(sign)(of.turned)};
}

INLINE POINT NAME(read)(const BESIDE* of, ptrdiff_t i) {
    const char* at = of->at + i * of->point;
    for (int line = 0; line < LINE; line += 64) __builtin_prefetch(at + of->ahead + line, 0, 2);
    POINT x = NAME(split)(LOAD(at), LOAD(at + LINE / 2));
    return (POINT){x.re, x.im * of->im};
}

INLINE void NAME(write)(const BESIDE* of, ptrdiff_t i, POINT x) {
    char* at = of->at + i * of->point;
    for (int line = 0; line < LINE; line += 64) __builtin_prefetch(at + of->ahead + line, 0, 2);
    x = (POINT){x.re * of->re, x.im * of->im};
    STORE(at, NAME(lower)(x));
    STORE(at + LINE / 2, NAME(upper)(x));
}

/* ---- passes ---- */

/* y[q + s (r p + k)] := the k-th of the transform of x[q + s (p + m j)] over j, turned by p k parts
   of r m; in the last pass m is 1, and nothing is turned. Where r is odd, the angles begin with
   those of j parts of r. The first pass may read memory, and the last one write it: those of which
   DIRECT says so, as the others are long. */
INLINE void NAME(pass)(const int r, const int turns, const BESIDE* from, const BESIDE* to,
                       const POINT* restrict x, POINT* restrict y, ptrdiff_t s, ptrdiff_t m,
                       const REAL* angles) {
    REAL cosines[MOST_ODD], sines[MOST_ODD];
    if (r % 2) {
        for (int j = 0; j < r; j++) cosines[j] = angles[2 * j], sines[j] = -angles[2 * j + 1];
        angles += 2 * r;
    }
    for (ptrdiff_t p = 0; p < m; p++, angles += 2 * (r - 1))
        for (ptrdiff_t q = 0; q < s; q++) {
            const ptrdiff_t source = q + s * p, target = q + s * r * p;
            POINT a[MOST_POINTS];
            _Pragma("GCC unroll 16")
            for (int j = 0; j < r; j++)
                a[j] = from ? NAME(read)(from, source + s * m * j) : x[source + s * m * j];
            if (r == 2) NAME(of_2)(a);
            else if (r == 4) NAME(of_4)(a);
            else if (r == 8) NAME(of_8)(a);
#if MOST_POINTS == 16
            else if (r == 16) NAME(of_16)(a);
#endif
            else NAME(of_odd)(r, a, cosines, sines);
            _Pragma("GCC unroll 16")
            for (int k = 0; k < r; k++) {
                if (turns && k) a[k] = NAME(turned)(a[k], NAME(all)(angles[2 * k - 2]),
                                                    NAME(all)(angles[2 * k - 1]));
                if (to) NAME(write)(to, target + s * k, a[k]);
                else y[target + s * k] = a[k];
            }
        }
}

#define PASS(r)                                                                                  \
    static __attribute__((noinline)) void NAME(pass_##r)(                                        \
            const BESIDE* from, const BESIDE* to, const POINT* x, POINT* y, ptrdiff_t s,         \
            ptrdiff_t m, const REAL* angles) {                                                   \
        if (DIRECT(r) && from) NAME(pass)(r, 1, from, NULL, x, y, 1, m, angles);                 \
        else if (DIRECT(r) && to) NAME(pass)(r, 0, NULL, to, x, y, s, 1, angles);                \
        else if (m == 1) NAME(pass)(r, 0, NULL, NULL, x, y, s, 1, angles);                       \
        else NAME(pass)(r, 1, NULL, NULL, x, y, s, m, angles);                                   \
    }
PASS(2) PASS(3) PASS(4) PASS(5) PASS(7) PASS(8) PASS(11) PASS(13)
#if MOST_POINTS == 16
PASS(16)
#endif
#undef PASS

/* Where the transform of x is in the end: in one of two rooms for n points, and x in none of them,
   or in the second. The points may lie in memory instead, before it and, of two passes or more,
   after it. */
static POINT* NAME(passes)(const Passes* of, const BESIDE* from, const BESIDE* to, const POINT* x,
                           POINT* first, POINT* second) {
    const REAL* angles = of->angles;
    ptrdiff_t s = 1, m = of->n;
    POINT* y = (POINT*)x;                   /* of one point */
    for (int i = 0; i < of->count; i++) {
        const BESIDE *source = i ? NULL : from, *target = i + 1 < of->count ? NULL : to;
        int r = of->factors[i];
        m /= r;
        y = i % 2 ? second : first;
        switch (r) {
            case 2: NAME(pass_2)(source, target, x, y, s, m, angles); break;
            case 3: NAME(pass_3)(source, target, x, y, s, m, angles); break;
            case 4: NAME(pass_4)(source, target, x, y, s, m, angles); break;
            case 5: NAME(pass_5)(source, target, x, y, s, m, angles); break;
            case 7: NAME(pass_7)(source, target, x, y, s, m, angles); break;
            case 8: NAME(pass_8)(source, target, x, y, s, m, angles); break;
            case 11: NAME(pass_11)(source, target, x, y, s, m, angles); break;
#if MOST_POINTS == 16
            case 16: NAME(pass_16)(source, target, x, y, s, m, angles); break;
#endif
            default: NAME(pass_13)(source, target, x, y, s, m, angles);
        }
        angles += 2 * m * (r - 1) + (r % 2 ? 2 * r : 0);
        s *= r;
        x = y;
    }
    return y;
}

/* ---- from memory and back ---- */

/* Vectors `apart` from one another exchange what differs in that bit of its place */
#define EXCHANGE(v, count, apart, low, high)                                                     \
    _Pragma("GCC unroll 16")                                                                     \
    for (int i = 0; i < count; i++)                                                              \
        if (!(i & apart)) {                                                                      \
            VEC a = v[i], b = v[i + apart];                                                      \
            v[i] = SHUFFLE(MASK, a, b, low);                                                     \
            v[i + apart] = SHUFFLE(MASK, a, b, high);                                            \
        }

/* HALF vectors of complex numbers, with rows and columns exchanged */
INLINE void NAME(transpose)(VEC* v) {
    EXCHANGE(v, HALF, 1, LOW_2, HIGH_2)
#if LANES > 4
    EXCHANGE(v, HALF, 2, LOW_4, HIGH_4)
#endif
#if LANES > 8
    EXCHANGE(v, HALF, 4, LOW_8, HIGH_8)
#endif
}

/* the same of LANES vectors of parts of points */
INLINE void NAME(transpose_parts)(VEC* v) {
#if LANES == 16
    EXCHANGE(v, LANES, 1, LOW_1, HIGH_1)
    EXCHANGE(v, LANES, 2, LOW_2, HIGH_2)
    EXCHANGE(v, LANES, 4, LOW_4, HIGH_4)
    EXCHANGE(v, LANES, 8, LOW_8, HIGH_8)
#elif LANES == 8
    EXCHANGE(v, LANES, 1, LOW_1, HIGH_1)
    EXCHANGE(v, LANES, 2, LOW_4, HIGH_4)
    EXCHANGE(v, LANES, 4, LOW_2, HIGH_2)
#else
    EXCHANGE(v, LANES, 1, LOW_2, HIGH_2)
    EXCHANGE(v, LANES, 2, LOW_1, HIGH_1)
#endif
}

#ifdef __AVX512F__
/* which words of a point are of the first lanes */
INLINE uint32_t NAME(words)(int lanes) {
    return (uint32_t)(((uint64_t)1 << lanes * ROOM / 4) - 1);
}
#endif

INLINE int NAME(lie_beside)(Place of, int lanes) {
    return lanes == LANES && of.part == sizeof(REAL) && of.lane == ROOM;
}

/* x := n points of some lanes, from the given point on; of the other lanes something finite */
static void NAME(load)(Place of, int lanes, POINT* x, ptrdiff_t n) {
    const char* at = of.at;
    ptrdiff_t i = 0;
    VEC sign = NAME(sign)(of.turned);
    if (NAME(lie_beside)(of, lanes)) {
        BESIDE source = NAME(beside_of)(of, SOON * of.point, 1);
        for (; i < n; i++) x[i] = NAME(read)(&source, i);
        return;
    }
#ifdef __AVX512F__
    if (of.part == sizeof(REAL) && of.lane == ROOM) {
        uint32_t mask = NAME(words)(lanes);
        for (; i < n; i++, at += of.point) {
            for (int line = 0; line < LINE; line += 64)
                __builtin_prefetch(at + SOON * of.point + line, 0, 2);
            x[i] = NAME(split)((VEC)_mm512_maskz_loadu_epi32(mask, at),
                               (VEC)_mm512_maskz_loadu_epi32(mask >> 16, at + LINE / 2));
            x[i].im *= sign;
        }
        return;
    }
#endif
    if (of.lane == sizeof(REAL) && lanes == LANES) {
        for (; i < n; i++, at += of.point) {
            x[i].re = NAME(ordered)(LOAD(at));
            x[i].im = of.part ? NAME(ordered)(LOAD(at + of.part)) * sign : NAME(all)(0);
        }
        return;
    }
    if (of.part == sizeof(REAL) && of.point == ROOM) {
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
            for (int p = 0; p < HALF; p++) {
                x[i + p] = NAME(split)(low[p], high[p]);
                x[i + p].im *= sign;
            }
        }
    }
    for (; i < n; i++) {
        REAL re[LANES] = {0}, im[LANES] = {0};
        for (int l = 0; l < lanes; l++) {
            const char* here = at + i * of.point + l * of.lane;
            __builtin_memcpy(re + NAME(slot)[l], here, sizeof(REAL));
            if (of.part) __builtin_memcpy(im + NAME(slot)[l], here + of.part, sizeof(REAL));
        }
        x[i] = (POINT){LOAD(re), LOAD(im) * sign};
    }
}

/* n points of some lanes times a factor into memory */
static void NAME(store)(Place of, int lanes, const POINT* x, ptrdiff_t n, REAL factor) {
    char* at = of.at;
    VEC f_re = NAME(all)(factor), f_im = factor * NAME(sign)(of.turned);
    ptrdiff_t i = 0;
#define SCALED(i) ((POINT){x[i].re * f_re, x[i].im * f_im})
    if (NAME(lie_beside)(of, lanes)) {
        BESIDE target = NAME(beside_of)(of, SOON * of.point, factor);
        for (; i < n; i++) NAME(write)(&target, i, x[i]);
        return;
    }
#ifdef __AVX512F__
    if (of.part == sizeof(REAL) && of.lane == ROOM) {
        uint32_t mask = NAME(words)(lanes);
        for (; i < n; i++, at += of.point) {
            POINT y = SCALED(i);
            _mm512_mask_storeu_epi32(at, mask, (__m512i)NAME(lower)(y));
            _mm512_mask_storeu_epi32(at + LINE / 2, mask >> 16, (__m512i)NAME(upper)(y));
        }
        return;
    }
#endif
    if (of.lane == sizeof(REAL) && lanes == LANES) {
        for (; i < n; i++, at += of.point) {
            POINT y = SCALED(i);
            STORE(at, NAME(ordered)(y.re));
            if (of.part) STORE(at + of.part, NAME(ordered)(y.im));
        }
        return;
    }
    if (of.part == sizeof(REAL) && of.point == ROOM)
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
