/* What loops share that name instructions of AVX-512. Others are left to the compiler, as functions
   of `basics.pxd`. */
#pragma once

#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && ( \
    defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define HAS_WIDE 1
#define WIDE static inline __attribute__((always_inline))

/* c := c * x + the next coefficient, and so on */
#define WIDE_STEP(c, x, next) c = _mm512_fmadd_ps(c, x, _mm512_set1_ps(next))
#define WIDE_STEP_D(c, x, next) c = _mm512_fmadd_pd(c, x, _mm512_set1_pd(next))

/* A polynomial; the first coefficient is that of the highest power */
#define WIDE_SERIES(y, x, ...) do {                                                               \
        const double series_[] = {__VA_ARGS__};                                                   \
        y = _mm512_set1_pd(series_[0]);                                                           \
        for (unsigned i_ = 1; i_ < sizeof(series_) / sizeof(double); i_++)                        \
            y = _mm512_fmadd_pd(y, x, _mm512_set1_pd(series_[i_]));                               \
    } while (0)

/* 1 / x within 2**-28, by `vrcp14pd` and a step of Newton's method */
WIDE __m512d wide_inverse(__m512d x) {
    const __m512d y = _mm512_rcp14_pd(x);
    return _mm512_fmadd_pd(_mm512_fnmadd_pd(x, y, _mm512_set1_pd(1.0)), y, y);
}

/* the entries of a table at the places `part` */
#define WIDE_ENTRY(table) \
    _mm512_permutex2var_ps(_mm512_loadu_ps(table), part, _mm512_loadu_ps((table) + 16))
#define WIDE_ENTRY_D(table) \
    _mm512_permutex2var_pd(_mm512_loadu_pd(table), part, _mm512_loadu_pd((table) + 8))

#define WIDE_RUN(name, type, mask, lanes, load, maskz_load, store, mask_store)        \
    static void name##_run(const type* x, type* y, Py_ssize_t n) {                                \
        Py_ssize_t i = 0;                                                                         \
        for (; i + lanes <= n; i += lanes) store(y + i, name(load(x + i)));                       \
        if (i < n) {                                                                              \
            const mask here = (mask)((1u << (n - i)) - 1);                                        \
            mask_store(y + i, here, name(maskz_load(here, x + i)));                               \
        }                                                                                         \
    }
#define WIDE_RUN_PS(name) WIDE_RUN(name, float, __mmask16, 16, _mm512_loadu_ps, \
                                   _mm512_maskz_loadu_ps, _mm512_storeu_ps, _mm512_mask_storeu_ps)
#define WIDE_RUN_PD(name) WIDE_RUN(name, double, __mmask8, 8, _mm512_loadu_pd, \
                                   _mm512_maskz_loadu_pd, _mm512_storeu_pd, _mm512_mask_storeu_pd)

/* of floats, eight at a time, in double */
#define WIDE_RUN_HALF(name) WIDE_RUN(name, float, __mmask8, 8, _mm256_loadu_ps, \
                                     _mm256_maskz_loadu_ps, _mm256_storeu_ps, _mm256_mask_storeu_ps)

#define WIDE_RUN_OF_TWO(name, type, mask, lanes, load, maskz_load, store, mask_store)             \
    static void name##_run(const type* a, const type* b, type* y, Py_ssize_t n) {                 \
        Py_ssize_t i = 0;                                                                         \
        for (; i + lanes <= n; i += lanes) store(y + i, name(load(a + i), load(b + i)));          \
        if (i < n) {                                                                              \
            const mask here = (mask)((1u << (n - i)) - 1);                                        \
            mask_store(y + i, here, name(maskz_load(here, a + i), maskz_load(here, b + i)));      \
        }                                                                                         \
    }
#define WIDE_RUN_OF_TWO_PS(name) \
    WIDE_RUN_OF_TWO(name, float, __mmask16, 16, _mm512_loadu_ps, _mm512_maskz_loadu_ps, \
                    _mm512_storeu_ps, _mm512_mask_storeu_ps)
#define WIDE_RUN_OF_TWO_PD(name) \
    WIDE_RUN_OF_TWO(name, double, __mmask8, 8, _mm512_loadu_pd, _mm512_maskz_loadu_pd, \
                    _mm512_storeu_pd, _mm512_mask_storeu_pd)
#else
#define HAS_WIDE 0
#endif
