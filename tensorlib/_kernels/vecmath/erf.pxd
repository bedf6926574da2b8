"""The error function and its complement.

erfc(a) = e**(-a**2) * erfcx(a) for a >= 0, and erfcx(a) * (1 + a) is a polynomial of
t = (a - k) / (a + k), which maps [0, inf) to [-1, 1) (Shepherd & Laframboise, Math. Comp. 36,
1981). They have 1 + 2 * a; with 1 + a the polynomial is nearly flat at a = 0, where rounding t
loses digits of a.
"""

from tensorlib._kernels.vecmath.basics cimport (
    floating, magnitude, poly6, poly7, poly11, poly12, power_of_two, product_error, quotient,
    round_even, scale, with_sign)
from tensorlib._kernels.vecmath.exp cimport exp, times_exp


cdef inline double erfc_float(double a) noexcept nogil:
    """erfc(a) for 0 <= a <= 10.2; error 2**-28.6

    e**(-a**2), whose error is 2**-32, times erfcx(a). One division gives both quotients.
    """
    cdef double above = a + 3.0, below = 1.0 + 2.0 * a, one = 1.0 / (above * below)
    cdef double t = (a - 3.0) * (below * one), n = round_even(a * a * -1.4426950408889634)
    cdef double r = -a * a - n * 0.6931471805599453
    return power_of_two(n) * (1.0 + (r + r * r * poly6[double](
        r, 0.00019914527, 0.001394131, 0.008333272, 0.04166635, 0.16666667, 0.5))) * (
        above * one * poly11(
            t, -0.0002669937482139002, -0.0007751285121892908, 0.002002745708529941,
            0.002566298270061032, -0.023798193540327722, 0.06829590101503882,
            -0.11927087026288262, 0.12964640993571758, -0.04756240355126421,
            -0.1356211392950639, 1.2530080591291899))


cdef inline double erfcx_parts(double a, double* low) noexcept nogil:
    """high + low = erfcx(a) for 0 <= a <= 27.3; error of the polynomial 2**-60.3"""
    cdef double t = (a - 4.0) / (a + 4.0), rest, top, bottom, bottom_low
    rest = t * poly12(
        t, poly12(
            t, 5.898036418998704e-10, 1.0609143782975627e-09, -6.176024818064653e-09,
            -1.027701331333035e-08, 4.752766430338206e-08, 5.023065464172112e-08,
            -3.647724643997679e-07, 4.650826619023362e-09, 2.650625980491642e-06,
            -4.138632927768596e-06, -1.3151275862089292e-05, 6.403278469383703e-05),
        -6.0136736708146454e-05, -0.0003897674978007409, 0.002116421578425724,
        -0.006068735217787411, 0.012161784753475962, -0.017515654646710253,
        0.015312509679281923, 0.003962055681298676, -0.04808038122130756,
        0.11704966551044234, -0.19934458280036707)
    top = 0.6849972881253069 + rest
    bottom = 1.0 + a
    bottom_low = a - (bottom - 1.0) if a < 1.0 else 1.0 - (bottom - a)
    return quotient(top, (0.6849972881253069 - top) + rest + 3.6318967761783934e-17, bottom,
                    bottom_low, 1.0 / bottom, low)


cdef inline double erf_small(double a, double z) noexcept nogil:
    """erf(a) for 0 <= a <= 1, z = a**2; error 2**-62.7"""
    return a + a * poly12(
        z, 5.945273929202403e-11 * z - 1.1365672847132801e-09, 1.4657881540827086e-08,
        -1.63500254626836e-07, 1.6460972838442362e-06, -1.4925593508142318e-05,
        0.00012055331036947629, -0.0008548326978743372, 0.005223977624780884,
        -0.026866170645072896, 0.11283791670954857, -0.3761263890318375, 0.1283791670955126)


cdef inline floating erfc(floating x) noexcept nogil:
    cdef double a, z, n, q, low, value
    if floating is float:
        a = magnitude(x)
        a = 10.2 if a > 10.2 else a
        value = erfc_float(a)
        return <float>(2.0 - value if x < 0 else value)
    else:
        a = magnitude(x)
        a = 27.3 if a > 27.3 else a
        z = a * a
        q = erfcx_parts(a, &low)
        value = times_exp(q, low, -z, -product_error(a, a, z), &low, &n)
        value = scale(value, n)
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
