/* Loops over tan and erfinv of float32 in double, and erfinv of float64 near 0, by instructions of
   AVX-512: of floats the results are rounded nearly once. Quotients are products with inverses
   (`wide_inverse`), once more improved or not; a division takes as long as a dozen of
   multiplications. Series without a source are by Remez exchange in 40 digits; others are those of
   `normal.pxd`. */
#pragma once

#include "vecmath/wide.h"
#include "vecmath/wide_log.h"

#if HAS_WIDE
/* tan of what is not far, or infinite: as `reduce_float` and `tan` */
WIDE __m256 wide_tan(__m256 x) {
    const __m512d magic = _mm512_set1_pd(6755399441055744.0), from = _mm512_cvtps_pd(x);
    const __m512d shifted = _mm512_fmadd_pd(from, _mm512_set1_pd(0.6366197723675814), magic);
    const __m512d n = _mm512_sub_pd(shifted, magic);
    const __mmask8 odd = _mm512_test_epi64_mask(_mm512_castpd_si512(shifted),
                                                _mm512_set1_epi64(1));
    __m512d r = _mm512_fnmadd_pd(n, _mm512_set1_pd(1.570796325802803), from), z, sine, cosine;
    __m512d above, below, y;
    r = _mm512_fnmadd_pd(n, _mm512_set1_pd(9.920935796805404e-10), r);
    z = _mm512_mul_pd(r, r);
    WIDE_SERIES(sine, z, 2.7183112553640464e-06, -0.00019839335715719623, 0.008333329392966795,
                -0.16666666641753994);
    sine = _mm512_fmadd_pd(_mm512_mul_pd(z, sine), r, r);
    WIDE_SERIES(cosine, z, 2.439044639076263e-05, -0.001388676474263373, 0.04166662340151134,
                -0.4999999972650312, 1.0);
    above = _mm512_mask_sub_pd(sine, odd, _mm512_setzero_pd(), cosine);
    below = _mm512_mask_mov_pd(cosine, odd, sine);
    y = wide_inverse(below);
    y = _mm512_fmadd_pd(_mm512_fnmadd_pd(below, y, _mm512_set1_pd(1.0)), y, y);
    return _mm512_mask_cvtpd_ps(x, _mm256_cmp_ps_mask(x, _mm256_setzero_ps(), _CMP_NEQ_UQ),
                                _mm512_mul_pd(above, y));
}

/* -log(x) for 0 <= x <= 1 within 2**-38, by the table of `wide_log_d` */
WIDE __m512d wide_minus_log(__m512d x) {
    const __m512d one = _mm512_set1_pd(1.0);
    const __m512d m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    const __m512i part = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const __m512d f = _mm512_fmsub_pd(m, WIDE_ENTRY_D(LOG_INVERSE_D), one);
    __m512d k = _mm512_getexp_pd(x), series;
    k = _mm512_mask_add_pd(k, _mm512_cmp_pd_mask(m, one, _CMP_LT_OQ), k, one);
    WIDE_SERIES(series, f, 0.1342053599333249, -0.16684285038006147, 0.20001713070582425,
                -0.2499999518150648, 0.3333333264401361, -0.5000000000036994, 1.0);
    k = _mm512_fmadd_pd(k, _mm512_set1_pd(0.6931471805599453), WIDE_ENTRY_D(LOG_HIGH_D));
    return _mm512_fnmsub_pd(series, f, k);
}

/* As `erfinv_near` and `erfinv_far` */
WIDE __m256 wide_erfinv(__m256 x) {
    const __m512d from = _mm512_cvtps_pd(x), zero = _mm512_setzero_pd();
    const __m512d w = wide_minus_log(_mm512_fnmadd_pd(from, from, _mm512_set1_pd(1.0)));
    const __m512d c = _mm512_sub_pd(w, _mm512_set1_pd(2.5));
    const __mmask8 far = _mm512_cmp_pd_mask(w, _mm512_set1_pd(5.0), _CMP_GT_OQ);
    __m512d y;
    WIDE_SERIES(y, c, -6.208614341680017e-13, -2.0604351975815947e-11, 1.3554418905513804e-10,
                8.214476659821361e-10, -1.0951266111164331e-08, 1.3770763776895908e-08,
                4.79003886280163e-07, -3.4173727282634364e-06, -4.996526306376468e-06,
                0.00021825102773870593, -0.0012527075897191373, -0.00417731801363632,
                0.2466402766780547, 1.5014093511285658);
    y = _mm512_mul_pd(y, from);
    if (far) {
        const __m512d s = _mm512_sqrt_pd(w), v = _mm512_sub_pd(s, _mm512_set1_pd(3.125));
        const __mmask8 edge = _mm512_cmp_pd_mask(w, _mm512_set1_pd(INFINITY), _CMP_EQ_OQ);
        const __mmask8 below = _mm512_cmp_pd_mask(from, zero, _CMP_LT_OQ);
        __m512d tail;
        WIDE_SERIES(tail, v, 1.9116125682046806e-07, -3.094286906478552e-07,
                    -7.271497173621615e-07, 3.3351676441396023e-06, -5.147485066259897e-06,
                    -3.625425091176283e-06, 4.49759046192331e-05, -0.00013820494145311342,
                    0.00019906746334178745, 0.0003769332751932757, -0.0040872879778466676,
                    0.01842725958161966, 0.9466352827872019);
        tail = _mm512_mask_mov_pd(_mm512_mul_pd(tail, s), edge, w);
        tail = _mm512_mask_sub_pd(tail, below, zero, tail);
        y = _mm512_mask_mov_pd(y, far, tail);
    }
    return _mm512_cvtpd_ps(y);
}

/* erfinv(x) for |x| < 0.9966, as `erfinv_of` has it */
WIDE __m512d wide_erfinv_near_d(__m512d x) {
    const __m512d a = _mm512_abs_pd(x), one = _mm512_set1_pd(1.0);
    const __m512d fraction = _mm512_mul_pd(_mm512_sub_pd(one, a), _mm512_add_pd(one, a));
    const __m512d w = _mm512_sub_pd(_mm512_setzero_pd(), wide_log_d(fraction));
    const __m512d c = _mm512_sub_pd(w, _mm512_set1_pd(2.5));
    const __m512d base = _mm512_set1_pd(1.501409351110792);
    const __m512d core_base = _mm512_set1_pd(0.246640276744167);
    __m512d series, core, value, rest, high;
    WIDE_SERIES(series, c, 3.556486085431741e-21, -6.73102367225685e-20, 4.185831356075263e-20,
                4.8544762268282404e-18, -2.48177504015291e-17,
                -1.3580378872453845e-16, 1.878748065628583e-15,
                -2.887952525477375e-15, -7.602569052857905e-14, 5.356699602736408e-13,
                9.111959747320348e-13, -3.1102906010900526e-11,
                1.1960787746285124e-10, 9.073039059190006e-10, -1.086117031164595e-08,
                1.341680341173891e-08, 4.787252198207556e-07, -3.416619596296603e-06,
                -4.996079599531303e-06, 0.0002182502643439536, -0.0012527079078108667,
                -0.004177317724383607);
    core = _mm512_fmadd_pd(c, series, core_base);
    rest = _mm512_fmadd_pd(c, series, _mm512_sub_pd(core_base, core));
    value = _mm512_fmadd_pd(c, core, base);
    rest = _mm512_fmadd_pd(c, rest, _mm512_fmadd_pd(c, core, _mm512_sub_pd(base, value)));
    rest = _mm512_fmadd_pd(_mm512_sub_pd(w, _mm512_add_pd(c, _mm512_set1_pd(2.5))), core, rest);
    high = _mm512_mul_pd(x, value);
    high = _mm512_add_pd(high, _mm512_fmadd_pd(x, rest, _mm512_fmsub_pd(x, value, high)));
    return _mm512_or_pd(high, _mm512_and_pd(x, _mm512_set1_pd(-0.0)));
}

WIDE_RUN_HALF(wide_tan)
WIDE_RUN_HALF(wide_erfinv)
WIDE_RUN_PD(wide_erfinv_near_d)
#else
static void wide_tan_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_erfinv_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_erfinv_near_d_run(const double* x, double* y, Py_ssize_t n) {}
#endif
