# Roots and powers of complex numbers: a part of complex_arithmetic.pyx, where products are not
# contracted with sums, so that a root does not depend on its position.

from libc.complex cimport cexp, clog, csqrt
from libc.math cimport INFINITY, fabs

from tensorlib._kernels.vecmath.complex_numbers cimport pair

cdef extern from "<complex.h>" nogil:
    long double complex cexpl(long double complex z)
    long double complex clogl(long double complex z)

cdef extern from "<math.h>" nogil:
    long double atan2l(long double y, long double x)
    long double cosl(long double x)
    long double expl(long double x)
    long double log1pl(long double x)
    long double logl(long double x)
    long double sinl(long double x)

cdef enum:
    REPEATED = 100           # the largest integer exponent that is computed by products

ctypedef double complex double_complex
ctypedef long double complex long_double_complex

ctypedef fused wide_complex:
    double_complex
    long_double_complex


cdef inline bint in_range(double square) noexcept nogil:
    """Whether a sum of squares is accurate: not near 0, and not near infinity"""
    return (square >= 1e-280) & (square <= 1e280)


cdef void root_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sqrt(x), in double: one part is sqrt((|re| + |x|) / 2), from which the other follows

    Numbers that are not finite, or whose squares are out of range, are left to the C library.
    """
    cdef double[BLOCK] re, im
    cdef double a, b, square, root, other
    cdef double complex z
    cdef Py_ssize_t i, block, count, start
    cdef int lost
    for block in range((n + BLOCK - 1) // BLOCK):
        start, lost = block * BLOCK, 0
        count = min(n - start, <Py_ssize_t>BLOCK)
        for i in range(count):
            a, b = x[2 * (start + i)], x[2 * (start + i) + 1]
            square = a * a + b * b
            root = sqrt(0.5 * (fabs(a) + sqrt(square)))
            other = b / (root + root) if root != 0 else b
            re[i] = fabs(other) if a < 0 else root
            im[i] = with_sign(root, b) if a < 0 else other
            lost |= not (in_range(square) | ((a == 0) & (b == 0)))
        for i in range(count if lost else 0):
            a, b = x[2 * (start + i)], x[2 * (start + i) + 1]
            if not (in_range(a * a + b * b) or a == 0 and b == 0):
                z = csqrt(pair(a, b))
                re[i], im[i] = z.real, z.imag
        for i in range(count):
            y[2 * (start + i)], y[2 * (start + i) + 1] = <floating>re[i], <floating>im[i]


# Powers are computed in the next wider numbers: an error of w * log(x), which may be in the
# hundreds, is one of so many times the result.

cdef inline long double complex long_pair(double re, double im) noexcept nogil:
    """re + im i, also where one is infinite"""
    cdef long double complex z = 0
    z.real, z.imag = re, im
    return z


cdef inline long double complex long_power(long double complex z,
                                           long double complex w) noexcept nogil:
    """e**(w log(z)), in a third of the time of the C library's `cpow`"""
    cdef long double a = z.real, b = z.imag, square = a * a + b * b, angle = atan2l(b, a)
    cdef long double size = logl(square), re, im
    cdef long double complex result = 0
    if 0.5 < square < 2:                         # |z|**2 - 1, where the 1 cancels
        a, b = (a, b) if a * a >= b * b else (b, a)
        size = log1pl((a - 1) * (a + 1) + b * b)
    size = size / 2
    re, im = w.real * size - w.imag * angle, w.real * angle + w.imag * size
    size = expl(re)
    result.real, result.imag = size * cosl(im), size * sinl(im)
    if result.real - result.real != 0 or result.imag - result.imag != 0:     # what is not finite
        return cexpl(w * clogl(z))
    return result


cdef inline wide_complex power(wide_complex z, wide_complex w) noexcept nogil:
    """z**w, by products for small integer exponents, so that powers of integers are exact"""
    cdef wide_complex square = z, result
    cdef int left, n
    if w == 0:
        return 1
    if z == 0 and w.real > 0:
        return 0
    if w.imag == 0 and -REPEATED <= w.real <= REPEATED and w.real == <int>w.real:
        n = <int>w.real
        left = n if n > 0 else -n
        while not left & 1:
            square = square * square
            left >>= 1
        result = square
        while left > 1:
            square = square * square
            left >>= 1
            if left & 1:
                result = result * square
        return result if n > 0 else 1 / result
    if wide_complex is double_complex:
        return cexp(w * clog(z))
    else:
        return long_power(z, w)


cdef void whole_powers(const floating* x, int n, floating* y, Py_ssize_t count) noexcept nogil:
    """y := x**n for a block, by products in double, n not 0; where this is out of range by `power`

    The results do not depend on the block.
    """
    cdef double[BLOCK] re, im, square_re, square_im
    cdef double a, b, size
    cdef double complex z
    cdef long double complex wide
    cdef Py_ssize_t i
    cdef int left = n if n > 0 else -n, lost = 0
    cdef bint begun = False
    for i in range(count):
        square_re[i], square_im[i] = x[2 * i], x[2 * i + 1]
    while left:
        if left & 1 and not begun:
            begun = True
            for i in range(count):
                re[i], im[i] = square_re[i], square_im[i]
        elif left & 1:
            for i in range(count):
                a = rounded(re[i] * square_re[i]) - rounded(im[i] * square_im[i])
                im[i] = rounded(re[i] * square_im[i]) + rounded(im[i] * square_re[i])
                re[i] = a
        left >>= 1
        if left:
            for i in range(count):
                a = rounded(square_re[i] * square_re[i]) - rounded(square_im[i] * square_im[i])
                b = rounded(square_re[i] * square_im[i])
                square_re[i], square_im[i] = a, b + b
    if n < 0:
        for i in range(count):
            size = rounded(re[i] * re[i]) + rounded(im[i] * im[i])
            re[i], im[i] = re[i] / size, -im[i] / size
            lost |= not in_range(size)
            re[i] = re[i] if in_range(size) else INFINITY
    for i in range(count):
        lost |= (re[i] - re[i] != 0) | (im[i] - im[i] != 0)
    for i in range(count if lost else 0):
        if re[i] - re[i] == 0 and im[i] - im[i] == 0:
            continue
        if floating is float:
            z = power[double_complex](pair(x[2 * i], x[2 * i + 1]), n)
            re[i], im[i] = z.real, z.imag
        else:
            wide = power[long_double_complex](long_pair(x[2 * i], x[2 * i + 1]), n)
            re[i], im[i] = <double>wide.real, <double>wide.imag
    for i in range(count):
        y[2 * i], y[2 * i + 1] = <floating>re[i], <floating>im[i]


cdef inline bint by_hand(const floating* x, floating re, floating im, floating* y,
                         Py_ssize_t count) noexcept nogil:
    """y := x**(re + im i) for the exponents that cost next to nothing; False for others"""
    cdef Py_ssize_t i
    cdef floating a, b
    if im != 0:
        return False
    if re == 2 or re == 3:
        for i in range(count):
            multiply(x[2 * i], x[2 * i + 1], x[2 * i], x[2 * i + 1], &a, &b)
            if re == 3:
                multiply(a, b, x[2 * i], x[2 * i + 1], &a, &b)
            y[2 * i] = a
            y[2 * i + 1] = b
    elif re == <floating>0.5:
        root_run(x, y, count)
    else:
        return False
    return True


cdef inline int whole_exponent(floating re, floating im) noexcept nogil:
    """The exponent, if `whole_powers` takes it; else 0. Few products keep the accuracy of
    float64."""
    cdef int most = REPEATED if floating is float else 2
    if im != 0 or not -most <= re <= most or re != <int>re:
        return 0
    return <int>re


cdef void pow_run(const floating* x, const floating* w, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x**w"""
    cdef Py_ssize_t i, block, start, count
    cdef double complex z
    cdef long double complex wide
    cdef int whole, differ
    for block in range((n + BLOCK - 1) // BLOCK):
        start, differ = block * BLOCK, 0
        count = min(n - start, <Py_ssize_t>BLOCK)
        for i in range(start, start + count):
            differ |= (w[2 * i] != w[2 * start]) | (w[2 * i + 1] != w[2 * start + 1])
        if not differ and by_hand(x + 2 * start, w[2 * start], w[2 * start + 1], y + 2 * start,
                                  count):
            continue
        whole = whole_exponent(w[2 * start], w[2 * start + 1])
        if whole != 0 and not differ:
            whole_powers(x + 2 * start, whole, y + 2 * start, count)
            continue
        for i in range(start, start + count):
            if by_hand(x + 2 * i, w[2 * i], w[2 * i + 1], y + 2 * i, 1):
                continue
            whole = whole_exponent(w[2 * i], w[2 * i + 1])
            if whole != 0:
                whole_powers(x + 2 * i, whole, y + 2 * i, 1)
            elif floating is float:
                z = power[double_complex](pair(x[2 * i], x[2 * i + 1]),
                                          pair(w[2 * i], w[2 * i + 1]))
                y[2 * i], y[2 * i + 1] = <float>z.real, <float>z.imag
            else:
                wide = power[long_double_complex](long_pair(x[2 * i], x[2 * i + 1]),
                                                  long_pair(w[2 * i], w[2 * i + 1]))
                y[2 * i], y[2 * i + 1] = <double>wide.real, <double>wide.imag


cdef void pow_number_run(const floating* x, const floating* w, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := x**w[0]"""
    cdef floating[2 * BLOCK] exponents
    cdef Py_ssize_t i, block
    if by_hand(x, w[0], w[1], y, n):
        return
    for i in range(min(n, <Py_ssize_t>BLOCK)):
        exponents[2 * i], exponents[2 * i + 1] = w[0], w[1]
    for block in range((n + BLOCK - 1) // BLOCK):
        i = block * BLOCK
        pow_run(x + 2 * i, <const floating*>exponents, y + 2 * i, min(n - i, <Py_ssize_t>BLOCK))
