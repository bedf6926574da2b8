/* Loops over sin and cos, and over tan of float64, by the instructions of AVX-512, where `is_far`
   is not so.

   Of floats x - n pi/2 is taken in three parts of pi/2 of 24 bits, each by one multiplication and
   addition that rounds once: the first is exact, since both have no bit below 2**-24 where n is not
   0. Beyond WIDE_FAR it is taken in double, as `reduce_float` does. */
#pragma once

#include "vecmath/wide.h"

#if HAS_WIDE
#define WIDE_FAR 262144.0f

/* As `reduce_float` of trig.pxd, of eight floats: what is left, and the quadrants */
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

/* x - n pi/2 for |x| < 2**20, as high + tail: the first product is taken from x without an error,
   since both have no bit below 2**-53 where n is not 0 */
WIDE __m512d wide_reduced_d(__m512d x, __m512i* quadrant, __m512d* tail) {
    const __m512d magic = _mm512_set1_pd(6755399441055744.0);
    const __m512d shifted = _mm512_fmadd_pd(x, _mm512_set1_pd(0.6366197723675814), magic);
    const __m512d n = _mm512_sub_pd(shifted, magic), next = _mm512_set1_pd(6.123233995736766e-17);
    const __m512d a = _mm512_fnmadd_pd(n, _mm512_set1_pd(1.5707963267948966), x);
    const __m512d part = _mm512_mul_pd(n, next), r = _mm512_sub_pd(a, part);
    const __m512d moved = _mm512_sub_pd(r, a);
    __m512d lost = _mm512_sub_pd(_mm512_sub_pd(a, _mm512_sub_pd(r, moved)),
                                 _mm512_add_pd(part, moved));
    lost = _mm512_fnmadd_pd(n, _mm512_set1_pd(-1.4973849048591698e-33), lost);
    *tail = _mm512_sub_pd(lost, _mm512_fmsub_pd(n, next, part));
    *quadrant = _mm512_castpd_si512(shifted);
    return r;
}

/* sin and cos of r + tail for |r| <= pi/4, as `sin_parts` and `cos_parts` */
WIDE __m512d wide_sin_parts(__m512d r, __m512d tail, __m512d* low) {
    const __m512d z = _mm512_mul_pd(r, r), half = _mm512_set1_pd(0.5);
    __m512d series = _mm512_set1_pd(1.5896503221436504e-10), rest, high;
    WIDE_STEP_D(series, z, -2.5050753228755377e-08);
    WIDE_STEP_D(series, z, 2.755731366178656e-06);
    WIDE_STEP_D(series, z, -0.00019841269829724286);
    WIDE_STEP_D(series, z, 0.008333333333322314);
    WIDE_STEP_D(series, z, -0.16666666666666632);
    rest = _mm512_fmadd_pd(_mm512_mul_pd(z, r), series,
                           _mm512_mul_pd(tail, _mm512_fnmadd_pd(z, half, _mm512_set1_pd(1.0))));
    high = _mm512_add_pd(r, rest);
    *low = _mm512_add_pd(_mm512_sub_pd(r, high), rest);
    return high;
}

WIDE __m512d wide_cos_parts(__m512d r, __m512d tail, __m512d* low) {
    const __m512d z = _mm512_mul_pd(r, r), half = _mm512_mul_pd(z, _mm512_set1_pd(0.5));
    const __m512d one = _mm512_set1_pd(1.0), base = _mm512_sub_pd(one, half);
    __m512d series = _mm512_set1_pd(-1.135945387382346e-11), rest, high;
    WIDE_STEP_D(series, z, 2.0875719661492695e-09);
    WIDE_STEP_D(series, z, -2.755731432680809e-07);
    WIDE_STEP_D(series, z, 2.480158728939771e-05);
    WIDE_STEP_D(series, z, -0.0013888888888873995);
    WIDE_STEP_D(series, z, 0.0416666666666666);
    rest = _mm512_fmsub_pd(_mm512_mul_pd(z, z), series, _mm512_mul_pd(r, tail));
    rest = _mm512_add_pd(rest, _mm512_sub_pd(_mm512_sub_pd(one, base), half));
    high = _mm512_add_pd(base, rest);
    *low = _mm512_add_pd(_mm512_sub_pd(base, high), rest);
    return high;
}

/* sin(x + `quarters` pi/2) */
WIDE __m512d wide_sine_d(__m512d x, int quarters) {
    __m512d tail, low, y;
    __m512i quadrant;
    const __m512d r = wide_reduced_d(x, &quadrant, &tail);
    quadrant = _mm512_add_epi64(quadrant, _mm512_set1_epi64(quarters));
    const __mmask8 odd = _mm512_test_epi64_mask(quadrant, _mm512_set1_epi64(1));
    y = _mm512_mask_mov_pd(wide_sin_parts(r, tail, &low), odd, wide_cos_parts(r, tail, &low));
    quadrant = _mm512_slli_epi64(_mm512_and_si512(quadrant, _mm512_set1_epi64(2)), 62);
    return _mm512_xor_pd(y, _mm512_castsi512_pd(quadrant));
}

WIDE __m512d wide_sin_d(__m512d x) {
    const __mmask8 zero = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ);
    return _mm512_mask_mov_pd(wide_sine_d(x, 0), zero, x);
}

WIDE __m512d wide_cos_d(__m512d x) {
    return wide_sine_d(x, 1);
}

/* as `tan_reduced` */
WIDE __m512d wide_tan_d(__m512d x) {
    const __m512d one = _mm512_set1_pd(1.0);
    __m512d tail, above_low, below_low, y, inverse, lost;
    __m512i quadrant;
    const __m512d r = wide_reduced_d(x, &quadrant, &tail);
    const __mmask8 odd = _mm512_test_epi64_mask(quadrant, _mm512_set1_epi64(1));
    const __mmask8 zero = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ);
    const __m512d sine = wide_sin_parts(r, tail, &above_low);
    const __m512d cosine = wide_cos_parts(r, tail, &below_low);
    const __m512d above = _mm512_mask_sub_pd(sine, odd, _mm512_setzero_pd(), cosine);
    const __m512d below = _mm512_mask_mov_pd(cosine, odd, sine);
    const __m512d low = _mm512_mask_sub_pd(above_low, odd, _mm512_setzero_pd(), below_low);
    below_low = _mm512_mask_mov_pd(below_low, odd, above_low);
    inverse = wide_inverse(below);
    inverse = _mm512_fmadd_pd(_mm512_fnmadd_pd(below, inverse, one), inverse, inverse);
    y = _mm512_mul_pd(above, inverse);
    lost = _mm512_fnmadd_pd(y, below_low, _mm512_add_pd(_mm512_fnmadd_pd(y, below, above), low));
    return _mm512_mask_mov_pd(_mm512_fmadd_pd(lost, inverse, y), zero, x);
}

WIDE_RUN_PS(wide_sin)
WIDE_RUN_PS(wide_cos)
WIDE_RUN_PD(wide_sin_d)
WIDE_RUN_PD(wide_cos_d)
WIDE_RUN_PD(wide_tan_d)
#else
static void wide_sin_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_cos_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_sin_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_cos_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_tan_d_run(const double* x, double* y, Py_ssize_t n) {}
#endif
