"""Fused types: the element types that loops are compiled for."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

ctypedef float complex complex64_t
ctypedef double complex complex128_t

ctypedef fused floating:
    float
    double

# of those that are sorted; wider unsigned integers are ordered as signed ones (reduce/unsigned.pyx)
ctypedef fused ordered:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double

# by size
ctypedef fused item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    complex128_t

# those that are added up as they are stored; sums of signed integers have the bits of unsigned
# ones, for which C says that they wrap
ctypedef fused number:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double
    complex64_t
    complex128_t
