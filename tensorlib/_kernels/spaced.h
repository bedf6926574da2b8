/* Items into every second place, 32 bytes of them at a time.

   The places between may be another thread's, so that they are neither written nor written back:
   AVX-512 leaves them out of a store. One item after the other takes four times as long, as
   measured with 128 x 128 float32 on a Zen 4. Where there is no AVX-512, nothing is done here. */
#pragma once

#include <stddef.h>
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
            _mm512_mask_storeu_epi64(
                y, 0x55, _mm512_maskz_expand_epi64(0x55, _mm512_castsi256_si512(items)));
    }
    return done;
}
#else
static inline size_t put_spaced(const void* x, char* y, size_t n, size_t size) { return 0; }
#endif
