/* The items that are marked, and their places, side by side, and sums of marks, bytes that are 0 or
   1: 64 of them at a time. Eight items of 8 bytes take two cycles in registers that are compressed,
   and one after the other at least eight, as a processor stores once in a cycle. The register is
   stored in part, and nothing behind the last item is written: a compression into memory takes ten
   times as long on a Zen 4. Where there is no AVX-512, nothing is done here. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__BMI2__)
#include <immintrin.h>

static inline uint64_t marks_of(const char* marks) {
    __m512i bytes = _mm512_loadu_si512(marks);
    return _mm512_test_epi8_mask(bytes, bytes);
}

/* y := the marked items of x, of `size` bytes. How many rows were looked at; adds to *count. */
static inline size_t take_marked(const char* x, const char* marks, char* y, size_t rows,
                                 size_t size, size_t* count) {
    size_t row = 0, found = *count, part = size == 8 ? 8 : 16;
    if (size > 8) return 0;
    for (; row + 64 <= rows; row += 64) {
        uint64_t kept = marks_of(marks + row);
        for (size_t at = row; at < row + 64; at += part, kept >>= part) {
            const char* source = x + at * size;
            char* target = y + found * size;
            unsigned mask = kept & (part == 8 ? 0xFF : 0xFFFF);
            unsigned number = (unsigned)_mm_popcnt_u32(mask);
            __mmask16 room = (__mmask16)_bzhi_u32(0xFFFF, number);
            __m512i items;
            found += number;
            if (size == 8) {
                items = _mm512_maskz_compress_epi64((__mmask8)mask, _mm512_loadu_si512(source));
                _mm512_mask_storeu_epi64(target, (__mmask8)room, items);
                continue;
            }
            items = size == 4 ? _mm512_loadu_si512(source)
                  : size == 2 ? _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void*)source))
                              : _mm512_cvtepu8_epi32(_mm_loadu_si128((const void*)source));
            items = _mm512_maskz_compress_epi32((__mmask16)mask, items);
            if (size == 4)
                _mm512_mask_storeu_epi32(target, room, items);
            else if (size == 2)
                _mm256_mask_storeu_epi16(target, room, _mm512_cvtepi32_epi16(items));
            else
                _mm_mask_storeu_epi8(target, room, _mm512_cvtepi32_epi8(items));
        }
    }
    *count = found;
    return row;
}

/* places := those of the marks, from `first` on. How many rows were looked at; adds to *count. */
static inline size_t place_marked(const char* marks, int64_t* places, size_t rows, int64_t first,
                                  size_t* count) {
    size_t row = 0, found = *count;
    __m512i eight = _mm512_set1_epi64(8), at = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    at = _mm512_add_epi64(at, _mm512_set1_epi64(first));
    for (; row + 64 <= rows; row += 64) {
        uint64_t kept = marks_of(marks + row);
        for (int part = 0; part < 8; part++, kept >>= 8) {
            unsigned mask = kept & 255, number = (unsigned)_mm_popcnt_u32(mask);
            _mm512_mask_storeu_epi64(places + found, (__mmask8)_bzhi_u32(255, number),
                                     _mm512_maskz_compress_epi64((__mmask8)mask, at));
            found += number;
            at = _mm512_add_epi64(at, eight);
        }
    }
    *count = found;
    return row;
}

/* sums := *sum and how many marks there are up to each row. How many rows were looked at; sets
   *sum to the last. The sums of eight bytes are one product. */
static inline size_t sum_marked(const char* marks, int64_t* sums, size_t rows, int64_t* sum) {
    size_t row = 0;
    int64_t total = *sum;
    for (; row + 8 <= rows; row += 8) {
        uint64_t word;
        memcpy(&word, marks + row, 8);
        word *= 0x0101010101010101ull;
        __m512i each = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128((long long)word));
        _mm512_storeu_si512(sums + row, _mm512_add_epi64(each, _mm512_set1_epi64(total)));
        total += (int64_t)(word >> 56);
    }
    *sum = total;
    return row;
}
#else
static inline size_t take_marked(const char* x, const char* marks, char* y, size_t rows,
                                 size_t size, size_t* count) { return 0; }
static inline size_t place_marked(const char* marks, int64_t* places, size_t rows, int64_t first,
                                  size_t* count) { return 0; }
static inline size_t sum_marked(const char* marks, int64_t* sums, size_t rows, int64_t* sum) {
    return 0;
}
#endif
