"""The length of a vector of two numbers, without overflow between."""

from tensorlib._kernels.vecmath.basics cimport infinity, magnitude, product_error, sqrt


cdef inline double hypotenuse(double a, double b) noexcept nogil:
    """sqrt(a**2 + b**2), corrected by the error of its square

    Source: Borges, "An Improved Algorithm for hypot(a,b)", arXiv:1904.09481 (2019).
    """
    cdef double x = magnitude(a), y = magnitude(b), one = 1, inf = infinity(one), scale = 1, rest
    cdef double most = x if x >= y else y, least = y if x >= y else x, root
    scale = 2.409919865102884e-181 if most > 1e150 else scale          # 2**-600
    scale = 4.149515568880993e+180 if most < 1e-150 else scale         # 2**600
    most, least = most * scale, least * scale
    root = sqrt(most * most + least * least)
    rest = (most - root) * (most + root) + least * least
    rest = rest + product_error(least, least, least * least)
    root = root + rest / (root + root) if root > 0 else root
    root = root / scale
    return inf if (x == inf) | (y == inf) else root
