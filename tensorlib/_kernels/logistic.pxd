"""The logistic function where the last bit does not matter: in activations and in gates."""

from tensorlib._kernels.vecmath cimport floating
from tensorlib._kernels.vecmath_exp cimport exp


cdef inline floating logistic(floating x) noexcept nogil:
    """1 / (1 + exp(-x)), to some 2 units in the last place"""
    cdef floating one = 1
    return one / (one + exp(-x))
