"""Exponentials: exp, expm1, exp2, sigmoid, and the hyperbolic functions made of them."""

from tensorlib._kernels.vecmath.basics cimport (
    floating, infinity, magnitude, poly4, poly5, poly6, poly7, poly10, poly11, power_of_two,
    product_error, round_even, scale, with_sign)


cdef inline floating exp_series(floating r) noexcept nogil:
    """(e**r - 1 - r) / r**2 for |r| <= ln(2) / 2"""
    if floating is float:  # error times r: 2**-32
        return poly6[float](r, 0.00019914527, 0.001394131, 0.008333272, 0.04166635, 0.16666667, 0.5)
    else:  # 2**-55.6
        return poly10(
            r, 2.5114785121346087e-08, 2.7626726542202543e-07, 2.7557227053640978e-06,
            2.4801503482794937e-05, 0.00019841269903926386, 0.0013888888933139556,
            0.008333333333314239, 0.04166666666657145, 0.16666666666666685, 0.5000000000000006)


cdef inline floating exp_reduce(floating x, floating* n, floating* tail) noexcept nogil:
    """r and tail with x = n * ln(2) + r + tail (Cody & Waite)"""
    cdef floating log2e, ln2_high, ln2_low, high, low, r
    log2e = 1.4426950408889634
    if floating is float:  # n * ln2_high is exact
        ln2_high = 0.693359375
        ln2_low = -2.12194440e-4
    else:
        ln2_high = 6.93147180369123816490e-01
        ln2_low = 1.90821492927058770002e-10
    n[0] = round_even(x * log2e)
    high = x - n[0] * ln2_high
    low = n[0] * ln2_low
    r = high - low
    tail[0] = (high - r) - low
    return r


cdef inline floating exp_edges(floating x, floating y) noexcept nogil:
    """y, or 0 or infinity where e**x / 2 is one of them

    A selection of the result is cheaper than limits on x: they lengthen the chain of operations.
    """
    cdef floating zero = 0, least, most
    if floating is float:
        least, most = -104.0, 90.0
    else:
        least, most = -746.0, 711.0
    y = zero if x < least else y
    return infinity(x) if x > most else y


cdef inline floating exp_scaled(floating x, floating shift) noexcept nogil:
    """e**x * 2**shift for shift 0 or -1, with no overflow between"""
    cdef floating n, tail, r, one = 1
    r = exp_reduce(x, &n, &tail)
    return exp_edges(x, scale(one + (r + r * r * exp_series(r)), n + shift))


cdef inline floating exp(floating x) noexcept nogil:
    cdef floating zero = 0
    return exp_scaled(x, zero)


cdef inline double exp_parts(double x, double x_low, double* low, double* n) noexcept nogil:
    """e, and (e + low) * 2**n = exp(x + x_low)"""
    cdef double tail, r = exp_reduce(x, n, &tail), rest = r * r * exp_series(r), e
    rest = r + (rest + (tail + x_low) * (1.0 + (r + rest)))
    e = 1.0 + rest
    low[0] = (1.0 - e) + rest
    return e


cdef inline double times_exp(double q, double q_low, double x, double x_low, double* low,
                             double* n) noexcept nogil:
    """y, and (y + low) * 2**n = (q + q_low) * exp(x + x_low)"""
    cdef double e_low, e = exp_parts(x, x_low, &e_low, n), product = e * q, y
    cdef double rest = product_error(e, q, product) + (e * q_low + q * e_low)
    y = product + rest
    low[0] = (product - y) + rest
    return y


cdef inline floating exp2(floating x) noexcept nogil:
    cdef floating zero = 0, one = 1, ln2 = 0.6931471805599453, least, most, n, r, y
    if floating is float:
        least, most = -151.0, 128.0
    else:
        least, most = -1076.0, 1024.0
    n = round_even(x)
    r = (x - n) * ln2
    y = scale(one + (r + r * r * exp_series(r)), n)
    y = zero if x < least else y
    return infinity(x) if x >= most else y


cdef inline floating expm1(floating x) noexcept nogil:
    """2**n * ((1 - 2**-n) + r + series), the first sum with its rounding error"""
    cdef floating n, tail, r, base, total, carry, one = 1, least, most
    if floating is float:
        least, most = -20.0, 90.0
    else:
        least, most = -40.0, 711.0
    r = exp_reduce(x, &n, &tail)
    base = one - power_of_two(-n) if n < 127 else one
    total = base + r
    carry = total - base
    carry = (base - (total - carry)) + (r - carry)
    total = scale(total + (carry + (tail + r * r * exp_series(r))), n)
    total = -one if x < least else total
    total = infinity(x) if x > most else total
    return x if x == 0 else total  # the sum loses the sign of -0


cdef inline floating sigmoid(floating x) noexcept nogil:
    """top / (1 + e) with e = e**-|x| and top = e for x < 0, else 1

    As top - top * e / (1 + e), in which the errors of the quotient count little: divided as it
    stands, it errs by 2.2 ulp. Either value of `top` has its own expression: chosen first, the
    product and the difference came apart in the loop's tail, where no FMA was made of them.
    """
    cdef floating one = 1, e = exp(-magnitude(x)), part = e / (one + e)
    return e - e * part if x < 0 else one - part


cdef inline floating tanh(floating x) noexcept nogil:
    """an odd polynomial below 0.55, above it 1 - 2 / (e**2x + 1)"""
    cdef floating one = 1, two = 2, border = 0.55, a = magnitude(x), z = a * a, small, large
    if floating is float:  # 2**-29.9
        small = poly5[float](z, -0.0062790955, 0.021075523, -0.053853355, 0.13332598, -0.33333316)
    else:  # 2**-60.6
        small = poly11(
            z, -1.94994759987609e-05, 8.332603878212071e-05, -0.0002333896062781611,
            0.0005884482079315213, -0.001455543895592611, 0.003592092217636864,
            -0.008863232622552663, 0.021869488387315363, -0.05396825396381816,
            0.13333333333326733, -0.333333333333333)
    small = a + a * z * small
    large = one - two / (exp(a + a) + one)
    return with_sign(small if a < border else large, x)


cdef inline floating sinh(floating x) noexcept nogil:
    """an odd polynomial below 1, above it half of e**x - e**-x"""
    cdef floating one = 1, quarter = 0.25, a = magnitude(x), z = a * a, small, e
    if floating is float:  # 2**-34
        small = poly4[float](z, 2.8175016e-06, 0.00019836056, 0.0083333505, 0.16666667)
    else:  # 2**-63.2
        small = poly7(
            z, 7.759425832790855e-13, 1.605723668544053e-10, 2.505212344429222e-08,
            2.7557319155057197e-06, 0.0001984126984143854, 0.008333333333333137,
            0.16666666666666669)
    small = a + a * z * small
    e = exp_scaled(a, -1)
    return with_sign(small if a < one else e - quarter / e, x)


cdef inline floating cosh(floating x) noexcept nogil:
    cdef floating quarter = 0.25, e = exp_scaled(magnitude(x), -1)
    return e + quarter / e
