"""Loops of functions of complex numbers: pairs of floating ones, the real part first.

Every loop sees one contiguous run of n numbers (`tensorlib/_kernels/__init__.py`). Other
functions have NumPy's loops, which call the C library.
"""

from libc.complex cimport cexp, csin, csqrt, ctanh
from libc.math cimport (
    INFINITY, copysign, cos as libm_cos, exp as libm_exp, exp2 as libm_exp2, expm1, fabs, fmod,
    rint, sin as libm_sin,
)
from libc.stdint cimport uint8_t

from tensorlib._kernels.vecmath.complex_numbers cimport log_of_one_and, log_of_two, pair
from tensorlib._kernels.vecmath.basics cimport floating, infinity
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.trig cimport cos, cos_far, is_far, sin, sin_far

from tensorlib._kernels import COMPLEX, rows_for

cdef enum:
    BLOCK = 256              # numbers whose parts are computed in separate arrays


cdef void exp_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := e**x

    Where e**re overflows, but its product with a cosine may not, it is computed as two factors.
    """
    cdef floating[BLOCK] re, im, size, factor, cosine, sine
    cdef floating inf = infinity(x[0]), limit, step, rest, zero = 0, one = 1
    cdef Py_ssize_t i, count, start = 0
    cdef bint far, large
    if floating is float:
        limit, step, rest = 80, 32, 78962960182680.69                  # e**32
    else:
        limit, step, rest = 700, 64, 6.235149080811617e27              # e**64
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        far = False
        for i in range(count):
            re[i], im[i] = x[2 * (start + i)], x[2 * (start + i) + 1]
            far |= is_far(im[i])
        for i in range(count):
            large = re[i] > limit
            size[i] = exp[floating](re[i] - (step if large else zero))
            factor[i] = rest if large else one
        if far:
            for i in range(count):
                cosine[i] = cos_far(im[i]) if is_far(im[i]) else cos(im[i])
                sine[i] = sin_far(im[i]) if is_far(im[i]) else sin(im[i])
        else:
            for i in range(count):
                cosine[i] = cos(im[i])
            for i in range(count):
                sine[i] = sin(im[i])
        for i in range(count):
            cosine[i] = size[i] * cosine[i] * factor[i]
            sine[i] = size[i] * sine[i] * factor[i]
            # e**-inf is 0 whatever the angle; e**inf is infinite in any direction; 0 stays 0
            cosine[i] = zero if re[i] == -inf else cosine[i]
            sine[i] = zero if re[i] == -inf else sine[i]
            cosine[i] = inf if (re[i] == inf) & (cosine[i] != cosine[i]) else cosine[i]
            sine[i] = im[i] if im[i] == 0 else sine[i]
        for i in range(count):
            y[2 * (start + i)], y[2 * (start + i) + 1] = cosine[i], sine[i]
        start += count


cdef void rsqrt_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / sqrt(x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = 1 / csqrt(pair(x[2 * i], x[2 * i + 1]))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void sigmoid_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / (1 + e**-x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = 1 / (1 + cexp(pair(-x[2 * i], -x[2 * i + 1])))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void log1p_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := log(1 + x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = log_of_one_and(pair(x[2 * i], x[2 * i + 1]))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void expm1_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := e**x - 1, in double: (e**re - 1) cos(im) + (cos(im) - 1), exact for small x"""
    cdef Py_ssize_t i
    cdef double re, im, sine
    cdef double complex z
    for i in range(n):
        re, im = x[2 * i], x[2 * i + 1]
        if fabs(re) < 700 and fabs(im) < INFINITY:
            sine = libm_sin(0.5 * im)
            # + 0: the real part for -0 is 0, by the array API standard
            z = pair(expm1(re) * libm_cos(im) - 2 * sine * sine + 0.0, libm_exp(re) * libm_sin(im))
        else:                                    # also what is not finite
            z = cexp(pair(re, im))
            z.real = z.real - 1
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void silu_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x / (1 + e**-x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = pair(x[2 * i], x[2 * i + 1])
        z = z / (1 + cexp(-z))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void sinc_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := sin(pi x) / (pi x), and 1 at 0, in double, by the distance to a whole number"""
    cdef Py_ssize_t i
    cdef double re, im, whole, pi = 3.141592653589793
    cdef double complex z
    for i in range(n):
        re, im = x[2 * i], x[2 * i + 1]
        whole = rint(re)
        z = csin(pair(pi * (re - whole), pi * im)) / pair(pi * re, pi * im)
        if fmod(whole, 2) != 0:
            z = -z
        if re == 0 and im == 0:
            z = 1
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


# ---- tangents ------------------------------------------------------------------------------------

cdef inline double complex tangent(double x, double y) noexcept nogil:
    """tanh(x + y i) = (sinh 2x + sin 2y i) / (cosh 2x + cos 2y), with e**2x - 1 for the former

    The divisor is twice sinh(x)**2 + cos(y)**2, which is accurate near poles. The C library's
    functions have errors of more than 4 units in the last place.
    """
    cdef double size = fabs(x), sine, cosine, rest, more, half
    if not (size < INFINITY and fabs(y) < INFINITY):
        return ctanh(pair(x, y))
    sine, cosine = libm_sin(y), libm_cos(y)
    if size > 22:                                # where 1 is the nearest number
        return pair(copysign(1, x), 4 * sine * cosine * libm_exp(-2 * size))
    more = expm1(2 * size)
    rest = more / (more + 1)
    half = 0.25 * more * rest + cosine * cosine
    return pair(copysign(0.25 * (more + rest) / half, x), sine * cosine / half)


cdef void tanh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := tanh(x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = tangent(x[2 * i], x[2 * i + 1])
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void tan_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := tan(x) = -i tanh(i x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = tangent(-x[2 * i + 1], x[2 * i])
        y[2 * i], y[2 * i + 1] = <floating>z.imag, <floating>-z.real


cdef void tanhshrink_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x - tanh(x), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = pair(x[2 * i], x[2 * i + 1])
        z = z - tangent(z.real, z.imag)
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


# ---- of exponentials -----------------------------------------------------------------------------

cdef void ldexp_run(const floating* x, const floating* w, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := x * 2**w, in double"""
    cdef Py_ssize_t i
    cdef double size, turn, log_2 = 0.6931471805599453
    cdef double complex z
    for i in range(n):
        size, turn = libm_exp2(w[2 * i]), log_2 * w[2 * i + 1]
        z = pair(x[2 * i] * size, x[2 * i + 1] * size)
        if turn != 0:                            # otherwise infinite parts would make others NaN
            z = z * pair(libm_cos(turn), libm_sin(turn))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


cdef void logaddexp_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := log(e**a + e**b), in double"""
    cdef Py_ssize_t i
    cdef double complex z
    for i in range(n):
        z = log_of_two(pair(a[2 * i], a[2 * i + 1]), pair(b[2 * i], b[2 * i + 1]))
        y[2 * i], y[2 * i + 1] = <floating>z.real, <floating>z.imag


# ---- comparison ----------------------------------------------------------------------------------

cdef void logical_not_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x is 0"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[2 * i] == 0) & (x[2 * i + 1] == 0)


cdef void eq_run(const floating* a, const floating* b, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := a == b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[2 * i] == b[2 * i]) & (a[2 * i + 1] == b[2 * i + 1])


cdef void ne_run(const floating* a, const floating* b, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := a != b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[2 * i] != b[2 * i]) | (a[2 * i + 1] != b[2 * i + 1])


cdef void logical_and_run(const floating* a, const floating* b, uint8_t* y,
                          Py_ssize_t n) noexcept nogil:
    """y := neither a nor b is 0"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = ((a[2 * i] != 0) | (a[2 * i + 1] != 0)) & ((b[2 * i] != 0) | (b[2 * i + 1] != 0))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    unary = [
        ("exp", <size_t>&exp_run[float], <size_t>&exp_run[double]),
        ("rsqrt", <size_t>&rsqrt_run[float], <size_t>&rsqrt_run[double]),
        ("sigmoid", <size_t>&sigmoid_run[float], <size_t>&sigmoid_run[double]),
        ("log1p", <size_t>&log1p_run[float], <size_t>&log1p_run[double]),
        ("expm1", <size_t>&expm1_run[float], <size_t>&expm1_run[double]),
        ("tan", <size_t>&tan_run[float], <size_t>&tan_run[double]),
        ("tanh", <size_t>&tanh_run[float], <size_t>&tanh_run[double]),
        ("silu", <size_t>&silu_run[float], <size_t>&silu_run[double]),
        ("tanhshrink", <size_t>&tanhshrink_run[float], <size_t>&tanhshrink_run[double]),
        ("sinc", <size_t>&sinc_run[float], <size_t>&sinc_run[double]),
    ]
    binary = [
        ("ldexp", <size_t>&ldexp_run[float], <size_t>&ldexp_run[double]),
        ("logaddexp", <size_t>&logaddexp_run[float], <size_t>&logaddexp_run[double]),
    ]
    return rows_for(COMPLEX, unary) + rows_for(COMPLEX, binary, 2) + rows_for(COMPLEX, [
        ("logical_not", <size_t>&logical_not_run[float], <size_t>&logical_not_run[double]),
    ], 1, "bool") + rows_for(COMPLEX, [
        ("eq", <size_t>&eq_run[float], <size_t>&eq_run[double]),
        ("ne", <size_t>&ne_run[float], <size_t>&ne_run[double]),
        ("logical_and", <size_t>&logical_and_run[float], <size_t>&logical_and_run[double]),
    ], 2, "bool")
