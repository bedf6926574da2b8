"""The normal distribution's functions: erfinv, erfcx, ndtr, log_ndtr, ndtri, in double; erfinv of
floats in as many digits of it as they need.

Sources: Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2011), for its variable
w = -log(1 - x**2); erfcx as in `vecmath_erf`.
"""

from tensorlib._kernels.vecmath.basics cimport (
    infinity, magnitude, nan, poly4, poly5, poly6, poly10, poly11, poly12, product_error, scale,
    sqrt, with_sign)
from tensorlib._kernels.vecmath.erf cimport erfcx_parts
from tensorlib._kernels.vecmath.exp cimport exp_parts, times_exp
from tensorlib._kernels.vecmath.log cimport log, log1p_parts, log_for_float


cdef inline double erfinv_of(double x, double w, double* low) noexcept nogil:
    """high + low = erfinv(x) for w = -log(1 - x**2) up to 38.4"""
    cdef double wide = 5.0 if w < 5.0 else w, s = sqrt(wide), u = 1.0 / s - 0.1875, v = s - 3.125
    cdef double c = w - 2.5, square = s * s, core, near, far, rest, part
    cdef double step, slope, base, value, factor, lost, high
    # of w up to 5, sqrt(w) up to 4, and beyond of its reciprocal; errors 2**-54.3, -54.2, -54.9
    rest = poly10(
        c, poly12(
            c, 3.556486085431741e-21 * c + -6.73102367225685e-20, 4.185831356075263e-20,
            4.8544762268282404e-18, -2.48177504015291e-17, -1.3580378872453845e-16,
            1.878748065628583e-15, -2.887952525477375e-15, -7.602569052857905e-14,
            5.356699602736408e-13, 9.111959747320348e-13, -3.1102906010900526e-11,
            1.1960787746285124e-10), 9.073039059190006e-10, -1.086117031164595e-08,
        1.341680341173891e-08, 4.787252198207556e-07, -3.416619596296603e-06,
        -4.996079599531303e-06, 0.0002182502643439536, -0.0012527079078108667,
        -0.004177317724383607)
    part = c * rest
    core = 0.246640276744167 + part
    rest = ((0.246640276744167 - core) + part) + product_error(c, rest, part)
    near = poly11(
        v, poly11(
            v, 5.28012946530396e-11, -9.044062915025424e-12, -4.880127417884772e-10,
            8.588691415932918e-10, 7.397900553529093e-10, -6.1797174077989465e-09,
            1.3066426960072475e-08, -1.2682020489528037e-09, -7.421321053808084e-08,
            2.1675366602244327e-07, -1.7569705113689489e-07), -7.613679856633749e-07,
        3.22314733962032e-06, -5.127502148519066e-06, -3.5775679443697587e-06,
        4.497008285476238e-05, -0.00013821514319452914, 0.0001990682691459167,
        0.0003769342186892403, -0.004087288020006201, 0.018427259556567994)
    far = poly11(
        u, poly6(
            u, 24516273.840719458, -15931716.049905669, 2115738.1099974015, 114396.8362899878,
            -24007.14006756581, 1805.0404547732974), -1104.5503682762655, 230.65148754324548,
        -69.86319280951456, 20.451645190949083, -6.3400456616562835, 2.337499713278874,
        -1.349309906223021, 0.8226987326550663, -0.04696979321106191, -0.20079705256460775)
    # the last step of each, value + rest = base + step * slope, and then factor * value, to twice
    # the digits
    step, slope, base = (v, near, 0.9466352827875665) if s < 4.0 else (u, far, 0.9724970078808042)
    step, slope, base = (c, core, 1.501409351110792) if w < 5.0 else (step, slope, base)
    part = step * slope
    value = base + part
    rest = c * rest + (w - (c + 2.5)) * core if w < 5.0 else 0.0
    rest = rest + (((base - value) + part) + product_error(step, slope, part))
    lost = ((wide - square) - product_error(s, s, square)) / (s + s)     # what the root lacks
    factor, lost = (x, 0.0) if w < 5.0 else (with_sign(s, x), with_sign(lost, lost * x))
    high = factor * value
    low[0] = product_error(factor, value, high) + (factor * rest + lost * value)
    return high


cdef inline float erfinv_near(float x) noexcept nogil:
    """erfinv(x) for |x| < 0.9966"""
    cdef double a = x, c = -2.5 - log_for_float((1.0 - a) * (1.0 + a))
    return <float>(a * poly10(                             # 2**-36
        c, poly5(c, -6.208614341680017e-13, -2.0604351975815947e-11, 1.3554418905513804e-10,
                 8.214476659821361e-10, -1.0951266111164331e-08), 1.3770763776895908e-08,
        4.79003886280163e-07, -3.4173727282634364e-06, -4.996526306376468e-06,
        0.00021825102773870593, -0.0012527075897191373, -0.00417731801363632, 0.2466402766780547,
        1.5014093511285658))


cdef inline float erfinv_far(float x) noexcept nogil:
    """erfinv(x) for |x| >= 0.9966; NaN beyond 1"""
    cdef float size = magnitude(x), y
    cdef double a = size, s = sqrt(-log_for_float((1.0 - a) * (1.0 + a))), v = s - 3.125
    y = <float>(s * poly10(                                # 2**-39
        v, poly4(v, 1.9116125682046806e-07, -3.094286906478552e-07, -7.271497173621615e-07,
                 3.3351676441396023e-06), -5.147485066259897e-06, -3.625425091176283e-06,
        4.49759046192331e-05, -0.00013820494145311342, 0.00019906746334178745,
        0.0003769332751932757, -0.0040872879778466676, 0.01842725958161966, 0.9466352827872019))
    y = infinity(x) if size == 1 else y
    return with_sign(y if size <= 1 else nan(x), x)


cdef inline double erfinv(double x) noexcept nogil:
    """the inverse of erf; NaN outside [-1, 1]"""
    cdef double a = magnitude(x), low, y = erfinv_of(x, -log((1.0 - a) * (1.0 + a)), &low)
    y = with_sign(infinity(a), x) if a == 1.0 else with_sign(y + low, x)
    return nan(x) if a > 1.0 else y


cdef inline double erfcx_far(double a) noexcept nogil:
    """exp(a**2) * erfc(a) for a >= 27, by the asymptotic series"""
    cdef double h = 0.5 / (a * a), y = 0.5641895835477563 / a        # 1 / sqrt(pi)
    return y + y * (h * poly6(h, 10395.0, -945.0, 105.0, -15.0, 3.0, -1.0))


cdef inline double erfcx_positive(double a) noexcept nogil:
    """exp(a**2) * erfc(a) for a >= 0"""
    cdef double low, near = erfcx_parts(27.0 if a > 27.0 else a, &low)
    return erfcx_far(a) if a > 27.0 else near + low


cdef inline double erfcx(double x) noexcept nogil:
    """exp(x**2) * erfc(x)"""
    cdef double z, e, low, n, rest
    if x >= 0 or x != x:
        return erfcx_positive(x)
    if x < -26.7:
        return infinity(x)
    z = x * x
    e = exp_parts(z, product_error(x, x, z), &low, &n)
    e = scale(e + e, n)
    rest = erfcx_positive(-x)
    z = e - rest
    return z if z == infinity(z) else z + (((e - z) - rest) + scale(low + low, n))


cdef inline double erfcx_half(double a, double* low) noexcept nogil:
    """high + low = erfcx(a / sqrt(2)) for 0 <= a <= 38.6"""
    cdef double h = a * 0.7071067811865476, q
    q = erfcx_parts(h, low)
    # what h lacks, times the derivative of erfcx
    low[0] += (product_error(a, <double>0.7071067811865476, h) - a * 4.833646656726457e-17) * (
        2.0 * h * q - 1.1283791670955126)
    return q


cdef inline double ndtr(double x) noexcept nogil:
    """the chance of a standard normal number below x: erfc(-x / sqrt(2)) / 2"""
    cdef double a = magnitude(x), z, q, low, n, tail
    a = 38.6 if a > 38.6 else a
    z = a * a
    q = erfcx_half(a, &low)
    tail = times_exp(q, low, -0.5 * z, -0.5 * product_error(a, a, z), &low, &n)
    tail = scale(tail, n - 1.0)
    tail = tail if x < 0 else 1.0 - tail
    return x if x != x else tail


cdef inline double log_ndtr(double x) noexcept nogil:
    """log(ndtr(x)), also where that underflows"""
    cdef double a = magnitude(x), z = a * a, z_low = product_error(a, a, z), q, low, n
    cdef double tail, tail_low, far
    z_low = 0.0 if a > 38.6 else z_low
    q = erfcx_half(38.6 if a > 38.6 else a, &low)
    far = log(0.5 * (erfcx_far(a * 0.7071067811865476) if a > 38.6 else q))
    far = far + ((low / q - 0.5 * z_low) - 0.5 * z)
    tail = times_exp(q, low, -745.0 if a > 38.6 else -0.5 * z, -0.5 * z_low, &tail_low, &n)
    return far if x < 0 else log1p_parts(-scale(tail, n - 1.0), -scale(tail_low, n - 1.0))


cdef inline double ndtri_far(double p) noexcept nogil:
    """ndtri(p) for p < 1e-16, by Newton's method on log(ndtr)"""
    cdef double target = log(p + p), a = sqrt(-2.0 * target), ratio
    cdef int i
    a = a - log(a * 1.2533141373155003) / a              # sqrt(pi / 2)
    for i in range(4):
        ratio = erfcx_positive(a * 0.7071067811865476)
        a += (log(ratio) - 0.5 * a * a - target) * ratio * 1.2533141373155003
    return -a


cdef inline double ndtri_near(double p) noexcept nogil:
    """ndtri(p) for p >= 1e-16; NaN outside [0, 1]"""
    cdef double root = 1.4142135623730951, low, y
    cdef double x = erfinv_of(p + p - 1.0, -log(4.0 * p * (1.0 - p)), &low)
    y = root * x                             # sqrt(2) has more digits than the root
    y = y + (product_error(root, x, y) + (root * low - 9.667293313452913e-17 * x))
    y = infinity(p) if p == 1.0 else y
    y = nan(p) if p < 0 else y               # apart: an `or` would be a branch
    return nan(p) if p > 1.0 else y


cdef inline double ndtri(double p) noexcept nogil:
    """the inverse of ndtr; NaN outside [0, 1]"""
    if p == 0:
        return -infinity(p)
    return ndtri_far(p) if 0 < p < 1e-16 else ndtri_near(p)
