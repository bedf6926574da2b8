/* Items into every second place, 32 bytes of them at a time.

   The places between may be another thread's, so that they are neither written nor written back:
   AVX-512 leaves them out of a store. One item after the other takes four times as long, as
   measured with 128 x 128 float32 on a Zen 4. Where there is no AVX-512, nothing is done here. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>

/* How many of the n items of `size` bytes at x were put at y, y + 2 * size, ... */
static inline size_t put_spaced(const void* x, char* y, size_t n, size_t size) {
    size_t each = 32 / size, done = 0;
    for (; size <= 8 && done + each <= n; done += each, y += 64) {
        __m256i items = _mm256_loadu_si256((const __m256i*)((const char*)x + done * size));
        if (size == 1)
            _mm512_mask_storeu_epi8(y, 0x5555555555555555, _mm512_cvtepu8_epi16(items));
        else if (size == 2)
            _mm512_mask_storeu_epi16(y, 0x55555555, _mm512_cvtepu16_epi32(items));
        else if (size == 4)
            _mm512_mask_storeu_epi32(y, 0x5555, _mm512_cvtepu32_epi64(items));
        else
            _mm512_mask_storeu_epi64(       /* an expansion takes twice as long */
                y, 0x55, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3),
                                                  _mm512_castsi256_si512(items)));
    }
    return done;
}
#else
static inline size_t put_spaced(const void* x, char* y, size_t n, size_t size) { return 0; }
#endif

/* y := every second of the items at x, by registers of 256 bits: a Zen 4 reads what lies beyond its
   L2 cache half as fast by those of 512 that go over the ends of cache lines. */
#if defined(__AVX512F__) && !defined(__clang__)
#define BY_256 __attribute__((unused, target("prefer-vector-width=256")))
#else
#define BY_256 __attribute__((unused))
#endif

#define TAKE_SPACED(T)                                                    \
    BY_256 static void take_spaced_##T(const T* x, T* y, size_t n) {      \
        for (size_t i = 0; i < n; i++) y[i] = x[2 * i];                   \
    }
TAKE_SPACED(float)
TAKE_SPACED(double)
TAKE_SPACED(uint8_t)
TAKE_SPACED(uint16_t)
TAKE_SPACED(uint32_t)
TAKE_SPACED(uint64_t)
