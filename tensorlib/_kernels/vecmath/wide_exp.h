/* Loops over exponentials by instructions that AVX-512 has for them.

   `vscalefps` multiplies by a power of two and rounds subnormal results once, `vpermi2ps` reads a
   table of 32 floats in registers. The functions of `exp.pxd`, which a compiler can
   vectorise anywhere, take 1.5 to 2.5 times as long. */
#pragma once

#include "vecmath/wide.h"

#if HAS_WIDE
/* Below these e**x is 0, which is said by a mask: a `vscalefps` that underflows takes thirty times
   as long. */
#define WIDE_LEAST -104.0f
#define WIDE_LEAST_D -745.2

/* e**r for |r| <= ln(2) / 2, by the series of `exp_series` */
WIDE __m512 wide_exp_near(__m512 r) {
    __m512 series = _mm512_set1_ps(0.00019914527f);
    WIDE_STEP(series, r, 0.001394131f);
    WIDE_STEP(series, r, 0.008333272f);
    WIDE_STEP(series, r, 0.04166635f);
    WIDE_STEP(series, r, 0.16666667f);
    WIDE_STEP(series, r, 0.5f);
    series = _mm512_fmadd_ps(_mm512_mul_ps(r, r), series, r);
    return _mm512_add_ps(series, _mm512_set1_ps(1.0f));
}

/* y with e**x = y 2**n: n = x / ln(2) rounded, r = x - n ln(2). For x <= 90 or NaN; below
   WIDE_LEAST there is no meaning in y. */
WIDE __m512 wide_exp_parts(__m512 x, __m512* power) {
    const __m512 magic = _mm512_set1_ps(12582912.0f);      /* 1.5 * 2**23: sums are integers */
    __m512 n, r;
    n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), magic), magic);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    *power = n;
    return wide_exp_near(r);
}

WIDE __m512 wide_exp(__m512 x) {
    const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(WIDE_LEAST), _CMP_NLT_UQ);
    __m512 n, y = wide_exp_parts(_mm512_min_ps(_mm512_set1_ps(90.0f), x), &n);
    return _mm512_maskz_scalef_ps(counts, y, n);
}

WIDE __m512 wide_exp2(__m512 x) {
    const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-150.5f), _CMP_NLT_UQ);
    __m512 n, r;
    x = _mm512_min_ps(_mm512_set1_ps(128.0f), x);
    n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    r = _mm512_mul_ps(_mm512_sub_ps(x, n), _mm512_set1_ps(0.6931472f));
    return _mm512_maskz_scalef_ps(counts, wide_exp_near(r), n);
}

/* 2**(j / 16), and what the doubles lack of it */
static const double EXP2_HIGH_D[16] = {
    1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721,
    1.241857812073484, 1.2968395546510096, 1.3542555469368927, 1.4142135623730951,
    1.4768261459394993, 1.5422108254079407, 1.6104903319492543, 1.681792830507429,
    1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
static const double EXP2_LOW_D[16] = {
    0.0, 8.551889705537965e-17, -3.046782079812471e-17, 8.912812676025408e-17,
    3.982015231465646e-17, 4.658027591836937e-17, 2.5382502794888315e-17, 7.70094837980299e-17,
    -9.667293313452913e-17, -3.483994556892796e-17, 7.949834809697621e-17, 2.4707192569797888e-17,
    8.199010020581497e-17, 2.960140695448873e-17, 3.283107224245627e-17, -1.0619946056195963e-16};
#define WIDE_MAGIC_D 6755399441055744.0      /* 1.5 * 2**52: sums are integers */

/* 2**(n / 16) e**r, but for whole powers, as a sum of two for |r| <= ln(2) / 32, where `sum` is
   WIDE_MAGIC_D + n, whose last bits are those of n: by a table of powers (Tang, "Table-driven
   implementation of the exponential function in IEEE floating-point arithmetic", 1989), and e**r
   within 2**-56 by Remez exchange. */
WIDE __m512d wide_power_parts_d(__m512d sum, __m512d r, __m512d* rest) {
    const __m512i part = _mm512_castpd_si512(sum);                 /* four bits are read */
    const __m512d high = WIDE_ENTRY_D(EXP2_HIGH_D), low = WIDE_ENTRY_D(EXP2_LOW_D);
    __m512d series = _mm512_set1_pd(0.0013889129219177324);
    WIDE_STEP_D(series, r, 0.008333472062038745);
    WIDE_STEP_D(series, r, 0.04166666665964317);
    WIDE_STEP_D(series, r, 0.16666666664413363);
    WIDE_STEP_D(series, r, 0.5000000000000006);
    series = _mm512_fmadd_pd(_mm512_mul_pd(r, r), series, r);
    *rest = _mm512_fmadd_pd(high, series, low);
    return high;
}

WIDE __m512d wide_power_d(__m512d sum, __m512d n, __m512d r, __mmask8 counts) {
    __m512d rest, high = wide_power_parts_d(sum, r, &rest);
    return _mm512_maskz_scalef_pd(counts, _mm512_add_pd(high, rest),
                                  _mm512_mul_pd(n, _mm512_set1_pd(0.0625)));
}

WIDE __m512d wide_exp_d(__m512d x) {
    const __m512d magic = _mm512_set1_pd(WIDE_MAGIC_D);
    const __mmask8 counts = _mm512_cmp_pd_mask(x, _mm512_set1_pd(WIDE_LEAST_D), _CMP_NLT_UQ);
    __m512d sum, n, r;
    x = _mm512_min_pd(_mm512_set1_pd(711.0), x);
    sum = _mm512_fmadd_pd(x, _mm512_set1_pd(23.083120654223414), magic);
    n = _mm512_sub_pd(sum, magic);
    r = _mm512_fnmadd_pd(n, _mm512_set1_pd(0.04332169878489367), x);
    r = _mm512_fnmadd_pd(n, _mm512_set1_pd(1.0291218489310676e-13), r);
    return wide_power_d(sum, n, r, counts);
}

WIDE __m512d wide_exp2_d(__m512d x) {
    const __m512d magic = _mm512_set1_pd(WIDE_MAGIC_D);
    const __mmask8 counts = _mm512_cmp_pd_mask(x, _mm512_set1_pd(-1075.5), _CMP_NLT_UQ);
    __m512d sum, n, r;
    x = _mm512_min_pd(_mm512_set1_pd(1024.0), x);
    sum = _mm512_fmadd_pd(x, _mm512_set1_pd(16.0), magic);
    n = _mm512_sub_pd(sum, magic);
    r = _mm512_fnmadd_pd(n, _mm512_set1_pd(0.0625), x);                 /* exact */
    r = _mm512_mul_pd(r, _mm512_set1_pd(0.6931471805599453));
    return wide_power_d(sum, n, r, counts);
}

/* tanh in 26 intervals: below 1/8, four of each power of two, and the last from 8 on. A column has
   a centre and the coefficients of the polynomial about it, of the linear one what it has beyond 1,
   by interpolation at Chebyshev's nodes in 40 digits; an approximation is within 2**-24.9. A centre
   is the number near the middle whose tanh lies nearest to a float (Gal, "Computing elementary
   functions: a new approach for achieving high accuracy and good performance", 1986). */
static const float TANH[8][32] = {
    {0.0f, 0.140629709f, 0.17187272f, 0.20312424f, 0.23437345f, 0.281243235f, 0.34375155f,
     0.406240493f, 0.468753487f, 0.562476516f, 0.687487423f, 0.812479019f, 0.937519848f,
     1.12498033f, 1.37504101f, 1.62498569f, 1.87500703f, 2.24994326f, 2.75006676f, 3.24991369f,
     3.75008559f, 4.49993181f, 5.50019073f, 6.49980927f, 7.50019073f, 8.62538147f, 8.62538147f,
     8.62538147f, 8.62538147f, 8.62538147f, 8.62538147f, 8.62538147f},
    {0.0f, 0.13970992f, 0.170200095f, 0.200375989f, 0.230174243f, 0.274055332f, 0.330822498f,
     0.385275871f, 0.437191606f, 0.509812593f, 0.596365452f, 0.670955539f, 0.734080672f,
     0.809294283f, 0.879835963f, 0.925344169f, 0.954045892f, 0.978023648f, 0.991860807f,
     0.996997118f, 0.998894632f, 0.999753177f, 0.999966621f, 0.99999547f, 0.999999404f,
     0.99999994f, 0.99999994f, 0.99999994f, 0.99999994f, 0.99999994f, 0.99999994f, 0.99999994f},
    {0.0f, -0.0195188615f, -0.0289680716f, -0.0401505381f, -0.0529801808f, -0.0751063228f,
     -0.109443523f, -0.1484375f, -0.191136494f, -0.259908885f, -0.355651766f, -0.450181335f,
     -0.538874447f, -0.654957235f, -0.774111331f, -0.856261849f, -0.910203576f, -0.956530273f,
     -0.983787835f, -0.994003236f, -0.997790456f, -0.999506414f, -0.999933243f, -0.99999094f,
     -0.999998748f, -0.999999881f, -0.999999881f, -0.999999881f, -0.999999881f, -0.999999881f,
     -0.999999881f, -0.999999881f},
    {0.0f, -0.136983126f, -0.165270269f, -0.19233118f, -0.217982054f, -0.253471971f,
     -0.294616073f, -0.328086793f, -0.353628665f, -0.377307713f, -0.384266883f, -0.368904054f,
     -0.338503122f, -0.279241025f, -0.198745012f, -0.133007273f, -0.0856699273f, -0.0425144397f,
     -0.0160801932f, -0.00597874774f, -0.00220707292f, -0.000493461557f, -6.76052005e-05f,
     -8.49896696e-06f, -2.34091954e-06f, -3.51432391e-07f, -3.51432391e-07f, -3.51432391e-07f,
     -3.51432391e-07f, -3.51432391e-07f, -3.51432391e-07f, -3.51432391e-07f},
    {-0.333327711f, -0.30768913f, -0.295548439f, -0.28141135f, -0.265500158f, -0.238832518f,
     -0.199386522f, -0.157450408f, -0.115017831f, -0.0543410443f, 0.0143806124f, 0.0642450601f,
     0.0947801918f, 0.110974357f, 0.0995674133f, 0.0751651824f, 0.0518010557f, 0.0270904414f,
     0.0105450274f, 0.00396173354f, 0.00146807008f, 0.000328591763f, 4.44913239e-05f,
     6.03005947e-06f, 8.23965706e-07f, 8.80861037e-08f, 8.80861037e-08f, 8.80861037e-08f,
     8.80861037e-08f, 8.80861037e-08f, 8.80861037e-08f, 8.80861037e-08f},
    {0.0f, 0.0907158777f, 0.111295864f, 0.124850594f, 0.160977438f, 0.149762481f, 0.164070308f,
     0.170870483f, 0.169099987f, 0.153431445f, 0.119418599f, 0.0799727887f, 0.0430891886f,
     0.00325256377f, -0.0213500243f, -0.0252192691f, -0.0208623018f, -0.0123235285f,
     -0.0050990521f, -0.00195667287f, -0.000730763597f, -0.000164212004f, -1.34123229e-05f,
     -8.83495522e-06f, 1.1515388e-05f, 1.4764438e-06f, 1.4764438e-06f, 1.4764438e-06f,
     1.4764438e-06f, 1.4764438e-06f, 1.4764438e-06f, 1.4764438e-06f},
    {0.132167265f, 0.111792512f, 0.102365233f, 0.0910334438f, 0.0794381872f, 0.0590553842f,
     0.0319527686f, 0.00596060557f, -0.0171797033f, -0.0435032248f, -0.0615945458f,
     -0.0626830906f, -0.0530605614f, -0.0320308022f, -0.00949276611f, 0.00140599394f,
     0.00460567093f, 0.00397877535f, 0.00191295485f, 0.000769647537f, 0.000292186742f,
     6.7916284e-05f, 9.19478771e-06f, 1.23184907e-06f, 1.32614716e-07f, 1.2230279e-08f,
     1.2230279e-08f, 1.2230279e-08f, 1.2230279e-08f, 1.2230279e-08f, 1.2230279e-08f,
     1.2230279e-08f},
    {0.0f, -5.69435167f, -16.1769352f, -11.947216f, -74.358963f, 0.0521544777f, -0.00585587788f,
     -0.644096553f, -0.697430074f, -0.0301972311f, 0.00448499899f, -0.0116019975f, 0.0458283611f,
     0.0192513503f, 0.0107909702f, 0.00417825021f, 0.000578133098f, -0.00072509615f,
     -0.000548680429f, -0.000246998214f, -9.58208038e-05f, -2.22853305e-05f, -2.66044226e-05f,
     1.51103513e-05f, -3.18504535e-05f, -2.59903118e-06f, -2.59903118e-06f, -2.59903118e-06f,
     -2.59903118e-06f, -2.59903118e-06f, -2.59903118e-06f, -2.59903118e-06f},
};

/* erf likewise, in 21 intervals up to 4, within 2**-25.9 */
static const float ERF[8][32] = {
    {0.0f, 0.140622884f, 0.171871647f, 0.203128144f, 0.234378591f, 0.281258851f, 0.343759656f,
     0.406259686f, 0.468744397f, 0.56251049f, 0.687476873f, 0.812502265f, 0.937494397f,
     1.12501156f, 1.37497127f, 1.62503862f, 1.87501872f, 2.25007772f, 2.74991417f, 3.25009537f,
     3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f,
     3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f, 3.74990463f},
    {0.0f, 0.157636181f, 0.192043573f, 0.226091787f, 0.259703994f, 0.309192955f, 0.373138875f,
     0.434396178f, 0.492608398f, 0.573683083f, 0.669068396f, 0.749465346f, 0.815099776f,
     0.888391912f, 0.948165178f, 0.978446841f, 0.991990685f, 0.998537838f, 0.999899328f,
     0.999995708f, 0.999999881f, 0.999999881f, 0.999999881f, 0.999999881f, 0.999999881f,
     0.999999881f, 0.999999881f, 0.999999881f, 0.999999881f, 0.999999881f, 0.999999881f,
     0.999999881f},
    {0.128379166f, 0.106284872f, 0.0955345035f, 0.0827685073f, 0.0680653378f, 0.0425563194f,
     0.0026149496f, -0.0432993099f, -0.0942021087f, -0.177688345f, -0.296608895f, -0.416888982f,
     -0.53145051f, -0.681734324f, -0.829626739f, -0.919537842f, -0.966456532f, -0.992860198f,
     -0.999413431f, -0.999970853f, -0.999999106f, -0.999999106f, -0.999999106f, -0.999999106f,
     -0.999999106f, -0.999999106f, -0.999999106f, -0.999999106f, -0.999999106f, -0.999999106f,
     -0.999999106f, -0.999999106f},
    {0.0f, -0.155568793f, -0.188290805f, -0.219940931f, -0.250333428f, -0.293228209f,
     -0.344658613f, -0.388668776f, -0.424587786f, -0.462558925f, -0.483565092f, -0.473779082f,
     -0.439262301f, -0.358052611f, -0.234258354f, -0.130754173f, -0.0628946126f, -0.0160651486f,
     -0.00161297654f, -9.72461421e-05f, -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f,
     -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f,
     -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f, -1.75312323e-06f},
    {-0.376123369f, -0.354177237f, -0.343603462f, -0.3311387f, -0.316906571f, -0.292536736f,
     -0.255218506f, -0.213633239f, -0.169250578f, -0.100641139f, -0.0128372861f, 0.062260516f,
     0.118354134f, 0.16245231f, 0.157941401f, 0.114833787f, 0.0674386024f, 0.0217201654f,
     0.00276010227f, 0.000195361543f, 7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f,
     7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f,
     7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f, 7.96320728e-06f},
    {0.0f, 0.0748535767f, 0.0866848901f, 0.108774751f, 0.140053973f, 0.138954222f, 0.158884749f,
     0.172534898f, 0.181469589f, 0.182486892f, 0.165578485f, 0.132679522f, 0.0907832161f,
     0.0279768873f, -0.0304856189f, -0.0497094281f, -0.0422637537f, -0.0190813337f,
     -0.00325901504f, -0.000182249889f, -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f,
     -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f,
     -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f, -8.01556307e-05f},
    {0.112246148f, 0.10186097f, 0.0964202583f, 0.0905507654f, 0.0826152787f, 0.0721136928f,
     0.054719083f, 0.0359973125f, 0.0168115571f, -0.0108101321f, -0.0415902436f, -0.0616726689f,
     -0.0695095062f, -0.0610976219f, -0.0306423176f, -0.0022760476f, 0.0113477111f,
     0.0105911046f, 0.00281675695f, 0.000329113682f, 1.95441662e-05f, 1.95441662e-05f,
     1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f,
     1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f, 1.95441662e-05f},
    {0.0f, 5.17792416f, 15.2799788f, -5.03004265f, -53.2102509f, -0.0930816606f, -0.138462141f,
     0.233484432f, -0.237119198f, -0.0456933454f, -0.0307447109f, -0.026596114f, 0.0246891323f,
     0.0151272267f, 0.0216346122f, 0.013983218f, 0.00434073806f, -0.00281209219f,
     -0.00166661711f, -0.00138034415f, 0.000687186257f, 0.000687186257f, 0.000687186257f,
     0.000687186257f, 0.000687186257f, 0.000687186257f, 0.000687186257f, 0.000687186257f,
     0.000687186257f, 0.000687186257f, 0.000687186257f, 0.000687186257f},
};

/* An odd function by such a table, which is constant from `limit` on; NaN stays */
WIDE __m512 wide_odd(__m512 x, const float table[8][32], float limit) {
    const __m512 a = _mm512_min_ps(_mm512_set1_ps(limit), _mm512_abs_ps(x));
    const __m512i quarter = _mm512_srli_epi32(_mm512_castps_si512(a), 21);
    const __m512i first = _mm512_set1_epi32((0x3E000000 >> 21) - 1);     /* of 1/8, less 1 */
    const __m512i i = _mm512_max_epi32(_mm512_sub_epi32(quarter, first), _mm512_setzero_si512());
#define WIDE_OF(j) \
    _mm512_permutex2var_ps(_mm512_loadu_ps(table[j]), i, _mm512_loadu_ps(table[j] + 16))
    const __m512 r = _mm512_sub_ps(a, WIDE_OF(0));
    __m512 y = WIDE_OF(7);
    for (int j = 6; j > 1; j--) y = _mm512_fmadd_ps(y, r, WIDE_OF(j));
    y = _mm512_add_ps(_mm512_fmadd_ps(y, r, r), WIDE_OF(1));
#undef WIDE_OF
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x80000000));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(y), sign));
}

WIDE __m512 wide_tanh(__m512 x) {
    return wide_odd(x, TANH, 9.25f);
}

WIDE __m512 wide_erf(__m512 x) {
    return wide_odd(x, ERF, 3.9999998f);
}

/* As in `sigmoid` of exp.pxd, with the quotient by Newton's method from `vrcp14ps`. Of
   subnormal numbers, which take twenty times as long, there are none but results: an exponential
   below 2**-64, which few vectors have, gets the rest of its power last. */
WIDE __m512 wide_sigmoid(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f), two = _mm512_set1_ps(2.0f);
    const __m512 least = _mm512_set1_ps(-64.0f);
    const __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    const __m512 far = _mm512_or_ps(x, _mm512_set1_ps(-0.0f));
    __m512 n, e = wide_exp_parts(_mm512_max_ps(_mm512_set1_ps(-105.0f), far), &n);
    const __mmask16 deep = _mm512_mask_cmp_ps_mask(below, n, least, _CMP_LT_OQ);
    e = _mm512_scalef_ps(e, _mm512_max_ps(n, least));
    const __m512 top = _mm512_mask_mov_ps(one, below, e), whole = _mm512_add_ps(one, e);
    __m512 inverse = _mm512_rcp14_ps(whole), part, y;
    inverse = _mm512_mul_ps(inverse, _mm512_fnmadd_ps(whole, inverse, two));
    part = _mm512_mul_ps(e, inverse);
    part = _mm512_fmadd_ps(_mm512_fnmadd_ps(part, whole, e), inverse, part);
    y = _mm512_fnmadd_ps(top, part, top);
    if (__builtin_expect(deep != 0, 0)) {
        const __mmask16 lost = _mm512_cmp_ps_mask(x, _mm512_set1_ps(WIDE_LEAST), _CMP_LT_OQ);
        y = _mm512_mask_scalef_ps(y, deep & ~lost, y, _mm512_sub_ps(n, least));
        y = _mm512_maskz_mov_ps(~lost, y);
    }
    return y;
}

/* a 2**b */
WIDE __m512 wide_ldexp(__m512 a, __m512 b) {
    return _mm512_mul_ps(a, wide_exp2(b));
}

WIDE __m512d wide_ldexp_d(__m512d a, __m512d b) {
    return _mm512_mul_pd(a, wide_exp2_d(b));
}

WIDE_RUN_PS(wide_exp)
WIDE_RUN_PS(wide_exp2)
WIDE_RUN_PS(wide_tanh)
WIDE_RUN_PS(wide_erf)
WIDE_RUN_PS(wide_sigmoid)
WIDE_RUN_PD(wide_exp_d)
WIDE_RUN_PD(wide_exp2_d)
WIDE_RUN_OF_TWO_PS(wide_ldexp)
WIDE_RUN_OF_TWO_PD(wide_ldexp_d)
#else
static void wide_exp_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_tanh_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_erf_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_sigmoid_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_exp_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_exp2_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_exp2_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_ldexp_run(const float* a, const float* b, float* y, Py_ssize_t n) {}
static void wide_ldexp_d_run(const double* a, const double* b, double* y, Py_ssize_t n) {}
#endif
