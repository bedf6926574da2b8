"""Sums over contiguous rows for normalisation: of elements, squared deviations, gradients."""

from tensorlib._kernels.vecmath.basics cimport floating, sqrt

cdef extern from "rows/row_moments.h" nogil:
    double moments_sum_float(const float* x, Py_ssize_t n)
    double moments_sum_double(const double* x, Py_ssize_t n)
    double moments_squares_float(const float* x, float mean, Py_ssize_t n)
    double moments_squares_double(const double* x, double mean, Py_ssize_t n)
    void moments_slopes_float(const float* g, const float* w, const float* x, float mean,
                              Py_ssize_t n, double* plain, double* moved)
    void moments_slopes_double(const double* g, const double* w, const double* x, double mean,
                               Py_ssize_t n, double* plain, double* moved)

cdef enum:
    TOGETHER = 16       # rows at most that are computed together
    NEAR = 256      # elements at most that such rows have; longer ones are limited by the additions


cdef inline double sum_of(const floating* x, Py_ssize_t n) noexcept nogil:
    if floating is float:
        return moments_sum_float(x, n)
    else:
        return moments_sum_double(x, n)


cdef inline double sum_of_squares(const floating* x, floating mean, Py_ssize_t n) noexcept nogil:
    """The sum of the squared distances from the mean"""
    if floating is float:
        return moments_squares_float(x, mean, n)
    else:
        return moments_squares_double(x, mean, n)


cdef inline bint is_rough(double var, floating mean) noexcept nogil:
    """Whether a variance overflowed, or is as small as what the rounding of sums leaves of it"""
    cdef double bound = mean * (3e-5 if floating is float else 6e-14)
    return var - var != 0 or 0 < var < bound * bound


cdef inline void in_double(const floating* x, Py_ssize_t outer, Py_ssize_t step, Py_ssize_t inner,
                           bint centered, floating* mean, double* var) noexcept nogil:
    """The mean and the variance of (outer, inner) elements once more, by distances from the first,
    so that those of equal elements are exact"""
    cdef Py_ssize_t o, i, n = outer * inner
    cdef double first = x[0] if n else 0, total = 0, distance
    if centered:
        for o in range(outer):
            for i in range(inner):
                total += <double>x[o * step + i] - first
        mean[0] = <floating>(first + total / n)
    total = 0
    for o in range(outer):
        for i in range(inner):
            distance = <double>x[o * step + i] - <double>mean[0]
            total += distance * distance
    var[0] = total / n


cdef inline void slopes(const floating* g, const floating* w, const floating* x, floating mean,
                        Py_ssize_t n, double* plain, double* moved) noexcept nogil:
    """The sums of g * w and of g * w * (x - mean); no w is 1"""
    if floating is float:
        moments_slopes_float(g, w, x, mean, n, plain, moved)
    else:
        moments_slopes_double(g, w, x, mean, n, plain, moved)


cdef inline Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """How many rows are computed together, so that they stay in the L1 cache"""
    return min(rows, max(<Py_ssize_t>1, min(<Py_ssize_t>TOGETHER, NEAR // max(<Py_ssize_t>1, n))))


cdef inline void row_statistics(const floating* x, Py_ssize_t rows, Py_ssize_t n, double eps,
                                bint centered, floating* mean, floating* scale) noexcept nogil:
    """The mean of each of a few rows, and 1 / sqrt(variance + eps)

    The sum, the quotient and the root of a row are a chain of latencies, which other rows fill.
    """
    cdef double totals[TOGETHER]
    cdef double one = 1, var
    cdef Py_ssize_t r
    if rows == 1:                        # without the overhead of loops over a few rows
        mean[0] = <floating>(sum_of(x, n) / n) if centered else 0
        var = sum_of_squares(x, mean[0], n) / n
        if is_rough(var, mean[0]):
            in_double(x, 1, 0, n, centered, mean, &var)
        scale[0] = <floating>(one / sqrt(var + eps))
        return
    for r in range(rows):
        totals[r] = sum_of(x + r * n, n) if centered else 0
    for r in range(rows):
        mean[r] = <floating>(totals[r] / n)
    for r in range(rows):
        totals[r] = sum_of_squares(x + r * n, mean[r], n)
    for r in range(rows):
        var = totals[r] / n
        if is_rough(var, mean[r]):
            in_double(x + r * n, 1, 0, n, centered, mean + r, &var)
        scale[r] = <floating>(one / sqrt(var + eps))
