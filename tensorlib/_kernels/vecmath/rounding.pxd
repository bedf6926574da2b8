"""Rounding to whole numbers, in the type of the argument."""

from libc.math cimport ceil as libm_ceil, ceilf, floor as libm_floor, floorf
from libc.math cimport trunc as libm_trunc, truncf

from tensorlib._kernels.vecmath.basics cimport floating


cdef inline floating floor(floating x) noexcept nogil:
    if floating is float:
        return floorf(x)
    else:
        return libm_floor(x)


cdef inline floating ceil(floating x) noexcept nogil:
    if floating is float:
        return ceilf(x)
    else:
        return libm_ceil(x)


cdef inline floating trunc(floating x) noexcept nogil:
    if floating is float:
        return truncf(x)
    else:
        return libm_trunc(x)
