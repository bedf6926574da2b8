"""Bessel functions of orders 0 and 1, in double: J and Y, which oscillate, and K, which decays.

Up to 5 the polynomials take what J and Y have beside a logarithm; from there on P and Q, of
J = sqrt(2 / (pi x)) * (P cos - Q sin) and Y = sqrt(2 / (pi x)) * (P sin + Q cos), with the angle
x - pi / 4 or x - 3 pi / 4. Errors are relative to the size of the oscillation: 2**-51 of it. K is
in two parts, too.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 9.1, 9.2 and 9.6.
"""

from tensorlib._kernels.vecmath.basics cimport (
    infinity, magnitude, poly3, poly8, poly10, poly11, poly12, sqrt, with_sign)
from tensorlib._kernels.vecmath.bessel cimport i0, i1
from tensorlib._kernels.vecmath.log cimport log


cdef inline double j0_series(double z) noexcept nogil:
    """J0 up to 1.5, in z = x * x / 4"""
    return poly12(z, -6.276081345559193e-16, 7.594058428126623e-14, -7.594058428126624e-12,
        6.151187326782565e-10, -3.936759889140842e-08, 1.9290123456790124e-06,
        -6.944444444444444e-05, 0.001736111111111111, -0.027777777777777776, 0.25, -1.0, 1.0)


cdef inline double j0_near(double v) noexcept nogil:
    """J0 up to 5, in v = x * x / 12.5 - 1; error 2**-61.9"""
    return poly12(v, poly3(v, -5.5870798364785105e-14, 2.969447332958378e-12,
        -1.3389957576813873e-10), 5.059294185929358e-09, -1.5718428565139043e-07,
        3.9285088877689495e-06, -7.683433602057727e-05, 0.0011343635095863093,
        -0.012035214154329392, 0.08539182354259674, -0.36018076595038634, 0.7094160035335417,
        -0.21650541389819178, -0.3847445098140454)


cdef inline double j1_near(double v) noexcept nogil:
    """J1(x) / x likewise; error 2**-58.9"""
    return poly12(v, 1.1621889632590412e-13 * v + -5.7018453078703506e-12, 2.356632323536745e-10,
        -8.094869431415498e-09, 2.263453713594777e-07, -5.02849137748372e-06,
        8.605445634303652e-05, -0.0010889889692024138, 0.009628171323463516,
        -0.05465076706726198, 0.17288676765618544, -0.22701312113073338, 0.03464086622371068)


cdef inline double y0_near(double v) noexcept nogil:
    """Y0(x) - 2 / pi * log(x) * J0(x) likewise; error 2**-60.1"""
    return poly12(v, poly3(v, 1.166603953074689e-13, -6.04993694723965e-12,
        2.6539975248625817e-10), -9.7209552080454e-09, 2.9142206889637085e-07,
        -6.985504374077061e-06, 0.0001299462909208217, -0.0018028096665503853,
        0.01763534538933876, -0.11151682184328655, 0.38851639956570944, -0.47057636552972876,
        -0.4326558222855125, 0.4837248578102995)


cdef inline double y1_near(double v) noexcept nogil:
    """(Y1(x) - 2 / pi * (log(x) * J1(x) - 1 / x)) / x likewise; error 2**-63.9"""
    return poly12(v, poly3(v, 4.277907601247645e-15, -2.397782341669183e-13,
        1.1448943838049981e-11), -4.6013010745475043e-10, 1.528890182573714e-08,
        -4.1137780795312436e-07, 8.733098304848775e-06, -0.00014141835794484212,
        0.0016688031328635942, -0.013433433740818165, 0.06634695354779108, -0.16312020358118715,
        0.09108650838448444, 0.13974939033568806)


cdef inline double p0(double v) noexcept nogil:
    """P of order 0 from 5 on, in v = 50 / (x * x) - 1; error 2**-58.8"""
    return poly12(v, poly8(v, -9.515579929513911e-13 * v + 1.4342144484717664e-12,
        2.284509311607064e-12, -2.8395786688743483e-12, -5.62448939046534e-12,
        8.357591428468503e-12, -3.750025643929017e-12, 1.258800243024865e-11,
        -4.181336270479961e-11), 1.0446084050144922e-10, -2.8265466982174973e-10,
        8.537333898998171e-10, -2.8711262583427698e-09, 1.1058787126508455e-08,
        -5.086425025341196e-08, 2.9759005474711905e-07, -2.4599633256229834e-06,
        3.4917305812543486e-05, -0.0013274931272003313, 0.9986347659091991)


cdef inline double q0(double v) noexcept nogil:
    """Q * x / 5 of order 0 likewise; error 2**-58.2"""
    return poly12(v, poly12(v, 4.918206674656361e-13 * v + -6.477553677732702e-13,
        -1.954881622772828e-12, 2.35624877318001e-12, 4.198442456168117e-12,
        -4.930891035068761e-12, -4.122431139227232e-12, 3.908626421715756e-12,
        5.80285555933399e-12, -8.066388187902458e-12, 7.793498901466338e-12,
        -1.936945636137089e-11, 4.881997632137899e-11), -1.1788284781627215e-10,
        3.0516322083634364e-10, -8.58761268772689e-10, 2.659388671728101e-09,
        -9.279607088079224e-09, 3.774058943142381e-08, -1.8819750353617696e-07,
        1.2478226341684705e-06, -1.26774308850932e-05, 0.00026284279458204686,
        -0.02472299270522373)


cdef inline double p1(double v) noexcept nogil:
    """P of order 1 likewise; error 2**-58.8"""
    return poly12(v, poly8(v, 1.0046600398097335e-12 * v + -1.5168118526117821e-12,
        -2.403612660909468e-12, 2.988136888593511e-12, 5.953596538108118e-12,
        -8.878743173627237e-12, 4.112547127117433e-12, -1.368202855885585e-11,
        4.523727290643007e-11), -1.1357643207946474e-10, 3.0910802251980933e-10,
        -9.395751413733448e-10, 3.1855729167256642e-09, -1.2403215219140042e-08,
        5.791660152738369e-08, -3.4667186514153773e-07, 2.9786211095131944e-06,
        -4.5782806531265707e-05, 0.0022414632139171184, 1.0022906462560661)


cdef inline double q1(double v) noexcept nogil:
    """Q * x / 5 of order 1 likewise; error 2**-58.4"""
    return poly12(v, poly12(v, 6.800830735102867e-13, -9.177952739503885e-13,
        -2.470578523198701e-12, 3.013495243730686e-12, 5.1754218583596e-12,
        -6.257405898953556e-12, -4.0780269079573284e-12, 3.3290192138409998e-12,
        8.557178557338547e-12, -1.3924122192402497e-11, 2.089076645611621e-11,
        -5.058758261930611e-11), 1.2776321445508377e-10, -3.3283422613099183e-10,
        9.404366036524185e-10, -2.9328458522640808e-09, 1.0328333529819094e-08,
        -4.2533481805670163e-08, 2.159770757026685e-07, -1.4739855895611247e-06,
        1.5796188355964956e-05, -0.00037296992436826256, 0.07460948663481604)


cdef inline double k0_near(double v) noexcept nogil:
    """K0(x) + log(x / 2) * I0(x) up to 2, in v = x * x / 2 - 1; error 2**-59.7"""
    return poly10(v, 3.518631515854722e-14, 5.452564662772586e-12, 6.623013272794453e-10,
        6.093361894172114e-08, 4.054506619949891e-06, 0.0001828055582791554,
        0.005053392643196092, 0.07177701034240509, 0.3404973210133806, -0.30362077291575545)


cdef inline double k1_near(double v) noexcept nogil:
    """x * (K1(x) - log(x / 2) * I1(x)) likewise; error 2**-65.3"""
    return poly11(v, -3.5962181014457795e-15, -6.214271617329577e-13, -8.53273511404978e-11,
        -9.032127501740678e-09, -7.081133770184678e-07, -3.891869064371633e-05,
        -0.0013831688466153064, -0.02785423521977184, -0.24383852886774365, -0.3322409552403131,
        0.8850882877295894)


cdef inline double k0_far(double v) noexcept nogil:
    """exp(x) * sqrt(x) * K0(x) from 2 on, in v = 4 / x - 1; error 2**-58.7"""
    return poly12(v, poly12(v, poly3(v, 4.4463261136367945e-11, -6.910453875670562e-11,
        -1.5750973144552032e-10), 2.2137580975910026e-10, 3.883027499295847e-10,
        -5.54105144606567e-10, -2.4261113144232746e-10, 1.7887095838476298e-10,
        1.0573777917719954e-09, -1.930944487584569e-09, 3.170629957994265e-09,
        -7.286380907337667e-09, 1.7316225981819857e-08, -4.133923052104385e-08),
        1.0287980689458582e-07, -2.6890662472901614e-07, 7.427932208028755e-07,
        -2.191177788015528e-06, 7.002244287487694e-06, -2.4735204561466906e-05,
        9.956054749305854e-05, -0.0004797690567662314, 0.003032891810273794,
        -0.03107146182488952, 1.2185953385133905)


cdef inline double k1_far(double v) noexcept nogil:
    """exp(x) * sqrt(x) * K1(x) likewise; error 2**-58.7"""
    return poly12(v, poly12(v, poly3(v, -4.8291072816275516e-11, 7.52479548635393e-11,
        1.7042975296653153e-10), -2.399376595899458e-10, -4.219063551782595e-10,
        6.042482293782825e-10, 2.560533082941532e-10, -1.7982138496174824e-10,
        -1.180097808498297e-09, 2.1757782025837156e-09, -3.639264909950177e-09,
        8.409387565361771e-09, -2.0109398585523843e-08, 4.8461952200091865e-08),
        -1.2195093824501613e-07, 3.2298119177151824e-07, -9.067229884830243e-07,
        2.730041433569803e-06, -8.961205912549711e-06, 3.284386555825453e-05,
        -0.00013959021964175084, 0.0007357241549081501, -0.005566729880072931,
        0.10334973775386523, 1.363151890371342)


cdef inline double wave(double x, double p, double q, double one, double other) noexcept nogil:
    """The sum of P and Q times sines and cosines of the angle, each times sqrt(2)."""
    return sqrt(0.3183098861837907 / x) * (p * one + 5.0 / x * q * other)


# ---- up to 5 (K: 2), without branches ------------------------------------------------------------

cdef inline double j0_inside(double x) noexcept nogil:
    cdef double near = j0_near(0.08 * x * x - 1.0), series = j0_series(0.25 * x * x)
    return series if magnitude(x) <= 1.5 else near


cdef inline double j1_inside(double x) noexcept nogil:
    return x * j1_near(0.08 * x * x - 1.0)


cdef inline double y0_inside(double x) noexcept nogil:
    return 0.6366197723675814 * log(x) * j0_inside(x) + y0_near(0.08 * x * x - 1.0)


cdef inline double y1_inside(double x) noexcept nogil:
    cdef double v = 0.08 * x * x - 1.0
    cdef double y = 0.6366197723675814 * (log(x) * x * j1_near(v) - 1.0 / x) + x * y1_near(v)
    return -infinity(x) if x == 0 else y


cdef inline double k0_inside(double x) noexcept nogil:
    return k0_near(0.5 * x * x - 1.0) - log(0.5 * x) * i0(x, True)


cdef inline double k1_inside(double x) noexcept nogil:
    cdef double y = k1_near(0.5 * x * x - 1.0) / x + log(0.5 * x) * i1(x, True)
    return infinity(x) if x == 0 else y


# ---- from there on, given sin(|x|) and cos(|x|); for K exp(-x), or 1 where it is scaled ----------

cdef inline double j0_outside(double x, double s, double c) noexcept nogil:
    cdef double a = magnitude(x), v = 50.0 / a / a - 1.0
    return wave(a, p0(v), q0(v), c + s, c - s)


cdef inline double j1_outside(double x, double s, double c) noexcept nogil:
    cdef double a = magnitude(x), v = 50.0 / a / a - 1.0
    return with_sign(1.0, x) * wave(a, p1(v), q1(v), s - c, s + c)


cdef inline double y0_outside(double x, double s, double c) noexcept nogil:
    cdef double v = 50.0 / x / x - 1.0
    return wave(x, p0(v), q0(v), s - c, s + c)


cdef inline double y1_outside(double x, double s, double c) noexcept nogil:
    cdef double v = 50.0 / x / x - 1.0
    return wave(x, p1(v), q1(v), -s - c, s - c)


cdef inline double k0_outside(double x, double decay) noexcept nogil:
    return decay * k0_far(4.0 / x - 1.0) / sqrt(x)


cdef inline double k1_outside(double x, double decay) noexcept nogil:
    return decay * k1_far(4.0 / x - 1.0) / sqrt(x)
