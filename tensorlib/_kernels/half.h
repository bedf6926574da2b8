/* float16 to and from float32 by the processor's own conversion, where the level has one.

   gcc 12 does not vectorise the bit arithmetic as well: 65,536 elements to float16 take 8.1 us by
   it and 2.5 us by these. Each function converts as many elements as fill whole registers and
   returns their number; the plain code in cast.pyx does the rest, and all of them on other levels.
   The tests of casts run on every level. */
#pragma once

#include <stdint.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

static Py_ssize_t to_half(const float* x, uint16_t* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i*)(y + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i*)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    return i;
}

static Py_ssize_t from_half(const uint16_t* x, float* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(x + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(x + i))));
#endif
    return i;
}

/* y := a + b and the like, as float32 and rounded, without a pass over memory for each conversion:
   65,536 sums take a third of the time. The operation is a constant at every call. */
enum { HALF_ADD, HALF_SUB, HALF_MUL, HALF_DIV };

static inline __attribute__((always_inline)) Py_ssize_t half_pairs(
        int what, const uint16_t* a, const uint16_t* b, uint16_t* y, Py_ssize_t n) {
    Py_ssize_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        __m512 p = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(a + i)));
        __m512 q = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(b + i)));
        p = what == HALF_ADD ? _mm512_add_ps(p, q) : what == HALF_SUB ? _mm512_sub_ps(p, q)
          : what == HALF_MUL ? _mm512_mul_ps(p, q) : _mm512_div_ps(p, q);
        _mm256_storeu_si256((__m256i*)(y + i), _mm512_cvtps_ph(p, _MM_FROUND_TO_NEAREST_INT));
    }
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
        __m256 p = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(a + i)));
        __m256 q = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(b + i)));
        p = what == HALF_ADD ? _mm256_add_ps(p, q) : what == HALF_SUB ? _mm256_sub_ps(p, q)
          : what == HALF_MUL ? _mm256_mul_ps(p, q) : _mm256_div_ps(p, q);
        _mm_storeu_si128((__m128i*)(y + i), _mm256_cvtps_ph(p, _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    return i;
}
