"""The gamma function's logarithm and the derivatives of it, in double.

Near its zeros at 1 and 2 the logarithm is a polynomial times the distance from 2, from 8 on it is
Stirling's series, and between them a product leads back to the polynomial. The digamma function is
a polynomial times the distance from its zero on [1, 2], and elsewhere likewise.

Sources: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), chapter 6, for series,
recurrences and reflections; Johansson, "Arbitrary-precision computation of the gamma function",
Maple Transactions 3(1), 2023, for where each of them is good.
"""

from libc.math cimport floor, pow as libm_pow

from tensorlib._kernels.vecmath.basics cimport (
    infinity, magnitude, nan, poly8, poly12, product_error, round_even, scale)
from tensorlib._kernels.vecmath.log cimport log
from tensorlib._kernels.vecmath.pow cimport pow_parts
from tensorlib._kernels.vecmath.trig cimport sin_pi


cdef inline double stirling(double x) noexcept nogil:
    """lgamma(x) - (x - 0.5) * log(x) + x - log(2 * pi) / 2 for x >= 8; error 2**-54"""
    cdef double z = 1.0 / (x * x)
    return poly8(
        z, -0.020855820837463117, 0.0062081367662297935, -0.001914965912162907,
        0.0008417325268022405, -0.0005952380234291254, 0.0007936507935117282,
        -0.0027777777777776747, 0.08333333333333333) / x


cdef inline double lgamma_positive(double x) noexcept nogil:
    """log(gamma(x)) for x >= 0"""
    cdef double y = x, product = 1.0, t, l, small
    cdef bint large = x >= 8.0
    cdef int i
    for i in range(6):                       # gamma(y + 1) = y * gamma(y), down to y <= 2.5
        product = product * (y - 1.0) if y > 2.5 else product
        y = y - 1.0 if y > 2.5 else y
    t = y - 2.0 if y >= 1.25 else y - 1.0 if y >= 0.5 else y
    product = product if y >= 1.25 else y if y >= 0.5 else y * (1.0 + y)
    l = log(x if large else product)
    # lgamma(2 + t) / t on [-0.75, 0.5]; error 2**-54.9
    small = t * poly12(
        t, poly12(
            t, 2.0872345523855944e-08 * t + 1.9252738080907253e-08, 1.2311940674691939e-09,
            -5.4761567198377156e-08, 4.1947729091372775e-08, -8.318260450484709e-08,
            2.189957197224495e-07, -4.542692598845455e-07, 9.522912389321117e-07,
            -2.0383618772604693e-06, 4.375514402098904e-06, -9.439572157511762e-06,
            2.050712305129801e-05), -4.492623255243891e-05, 9.945752049004698e-05,
        -0.00022315475849535044, 0.0005096695243448249, -0.00119275391170809,
        0.0028905103307528984, -0.007385551028673811, 0.020580808427784397, -0.0673523010531981,
        0.3224670334241132, 0.42278433509846713)
    small = small + (l if y >= 1.25 else -l)
    return (x - 0.5) * (l - 1.0) + (0.4189385332046727 + stirling(x)) if large else small


cdef inline double lgamma(double x) noexcept nogil:
    """log(|gamma(x)|), infinite at 0 and the whole numbers below"""
    cdef double a = magnitude(x), y = lgamma_positive(a)
    cdef double below = (1.1447298858494002 - log(a * magnitude(sin_pi(a)))) - y       # log(pi)
    below = infinity(a) if a > 1e17 else below           # a whole number
    return y if (x >= 0) | (a < 1e-20) else below


cdef inline double digamma_positive(double x) noexcept nogil:
    """the derivative of `lgamma` for x > 0"""
    cdef double y = x + 1.0 if x < 1.0 else x, top = -1.0 if x < 1.0 else 0.0
    cdef double bottom = x if x < 1.0 else 1.0, z = 1.0 / (x * x), small, far, root
    cdef bint large = x >= 8.0, step
    cdef int i
    for i in range(6):                       # psi(y + 1) = psi(y) + 1 / y, down to y <= 2
        step = y > 2.0
        y = y - 1.0 if step else y
        top = top * y + bottom if step else top
        bottom = bottom * y if step else bottom
    far = z * poly8(
        z, -0.299425370626735, 0.08002337465397756, -0.02105106090804774, 0.007575459920369176,
        -0.004166665501516725, 0.003968253965999701, -0.008333333333331664, 0.08333333333333333)
    root = (y - 1.4616321449683622) - 9.549995429965697e-17
    small = root * poly12(
        (y - 1.5), poly12(
            (y - 1.5), 0.00011881232908510335, -0.0001782188548855923, 9.653646261410062e-05,
            -0.00014480643368061614, 0.00032395945401345196, -0.00048595039220036254,
            0.0006909255761282986, -0.0010364584817312839, 0.0015633696313653504,
            -0.0023454947397380833, 0.003518106563802472, -0.005279937255532708),
        0.007927021796868154, -0.011908220105959716, 0.017907248317313294, -0.026975796659787055,
        0.040760833940846085, -0.06192213327548831, 0.09498872445289039, -0.14840492305388092,
        0.24054248424078697, -0.4236274212814606, 0.9510558760318328) + top / bottom
    return (log(x) - 0.5 / x) - far if large else small


cdef inline double digamma(double x) noexcept nogil:
    """the derivative of `lgamma`; infinite at 0, NaN at the whole numbers below"""
    cdef bint below = x < 0
    cdef double r = x - round_even(x), y = digamma_positive(1.0 - x if below else x)
    # psi(1 - x) - pi / tan(pi * x)
    cdef double turned = y - 3.141592653589793 * (sin_pi(0.5 - magnitude(r)) / sin_pi(r))
    turned = nan(x) if r == 0 else turned
    return turned if below else y


cdef inline double inverse_square(double y, double y_low, double* low) noexcept nogil:
    """high + low = 1 / (y + y_low)**2 for y > 0, to twice the digits"""
    cdef double z = 1.0 / y, high = z * z, lost
    lost = (z * y - 1.0) + (product_error(z, y, z * y) + z * y_low)      # of z, times y
    low[0] = product_error(z, z, high) - 2.0 * high * lost
    return high


cdef inline double sum_error(double a, double b, double total) noexcept nogil:
    """a + b - total for total = a + b rounded (Knuth)"""
    cdef double part = total - a
    return (a - (total - part)) + (b - part)


cdef inline double trigamma_end(double x, double* y) noexcept nogil:
    """the first of x, x + 1, ... from 8 on, inverted; y := its square"""
    cdef double end = x, z
    cdef int i
    for i in range(1, 9):                    # f(y) = f(y + 1) + 1 / y**2, up to y >= 8
        end = x + i if x + (i - 1) < 8.0 else end
    z = 1.0 / end
    y[0] = z * z
    return z


cdef inline double trigamma_rest(double y, double z) noexcept nogil:
    """trigamma(1 / z) - z for z <= 1 / 8 and y = z**2"""
    return 0.5 * y + y * z * poly8(
        y, -4.575304142113963, 1.1093601965597248, -0.2523946862734603, 0.07575246348177586,
        -0.03333331335581846, 0.023809523770911365, -0.03333333333330476, 0.16666666666666666)


cdef inline void add_inverse_square(double x, double i, double* total,
                                    double* rest) noexcept nogil:
    """total + rest += 1 / (x + i)**2 where x + i < 8"""
    cdef double y = x + i, low, term = inverse_square(y, sum_error(x, i, y), &low)
    cdef double new = total[0] + term
    low = low + sum_error(total[0], term, new)
    rest[0] = rest[0] + low if (y < 8.0) & (term < infinity(x)) else rest[0]
    total[0] = new if y < 8.0 else total[0]


cdef inline double trigamma_positive(double x) noexcept nogil:
    """the derivative of `digamma` for x >= 0: the sum of 1 / (x + i)**2, the smallest first"""
    cdef double y, total = trigamma_end(x, &y), rest = trigamma_rest(y, total)
    add_inverse_square(x, 7.0, &total, &rest)       # GCC does not unroll a loop as long as this
    add_inverse_square(x, 6.0, &total, &rest)
    add_inverse_square(x, 5.0, &total, &rest)
    add_inverse_square(x, 4.0, &total, &rest)
    add_inverse_square(x, 3.0, &total, &rest)
    add_inverse_square(x, 2.0, &total, &rest)
    add_inverse_square(x, 1.0, &total, &rest)
    add_inverse_square(x, 0.0, &total, &rest)
    return total + rest


cdef inline double trigamma_for_float(double x) noexcept nogil:
    """the same to the digits of a float: without the errors of the terms and of their sum"""
    cdef double y, z = trigamma_end(x, &y), total = z + trigamma_rest(y, z)
    cdef int i
    for i in range(7, -1, -1):
        y = x + i
        total += 1.0 / (y * y) if y < 8.0 else 0.0
    return total


cdef inline double trigamma_below(double x, double reflected) noexcept nogil:
    """`trigamma` of x < 0, of that of 1 - x; infinite at whole numbers"""
    cdef double sine = sin_pi(x)
    return 9.869604401089358 / (sine * sine) - reflected


cdef inline double trigamma(double x) noexcept nogil:
    """the derivative of `digamma`; infinite at 0 and the whole numbers below"""
    cdef bint below = x < 0
    cdef double y = trigamma_positive(1.0 - x if below else x)
    return trigamma_below(x, y) if below else y


cdef inline double inverse_power(double a, double a_low, double s, double* low) noexcept nogil:
    """high + low = (a + a_low)**-s, where s magnifies an a_low below the last digit of a"""
    cdef double n, e
    low[0] = 0.0
    if not (s < 1e15 and 0 < magnitude(a) < infinity(a)):
        return libm_pow(a, -s)
    e = pow_parts(magnitude(a), -s, -s * a_low / a, low, &n)
    if not -1000.0 < n < 1000.0:
        low[0] = 0.0
        return libm_pow(a, -s)
    if a < 0 and s != 2.0 * floor(0.5 * s):
        e, low[0] = -e, -low[0]
    low[0] = scale(low[0], n)
    return scale(e, n)


cdef inline double further_terms(double s, double k, double y, double number,
                                 double rest) noexcept nogil:
    """a number and what follows it in the formula of Euler and Maclaurin, y = 1 / a**2"""
    return number + (s + k) * (s + (k + 1.0)) * y * rest


cdef inline double zeta_tail(double s, double a, double a_low, double power, double power_low,
                             double* low) noexcept nogil:
    """high + low = the sum of (a + a_low + i)**-s over i >= 0 for a > 8, by the formula of Euler
    and Maclaurin; power + power_low is the first term. The numbers are B(2k) / (2k)!"""
    cdef double ratio = a / (s - 1.0), product = ratio * (s - 1.0), y = 1.0 / (a * a), high
    cdef double total = further_terms(s, 21.0, y, 5.509002828360229e-18, -1.395446468581252e-19)
    total = further_terms(s, 19.0, y, -2.174868698558062e-16, total)
    total = further_terms(s, 17.0, y, 8.586062056277845e-15, total)
    total = further_terms(s, 15.0, y, -3.3896801963225827e-13, total)
    total = further_terms(s, 13.0, y, 1.3382536530684679e-11, total)
    total = further_terms(s, 11.0, y, -5.284190138687493e-10, total)
    total = further_terms(s, 9.0, y, 2.08767569878681e-08, total)
    total = further_terms(s, 7.0, y, -8.267195767195768e-07, total)
    total = further_terms(s, 5.0, y, 3.306878306878307e-05, total)
    total = further_terms(s, 3.0, y, -0.001388888888888889, total)
    total = further_terms(s, 1.0, y, 0.08333333333333333, total)
    total = 0.5 + s / a * total
    # the ratio is most of the sum where s is near 1
    total += ((a - product) - product_error(ratio, s - 1.0, product) + a_low) / (s - 1.0)
    high = power * ratio
    low[0] = product_error(power, ratio, high) + (power_low * ratio + power * total)
    return high


cdef inline double tail_begin(double s) noexcept nogil:
    """from where on the terms of `zeta_tail` are enough"""
    return 10.0 if s < 1.5 else 0.75 * s + 9.0


cdef inline double zeta_parts(double s, double q, double* low) noexcept nogil:
    """high + low = `zeta`"""
    cdef double total = 0.0, rest = 0.0, a = q, a_low = 0.0, i = 0.0, term, term_low, new
    cdef double border = tail_begin(s)
    low[0] = 0.0
    if s != s or q != q or s < 1.0 or (q <= 0 and q != floor(q) and s != floor(s)):
        return nan(s)
    if s == 1.0 or (q <= 0 and q == floor(q)):
        return infinity(s)
    while a < border:
        if a < -1e5:                         # a sum of too many terms
            return nan(s)
        term = inverse_power(a, a_low, s, low)
        new = total + term
        rest += sum_error(total, term, new) + low[0]
        total = new
        if a > 0 and term * (1.0 + a / (s - 1.0)) <= 1e-18 * magnitude(total):
            break                            # the rest, of that size, leaves it as it is
        i += 1.0
        a = q + i
        a_low = sum_error(q, i, a)
    low[0] = 0.0
    if a > 1e17:                             # the integral, whose terms may be below all numbers
        return libm_pow(a, 1.0 - s) / (s - 1.0)
    if not magnitude(total) < infinity(q):
        return total
    if a >= border:
        term = inverse_power(a, a_low, s, &term_low)
        term = zeta_tail(s, a, a_low, term, term_low, low)
        new = total + term
        rest += sum_error(total, term, new) + low[0]
        total = new
    new = total + rest
    low[0] = (total - new) + rest
    return new


cdef inline double zeta(double s, double q) noexcept nogil:
    """the sum of (q + i)**-s over i >= 0; NaN for s < 1, infinite at 1 and where a term is"""
    cdef double low
    return zeta_parts(s, q, &low)


cdef inline double factorial(double n, double* low) noexcept nogil:
    """high + low = n! for a whole number"""
    cdef double y = 1.0, product, k = 2.0
    low[0] = 0.0
    if n > 170.0:
        return infinity(n)
    while k <= n:
        product = y * k
        low[0] = low[0] * k + product_error(y, k, product)
        y = product + low[0]
        low[0] = (product - y) + low[0]
        k += 1.0
    return y


cdef inline double times_factorial(double n, double f, double f_low, double z,
                                   double z_low) noexcept nogil:
    """the derivative of order n of `digamma`, of n! and `zeta`"""
    cdef double size = f * z
    if magnitude(size) < infinity(z) and f < infinity(z):
        size = size + (product_error(f, z, size) + (f * z_low + f_low * z))
    return -size if n == 2.0 * floor(0.5 * n) else size


cdef inline double polygamma(double n, double x) noexcept nogil:
    """the derivative of order n of `digamma`; NaN unless n is a whole number, 0 or more"""
    cdef double f, f_low, z, z_low
    if n == 0:
        return digamma(x)
    if n == 1:
        return trigamma(x)
    if not n >= 0 or n != floor(n):
        return nan(x)
    f, z = factorial(n, &f_low), zeta_parts(n + 1.0, x, &z_low)
    return times_factorial(n, f, f_low, z, z_low)
