"""Sums of squares, computed again where the fast result is not accurate enough.

The fast loops square in the dtype of the elements, and take distances from a mean that is rounded
to it. Where squares overflow or underflow, or the rounding error of the mean is not small beside
the deviations, the sum is taken again: in double, of distances from the first element, scaled by a
power of 2 to be near 1. So the variance of equal elements is exactly 0.
"""

from libc.math cimport fabs, frexp, isfinite, ldexp, sqrt
from libc.stdint cimport uint64_t

from tensorlib._core.base.dtypes cimport COMPLEX_KIND, FLOAT32, KIND, real_of
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.work cimport run_alone, run_once
from tensorlib._core.tensor.tensor cimport Tensor, new_view
from tensorlib._core.tiles.copies cimport packed_copy

cdef enum:
    LANES = 8
    TOGETHER = 1024          # elements that are compared without a branch

# The largest ratio of variance to squared mean at which the fast result is taken again: from a mean
# of 2**-13 / eps deviations on, the rounding error of the mean, some eps, may change the last bit.
cdef extern from * nogil:
    """
    #define FLOAT_RATIO 0x1p-20f
    #define DOUBLE_RATIO 0x1p-78
    """
    const float FLOAT_RATIO
    const double DOUBLE_RATIO

cdef struct Squares:
    const char* x
    const char* center
    char* y
    Py_ssize_t outer, n, inner, slice_step, step
    double over                  # the divisor of the sums
    int dtype
    bint root, centered, coarse


cdef inline bint is_coarse(floating value, floating mean) noexcept nogil:
    """Whether a mean square may be inexact; NaN counts as such."""
    cdef floating least, most, ratio
    if floating is float:
        least, most, ratio = 1e-30, 3e38, FLOAT_RATIO
    else:
        least, most, ratio = 1e-280, 1e308, DOUBLE_RATIO
    return (value < least) | (value > most) | (value < mean * mean * ratio) | (value != value)


cdef bint any_coarse(const floating* values, const floating* means, Py_ssize_t n) noexcept nogil:
    cdef bint found = False
    cdef Py_ssize_t i
    for i in range(n):
        found |= is_coarse(values[i], means[i])
    return found


cdef double reach(const floating* x, Py_ssize_t n, Py_ssize_t step, double first) noexcept nogil:
    """The largest distance from `first`. NaN does not count here, as it shows in the sum."""
    cdef double most = 0, distance
    cdef Py_ssize_t i
    for i in range(n):
        distance = fabs(x[i * step] - first)
        most = distance if distance > most else most
    return most


cdef double total(const floating* x, Py_ssize_t n, Py_ssize_t step, double first, double scale,
                  double mean, bint squared) noexcept nogil:
    """The sum of (x - first) * scale - mean, or of its squares."""
    cdef double[LANES] sums
    cdef double value, found = 0
    cdef Py_ssize_t i, lane
    for lane in range(<Py_ssize_t>LANES):
        sums[lane] = 0
    for i in range(n // <Py_ssize_t>LANES):
        for lane in range(<Py_ssize_t>LANES):
            value = (x[(i * LANES + lane) * step] - first) * scale - mean
            sums[lane] += value * value if squared else value
    for i in range(n // <Py_ssize_t>LANES * LANES, n):
        value = (x[i * step] - first) * scale - mean
        sums[0] += value * value if squared else value
    for lane in range(<Py_ssize_t>LANES):
        found += sums[lane]
    return found


cdef double mean_square(const floating* x, Py_ssize_t n, Py_ssize_t step, double over, bint root,
                        bint centered) noexcept nogil:
    """The sum of squared distances from the mean (or from 0), divided by `over`; or its root."""
    cdef double first = x[0] if centered else 0, most = reach(x, n, step, first), mean = 0, rest
    cdef double scale, found
    cdef int exponent
    if not isfinite(most) or not isfinite(first):
        most = 1                                 # no scaling: the sum is infinite or NaN
    frexp(most, &exponent)
    scale = ldexp(1.0, -exponent if exponent > -1000 else 1000)
    if centered:
        mean = total(x, n, step, first, scale, 0, False) / n
    found = total(x, n, step, first, scale, mean, True)
    if centered:
        rest = total(x, n, step, first, scale, mean, False)
        found -= rest * rest / n
    found = (found if found > 0 or found != found else 0) / over
    return sqrt(found) / scale if root else found / scale / scale


cdef inline bint all_equal(const floating* x, Py_ssize_t n, Py_ssize_t step,
                           floating value) noexcept nogil:
    """Whether all elements are `value`. Then the sum of 0 is exact."""
    cdef Py_ssize_t begin, i
    cdef int differ = 0
    for begin in range(0, n, 1024):          # TOGETHER, as a literal: the sign must be known
        for i in range(begin, min(n, begin + TOGETHER)):
            differ |= x[i * step] != value
        if differ:
            return False
    return True


cdef void mend(Squares* of, const floating* x, const floating* means, floating* y) noexcept nogil:
    cdef Py_ssize_t k
    cdef const floating* column
    cdef floating first
    for k in range(of.outer * of.inner):
        column = x + k // of.inner * of.slice_step + k % of.inner
        if is_coarse(y[k], means[k]):
            first = column[0] if of.centered else 0
            if y[k] == 0 and (all_equal(column, of.n, 1, first) if of.step == 1
                              else all_equal(column, of.n, of.step, first)):
                continue
            y[k] = <floating>mean_square(column, of.n, of.step, of.over, of.root, of.centered)
        elif of.root:
            y[k] = <floating>sqrt(y[k])


cdef void look(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Squares* of = <Squares*>context
    cdef Py_ssize_t n = of.outer * of.inner
    if of.dtype == FLOAT32:
        of.coarse = any_coarse(<const float*>of.y, <const float*>of.center, n)
    else:
        of.coarse = any_coarse(<const double*>of.y, <const double*>of.center, n)


cdef void mend_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Squares* of = <Squares*>context
    if of.dtype == FLOAT32:
        mend(of, <const float*>of.x, <const float*>of.center, <float*>of.y)
    else:
        mend(of, <const double*>of.x, <const double*>of.center, <double*>of.y)


cdef int finish_squares(Tensor x, Tensor center, const Py_ssize_t* sizes, double over, bint root,
                        bint centered, Tensor out) except -1:
    """Divides sums of squared distances from `center` in `out` by `over`, takes roots if asked to,
    and computes the inexact ones again.

    x: the elements, which lie as the `sizes` say (schedule.pxd); half types without gaps.
    centered: whether the center is their mean, and not 0.
    """
    cdef Squares of
    if over != 1:
        divide(out, over)
    of.x, of.center, of.y = x.data_pointer, center.data_pointer, out.data_pointer
    of.outer, of.n, of.inner = sizes[0], sizes[1], sizes[2]
    of.slice_step, of.step = sizes[3], sizes[4]
    of.over, of.root, of.dtype, of.coarse = over, root, out.type, False
    of.centered = centered
    if over > 0 and of.n:
        run_once(look, &of, of.y, True)
    if of.coarse:
        if x.type != out.type:
            x = widened(x, out.type)
            of.x = x.data_pointer
        run_once(mend_all, &of, of.y, x.numel_ < 16384)
    elif root:
        take_roots(out)
    return 0


cdef Tensor widened(Tensor x, int dtype):
    """The elements of `x`, which has no gaps, cast to another dtype, in the order of memory."""
    cdef Py_ssize_t one = 1
    return packed_copy(new_view(x, 1, &x.numel_, &one, x.data_pointer), dtype)


# ---- arithmetic on contiguous results ------------------------------------------------------------

ctypedef struct Product:
    uint64_t* x
    uint64_t by


cdef int multiply(Tensor x, Py_ssize_t by) except -1:
    """x *= by, for a contiguous tensor of int64."""
    cdef Product product
    product.x, product.by = <uint64_t*>x.data_pointer, <uint64_t>by
    run_alone(multiply_all, &product, product.x, x.numel_)
    return 0


cdef void multiply_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The same. The numbers are multiplied as unsigned ones, for which C defines overflow."""
    cdef Product* product = <Product*>context
    cdef Py_ssize_t i
    for i in range(begin, end):
        product.x[i] *= product.by


cdef int divide(Tensor x, double by) except -1:
    """x /= by, for a contiguous tensor of float32, float64 or complex numbers."""
    cdef Division division
    division.x, division.by, division.dtype = x.data_pointer, by, real_of(x.type)
    run_alone(divide_all, &division, division.x,
              2 * x.numel_ if KIND[x.type] == COMPLEX_KIND else x.numel_)
    return 0


cdef struct Division:
    char* x
    double by
    int dtype


cdef void divide_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Division* of = <Division*>context
    if of.dtype == FLOAT32:
        divide_run(<float*>of.x, of.by, end)
    else:
        divide_run(<double*>of.x, of.by, end)


cdef void divide_run(floating* x, double by, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = <floating>(x[i] / by)


cdef int take_roots(Tensor x) except -1:
    """x := sqrt(x), for a contiguous float32 or float64 tensor."""
    run_alone(roots_of_floats if x.type == FLOAT32 else roots_of_doubles, x.data_pointer,
              x.data_pointer, x.numel_)
    return 0


cdef void roots_of_floats(void* x, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        (<float*>x)[i] = <float>sqrt((<float*>x)[i])


cdef void roots_of_doubles(void* x, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(begin, end):
        (<double*>x)[i] = sqrt((<double*>x)[i])
