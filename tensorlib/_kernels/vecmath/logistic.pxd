"""Sigmoid and softplus for activations, where the last bit does not matter."""

from tensorlib._kernels.vecmath.basics cimport floating, magnitude
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.log cimport log1p_unit


cdef inline floating logistic(floating x) noexcept nogil:
    """1 / (1 + exp(-x)), to some 2 units in the last place"""
    cdef floating one = 1
    return one / (one + exp(-x))


cdef inline floating log_of_one_and_exp(floating x) noexcept nogil:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|)), in which nothing overflows"""
    cdef floating zero = 0
    return (zero if x < 0 else x) + log1p_unit(exp(-magnitude(x)))
