/* float16 to and from float32 by the processor's own conversion, where the level has one, and
   arithmetic on float16 between the two.

   gcc 12 does not vectorise the bit arithmetic as well: 65,536 elements to float16 take 8.1 us by
   it and 2.5 us by these. Each function returns how many elements it has done: casts as many as
   fill whole registers, arithmetic all, and on other levels none. The plain code in cast.pyx and
   halves.pyx does the rest. The tests of casts and of half types run on every level. */
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>

#define HALF_WIDTH 16
typedef __m512 half_lanes;

static inline half_lanes load_half(const uint16_t* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)x));
}

static inline void store_half(uint16_t* y, half_lanes x) {
    _mm256_storeu_si256((__m256i*)y, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

static inline half_lanes load_floats(const float* x) { return _mm512_loadu_ps(x); }
static inline void store_floats(float* y, half_lanes x) { _mm512_storeu_ps(y, x); }
static inline half_lanes roots(half_lanes x) { return _mm512_sqrt_ps(x); }
static inline half_lanes lesser(half_lanes a, half_lanes b) { return _mm512_min_ps(a, b); }
static inline half_lanes larger(half_lanes a, half_lanes b) { return _mm512_max_ps(a, b); }
static inline half_lanes with_product(half_lanes a, half_lanes b, half_lanes c) {
    return _mm512_fmadd_ps(b, c, a);         /* as in bounds.pxd */
}
#define ALL(number) _mm512_set1_ps(number)
#define CHOOSE(a, test, b, p, q) _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, test), q, p)

#elif defined(__F16C__)
#include <immintrin.h>

#define HALF_WIDTH 8
typedef __m256 half_lanes;

static inline half_lanes load_half(const uint16_t* x) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)x));
}

static inline void store_half(uint16_t* y, half_lanes x) {
    _mm_storeu_si128((__m128i*)y, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

static inline half_lanes load_floats(const float* x) { return _mm256_loadu_ps(x); }
static inline void store_floats(float* y, half_lanes x) { _mm256_storeu_ps(y, x); }
static inline half_lanes roots(half_lanes x) { return _mm256_sqrt_ps(x); }
static inline half_lanes lesser(half_lanes a, half_lanes b) { return _mm256_min_ps(a, b); }
static inline half_lanes larger(half_lanes a, half_lanes b) { return _mm256_max_ps(a, b); }
static inline half_lanes with_product(half_lanes a, half_lanes b, half_lanes c) {
#if defined(__FMA__)
    return _mm256_fmadd_ps(b, c, a);
#else
    return a + b * c;
#endif
}
#define ALL(number) _mm256_set1_ps(number)
#define CHOOSE(a, test, b, p, q) _mm256_blendv_ps(q, p, _mm256_cmp_ps(a, b, test))
#endif

#if defined(HALF_WIDTH)
/* Of the n elements that are left, fewer than a register has. */
static inline half_lanes load_part(const uint16_t* x, Py_ssize_t n) {
    uint16_t room[HALF_WIDTH] = {0};
    memcpy(room, x, n * sizeof(*room));
    return load_half(room);
}

static inline void store_part(uint16_t* y, half_lanes x, Py_ssize_t n) {
    uint16_t room[HALF_WIDTH];
    store_half(room, x);
    memcpy(y, room, n * sizeof(*room));
}
#endif

static Py_ssize_t to_half(const float* x, uint16_t* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
#if defined(HALF_WIDTH)
    for (; i + HALF_WIDTH <= n; i += HALF_WIDTH)
        store_half(y + i, load_floats(x + i));
#endif
    return i;
}

static Py_ssize_t from_half(const uint16_t* x, float* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
#if defined(HALF_WIDTH)
    for (; i + HALF_WIDTH <= n; i += HALF_WIDTH)
        store_floats(y + i, load_half(x + i));
#endif
    return i;
}

/* y := a + b and the like, as float32 and rounded, without a pass over memory for each conversion:
   65,536 sums take a third of the time. The operation is a constant at every call, and tensors
   that it does not have are any others. */
enum {
    HALF_ADD, HALF_SUB, HALF_MUL, HALF_DIV, HALF_SQRT, HALF_RSQRT, HALF_RECIPROCAL, HALF_SQUARE,
    HALF_ADDCMUL, HALF_ADDCDIV, HALF_ADDCMUL_SCALED, HALF_ADDCDIV_SCALED, HALF_LERP, HALF_CLAMP
};

#if defined(HALF_WIDTH)
/* As in bounds.pxd. The processor's larger and lesser number is the second one where
   the first is no larger or no less, and where either is NaN. */
static inline half_lanes from_nearer_end(half_lanes a, half_lanes b, half_lanes w) {
    half_lanes way = b - a, near = a + w * way, far = b - way * (1 - w);
    return CHOOSE(larger(w, -w), _CMP_LT_OQ, ALL(0.5f), near, far);
}

static inline half_lanes between(half_lanes x, half_lanes low, half_lanes high) {
    half_lanes inside = lesser(high, larger(low, x)), unknown = low + high;
    return CHOOSE(low, _CMP_UNORD_Q, high, unknown, inside);
}

static inline __attribute__((always_inline)) half_lanes computed(
        int what, half_lanes p, half_lanes q, half_lanes r, half_lanes s) {
    switch (what) {
    case HALF_ADD: return p + q;
    case HALF_SUB: return p - q;
    case HALF_MUL: return p * q;
    case HALF_DIV: return p / q;
    case HALF_SQRT: return roots(p);
    case HALF_RSQRT: return 1 / roots(p);
    case HALF_RECIPROCAL: return 1 / p;
    case HALF_SQUARE: return p * p;
    case HALF_ADDCMUL: return with_product(p, q, r);
    case HALF_ADDCDIV: return p + q / r;
    case HALF_ADDCMUL_SCALED: return p + q * s * r;
    case HALF_ADDCDIV_SCALED: return p + q * s / r;
    case HALF_LERP: return from_nearer_end(p, q, r);
    default: return between(p, q, r);
    }
}
#endif

/* y := what is computed of n elements, also the last: no plain loop is made for them. */
static inline __attribute__((always_inline)) Py_ssize_t half_lanes_of(
        int what, const uint16_t* a, const uint16_t* b, const uint16_t* c, const uint16_t* d,
        uint16_t* y, Py_ssize_t n) {
#if defined(HALF_WIDTH)
    Py_ssize_t i = 0;
    for (; i + HALF_WIDTH <= n; i += HALF_WIDTH)
        store_half(y + i, computed(what, load_half(a + i), load_half(b + i), load_half(c + i),
                                   load_half(d + i)));
    if (i < n)
        store_part(y + i, computed(what, load_part(a + i, n - i), load_part(b + i, n - i),
                                   load_part(c + i, n - i), load_part(d + i, n - i)), n - i);
    return n;
#else
    return 0;
#endif
}

/* The same where the last tensor is one number. */
static inline __attribute__((always_inline)) Py_ssize_t half_lanes_with(
        int what, const uint16_t* a, const uint16_t* b, float number, uint16_t* y, Py_ssize_t n) {
#if defined(HALF_WIDTH)
    const half_lanes last = ALL(number);
    const int two = what <= HALF_DIV;            /* of two operands */
    Py_ssize_t i = 0;
    for (; i + HALF_WIDTH <= n; i += HALF_WIDTH) {
        half_lanes p = load_half(a + i);
        store_half(y + i, computed(what, p, two ? last : load_half(b + i), last, p));
    }
    if (i < n) {
        half_lanes p = load_part(a + i, n - i);
        store_part(y + i, computed(what, p, two ? last : load_part(b + i, n - i), last, p), n - i);
    }
    return n;
#else
    return 0;
#endif
}

/* y := x between two numbers. */
static Py_ssize_t half_between(const uint16_t* x, float low, float high, uint16_t* y,
                               Py_ssize_t n) {
#if defined(HALF_WIDTH)
    const half_lanes least = ALL(low), most = ALL(high);
    Py_ssize_t i = 0;
    for (; i + HALF_WIDTH <= n; i += HALF_WIDTH)
        store_half(y + i, between(load_half(x + i), least, most));
    if (i < n) store_part(y + i, between(load_part(x + i, n - i), least, most), n - i);
    return n;
#else
    return 0;
#endif
}
