"""Functions of single numbers that loops share: `clamp`, `lerp`, and integer products that wrap."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from tensorlib._kernels.types.numbers cimport number
from tensorlib._kernels.vecmath.basics cimport TL_FMA, TL_FMAF, TL_HAS_FMA, floating, magnitude

cdef extern from "<math.h>" nogil:
    bint isunordered(double a, double b)


cdef inline number bounded(number x, number low, number high) noexcept nogil:
    """x limited to [low, high]; high if low > high; NaN if any is NaN. Each choice is one blend."""
    cdef number r = low if x < low else x
    r = high if r > high else r
    if number is float or number is double:
        return low + high if isunordered(low, high) else r
    else:
        return r


cdef inline floating from_nearer_end(floating a, floating b, floating w) noexcept nogil:
    """a + w * (b - a), computed from a or, if that is nearer, from b"""
    cdef floating one = 1, half = 0.5, way = b - a
    return a + w * way if magnitude(w) < half else b - way * (one - w)


ctypedef fused modular:     # also for signed ones, with the same bits: in C only unsigned ones wrap
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused summand:
    modular
    floating


cdef inline modular wrapped(modular a, modular b) noexcept nogil:
    """a * b without promotion to int, in which 16-bit products could overflow"""
    if modular is uint16_t:
        return <uint16_t>(<uint32_t>a * b)
    else:
        return <modular>(a * b)


cdef inline summand with_product(summand a, summand b, summand c) noexcept nogil:
    """a + b * c, rounded once where the processor can. Without this, a compiler would move a
    product of two constants out of a loop, and round it."""
    if summand is float:
        return TL_FMAF(b, c, a) if TL_HAS_FMA else a + b * c
    elif summand is double:
        return TL_FMA(b, c, a) if TL_HAS_FMA else a + b * c
    else:
        return <summand>(a + wrapped(b, c))
