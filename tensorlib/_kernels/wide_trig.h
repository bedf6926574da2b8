/* Loops over sin and cos of float32 by the instructions of AVX-512, where `is_far` is not so.

   x - n pi/2 is taken in three parts of pi/2 of 24 bits, each by one multiplication and addition
   that rounds once: the first is exact, since both have no bit below 2**-24 where n is not 0.
   Beyond WIDE_FAR it is taken in double, as `reduce_float` does. */
#pragma once

#include "wide.h"

#if HAS_WIDE
#define WIDE_FAR 262144.0f

/* As `reduce_float` of vecmath_trig.pxd, of eight floats: what is left, and the quadrants */
WIDE __m256 wide_reduced_far(__m256 x, __m256i* quadrant) {
    const __m512d magic = _mm512_set1_pd(6755399441055744.0), from = _mm512_cvtps_pd(x);
    const __m512d shifted = _mm512_fmadd_pd(from, _mm512_set1_pd(0.6366197723675814), magic);
    const __m512d n = _mm512_sub_pd(shifted, magic);
    const __m512d r = _mm512_fnmadd_pd(n, _mm512_set1_pd(1.570796325802803), from);
    *quadrant = _mm512_cvtepi64_epi32(_mm512_castpd_si512(shifted));
    return _mm512_cvtpd_ps(_mm512_fnmadd_pd(n, _mm512_set1_pd(9.920935796805404e-10), r));
}

/* sin(x + `quarters` pi/2): series about 0 within 2**-28 and 2**-33, by Remez exchange */
WIDE __m512 wide_sine(__m512 x, int quarters) {
    const __m512 magic = _mm512_set1_ps(12582912.0f);      /* 1.5 * 2**23: sums are integers */
    const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(0.636619772f), magic);
    const __m512 n = _mm512_sub_ps(shifted, magic);
    const __mmask16 far = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(WIDE_FAR),
                                             _CMP_NLT_UQ);
    __m512i quadrant = _mm512_castps_si512(shifted);
    __m512 r, z, sine, cosine;
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.57079637f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-4.37113883e-08f), r);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-1.71512451e-15f), r);
    if (far) {
        __m256i low, high;
        const __m256 first = wide_reduced_far(_mm512_castps512_ps256(x), &low);
        const __m256 last = wide_reduced_far(_mm512_extractf32x8_ps(x, 1), &high);
        r = _mm512_mask_mov_ps(r, far, _mm512_insertf32x8(_mm512_castps256_ps512(first), last, 1));
        quadrant = _mm512_mask_mov_epi32(
            quadrant, far, _mm512_inserti32x8(_mm512_castsi256_si512(low), high, 1));
    }
    quadrant = _mm512_add_epi32(quadrant, _mm512_set1_epi32(quarters));
    const __mmask16 odd = _mm512_test_epi32_mask(quadrant, _mm512_set1_epi32(1));
    z = _mm512_mul_ps(r, r);
    sine = _mm512_set1_ps(-0.00019516656f);
    WIDE_STEP(sine, z, 0.008332173f);
    WIDE_STEP(sine, z, -0.16666655f);
    sine = _mm512_fmadd_ps(_mm512_mul_ps(z, r), sine, r);
    cosine = _mm512_set1_ps(2.4432413e-05f);
    WIDE_STEP(cosine, z, -0.001388731f);
    WIDE_STEP(cosine, z, 0.041666646f);
    WIDE_STEP(cosine, z, -0.5f);
    WIDE_STEP(cosine, z, 1.0f);
    const __m512i sign = _mm512_and_si512(_mm512_slli_epi32(quadrant, 30),
                                          _mm512_set1_epi32(0x80000000));
    return _mm512_castsi512_ps(_mm512_xor_si512(
        sign, _mm512_castps_si512(_mm512_mask_mov_ps(sine, odd, cosine))));
}

WIDE __m512 wide_sin(__m512 x) {
    const __mmask16 zero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_EQ_OQ);
    return _mm512_mask_mov_ps(wide_sine(x, 0), zero, x);      /* with its sign */
}

WIDE __m512 wide_cos(__m512 x) {
    return wide_sine(x, 1);
}

WIDE_RUN_PS(wide_sin)
WIDE_RUN_PS(wide_cos)
#else
static void wide_sin_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_cos_run(const float* x, float* y, Py_ssize_t n) {}
#endif
