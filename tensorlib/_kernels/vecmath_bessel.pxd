"""Modified Bessel functions of the first kind, in double.

Below 8 a polynomial in x**2 / 4, from 8 on one in 1 / x of what exp(x) / sqrt(x) leaves.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 9.6 and 9.7.
"""

from tensorlib._kernels.vecmath cimport (
    infinity, magnitude, poly3, poly8, poly12, sqrt, with_sign)
from tensorlib._kernels.vecmath_exp cimport exp


cdef inline double i0_small(double a) noexcept nogil:
    """I0(a) for 0 <= a <= 8; error 2**-56.2"""
    cdef double z = 0.25 * a * a
    return poly12(
        z, poly8(
            z, 3.7083673331713694e-32, 6.956135192472546e-30, 2.3261942698780893e-27,
            5.835463138191533e-25, 1.3160459459294984e-22, 2.5788866322197336e-20,
            4.358394920164562e-18, 6.276080874261755e-16), 7.594058461629167e-14,
        7.594058426302191e-12, 6.151187326857943e-10, 3.936759889138518e-08,
        1.9290123456790645e-06, 6.944444444444436e-05, 0.0017361111111111112, 0.027777777777777776,
        0.25, 1.0, 1.0)


cdef inline double i0_large(double a) noexcept nogil:
    """exp(-a) * I0(a) for a >= 8; error 2**-53.7"""
    cdef double u = 1.0 / a, v = u - 0.0625
    return sqrt(u) * poly12(
        v, poly12(
            v, poly3(
                v, -5.600590092177202e+18, -9.515680496232826e+16, 1.6037318144527456e+17),
            2838023316611292.0, -2150603480419067.2, -42026809998250.38, 18328218596818.52,
            442096389238.02985, -114153342384.6759, -4018840806.936886, 546212511.9743052,
            33959849.56012221, -1539273.339762341, -235809.9189073008), -7399.4099127844565,
        519.0736993596148, 92.53583339685075, 10.556499345371257, 1.4885171356560098,
        0.3118043949935277, 0.0972454328638334, 0.04564186641021642, 0.03487131504443583,
        0.053768831738685664, 0.4021765094450081)


cdef inline double i1_small(double a) noexcept nogil:
    """I1(a) for 0 <= a <= 8; error 2**-54.9"""
    cdef double z = 0.25 * a * a
    return 0.5 * a * poly12(
        z, poly8(
            z, 1.9118983075493824e-33, 3.9234286739835217e-31, 1.3643516140827972e-28,
            3.6488164542916493e-26, 8.773175227132446e-24, 1.842071281318797e-21,
            3.3526100623327697e-19, 5.2300675562988503e-17), 6.903689496580404e-15,
        7.594058427230109e-13, 6.834652585350997e-11, 4.92094986142491e-09, 2.755731922398615e-07,
        1.157407407407407e-05, 0.00034722222222222224, 0.006944444444444444, 0.08333333333333333,
        0.5, 1.0)


cdef inline double i1_large(double a) noexcept nogil:
    """exp(-a) * I1(a) for a >= 8; error 2**-55.5"""
    cdef double u = 1.0 / a, v = u - 0.0625
    return sqrt(u) * poly12(
        v, poly12(
            v, poly3(
                v, 5.821679393273399e+18, 8.66681711510311e+16, -1.667593744368608e+17),
            -2596320657834420.0, 2238171019068116.5, 38885845696707.03, -19115126120337.855,
            -418274698304.32404, 119664389845.4911, 3927584052.8745346, -579647951.6452092,
            -34365851.72894401, 1700355.8091966936, 246812.97977883957), 7384.094833090888,
        -579.0731115016168, -100.3759466724738, -11.577447727367897, -1.6779436399217917,
        -0.3653087379073204, -0.12025266919614995, -0.06159788933601801, -0.0561243555415815,
        -0.15599323509177165, 0.38939845902587233)


cdef inline double grown(double a, double large) noexcept nogil:
    """exp(a) * large, which overflows later than exp(a)"""
    return infinity(a) if a > 714.0 else (exp(a - 8.0) * large) * 2980.9579870417283


cdef inline double i0(double x) noexcept nogil:
    cdef double a = magnitude(x), b = 8.0 if a < 8.0 else a
    return grown(a, i0_large(b)) if a >= 8.0 else i0_small(a)


cdef inline double i0e(double x) noexcept nogil:
    """exp(-|x|) * I0(x)"""
    cdef double a = magnitude(x), b = 8.0 if a < 8.0 else a
    return i0_large(b) if a >= 8.0 else exp(-a) * i0_small(a)


cdef inline double i1(double x) noexcept nogil:
    cdef double a = magnitude(x), b = 8.0 if a < 8.0 else a
    return with_sign(grown(a, i1_large(b)) if a >= 8.0 else i1_small(a), x)


cdef inline double i1e(double x) noexcept nogil:
    """exp(-|x|) * I1(x)"""
    cdef double a = magnitude(x), b = 8.0 if a < 8.0 else a
    return with_sign(i1_large(b) if a >= 8.0 else exp(-a) * i1_small(a), x)
