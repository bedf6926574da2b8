"""The error function and its complement.

erfc(a) = e**(-a**2) * erfcx(a) for a >= 0, and erfcx(a) * (1 + 2 * a) is a polynomial of
t = (a - k) / (a + k), which maps [0, inf) to [-1, 1) (Shepherd & Laframboise, Math. Comp. 36,
1981).
"""

from tensorlib._kernels.vecmath cimport (
    floating, magnitude, poly7, poly11, poly12, product_error, scale, with_sign)
from tensorlib._kernels.vecmath_exp cimport exp, exp_reduce, exp_series


cdef inline double erfcx_float(double a) noexcept nogil:
    """erfcx(a) for 0 <= a <= 10.2; error 2**-28.7"""
    cdef double t = (a - 3.0) / (a + 3.0)
    return poly11(
        t, -0.0002669937482139002, -0.0007751285121892908, 0.002002745708529941,
        0.002566298270061032, -0.023798193540327722, 0.06829590101503882,
        -0.11927087026288262, 0.12964640993571758, -0.04756240355126421,
        -0.1356211392950639, 1.2530080591291899) / (1.0 + 2.0 * a)


cdef inline double erfcx_parts(double a, double* low) noexcept nogil:
    """high + low = erfcx(a) for 0 <= a <= 27.3; error 2**-56"""
    cdef double t = (a - 4.0) / (a + 4.0), rest, top, top_low, bottom, bottom_low, q, product
    rest = t * poly11(
        t, poly12(
            t, -1.7988748260678816e-09, -1.3662497915210035e-08, -7.880575982944757e-09,
            1.1517214904646727e-07, 6.298936794509278e-08, -8.347438346489803e-07,
            3.011557343080337e-07, 5.717451301745517e-06, -1.1224744262410426e-05,
            -2.4402916878835646e-05, 0.00015062225886815087, -0.0001992555951844908),
        -0.0007577733533680182, 0.00503196977445353, -0.01619773405602768,
        0.037167515560159056, -0.06633036581191214, 0.09373283499695523,
        -0.10103906603633007, 0.06809705425473218, 0.015379652102620276,
        -0.13962111684056283)
    top = 1.2329951186255526 + rest
    top_low = (1.2329951186255526 - top) + rest
    bottom = 1.0 + 2.0 * a
    bottom_low = 2.0 * a - (bottom - 1.0) if a < 0.5 else 1.0 - (bottom - 2.0 * a)
    q = top / bottom
    product = q * bottom
    low[0] = (((top - product) - product_error(q, bottom, product))
              + (top_low - q * bottom_low)) / bottom
    return q


cdef inline double erf_small(double a, double z) noexcept nogil:
    """erf(a) for 0 <= a <= 1, z = a**2; error 2**-62.7"""
    return a + a * poly12(
        z, 5.945273929202403e-11 * z - 1.1365672847132801e-09, 1.4657881540827086e-08,
        -1.63500254626836e-07, 1.6460972838442362e-06, -1.4925593508142318e-05,
        0.00012055331036947629, -0.0008548326978743372, 0.005223977624780884,
        -0.026866170645072896, 0.11283791670954857, -0.3761263890318375, 0.1283791670955126)


cdef inline floating erfc(floating x) noexcept nogil:
    cdef double a, z, lost, n, tail, r, rest, e, q, low, product, value
    if floating is float:
        a = magnitude(x)
        a = 10.2 if a > 10.2 else a
        value = exp(-a * a) * erfcx_float(a)
        return <float>(2.0 - value if x < 0 else value)
    else:
        a = magnitude(x)
        a = 27.3 if a > 27.3 else a
        z = a * a
        lost = product_error(a, a, z)
        r = exp_reduce(-z, &n, &tail)
        rest = r * r * exp_series(r)
        rest = r + (rest + (tail - lost) * (1.0 + (r + rest)))
        e = 1.0 + rest
        rest = (1.0 - e) + rest
        q = erfcx_parts(a, &low)
        product = e * q
        low = product_error(e, q, product) + (e * low + q * rest)
        value = scale(product + low, n)
        # near 0 the slope of the polynomial magnifies the rounding of its argument
        value = 1.0 - erf_small(a, z) if a < 0.47 else value
        return 2.0 - value if x < 0 else value


cdef inline floating erf(floating x) noexcept nogil:
    """an odd polynomial near 0, beyond it 1 - erfc"""
    cdef floating one = 1, a = magnitude(x), z = a * a, small, large, border, limit, low
    if floating is float:  # errors 2**-31 and 2**-30.3
        border, limit = 0.925, 4.0
        small = a + a * poly7[float](z, 8.316847e-05, -0.0008130031, 0.0051999083, -0.026858943,
                                    0.112836875, -0.37612632, 0.12837917)
        a = limit if a > limit else a
        large = one - exp(-(a + a * poly7[float](a, 1.123237e-05, -0.00032281404, 0.003642499,
                                          -0.023762144, 0.10623697, 0.63515127, 0.1286485)))
    else:
        border, limit = 1.0, 6.0
        small = erf_small(a, z)
        a = limit if a > limit else a
        large = one - exp(-a * a) * erfcx_parts(a, &low)
    return with_sign(small if a < border else large, x)
