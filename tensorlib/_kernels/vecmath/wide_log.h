/* Loops over logarithms by instructions that AVX-512 has for them.

   `vgetexpps` and `vgetmantps` take numbers apart, subnormal ones too, `vpermi2ps` reads a table of
   32 floats, or 16 doubles, in registers. The functions of `log.pxd`, which a compiler can
   vectorise anywhere, take 1.3 to 2.5 times as long. */
#pragma once

#include "vecmath/wide.h"

#if HAS_WIDE
/* 1 / c for a number c in each of 16 parts of [1, 3/2), then of [3/4, 1), in 8 bits; log(c), in so
   few that sums with it are exact, and what that lacks */
static const float LOG_INVERSE[32] = {
    1.0f, 0.953125f, 0.9296875f, 0.8984375f, 0.875f, 0.8515625f, 0.828125f, 0.8125f, 0.7890625f,
    0.7734375f, 0.75f, 0.734375f, 0.71875f, 0.703125f, 0.6875f, 0.671875f, 1.3203125f, 1.2890625f,
    1.265625f, 1.2421875f, 1.21875f, 1.1953125f, 1.171875f, 1.15625f, 1.1328125f, 1.109375f,
    1.09375f, 1.078125f, 1.0546875f, 1.0390625f, 1.0234375f, 1.0f};
static const float LOG_HIGH[32] = {
    0.0f, 0.0480041504f, 0.0729064941f, 0.107086182f, 0.133544922f, 0.160675049f, 0.188598633f,
    0.207641602f, 0.236907959f, 0.256896973f, 0.287689209f, 0.308746338f, 0.330230713f,
    0.352233887f, 0.374694824f, 0.397674561f, -0.277862549f, -0.25390625f, -0.235565186f,
    -0.216888428f, -0.197814941f, -0.178405762f, -0.158599854f, -0.145172119f, -0.124694824f,
    -0.103790283f, -0.0895996094f, -0.0752258301f, -0.0532531738f, -0.0383300781f, -0.0231628418f,
    0.0f};
static const float LOG_LOW[32] = {
    0.0f, 5.06879587e-06f, 2.76667464e-07f, 1.19539154e-05f, -1.35292503e-05f, 7.33286242e-06f,
    -7.46300475e-06f, -2.23678421e-06f, 1.78809398e-06f, 1.34411284e-05f, -7.13653253e-06f,
    -1.08562408e-05f, 1.09739804e-05f, -1.32931291e-05f, -1.3747773e-06f, 8.40711891e-06f,
    -5.90217542e-06f, -8.95998073e-06f, -8.85765871e-07f, 1.44894339e-05f, -1.0801924e-05f,
    -1.89575405e-06f, -5.17666103e-06f, -9.89070395e-06f, -8.65428228e-06f, -6.51047867e-06f,
    -1.25493143e-05f, 2.4088406e-06f, 8.65930906e-06f, 1.12138232e-05f, -4.21748473e-06f, 0.0f};

/* x = 2**k c (1 + f) with |f| <= 1/32, subnormal x too; the place of c in the tables, and what
   log(1 + f) is beyond f: f**2 P(f), P within 2**-33 by Remez exchange, and what f lacks (Tang,
   "Table-driven implementation of the logarithm function", 1990). Of 0 and infinity k is infinite,
   below 0 all is NaN. */
WIDE __m512 wide_log_split(__m512 x, __m512* k, __m512i* place, __m512* beyond) {
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    const __m512i part = _mm512_srli_epi32(_mm512_castps_si512(m), 18);     /* five bits are read */
    const __m512 inverse = WIDE_ENTRY(LOG_INVERSE), near_one = _mm512_mul_ps(m, inverse);
    const __m512 f = _mm512_sub_ps(near_one, one);
    const __m512 lost = _mm512_fmsub_ps(m, inverse, near_one);     /* of the product */
    __m512 power = _mm512_getexp_ps(x), series = _mm512_set1_ps(0.19472662f);
    *k = _mm512_mask_add_ps(power, _mm512_cmp_ps_mask(m, one, _CMP_LT_OQ), power, one);
    *place = part;
    WIDE_STEP(series, f, -0.25004137f);
    WIDE_STEP(series, f, 0.33333486f);
    WIDE_STEP(series, f, -0.5f);
    *beyond = _mm512_fmadd_ps(_mm512_mul_ps(f, f), series, _mm512_fnmadd_ps(lost, f, lost));
    return f;
}

/* log(x) = k ln(2) + log(c) + log(1 + f), and a small number that is added to it */
WIDE __m512 wide_log_and(__m512 x, __m512 more) {
    __m512i part;
    __m512 k, beyond, f = wide_log_split(x, &k, &part, &beyond), high, low;
    high = _mm512_fmadd_ps(k, _mm512_set1_ps(6.9313812256e-01f), WIDE_ENTRY(LOG_HIGH));
    low = _mm512_fmadd_ps(k, _mm512_set1_ps(9.0580006145e-06f), WIDE_ENTRY(LOG_LOW));
    low = _mm512_add_ps(low, _mm512_add_ps(beyond, more));
    return _mm512_add_ps(high, _mm512_add_ps(f, low));
}

WIDE __m512 wide_log(__m512 x) {
    return wide_log_and(x, _mm512_setzero_ps());
}

/* The tables to the bases 2 and 10 */
static const float LOG2_HIGH[32] = {
    0.0f, 0.06925964f, 0.10517883f, 0.1545105f, 0.19264221f, 0.23181152f, 0.27207947f,
    0.29956055f, 0.34178162f, 0.370636f, 0.41503906f, 0.44540405f, 0.47644043f, 0.5081482f,
    0.5405731f, 0.57373047f, -0.4008789f, -0.36631775f, -0.33984375f, -0.31288147f, -0.2854004f,
    -0.25738525f, -0.2288208f, -0.2094574f, -0.17991638f, -0.14974976f, -0.12928772f,
    -0.10852051f, -0.076812744f, -0.055282593f, -0.033416748f, 0.0f};
static const float LOG2_LOW[32] = {
    0.0f, 3.0188824e-06f, 3.4036843e-06f, -5.4899124e-07f, 2.8660284e-06f, 4.1517856e-06f,
    7.7663366e-08f, -2.650161e-07f, 6.901037e-06f, 7.393592e-06f, -1.5632212e-06f, 7.095588e-06f,
    -2.3857444e-06f, -1.2896891e-06f, -4.7387543e-06f, 4.776548e-06f, -5.300322e-07f,
    -4.4652224e-06f, -6.2528848e-06f, -1.4855578e-06f, -1.8282373e-06f, -2.5887864e-06f,
    2.1102853e-06f, 4.031832e-06f, 7.291821e-06f, 2.6363548e-06f, 4.7027816e-06f, -3.9489655e-06f,
    -2.8529103e-06f, 1.5727225e-07f, -6.2534905e-06f, 0.0f};
static const float LOG10_HIGH[32] = {
    0.0f, 0.020851135f, 0.031661987f, 0.04650879f, 0.057991028f, 0.06978607f, 0.08190155f,
    0.09017944f, 0.102890015f, 0.111572266f, 0.124938965f, 0.13407898f, 0.14342499f, 0.15296936f,
    0.16272736f, 0.17271423f, -0.12067413f, -0.11027527f, -0.10230255f, -0.094184875f,
    -0.08591461f, -0.07748413f, -0.068878174f, -0.06304932f, -0.05416107f, -0.045082092f,
    -0.03891754f, -0.032669067f, -0.023124695f, -0.01663971f, -0.010063171f, 0.0f};
static const float LOG10_LOW[32] = {
    0.0f, -9.962807e-07f, 1.0209507e-06f, 3.3402318e-06f, 9.1914563e-07f, -2.60007e-06f,
    2.55409e-06f, -2.8130103e-06f, -1.4187832e-06f, 2.5094253e-06f, -2.2823545e-07f,
    3.136556e-06f, -2.8454906e-06f, -1.900143e-06f, -5.845933e-08f, -2.714994e-06f,
    -2.601665e-06f, 1.2939887e-06f, -2.4936253e-06f, -2.2791844e-06f, -1.6890187e-08f,
    2.6696896e-06f, -3.1155796e-06f, -2.4293408e-06f, 3.0391902e-06f, 3.71755e-06f,
    -5.2452646e-07f, -4.9370556e-08f, 8.959771e-07f, -1.9618465e-06f, 1.8453788e-06f, 0.0f};

/* log(x) to another base: k step + log(c) + (f + f**2 P(f)) factor. All but the last two parts are
   exact or in two parts, so that the result is rounded nearly once. */
WIDE __m512 wide_log_to(__m512 x, const float high_of[32], const float low_of[32],
                        float step_high, float step_low, float factor_high, float factor_low) {
    const __m512 factor = _mm512_set1_ps(factor_high);
    __m512i part;
    __m512 k, beyond, f = wide_log_split(x, &k, &part, &beyond), high, low, first, whole;
    high = _mm512_fmadd_ps(k, _mm512_set1_ps(step_high), WIDE_ENTRY(high_of));
    low = _mm512_fmadd_ps(k, _mm512_set1_ps(step_low), WIDE_ENTRY(low_of));
    low = _mm512_fmadd_ps(beyond, factor, _mm512_fmadd_ps(f, _mm512_set1_ps(factor_low), low));
    first = _mm512_mul_ps(f, factor);
    low = _mm512_add_ps(low, _mm512_fmsub_ps(f, factor, first));
    whole = _mm512_add_ps(high, first);
    low = _mm512_add_ps(low, _mm512_sub_ps(first, _mm512_sub_ps(whole, high)));
    return _mm512_mask_add_ps(whole, _mm512_cmp_ps_mask(_mm512_abs_ps(k), _mm512_set1_ps(200.0f),
                                                        _CMP_LT_OQ), whole, low);
}

WIDE __m512 wide_log2(__m512 x) {
    return wide_log_to(x, LOG2_HIGH, LOG2_LOW, 1.0f, 0.0f, 1.442695f, 1.925963e-08f);
}

WIDE __m512 wide_log10(__m512 x) {
    return wide_log_to(x, LOG10_HIGH, LOG10_LOW, 0.30103302f, -3.0243555e-06f, 0.4342945f,
                       -1.010305e-08f);
}

/* The tables of doubles: c in eight parts of [1, 3/2), then of [3/4, 1); logarithms of 40 bits, and
   what these lack */
static const double LOG_INVERSE_D[16] = {
    1.0, 0.90625, 0.875, 0.8125, 0.78125, 0.75, 0.71875, 0.6875, 1.3125, 1.25, 1.21875, 1.15625,
    1.125, 1.09375, 1.0625, 1.0};
static const double LOG_HIGH_D[16] = {
    0.0, 0.09844007281299127, 0.13353139262471814, 0.2076393647785153, 0.24686007793116005,
    0.2876820724513891, 0.330241686870977, 0.3746934494411107, -0.27193371548401046,
    -0.22314355131402408, -0.1978257433302133, -0.14518200984457508, -0.11778303565643,
    -0.08961215868930594, -0.06062462181671435, 0.0};
static const double LOG_LOW_D[16] = {
    0.0, 2.6124491647247346e-13, -1.9551393909415374e-13, -2.707990980384746e-13,
    3.657488373208597e-13, 3.918237769963822e-13, -4.001352063965439e-13, 2.9997833694248845e-13,
    3.687042831583768e-13, -1.856757095979601e-13, 2.934191242140559e-13, 7.718001336828099e-14,
    4.654729747598445e-14, -3.811896486921138e-13, 2.795098818345971e-13, 0.0};
static const double LOG2_HIGH_D[16] = {
    0.0, 0.1420190048720542, 0.19264507794196106, 0.29956028185915784, 0.3561438102251486,
    0.4150374992786965, 0.47643804394283507, 0.5405683813623909, -0.39231742277843296,
    -0.32192809488697094, -0.2854022188621457, -0.20945336562908778, -0.16992500144260703,
    -0.12928301694500988, -0.0874628412502716, 0.0};
static const double LOG2_LOW_D[16] = {
    0.0, 3.736684162192024e-13, 4.348299516065895e-13, -2.500001867992647e-13,
    1.266771905137232e-13, 1.4733181985781966e-13, 1.520621696507556e-13, 3.1180651700181383e-13,
    -3.273329303085191e-13, -3.914087556296025e-13, -1.02668366941445e-13, 1.3800246976244608e-13,
    2.9466363971563933e-13, 4.3421195976986995e-14, -6.781363655020842e-14, 0.0};
static const double LOG10_HIGH_D[16] = {
    0.0, 0.042751980420689506, 0.0579919469773813, 0.09017663034865109, 0.10720996964755614,
    0.12493873660787358, 0.14342214230237005, 0.1627272974974403, -0.11809931207790214,
    -0.09691001300780044, -0.08591462870663236, -0.06305174574754346, -0.051152522447409865,
    -0.03891806603041914, -0.026328938722144812, 0.0};
static const double LOG10_LOW_D[16] = {
    0.0, 2.603827452530852e-13, 3.0545148822097805e-13, 4.3692380556874144e-13,
    3.122305995789308e-13, 4.263736452453345e-13, -5.695092715108574e-14, 2.594359632639561e-13,
    -9.234612513604464e-14, -2.5597032951171317e-13, 3.912619221171875e-14,
    4.5444320935786833e-13, 2.857603188831182e-14, 4.948115870926483e-14, -2.043353397095547e-13,
    0.0};

/* The same of doubles: |f| <= 1/16, P within 2**-56. The product of x and 1 / c, which has five
   bits, is exact. `rest` is added to the logarithm, if it is given. */
WIDE __m512d wide_log_to_d(__m512d x, const __m512d* rest, const double high_of[16],
                           const double low_of[16], double step_high, double step_low,
                           double factor_high, double factor_low) {
    const __m512d one = _mm512_set1_pd(1.0), factor = _mm512_set1_pd(factor_high);
    const __m512d m = _mm512_getmant_pd(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    const __m512i part = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);     /* four bits are read */
    const __m512d f = _mm512_fmsub_pd(m, WIDE_ENTRY_D(LOG_INVERSE_D), one);
    __m512d k = _mm512_getexp_pd(x), series = _mm512_set1_pd(0.0814799447987098);
    __m512d high, low, first, whole;
    k = _mm512_mask_add_pd(k, _mm512_cmp_pd_mask(m, one, _CMP_LT_OQ), k, one);
    WIDE_STEP_D(series, f, -0.09995815511378327);
    WIDE_STEP_D(series, f, 0.11114038112299848);
    WIDE_STEP_D(series, f, -0.12500062121149644);
    WIDE_STEP_D(series, f, 0.14285711206397084);
    WIDE_STEP_D(series, f, -0.1666666659412481);
    WIDE_STEP_D(series, f, 0.2000000000127768);
    WIDE_STEP_D(series, f, -0.25000000000023553);
    WIDE_STEP_D(series, f, 0.3333333333333317);
    WIDE_STEP_D(series, f, -0.5);
    high = _mm512_fmadd_pd(k, _mm512_set1_pd(step_high), WIDE_ENTRY_D(high_of));
    low = _mm512_fmadd_pd(k, _mm512_set1_pd(step_low), WIDE_ENTRY_D(low_of));
    series = _mm512_mul_pd(_mm512_mul_pd(f, f), series);
    low = _mm512_fmadd_pd(series, factor, _mm512_fmadd_pd(f, _mm512_set1_pd(factor_low), low));
    first = _mm512_mul_pd(f, factor);
    if (factor_high != 1.0) low = _mm512_add_pd(low, _mm512_fmsub_pd(f, factor, first));
    if (rest) low = _mm512_add_pd(low, *rest);
    whole = _mm512_add_pd(high, first);
    low = _mm512_add_pd(low, _mm512_sub_pd(first, _mm512_sub_pd(whole, high)));
    return _mm512_mask_add_pd(whole, _mm512_cmp_pd_mask(_mm512_abs_pd(k), _mm512_set1_pd(2000.0),
                                                        _CMP_LT_OQ), whole, low);
}

WIDE __m512d wide_log_d(__m512d x) {
    return wide_log_to_d(x, NULL, LOG_HIGH_D, LOG_LOW_D, 0.6931471805601177,
                         -1.7239444525614835e-13, 1.0, 0.0);
}

WIDE __m512d wide_log2_d(__m512d x) {
    return wide_log_to_d(x, NULL, LOG2_HIGH_D, LOG2_LOW_D, 1.0, 0.0, 1.4426950408889634,
                         2.0355273740931033e-17);
}

WIDE __m512d wide_log10_d(__m512d x) {
    return wide_log_to_d(x, NULL, LOG10_HIGH_D, LOG10_LOW_D, 0.3010299956640665,
                         -8.532344317057107e-14, 0.4342944819032518, 1.098319650216765e-17);
}

/* log(q) with q = x / (1 - x), and what the quotient lacks: its digits count near 1, where log(q)
   is small, down to what Newton's steps give of the inverse. Where 1 - x rounds to 1 or x is 1 or
   none between 0 and 1 it lacks nothing. */
WIDE __m512 wide_logit(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f), rest = _mm512_sub_ps(one, x);
    const __m512 q = _mm512_div_ps(x, rest);
    const __m512 rest_low = _mm512_sub_ps(_mm512_sub_ps(one, rest), x);
    const __mmask16 near_one = _mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_sub_ps(x,
        _mm512_set1_ps(0.5f))), _mm512_set1_ps(0.49999f), _CMP_LT_OQ);
    __m512 lost = _mm512_fnmadd_ps(q, rest, x), inverse = _mm512_rcp14_ps(x);
    lost = _mm512_fnmadd_ps(q, rest_low, lost);
    inverse = _mm512_fmadd_ps(_mm512_fnmadd_ps(x, inverse, one), inverse, inverse);
    return wide_log_and(q, _mm512_maskz_mul_ps(near_one, lost, inverse));
}

WIDE __m512d wide_logit_d(__m512d x) {
    const __m512d one = _mm512_set1_pd(1.0), rest = _mm512_sub_pd(one, x);
    const __m512d q = _mm512_div_pd(x, rest);
    const __m512d rest_low = _mm512_sub_pd(_mm512_sub_pd(one, rest), x);
    const __mmask8 near_one = _mm512_cmp_pd_mask(_mm512_abs_pd(_mm512_sub_pd(x,
        _mm512_set1_pd(0.5))), _mm512_set1_pd(0.49999), _CMP_LT_OQ);
    __m512d lost = _mm512_fnmadd_pd(q, rest, x), inverse = _mm512_rcp14_pd(x);
    lost = _mm512_fnmadd_pd(q, rest_low, lost);
    for (int step = 0; step < 2; step++)
        inverse = _mm512_fmadd_pd(_mm512_fnmadd_pd(x, inverse, one), inverse, inverse);
    lost = _mm512_maskz_mul_pd(near_one, lost, inverse);
    return wide_log_to_d(q, &lost, LOG_HIGH_D, LOG_LOW_D, 0.6931471805601177,
                         -1.7239444525614835e-13, 1.0, 0.0);
}

WIDE_RUN_PS(wide_log)
WIDE_RUN_PS(wide_log2)
WIDE_RUN_PS(wide_log10)
WIDE_RUN_PS(wide_logit)
WIDE_RUN_PD(wide_log_d)
WIDE_RUN_PD(wide_log2_d)
WIDE_RUN_PD(wide_log10_d)
WIDE_RUN_PD(wide_logit_d)
#else
static void wide_log_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_log2_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_log10_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_logit_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_log_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_log2_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_log10_d_run(const double* x, double* y, Py_ssize_t n) {}
static void wide_logit_d_run(const double* x, double* y, Py_ssize_t n) {}
#endif
