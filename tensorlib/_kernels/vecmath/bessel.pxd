"""Modified Bessel functions of the first kind, in double.

The polynomials take what is nearly flat: below 12 exp(-a) * I0(a) * (1 + a) and exp(-a) * I1(a) / a
* (1 + a) * (a + 12), in v = (a - 4) / (a + 12); from 12 on exp(-a) * I(a) * sqrt(a), in v = 1 / a -
1 / 24. What follows is done with the rounding errors beside it, but for that of the root.

Source: Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 9.6 and 9.7.
"""

from tensorlib._kernels.vecmath.basics cimport (
    infinity, magnitude, poly6, poly12, product_error, quotient, scale, sqrt, with_sign)
from tensorlib._kernels.vecmath.exp cimport times_exp


cdef inline double i0_near(double v) noexcept nogil:
    """the slope of what I0 has beyond a constant, below 12; error 2**-56.9"""
    return poly12(
        v, poly12(
            v, 253.2046711573258 * v + 266.4217503701009, -300.0903640592739,
            -512.4645994421855, 140.54343175121318, 621.0584145291879, 31.19888354368937,
            -659.327127162194, -99.2935371786514, 709.6511440522743, -10.350788855876269,
            -758.4419433149425, 407.6711280069751), 508.4392487231384, -950.5222475131146,
        746.6449658324061, -342.41440717705603, 79.79691196549894, 11.155900716442877,
        -18.197086954283094, 9.764252052870468, -2.5880094023985474, 1.380917564338642,
        1.051944201859678)


cdef inline double i0_far(double v) noexcept nogil:
    """likewise from 12 on; error 2**-58.6"""
    return poly12(
        v, poly6(
            v, 149580942193.2593, 7745497090.767335, -1226477935.9683738, -99465134.5988632,
            690915.969408328, 316069.16949725006), 18124.044091369065, 1188.3665511546874,
        126.15689584051489, 17.195999821731586, 2.9725525899079184, 0.658050945281501,
        0.1886220504463082, 0.07204864283479134, 0.038675501835166604, 0.03224725939220551,
        0.05237203613080633)


cdef inline double i1_near(double v) noexcept nogil:
    """the slope of what I1 has beyond a constant, below 12; error 2**-56.3"""
    return poly12(
        v, poly12(
            v, -337.8866355061608, -245.79550535494644, 462.62033221407385, 528.1742453824749,
            -328.696970206056, -704.151638885036, 155.81262109784174, 802.5370532541023,
            -93.66510455372865, -883.3861616322168, 256.8161091844855, 902.9065097567413),
        -769.2038258194685, -442.3633020956531, 1340.829248414981, -1318.0816351390679,
        789.4850760446976, -304.8345839037406, 59.73705270927837, 14.699863271914465,
        -19.083983853037925, 11.857953649170591, -4.544717651288649)


cdef inline double i1_far(double v) noexcept nogil:
    """likewise from 12 on; error 2**-58.4"""
    return poly12(
        v, poly6(
            v, -156139942649.95715, -7869096809.810471, 1297937362.9835992, 102973935.14041534,
            -851216.9871080216, -334367.0224908103), -19077.643035757577, -1270.0364679223626,
        -136.8982647520211, -18.94938788854483, -3.3400077084345665, -0.7582115415283008,
        -0.2249735650012982, -0.0904701883729818, -0.05291759953689769, -0.052558590845256374,
        -0.15373088648357663)


cdef inline double scaled_bessel(double a, bint first, bint small, double* low) noexcept nogil:
    """high + low = exp(-a) * I(a) for a >= 0, I1 if `first` and else I0

    `small` says that a is below 12. Both are constants, so one polynomial or two are left.
    """
    cdef double one = 1.0 + a, one_low = a - (one - 1.0) if a < 1.0 else 1.0 - (one - a)
    cdef double twelve = 12.0 + a, v = (a - 4.0) / twelve, slope, rest, top, top_low, factor = a
    cdef double base, base_low, bottom = one, bottom_low = one_low, inverse, root, far
    if first:
        slope = i1_near(v)
        base, base_low = 3.5750167900487066, -1.0833328702740186e-16
        bottom = one * twelve
        bottom_low = product_error(one, twelve, bottom) + (
            one * (a - (twelve - 12.0)) + twelve * one_low)
    else:
        slope = i0_near(v)
        base, base_low = 1.0350096061199334, 6.219762416066659e-17
    if small:
        inverse = 1.0 / bottom
    else:
        inverse = 1.0 / (bottom if a < 12.0 else a)
        far = inverse - 0.041666666666666664
        slope = slope if a < 12.0 else i1_far(far) if first else i0_far(far)
        v = v if a < 12.0 else far
        base = base if a < 12.0 else 0.39262449420411655 if first else 0.4010710650668474
        base_low = base_low if a < 12.0 else 0.0
        factor = a if a < 12.0 else 1.0
        root = sqrt(a)
        bottom = bottom if a < 12.0 else root
        bottom_low = bottom_low if a < 12.0 else 0.0
        inverse = inverse if a < 12.0 else root * inverse
    rest = v * slope
    top = base + rest
    top_low = (base - top) + rest + base_low
    if first:
        rest = top * factor
        top_low = product_error(top, factor, rest) + top_low * factor
        top = rest
    return quotient(top, top_low, bottom, bottom_low, inverse, low)


cdef inline double grown(double a, double large, double low) noexcept nogil:
    """exp(a) * (large + low), which overflows later than exp(a)"""
    cdef double n, y = times_exp(large, low, a, 0.0, &low, &n)
    return infinity(a) if a > 714.0 else scale(y, n)


cdef inline double i0(double x, bint small) noexcept nogil:
    cdef double a = magnitude(x), low, high = scaled_bessel(a, False, small, &low)
    return grown(a, high, low)


cdef inline double i0e(double x, bint small) noexcept nogil:
    """exp(-|x|) * I0(x)"""
    cdef double a = magnitude(x), low, high = scaled_bessel(a, False, small, &low)
    return 0.0 if a == infinity(a) else high + low


cdef inline double i1(double x, bint small) noexcept nogil:
    cdef double a = magnitude(x), low, high = scaled_bessel(a, True, small, &low)
    return with_sign(grown(a, high, low), x)


cdef inline double i1e(double x, bint small) noexcept nogil:
    """exp(-|x|) * I1(x)"""
    cdef double a = magnitude(x), low, high = scaled_bessel(a, True, small, &low)
    return with_sign(0.0 if a == infinity(a) else high + low, x)
