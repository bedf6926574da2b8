"""Loops of activations, and of the derivatives of those used most: float32 and float64.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). `g` is the
gradient coming in. The numbers that shape an activation are operands, so that they broadcast.
"""

from libc.stdint cimport uint32_t

from tensorlib._kernels.vecmath.logistic cimport log_of_one_and_exp, logistic
from tensorlib._kernels.elementwise.zero_products cimport strong_product
from tensorlib._kernels.rows.softmax_rows cimport exp_below
from tensorlib._kernels.vecmath.basics cimport (
    bits32, floating, from_bits32, magnitude, poly8)
from tensorlib._kernels.vecmath.erf cimport erf
from tensorlib._kernels.vecmath.exp cimport exp, expm1, tanh

from tensorlib._kernels import FLOATS, rows_for


cdef inline floating normal_cdf(floating x, floating* decay) noexcept nogil:
    """Phi(x); decay := exp(-x**2 / 2)

    float32: for a >= 0, Phi(-a) is decay times a polynomial of (a - 2.5) / (a + 2.5), which maps
    [0, inf) to [-1, 1). Its error times decay is below 2**-30: that product was minimised, by
    Lawson's iteration, since the error of `gelu` is relative to x.
    """
    cdef floating half = 0.5, root = 0.7071067811865476, one = 1, a, below
    cdef floating center = 2.5
    if floating is float:
        # |x|, at most 14: as integers, of which a minimum is one instruction; 14 for NaN
        a = from_bits32(min(bits32(x) & 0x7FFFFFFFu, <uint32_t>0x41600000))
        decay[0] = exp_below(-half * a * a)
        below = decay[0] * poly8[float](
            (a - center) / (a + center), 0.00019271787, 0.0014921033, 0.0034016173, -0.0049523495,
            -0.02451526, 0.11313805, -0.22806996, 0.14133131)
        return below if x < 0 else one - below
    else:
        decay[0] = exp(-half * x * x)
        return half + half * erf(x * root)


# ---- of one tensor -------------------------------------------------------------------------------

cdef void gelu_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x * Phi(x)"""
    cdef Py_ssize_t i
    cdef floating decay
    for i in range(n):
        y[i] = x[i] * normal_cdf(x[i], &decay)


cdef void gelu_backward_run(const floating* g, const floating* x, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g * (Phi(x) + x * phi(x)), 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating scale = 0.3989422804014327, cdf, decay
    for i in range(n):
        cdf = normal_cdf(x[i], &decay)
        y[i] = strong_product(g[i], cdf + x[i] * (decay * scale))


cdef void gelu_tanh_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))"""
    cdef Py_ssize_t i
    cdef floating half = 0.5, one = 1, a = 0.7978845608028654, b = 0.035677408136300125
    for i in range(n):
        y[i] = half * x[i] * (one + tanh(x[i] * (a + b * (x[i] * x[i]))))


cdef void gelu_tanh_backward_run(const floating* g, const floating* x, floating* y,
                                 Py_ssize_t n) noexcept nogil:
    """y := g * the derivative of `gelu_tanh`, 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating half = 0.5, one = 1, three = 3, t, square
    cdef floating a = 0.7978845608028654, b = 0.035677408136300125
    for i in range(n):
        square = x[i] * x[i]
        t = tanh(x[i] * (a + b * square))
        y[i] = strong_product(
            g[i], half * (one + t) + half * x[i] * (one - t * t) * (a + three * b * square))


cdef void silu_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x / (1 + exp(-x))"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = x[i] / (one + exp(-x[i]))


cdef void silu_backward_run(const floating* g, const floating* x, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g * s * (1 + x * (1 - s)) with s = logistic(x), 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating one = 1, s
    for i in range(n):
        s = logistic(x[i])
        y[i] = strong_product(g[i], s * (one + x[i] * (one - s)))


cdef inline floating tanh_softplus(floating x) noexcept nogil:
    """tanh(log(1 + exp(x))) = e * (e + 2) / (e * (e + 2) + 2) with e = exp(x)"""
    cdef floating one = 1, two = 2, limit = 20, e = exp(x if x < limit else limit), top
    top = e * (e + two)
    return one if x > limit else top / (top + two)


cdef void mish_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x * tanh(softplus(x))"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] * tanh_softplus(x[i])


cdef void mish_backward_run(const floating* g, const floating* x, floating* y,
                            Py_ssize_t n) noexcept nogil:
    """y := g * (t + x * s * (1 - t**2)), t = tanh(softplus(x)), s = logistic(x); 0 where g == 0"""
    cdef Py_ssize_t i
    cdef floating one = 1, t
    for i in range(n):
        t = tanh_softplus(x[i])
        y[i] = strong_product(g[i], t + x[i] * logistic(x[i]) * (one - t * t))


cdef inline bint all_positive(const floating* x, Py_ssize_t n) noexcept nogil:
    """Whether a block can do without the exponentials, which take nine tenths of the time."""
    cdef Py_ssize_t i
    cdef int others = 0
    for i in range(n):
        others |= not x[i] > 0
    return others == 0


cdef void selu_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := scale * (x where x > 0, else alpha * expm1(x))"""
    cdef Py_ssize_t i, start, stop
    cdef floating scale = 1.0507009873554805, steep = 1.7580993408473766
    for start in range(0, n, 256):
        stop = min(start + 256, n)
        if all_positive(x + start, stop - start):
            for i in range(start, stop):
                y[i] = scale * x[i]
        else:
            for i in range(start, stop):
                y[i] = scale * x[i] if x[i] > 0 else steep * expm1(x[i])


cdef void logsigmoid_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := -log(1 + exp(-x))"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = -log_of_one_and_exp(-x[i])


cdef inline floating relu6(floating x) noexcept nogil:
    cdef floating zero = 0, six = 6
    x = zero if x < 0 else x
    return six if x > six else x


cdef void hardswish_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x * relu6(x + 3) / 6"""
    cdef Py_ssize_t i
    cdef floating three = 3, six = 6
    for i in range(n):
        y[i] = x[i] * relu6(x[i] + three) / six


cdef void hardsigmoid_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := relu6(x + 3) / 6"""
    cdef Py_ssize_t i
    cdef floating three = 3, six = 6
    for i in range(n):
        y[i] = relu6(x[i] + three) / six


cdef void softsign_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x / (1 + |x|)"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = x[i] / (one + magnitude(x[i]))


cdef void tanhshrink_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x - tanh(x)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] - tanh(x[i])


# ---- with parameters -----------------------------------------------------------------------------

cdef void leaky_relu_run(const floating* x, const floating* slope, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := x where x > 0, else slope * x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] if x[i] > 0 else x[i] * slope[i]


cdef void leaky_relu_backward_run(const floating* g, const floating* x, const floating* slope,
                                  floating* y, Py_ssize_t n) noexcept nogil:
    """y := g where x > 0, else g * slope"""
    cdef Py_ssize_t i
    cdef floating one = 1
    for i in range(n):
        y[i] = strong_product(g[i], one if x[i] > 0 else slope[i])


cdef inline bint copies_positive(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x; whether that is all"""
    cdef Py_ssize_t i
    cdef int others = 0
    for i in range(n):
        others |= not x[i] > 0
        y[i] = x[i]
    return others == 0


cdef void elu_run(const floating* x, const floating* alpha, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := x where x > 0, else alpha * expm1(x)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 256):
        stop = min(start + 256, n)
        if copies_positive(x + start, y + start, stop - start):
            continue
        for i in range(start, stop):
            y[i] = y[i] if y[i] > 0 else alpha[i] * expm1(y[i])


cdef void celu_run(const floating* x, const floating* alpha, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := x where x > 0, else alpha * expm1(x / alpha)"""
    cdef Py_ssize_t i, start, stop
    for start in range(0, n, 256):
        stop = min(start + 256, n)
        if copies_positive(x + start, y + start, stop - start):
            continue
        for i in range(start, stop):
            y[i] = y[i] if y[i] > 0 else alpha[i] * expm1(y[i] / alpha[i])


cdef void hardshrink_run(const floating* x, const floating* border, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := 0 where -border <= x <= border, else x"""
    cdef Py_ssize_t i
    cdef floating zero = 0
    for i in range(n):
        y[i] = zero if (x[i] >= -border[i]) & (x[i] <= border[i]) else x[i]


cdef void softshrink_run(const floating* x, const floating* border, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := x brought nearer to 0 by border, 0 at most; NaN stays"""
    cdef Py_ssize_t i
    cdef floating zero = 0, nearer
    for i in range(n):
        nearer = x[i] + border[i] if x[i] < -border[i] else x[i] * zero
        y[i] = x[i] - border[i] if x[i] > border[i] else nearer


cdef void softplus_run(const floating* x, const floating* beta, const floating* threshold,
                       floating* y, Py_ssize_t n) noexcept nogil:
    """y := log(1 + exp(beta * x)) / beta, x where beta * x > threshold"""
    cdef Py_ssize_t i
    cdef floating product, value
    for i in range(n):
        product = x[i] * beta[i]
        value = log_of_one_and_exp(product) / beta[i]
        y[i] = x[i] if product > threshold[i] else value


cdef void hardtanh_run(const floating* x, const floating* least, const floating* most,
                       floating* y, Py_ssize_t n) noexcept nogil:
    """y := x between least and most; NaN stays"""
    cdef Py_ssize_t i
    cdef floating bounded
    for i in range(n):
        bounded = least[i] if x[i] < least[i] else x[i]
        y[i] = most[i] if bounded > most[i] else bounded


cdef void hardtanh_number_run(const floating* x, const floating* least, const floating* most,
                              floating* y, Py_ssize_t n) noexcept nogil:
    """The same between two numbers."""
    cdef Py_ssize_t i
    cdef floating low = least[0], high = most[0], bounded
    for i in range(n):
        bounded = low if x[i] < low else x[i]
        y[i] = high if bounded > high else bounded


cdef void hardswish_backward_run(const floating* g, const floating* x, floating* y,
                                 Py_ssize_t n) noexcept nogil:
    """y := 0 for x up to -3, g from 3 on and for NaN, between g * (x / 3 + 1 / 2)"""
    cdef Py_ssize_t i
    cdef floating third = 0.3333333333333333, half = 0.5, zero = 0, three = 3, slope
    for i in range(n):
        slope = g[i] * (x[i] * third + half)
        slope = slope if x[i] > -three else zero
        y[i] = slope if x[i] < three else g[i]


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("gelu", <size_t>&gelu_run[float], <size_t>&gelu_run[double]),
        ("gelu_tanh", <size_t>&gelu_tanh_run[float], <size_t>&gelu_tanh_run[double]),
        ("silu", <size_t>&silu_run[float], <size_t>&silu_run[double]),
        ("mish", <size_t>&mish_run[float], <size_t>&mish_run[double]),
        ("selu", <size_t>&selu_run[float], <size_t>&selu_run[double]),
        ("logsigmoid", <size_t>&logsigmoid_run[float], <size_t>&logsigmoid_run[double]),
        ("hardswish", <size_t>&hardswish_run[float], <size_t>&hardswish_run[double]),
        ("hardsigmoid", <size_t>&hardsigmoid_run[float], <size_t>&hardsigmoid_run[double]),
        ("softsign", <size_t>&softsign_run[float], <size_t>&softsign_run[double]),
        ("tanhshrink", <size_t>&tanhshrink_run[float], <size_t>&tanhshrink_run[double]),
    ]) + rows_for(FLOATS, [
        ("gelu_backward", <size_t>&gelu_backward_run[float], <size_t>&gelu_backward_run[double]),
        ("gelu_tanh_backward", <size_t>&gelu_tanh_backward_run[float],
         <size_t>&gelu_tanh_backward_run[double]),
        ("silu_backward", <size_t>&silu_backward_run[float], <size_t>&silu_backward_run[double]),
        ("mish_backward", <size_t>&mish_backward_run[float], <size_t>&mish_backward_run[double]),
        ("hardswish_backward", <size_t>&hardswish_backward_run[float],
         <size_t>&hardswish_backward_run[double]),
        ("leaky_relu", <size_t>&leaky_relu_run[float], <size_t>&leaky_relu_run[double]),
        ("elu", <size_t>&elu_run[float], <size_t>&elu_run[double]),
        ("celu", <size_t>&celu_run[float], <size_t>&celu_run[double]),
        ("hardshrink", <size_t>&hardshrink_run[float], <size_t>&hardshrink_run[double]),
        ("softshrink", <size_t>&softshrink_run[float], <size_t>&softshrink_run[double]),
    ], 2) + rows_for(FLOATS, [
        ("leaky_relu_backward", <size_t>&leaky_relu_backward_run[float],
         <size_t>&leaky_relu_backward_run[double]),
        ("softplus", <size_t>&softplus_run[float], <size_t>&softplus_run[double]),
        ("hardtanh", <size_t>&hardtanh_run[float], <size_t>&hardtanh_run[double]),
        ("hardtanh_number", <size_t>&hardtanh_number_run[float],
         <size_t>&hardtanh_number_run[double]),
    ], 3)
