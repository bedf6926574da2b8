/* A group of 16 counters of Philox4x32-10: see philox.pyx.

With a word in each lane of 64 bits, a product is one instruction (which reads the lower halves
alone), and its two halves need no shuffle: on AVX2 a group takes a third of the time of what GCC 12
makes of the plain loop. The upper halves of b and d hold what is left of products. */

#ifndef TENSORLIB_PHILOX_GROUP_H
#define TENSORLIB_PHILOX_GROUP_H

#include <stdint.h>

#define PHILOX_ROUNDS 10
#define PHILOX_COUNTERS 16

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512i philox_lanes;
#define PHILOX_WIDTH 8
#define philox_fill(x) _mm512_set1_epi64((long long)(x))
#define philox_mul _mm512_mul_epu32
#define philox_xor _mm512_xor_si512
#define philox_high(x) _mm512_srli_epi64(x, 32)
#define philox_load(p) _mm512_loadu_si512((const void*)(p))
#define philox_store(p, x) _mm256_storeu_si256((__m256i*)(p), _mm512_cvtepi64_epi32(x))
#elif defined(__AVX2__)
#include <immintrin.h>
typedef __m256i philox_lanes;
#define PHILOX_WIDTH 4
#define philox_fill(x) _mm256_set1_epi64x((long long)(x))
#define philox_mul _mm256_mul_epu32
#define philox_xor _mm256_xor_si256
#define philox_high(x) _mm256_srli_epi64(x, 32)
#define philox_load(p) _mm256_loadu_si256((const __m256i*)(p))
#define philox_store(p, x) _mm_storeu_si128((__m128i*)(p), _mm256_castsi256_si128( \
    _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6))))
#endif

/* words[16 * w + l] = word w of counter 16 * group + l of stream `offset` */
static inline void philox_group(uint64_t seed, uint64_t offset, uint64_t group, uint32_t* words) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint64_t first = group * PHILOX_COUNTERS;
    int l, r;
#ifdef PHILOX_WIDTH
    enum { PARTS = PHILOX_COUNTERS / PHILOX_WIDTH };
    philox_lanes a[PARTS], b[PARTS], c[PARTS], d[PARTS], p, q;
    philox_lanes m0 = philox_fill(0xD2511F53), m1 = philox_fill(0xCD9E8D57);
    uint64_t counters[PHILOX_COUNTERS];
    for (l = 0; l < PHILOX_COUNTERS; l++) counters[l] = (uint32_t)(first + (uint64_t)l);
    for (l = 0; l < PARTS; l++) {
        a[l] = philox_load(counters + l * PHILOX_WIDTH);
        b[l] = philox_fill(first >> 32);
        c[l] = philox_fill((uint32_t)offset);
        d[l] = philox_fill(offset >> 32);
    }
    for (r = 0; r < PHILOX_ROUNDS; r++) {
        philox_lanes k0 = philox_fill(key0), k1 = philox_fill(key1);
        for (l = 0; l < PARTS; l++) {
            p = philox_mul(a[l], m0);
            q = philox_mul(c[l], m1);
            a[l] = philox_xor(philox_high(q), philox_xor(b[l], k0));
            b[l] = q;
            c[l] = philox_xor(philox_high(p), philox_xor(d[l], k1));
            d[l] = p;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (l = 0; l < PARTS; l++) {
        philox_store(words + l * PHILOX_WIDTH, a[l]);
        philox_store(words + PHILOX_COUNTERS + l * PHILOX_WIDTH, b[l]);
        philox_store(words + 2 * PHILOX_COUNTERS + l * PHILOX_WIDTH, c[l]);
        philox_store(words + 3 * PHILOX_COUNTERS + l * PHILOX_WIDTH, d[l]);
    }
#else
    uint32_t *a = words, *b = a + PHILOX_COUNTERS, *c = b + PHILOX_COUNTERS;
    uint32_t *d = c + PHILOX_COUNTERS;
    for (l = 0; l < PHILOX_COUNTERS; l++) {
        a[l] = (uint32_t)(first + (uint64_t)l);
        b[l] = (uint32_t)(first >> 32);
        c[l] = (uint32_t)offset;
        d[l] = (uint32_t)(offset >> 32);
    }
    for (r = 0; r < PHILOX_ROUNDS; r++) {
        for (l = 0; l < PHILOX_COUNTERS; l++) {
            uint64_t p = (uint64_t)a[l] * 0xD2511F53u, q = (uint64_t)c[l] * 0xCD9E8D57u;
            a[l] = (uint32_t)(q >> 32) ^ b[l] ^ key0;
            b[l] = (uint32_t)q;
            c[l] = (uint32_t)(p >> 32) ^ d[l] ^ key1;
            d[l] = (uint32_t)p;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
#endif
}

#endif
