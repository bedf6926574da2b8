/* Loops over square roots, rounded correctly, without the instruction for roots, which takes twice
   as long as these multiplications on some processors.

   g and h go from `vrsqrt14ps` to sqrt(x) and 1 / (2 sqrt(x)) by Goldschmidt's steps, each of which
   doubles their digits. The last adds (x - g**2) h, whose difference is exact (Markstein,
   "Computation of elementary functions on the IBM RISC System/6000 processor", 1990): a root is
   nearer than that step's error to the middle between two numbers only for a few x, which a test
   goes through. */
#pragma once

#include "vecmath/wide.h"

#if HAS_WIDE
WIDE __m512 wide_sqrt(__m512 x) {
    const __m512 half = _mm512_set1_ps(0.5f), y = _mm512_rsqrt14_ps(x);
    const __mmask16 itself = _mm512_fpclass_ps_mask(x, 0x0E);        /* 0, -0, infinity */
    const __mmask16 small = _mm512_cmp_ps_mask(x, _mm512_set1_ps(1e-30f), _CMP_LT_OQ);
    __m512 g = _mm512_mul_ps(x, y), h = _mm512_mul_ps(half, y), r;
    if (small & ~itself) return _mm512_sqrt_ps(x);                   /* x - g**2 underflows */
    r = _mm512_fnmadd_ps(g, h, half);
    g = _mm512_fmadd_ps(g, r, g);
    h = _mm512_fmadd_ps(h, r, h);
    r = _mm512_fnmadd_ps(g, g, x);
    return _mm512_mask_mov_ps(_mm512_fmadd_ps(r, h, g), itself, x);
}

WIDE __m512d wide_sqrt_d(__m512d x) {
    const __m512d half = _mm512_set1_pd(0.5), y = _mm512_rsqrt14_pd(x);
    const __mmask8 itself = _mm512_fpclass_pd_mask(x, 0x0E);
    const __mmask8 small = _mm512_cmp_pd_mask(x, _mm512_set1_pd(1e-270), _CMP_LT_OQ);
    __m512d g = _mm512_mul_pd(x, y), h = _mm512_mul_pd(half, y), r;
    if (small & ~itself) return _mm512_sqrt_pd(x);
    r = _mm512_fnmadd_pd(g, h, half);
    g = _mm512_fmadd_pd(g, r, g);
    h = _mm512_fmadd_pd(h, r, h);
    r = _mm512_fnmadd_pd(g, h, half);
    g = _mm512_fmadd_pd(g, r, g);
    h = _mm512_fmadd_pd(h, r, h);
    r = _mm512_fnmadd_pd(g, g, x);
    return _mm512_mask_mov_pd(_mm512_fmadd_pd(r, h, g), itself, x);
}

WIDE_RUN_PS(wide_sqrt)
WIDE_RUN_PD(wide_sqrt_d)
#else
static void wide_sqrt_run(const float* x, float* y, Py_ssize_t n) {}
static void wide_sqrt_d_run(const double* x, double* y, Py_ssize_t n) {}
#endif
