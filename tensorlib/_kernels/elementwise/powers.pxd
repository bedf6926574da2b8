"""Runs of powers, which loops of float32 and of half types share."""

from tensorlib._kernels.vecmath.basics cimport floating, infinity, magnitude, product_error, sqrt
from tensorlib._kernels.vecmath.pow cimport is_ordinary, pow, pow_ordinary

cdef extern from "vecmath/wide_root.h" nogil:
    const bint HAS_WIDE
    void wide_sqrt_d_run(const double* x, double* y, Py_ssize_t n)


cdef inline bint all_ordinary(const floating* a, const floating* b, Py_ssize_t start,
                              Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = True
    for i in range(start, stop):
        found &= is_ordinary(a[i], b[i])
    return found


cdef inline bint all_equal(const floating* b, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Whether all elements of b in the block are equal."""
    cdef Py_ssize_t i
    cdef int differ = 0
    cdef floating first = b[start]
    for i in range(start, stop):
        differ |= b[i] != first
    return differ == 0


cdef inline bint pow_by_hand(const floating* a, floating e, floating* y, Py_ssize_t start,
                             Py_ssize_t stop) noexcept nogil:
    """y := a ** e for the few exponents that cost next to nothing; False for others."""
    cdef Py_ssize_t i
    cdef floating zero = 0, half = 0.5, one = 1, inf = infinity(e), root, first, lost
    if e == 1:
        for i in range(start, stop if a != y else start):
            y[i] = a[i]
    elif e == 2:
        for i in range(start, stop):
            y[i] = a[i] * a[i]
    elif e == 3:
        for i in range(start, stop):
            y[i] = a[i] * a[i] * a[i]
    elif e == -1:
        for i in range(start, stop):
            y[i] = one / a[i]
    elif e == -2:                              # as for -0.5
        for i in range(start, stop):
            first = one / a[i]
            root = first * first
            lost = product_error(first, first, root) - (root + root) * product_error(
                first, a[i], one)
            y[i] = root + lost if (root < inf) & (magnitude(a[i]) < inf) else root
    elif e == 0.5:
        if floating is double and HAS_WIDE:
            for i in range(start, stop):       # pow(-0, 0.5) is +0
                y[i] = inf if a[i] == -inf else a[i] + 0
            wide_sqrt_d_run(y + start, y + start, stop - start)
        else:
            for i in range(start, stop):
                y[i] = sqrt(inf if a[i] == -inf else a[i] + 0)
    elif e == -0.5:                            # what both roundings lost is put back
        for i in range(start, stop):
            root = sqrt(a[i])
            first = one / root
            lost = (one - first * root) - half * ((a[i] - root * root) * first) * first
            first = first + first * lost if (root > 0) & (root < inf) else first
            first = zero if magnitude(a[i]) == inf else first
            y[i] = inf if a[i] == 0 else first
    else:
        return False
    return True


cdef inline void pow_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a ** b

    The exceptions cost a third of the time, so blocks that stay in the first-level cache are
    looked through for them.
    """
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if all_equal(b, start, stop) and pow_by_hand(a, b[start], y, start, stop):
            continue
        if all_ordinary(a, b, start, stop):
            for i in range(start, stop):
                y[i] = pow_ordinary(a[i], b[i])
        else:
            for i in range(start, stop):
                y[i] = pow(a[i], b[i])
