"""`zmul`, the product of a gradient and a derivative: 0 where the gradient is 0."""

from tensorlib._kernels.vecmath.basics cimport floating


cdef inline floating strong_product(floating g, floating d) noexcept nogil:
    """g * d, but 0 where g == 0 even if d is infinite or NaN"""
    cdef floating zero = 0
    return zero if g == 0 else g * d
