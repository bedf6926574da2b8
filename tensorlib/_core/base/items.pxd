"""What loops that move elements, or add to them, are compiled for."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# by size
ctypedef fused item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

# those that are computed with as they are stored
ctypedef fused number:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double
