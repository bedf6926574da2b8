"""Loops of the gamma function's family: y := f(x), float32 (by double) and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). Where nothing
is negative in a block of 1024, the branches of the reflections are left out.
"""

from libc.math cimport floor

from tensorlib._kernels.vecmath.basics cimport floating, magnitude, scale
from tensorlib._kernels.vecmath.gamma cimport (
    digamma, digamma_positive, factorial, lgamma, lgamma_positive, polygamma, sum_error, tail_begin,
    times_factorial, trigamma, trigamma_below, trigamma_for_float, trigamma_positive, zeta,
    zeta_tail)
from tensorlib._kernels.vecmath.gamma_parts cimport (
    MANY, gamma_density, gamma_gradient, is_rare, rare_part)
from tensorlib._kernels.vecmath.pow cimport pow_parts

from tensorlib._kernels import FLOATS, rows_for

cdef inline bint any_negative(const floating* x, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(start, stop):
        found |= x[i] < 0
    return found


cdef void lgamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := lgamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>lgamma(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>lgamma_positive(x[i])


cdef void digamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := digamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = <floating>digamma(x[i])
        else:
            for i in range(start, stop):
                y[i] = <floating>digamma_positive(x[i])


cdef inline floating trigamma_at_least_0(floating x) noexcept nogil:
    if floating is float:
        return <float>trigamma_for_float(x)
    else:
        return trigamma_positive(x)


cdef inline floating trigamma_anywhere(floating x) noexcept nogil:
    cdef double y
    if floating is float:
        y = trigamma_for_float(1.0 - x if x < 0 else <double>x)
        return <float>(trigamma_below(x, y) if x < 0 else y)
    else:
        return trigamma(x)


cdef void trigamma_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := trigamma(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        if any_negative(x, start, stop):
            for i in range(start, stop):
                y[i] = trigamma_anywhere(x[i])
        else:
            for i in range(start, stop):
                y[i] = trigamma_at_least_0(x[i])


cdef enum:
    LANES = 16           # pairs that are computed side by side


cdef struct Lanes:
    double[LANES] a, b, y, low
    Py_ssize_t[LANES] place
    Py_ssize_t count


cdef inline bint put_lane(Lanes* lanes, Py_ssize_t place, double a, double b) noexcept nogil:
    """Adds a pair; whether there are LANES of them now."""
    lanes.a[lanes.count], lanes.b[lanes.count] = a, b
    lanes.place[lanes.count] = place
    lanes.count += 1
    return lanes.count == LANES


cdef inline void fill_lanes(Lanes* lanes) noexcept nogil:
    """Repeats the first pair in the lanes that are left."""
    cdef Py_ssize_t j
    for j in range(lanes.count, LANES):
        lanes.a[j], lanes.b[j] = lanes.a[0], lanes.b[0]


cdef inline bint suits_lanes(double s, double q) noexcept nogil:
    """whether no power of `zeta_lanes` is beyond the numbers"""
    return (s > 1.0) & (s <= 64.0) & (q >= 3.0517578125e-05) & (q <= 32768.0)


cdef void zeta_lanes(Lanes* lanes) noexcept nogil:
    """y + low := zeta(a, b), each as in `zeta_parts`"""
    cdef double[LANES] total, rest, terms, goes_on
    cdef double i = 0.0, a, a_low, n, term, term_low, new, s, q
    cdef Py_ssize_t j
    cdef bint inside, any_left = True
    for j in range(LANES):
        total[j] = rest[j] = terms[j] = 0.0
        goes_on[j] = 1.0
    while any_left:
        any_left = False
        for j in range(LANES):
            s, q = lanes.a[j], lanes.b[j]
            a = q + i
            a_low = sum_error(q, i, a)
            term = pow_parts(a, -s, -s * a_low / a, &term_low, &n)
            term, term_low = scale(term, n), scale(term_low, n)
            new = total[j] + term
            inside = (a < tail_begin(s)) & (goes_on[j] > 0.0)
            rest[j] += sum_error(total[j], term, new) + term_low if inside else 0.0
            total[j] = new if inside else total[j]
            terms[j] += 1.0 if inside else 0.0
            # the rest, of that size, leaves it as it is
            inside &= term * (1.0 + a / (s - 1.0)) > 1e-18 * total[j]
            goes_on[j] = 1.0 if inside else 0.0
            any_left |= inside
        i += 1.0
    for j in range(LANES):
        s, q = lanes.a[j], lanes.b[j]
        a = q + terms[j]
        a_low = sum_error(q, terms[j], a)
        term = pow_parts(a, -s, -s * a_low / a, &term_low, &n)
        term = zeta_tail(s, a, a_low, scale(term, n), scale(term_low, n), &term_low)
        term = term if a >= tail_begin(s) else 0.0
        term_low = term_low if a >= tail_begin(s) else 0.0
        new = total[j] + term
        term_low += rest[j] + sum_error(total[j], term, new)
        lanes.y[j] = new + term_low
        lanes.low[j] = (new - lanes.y[j]) + term_low


cdef void give_zetas(Lanes* lanes, floating* y) noexcept nogil:
    cdef Py_ssize_t j
    fill_lanes(lanes)
    zeta_lanes(lanes)
    for j in range(lanes.count):
        y[lanes.place[j]] = <floating>lanes.y[j]
    lanes.count = 0


cdef void zeta_run(const floating* a, const floating* b, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := zeta(a, b)"""
    cdef Lanes lanes
    cdef Py_ssize_t i
    lanes.count = 0
    for i in range(n):
        if not suits_lanes(a[i], b[i]):
            y[i] = <floating>zeta(a[i], b[i])
        elif put_lane(&lanes, i, a[i], b[i]):
            give_zetas(&lanes, y)
    if lanes.count:
        give_zetas(&lanes, y)


cdef void give_derivatives(Lanes* lanes, floating* y) noexcept nogil:
    """y := `polygamma`, of orders that are one less than what is in the lanes"""
    cdef double last = 0.0, f = 1.0, f_low = 0.0, n
    cdef Py_ssize_t j
    fill_lanes(lanes)
    zeta_lanes(lanes)
    for j in range(lanes.count):
        n = lanes.a[j] - 1.0
        if n != last:
            f = factorial(n, &f_low)
            last = n
        y[lanes.place[j]] = <floating>times_factorial(n, f, f_low, lanes.y[j], lanes.low[j])
    lanes.count = 0


cdef void polygamma_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := polygamma(a, b)"""
    cdef Lanes lanes
    cdef Py_ssize_t i
    cdef double order
    lanes.count = 0
    for i in range(n):
        order = a[i]
        if not (order > 1.0 and order == floor(order) and suits_lanes(order + 1.0, b[i])):
            y[i] = <floating>polygamma(order, b[i])
        elif put_lane(&lanes, i, order + 1.0, b[i]):
            give_derivatives(&lanes, y)
    if lanes.count:
        give_derivatives(&lanes, y)


cdef void lower_lanes(Lanes* lanes, double least) noexcept nogil:
    """y := the lower part for b < a + 1, by the sum of b**n / ((a + 1) ... (a + n))

    least: what is less, beside the sum, is left out with all that follows.
    """
    cdef double[LANES] term
    cdef double i = 0.0, new
    cdef Py_ssize_t j
    cdef bint counts, goes_on = True
    for j in range(LANES):
        term[j] = lanes.y[j] = 1.0
    while goes_on:
        goes_on = False
        i += 1.0
        for j in range(LANES):
            new = term[j] * (lanes.b[j] / (lanes.a[j] + i))
            lanes.y[j] += new
            counts = new >= least * lanes.y[j]
            term[j] = new if counts else 0.0
            goes_on |= counts
    for j in range(LANES):
        lanes.y[j] *= gamma_density(lanes.a[j], lanes.b[j])


cdef void upper_lanes(Lanes* lanes, double least) noexcept nogil:
    """y := the upper part for b >= a + 1, by Lentz's continued fraction as in `upper_fraction`

    It ends with a part by which it changes less than that.
    """
    cdef double[LANES] c, d, goes_on
    cdef double i = 0.0, a, b, top, delta
    cdef Py_ssize_t j
    cdef bint any_left = True
    for j in range(LANES):
        c[j] = 1e300
        d[j] = lanes.y[j] = 1.0 / (lanes.b[j] + 1.0 - lanes.a[j])
        goes_on[j] = 1.0
    while any_left and i < MANY:
        any_left = False
        i += 1.0
        for j in range(LANES):
            a = lanes.a[j]
            b = (lanes.b[j] + 1.0 - a) + 2.0 * i
            top = -i * (i - a)
            d[j] = 1.0 / (b + top * d[j])
            c[j] = b + top / c[j]
            delta = d[j] * c[j]
            lanes.y[j] *= delta if goes_on[j] > 0.0 else 1.0
            goes_on[j] = goes_on[j] if magnitude(delta - 1.0) >= least else 0.0
            any_left |= goes_on[j] > 0.0
    for j in range(LANES):
        lanes.y[j] *= gamma_density(lanes.a[j], lanes.b[j]) * lanes.a[j]


cdef void give_parts(Lanes* lanes, floating* y, bint is_upper, bint upper) noexcept nogil:
    cdef Py_ssize_t j
    fill_lanes(lanes)
    if is_upper:
        upper_lanes(lanes, 1e-11 if floating is float else 1e-16)
    else:
        lower_lanes(lanes, 1e-12 if floating is float else 1e-17)
    for j in range(lanes.count):
        y[lanes.place[j]] = <floating>(lanes.y[j] if upper == is_upper else 1.0 - lanes.y[j])
    lanes.count = 0


cdef void gamma_parts(const floating* a, const floating* b, floating* y, Py_ssize_t n,
                      bint upper) noexcept nogil:
    """y := the regularized incomplete gamma function of a and b, the lower or the upper one"""
    cdef Lanes[2] lanes                      # whose smaller part is the lower one, the upper one
    cdef Py_ssize_t i
    cdef bint is_upper
    lanes[0].count = lanes[1].count = 0
    for i in range(n):
        if is_rare(a[i], b[i]):
            y[i] = <floating>rare_part(a[i], b[i], upper)
            continue
        is_upper = b[i] >= <double>a[i] + 1.0
        if put_lane(&lanes[is_upper], i, a[i], b[i]):
            give_parts(&lanes[is_upper], y, is_upper, upper)
    for is_upper in range(2):
        if lanes[is_upper].count:
            give_parts(&lanes[is_upper], y, is_upper, upper)


cdef void gammainc_run(const floating* a, const floating* b, floating* y,
                       Py_ssize_t n) noexcept nogil:
    """y := gammainc(a, b)"""
    gamma_parts(a, b, y, n, False)


cdef void gammaincc_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := gammaincc(a, b)"""
    gamma_parts(a, b, y, n, True)


cdef void gamma_gradient_run(const floating* a, const floating* b, floating* y,
                             Py_ssize_t n) noexcept nogil:
    """y := gamma_gradient(a, b)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = <floating>gamma_gradient(a[i], b[i])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    loops = [
        ("lgamma", <size_t>&lgamma_run[float], <size_t>&lgamma_run[double]),
        ("digamma", <size_t>&digamma_run[float], <size_t>&digamma_run[double]),
        ("trigamma", <size_t>&trigamma_run[float], <size_t>&trigamma_run[double]),
    ]
    pairs = [
        ("polygamma", <size_t>&polygamma_run[float], <size_t>&polygamma_run[double]),
        ("zeta", <size_t>&zeta_run[float], <size_t>&zeta_run[double]),
        ("gammainc", <size_t>&gammainc_run[float], <size_t>&gammainc_run[double]),
        ("gammaincc", <size_t>&gammaincc_run[float], <size_t>&gammaincc_run[double]),
        ("gamma_gradient", <size_t>&gamma_gradient_run[float],
         <size_t>&gamma_gradient_run[double]),
    ]
    return rows_for(FLOATS, loops) + rows_for(FLOATS, pairs, 2)
