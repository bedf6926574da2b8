"""Bit patterns of the half types, and the float32 that they stand for."""

from libc.stdint cimport uint16_t, uint32_t

from tensorlib._kernels.vecmath.basics cimport bits32, from_bits32

cdef struct half:  # float16
    uint16_t bits

cdef struct brain:  # bfloat16
    uint16_t bits

ctypedef fused short_float:
    half
    brain


cdef inline float half_value(uint16_t bits) noexcept nogil:
    """the float of a float16: its bits as a float are 2**112 too small, subnormals too"""
    cdef uint32_t wide = bits, rest = (wide & 0x7FFF) << 13
    cdef float value = from_bits32(rest) * from_bits32(0x77800000)
    rest = rest | 0x7F800000u if (wide & 0x7C00) == 0x7C00 else bits32(value)
    return from_bits32(rest | (wide & 0x8000) << 16)


cdef inline uint16_t half_bits(float x) noexcept nogil:
    """the float16 nearest to x, ties to even (after F. Giesen's float_to_half_fast3_rtne)"""
    cdef uint32_t bits = bits32(x), a = bits & 0x7FFFFFFFu, normal, small, most
    normal = (a + 0xFFF + ((a >> 13) & 1) - 0x38000000u) >> 13
    # adding 1/2 leaves the digits of a subnormal float16 in the low bits, rounded
    small = bits32(from_bits32(a) + from_bits32(0x3F000000)) - 0x3F000000u
    most = 0x7E00 if a > 0x7F800000u else 0x7C00
    normal = small if a < 0x38800000u else normal
    normal = most if a >= 0x47800000u else normal
    return <uint16_t>(normal | (bits >> 16) & 0x8000)


cdef inline float brain_value(uint16_t bits) noexcept nogil:
    """the float of a bfloat16"""
    return from_bits32(<uint32_t>bits << 16)


cdef inline uint16_t brain_bits(float x) noexcept nogil:
    """the bfloat16 nearest to x, ties to even"""
    cdef uint32_t bits = bits32(x), a = bits & 0x7FFFFFFFu
    cdef uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return <uint16_t>(0x7FC0 if a > 0x7F800000u else rounded)
