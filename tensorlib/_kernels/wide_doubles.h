/* Loops over tan and erfinv of float32 in double, by instructions of AVX-512: the results are
   rounded nearly once. Quotients are products with inverses by `vrcp14pd` and a step of Newton's
   method, within 2**-28, or two; a division takes as long as a dozen of multiplications. Series
   without a source are by Remez exchange in 40 digits; others are those of
   `vecmath_normal.pxd`. */
#pragma once

#include "wide.h"
#include "wide_log.h"

#if HAS_WIDE
/* A polynomial; the first coefficient is that of the highest power */
#define WIDE_SERIES(y, x, ...) do {                                                               \
        const double series_[] = {__VA_ARGS__};                                                   \
        y = _mm512_set1_pd(series_[0]);                                                           \
        for (unsigned i_ = 1; i_ < sizeof(series_) / sizeof(double); i_++)                        \
            y = _mm512_fmadd_pd(y, x, _mm512_set1_pd(series_[i_]));                               \
    } while (0)

WIDE __m512d wide_inverse(__m512d x) {
    const __m512d y = _mm512_rcp14_pd(x);
    return _mm512_fmadd_pd(_mm512_fnmadd_pd(x, y, _mm512_set1_pd(1.0)), y, y);
}

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

#define WIDE_RUN_HALF(name) WIDE_RUN(name, float, __mmask8, 8, _mm256_loadu_ps, \
                                     _mm256_maskz_loadu_ps, _mm256_storeu_ps, _mm256_mask_storeu_ps)
WIDE_RUN_HALF(wide_tan)
WIDE_RUN_HALF(wide_erfinv)
#else
static void wide_tan_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_erfinv_run(const float* x, float* y, Py_ssize_t n) {}
#endif
