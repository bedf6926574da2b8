/* Loops over sin and cos of float32 by the instructions of AVX-512.

   x - n pi/2 is taken in three parts of pi/2 of 24 bits, each by one multiplication and addition
   that rounds once: the first is exact, since both have no bit below 2**-24 where n is not 0. */
#pragma once

#include "wide.h"

#define WIDE_FAR 16384.0f      /* from which on other loops reduce x */

#if HAS_WIDE
/* sin(x + `quarters` pi/2) for |x| < WIDE_FAR: series about 0 within 2**-28 and 2**-33, by Remez
   exchange */
WIDE __m512 wide_sine(__m512 x, int quarters) {
    const __m512 magic = _mm512_set1_ps(12582912.0f);      /* 1.5 * 2**23: sums are integers */
    const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(0.636619772f), magic);
    const __m512 n = _mm512_sub_ps(shifted, magic);
    const __m512i quadrant = _mm512_add_epi32(_mm512_castps_si512(shifted),
                                              _mm512_set1_epi32(quarters));
    const __mmask16 odd = _mm512_test_epi32_mask(quadrant, _mm512_set1_epi32(1));
    __m512 r, z, sine, cosine;
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.57079637f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-4.37113883e-08f), r);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-1.71512451e-15f), r);
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
