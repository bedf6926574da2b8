"""Sums over contiguous rows for normalisation: of elements, squared deviations, gradients."""

from tensorlib._kernels.vecmath cimport floating, sqrt

cdef extern from "row_moments.h" nogil:
    double moments_sum_float(const float* x, float origin, Py_ssize_t n)
    double moments_sum_double(const double* x, double origin, Py_ssize_t n)
    double moments_squares_float(const float* x, float mean, Py_ssize_t n)
    double moments_squares_double(const double* x, double mean, Py_ssize_t n)
    void moments_slopes_float(const float* g, const float* w, const float* x, float mean,
                              Py_ssize_t n, double* plain, double* moved)
    void moments_slopes_double(const double* g, const double* w, const double* x, double mean,
                               Py_ssize_t n, double* plain, double* moved)

cdef enum:
    TOGETHER = 16       # rows at most that are gone through together
    NEAR = 256          # elements at most that these have; of more, memory waits for the sums


cdef inline double sum_of_distances(const floating* x, floating origin,
                                    Py_ssize_t n) noexcept nogil:
    """The sum of the distances from a number"""
    if floating is float:
        return moments_sum_float(x, origin, n)
    else:
        return moments_sum_double(x, origin, n)


cdef inline floating mean_of(const floating* x, Py_ssize_t n) noexcept nogil:
    """The mean, which of equal elements is exact; 0 of none"""
    return <floating>(x[0] + sum_of_distances(x, x[0], n) / n) if n else 0


cdef inline double sum_of_squares(const floating* x, floating mean, Py_ssize_t n) noexcept nogil:
    """The sum of the squared distances from the mean"""
    if floating is float:
        return moments_squares_float(x, mean, n)
    else:
        return moments_squares_double(x, mean, n)


cdef inline void slopes(const floating* g, const floating* w, const floating* x, floating mean,
                        Py_ssize_t n, double* plain, double* moved) noexcept nogil:
    """The sums of g * w and of g * w * (x - mean); no w is 1"""
    if floating is float:
        moments_slopes_float(g, w, x, mean, n, plain, moved)
    else:
        moments_slopes_double(g, w, x, mean, n, plain, moved)


cdef inline Py_ssize_t rows_together(Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """How many rows are gone through together, which stay in the L1 cache"""
    return min(rows, max(<Py_ssize_t>1, min(<Py_ssize_t>TOGETHER, NEAR // max(<Py_ssize_t>1, n))))


cdef inline void row_statistics(const floating* x, Py_ssize_t rows, Py_ssize_t n, double eps,
                                bint centered, floating* mean, floating* scale) noexcept nogil:
    """The mean of each of a few rows, and 1 / sqrt(variance + eps)

    A row waits for its sum, its quotient and its root; here others go on in the meantime.
    """
    cdef double totals[TOGETHER]
    cdef double one = 1
    cdef Py_ssize_t r
    if rows == 1:                        # without what loops over few rows cost
        mean[0] = mean_of(x, n) if centered else 0
        scale[0] = <floating>(one / sqrt(sum_of_squares(x, mean[0], n) / n + eps))
        return
    for r in range(rows):
        mean[r] = x[r * n] if centered and n else 0
    for r in range(rows):
        totals[r] = sum_of_distances(x + r * n, mean[r], n) if centered else 0
    for r in range(rows):
        mean[r] = <floating>(mean[r] + totals[r] / n)
    for r in range(rows):
        totals[r] = sum_of_squares(x + r * n, mean[r], n)
    for r in range(rows):
        scale[r] = <floating>(one / sqrt(totals[r] / n + eps))
