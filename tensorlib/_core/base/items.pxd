"""What loops that move elements, or add to them, are compiled for."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

ctypedef float complex complex64_t
ctypedef double complex complex128_t

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
