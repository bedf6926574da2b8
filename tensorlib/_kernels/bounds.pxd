"""What loops share: a number between two bounds, or on the way, and a sum with a product."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from tensorlib._kernels.vecmath cimport TL_FMA, TL_FMAF, TL_HAS_FMA, floating, magnitude

cdef extern from "<math.h>" nogil:
    bint isunordered(double a, double b)

ctypedef fused real:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


cdef inline real bounded(real x, real low, real high) noexcept nogil:
    """x between low and high, high where these cross; NaN if any is: each choice is one blend"""
    cdef real r = low if x < low else x
    r = high if r > high else r
    if real is float or real is double:
        return low + high if isunordered(low, high) else r
    else:
        return r


cdef inline floating from_nearer_end(floating a, floating b, floating w) noexcept nogil:
    """a + w * (b - a) from a, or from b where that is nearer"""
    cdef floating one = 1, half = 0.5, way = b - a
    return a + w * way if magnitude(w) < half else b - way * (one - w)


cdef inline real with_product(real a, real b, real c) noexcept nogil:
    """a + b * c: rounded once where the processor can, whichever of them are numbers of a loop,
    out of which a compiler would take a product and round it"""
    if real is float:
        return TL_FMAF(b, c, a) if TL_HAS_FMA else a + b * c
    elif real is double:
        return TL_FMA(b, c, a) if TL_HAS_FMA else a + b * c
    else:
        return a + b * c
