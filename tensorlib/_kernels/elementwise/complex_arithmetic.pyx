"""Loops of arithmetic on complex numbers: pairs of floating ones, the real part first.

Every loop sees one contiguous run of n numbers (`tensorlib/_kernels/__init__.py`). Products are
rounded before they are added: otherwise the imaginary part of z * conj(z) would be a rounding error
and not zero, and z * w would differ from w * z. So this module is compiled without contraction
(`setup.py`). GCC 12 and later still contract the two sums of a product when they vectorise both
together, unless there is an association barrier.
"""

from libc.stdint cimport uint32_t, uint64_t

from tensorlib._kernels.vecmath.complex_numbers cimport rounded
from tensorlib._kernels.elementwise.zero_products cimport strong_product
from tensorlib._kernels.vecmath.basics cimport (
    bits64, floating, from_bits64, infinity, magnitude, sqrt, with_sign,
)
from tensorlib._kernels.vecmath.hypot cimport hypotenuse

from tensorlib._kernels import COMPLEX, rows_for

cdef enum:
    BLOCK = 64               # quotients and roots that are checked together
    LANES = 16               # products of a row that are computed side by side; a power of two
    MOST_LANES = 64          # the same for long rows


cdef void add_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a + b"""
    cdef Py_ssize_t i
    for i in range(2 * n):
        y[i] = a[i] + b[i]


cdef void sub_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a - b"""
    cdef Py_ssize_t i
    for i in range(2 * n):
        y[i] = a[i] - b[i]


cdef inline void multiply(floating a, floating b, floating c, floating d, floating* re,
                          floating* im) noexcept nogil:
    """re + im i := (a + b i) (c + d i)"""
    re[0] = rounded(a * c) - rounded(b * d)
    im[0] = rounded(a * d) + rounded(b * c)


cdef void mul_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a * b"""
    cdef Py_ssize_t i
    cdef floating re, im
    for i in range(n):
        multiply(a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1], &re, &im)
        y[2 * i] = re
        y[2 * i + 1] = im


cdef void zmul_run(const floating* a, const floating* b, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a * b, where a part of a that is 0 gives 0 whatever b is: the strong zero of derivatives

    There is a choice for each part, as GCC 12 vectorises one choice for both wrongly.
    """
    cdef Py_ssize_t i
    cdef floating re, im
    for i in range(n):
        re = rounded(strong_product(a[2 * i], b[2 * i])) - rounded(
            strong_product(a[2 * i + 1], b[2 * i + 1]))
        im = rounded(strong_product(a[2 * i], b[2 * i + 1])) + rounded(
            strong_product(a[2 * i + 1], b[2 * i]))
        y[2 * i] = re
        y[2 * i + 1] = im


cdef void add_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a + b[0]"""
    cdef Py_ssize_t i
    cdef floating re = b[0], im = b[1]
    for i in range(n):
        y[2 * i] = a[2 * i] + re
        y[2 * i + 1] = a[2 * i + 1] + im


cdef void sub_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a - b[0]"""
    cdef Py_ssize_t i
    cdef floating re = b[0], im = b[1]
    for i in range(n):
        y[2 * i] = a[2 * i] - re
        y[2 * i + 1] = a[2 * i + 1] - im


cdef void mul_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a * b[0]"""
    cdef Py_ssize_t i
    cdef floating c = b[0], d = b[1], re, im
    for i in range(n):
        multiply(a[2 * i], a[2 * i + 1], c, d, &re, &im)
        y[2 * i] = re
        y[2 * i + 1] = im


cdef inline void divide(floating a, floating b, floating c, floating d, floating* re,
                        floating* im) noexcept nogil:
    """re + im i := (a + b i) / (c + d i), NaN where an intermediate result is out of range.

    Products of float32 are in range as doubles, which have the digits for one division; others are
    scaled by the power of two that brings the larger part of the divisor into [2, 4), which rounds
    nothing.
    """
    cdef double e, f, g, h, scale, square
    if floating is float:
        e, f, g, h = a, b, c, d
        scale = 1 / (rounded(g * g) + rounded(h * h))
        re[0] = <float>((rounded(e * g) + rounded(f * h)) * scale)
        im[0] = <float>((rounded(f * g) - rounded(e * h)) * scale)
    else:
        scale = magnitude(c) if magnitude(c) >= magnitude(d) else magnitude(d)
        scale = from_bits64(~bits64(scale) & 0x7FF0000000000000ULL)
        g, h = c * scale, d * scale
        square = rounded(g * g) + rounded(h * h)
        e, f = a * scale, b * scale
        re[0] = (rounded(e * g) + rounded(f * h)) / square
        im[0] = (rounded(f * g) - rounded(e * h)) / square


cdef void recover(floating a, floating b, floating c, floating d, floating* y) noexcept nogil:
    """y := (a + b i) / (c + d i) where `divide` gives NaN, by the C standard (annex G.5.1): a
    quotient by zero is infinite, one by an infinity is zero."""
    cdef floating inf = infinity(a), zero = 0, one = 1
    cdef floating e = magnitude(a), f = magnitude(b), g = magnitude(c), h = magnitude(d)
    if (c == 0) & (d == 0) and not (a != a and b != b):
        y[0] = with_sign(inf, c) * a
        y[1] = with_sign(inf, c) * b
    elif (e == inf or f == inf) and g < inf and h < inf:
        a = with_sign(one if e == inf else zero, a)
        b = with_sign(one if f == inf else zero, b)
        y[0] = inf * (a * c + b * d)
        y[1] = inf * (b * c - a * d)
    elif (g == inf or h == inf) and e < inf and f < inf:
        c = with_sign(one if g == inf else zero, c)
        d = with_sign(one if h == inf else zero, d)
        y[0] = zero * (a * c + b * d)
        y[1] = zero * (b * c - a * d)
    elif e < inf and f < inf and g < inf and h < inf:
        # an intermediate result was out of range: Smith's quotients
        if g >= h:
            e = d / c
            f = c + d * e
            y[0], y[1] = (a + b * e) / f, (b - a * e) / f
        else:
            e = c / d
            f = d + c * e
            y[0], y[1] = (a * e + b) / f, (b * e - a) / f


cdef void div_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a / b"""
    cdef Py_ssize_t i, start, stop
    cdef floating re, im
    cdef floating[2 * BLOCK] found
    cdef int lost
    start = 0
    while start < n:
        stop = min(n, start + BLOCK)
        lost = 0
        for i in range(start, stop):
            divide(a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1], &re, &im)
            found[2 * (i - start)] = re
            found[2 * (i - start) + 1] = im
            lost |= (re != re) | (im != im)
        if lost:
            for i in range(start, stop):
                if found[2 * (i - start)] != found[2 * (i - start)] or (
                        found[2 * (i - start) + 1] != found[2 * (i - start) + 1]):
                    recover(a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1],
                            &found[2 * (i - start)])
        for i in range(2 * (stop - start)):
            y[2 * start + i] = found[i]
        start = stop


cdef void addcmul_run(const floating* x, const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := x + a * b"""
    cdef Py_ssize_t i
    cdef floating re, im
    for i in range(n):
        multiply(a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1], &re, &im)
        y[2 * i] = x[2 * i] + re
        y[2 * i + 1] = x[2 * i + 1] + im


cdef void addcdiv_run(const floating* x, const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := x + a / b"""
    cdef Py_ssize_t i, count, start = 0
    cdef floating[2 * BLOCK] quotients
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        div_run(a + 2 * start, b + 2 * start, quotients, count)
        for i in range(2 * count):
            y[2 * start + i] = x[2 * start + i] + quotients[i]
        start += count


cdef void addcmul_scaled_run(const floating* x, const floating* a, const floating* b,
                             const floating* v, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a * b"""
    cdef Py_ssize_t count, start = 0
    cdef floating[2 * BLOCK] products
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        mul_run(a + 2 * start, v + 2 * start, products, count)
        addcmul_run(x + 2 * start, products, b + 2 * start, y + 2 * start, count)
        start += count


cdef void addcdiv_scaled_run(const floating* x, const floating* a, const floating* b,
                             const floating* v, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a / b"""
    cdef Py_ssize_t count, start = 0
    cdef floating[2 * BLOCK] products
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        mul_run(a + 2 * start, v + 2 * start, products, count)
        addcdiv_run(x + 2 * start, products, b + 2 * start, y + 2 * start, count)
        start += count


cdef void lerp_run(const floating* a, const floating* b, const floating* w, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a + w * (b - a), from the nearer end, so that a and b come out exactly"""
    cdef Py_ssize_t i
    cdef floating re, im, from_re, from_im, c, d, one = 1, quarter = 0.25
    cdef bint near
    for i in range(n):
        c, d = w[2 * i], w[2 * i + 1]
        near = rounded(c * c) + rounded(d * d) < quarter
        from_re, from_im = a[2 * i], a[2 * i + 1]
        re, im = b[2 * i], b[2 * i + 1]
        multiply(c if near else c - one, d, re - from_re, im - from_im, &c, &d)
        y[2 * i] = (from_re if near else re) + c
        y[2 * i + 1] = (from_im if near else im) + d


cdef void neg_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := -x"""
    cdef Py_ssize_t i
    for i in range(2 * n):
        y[i] = -x[i]


cdef void conj_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := the conjugate of x: as integers, which are vectorised without taking parts apart"""
    cdef Py_ssize_t i
    if floating is float:
        for i in range(n):
            (<uint32_t*>y)[2 * i] = (<const uint32_t*>x)[2 * i]
            (<uint32_t*>y)[2 * i + 1] = (<const uint32_t*>x)[2 * i + 1] ^ (<uint32_t>1 << 31)
    else:
        for i in range(n):
            (<uint64_t*>y)[2 * i] = (<const uint64_t*>x)[2 * i]
            (<uint64_t*>y)[2 * i + 1] = (<const uint64_t*>x)[2 * i + 1] ^ (<uint64_t>1 << 63)


cdef inline floating length(floating a, floating b) noexcept nogil:
    """|a + b i|; of float32 the squares are in range as doubles"""
    cdef floating inf = infinity(a)
    cdef double square
    if floating is float:
        square = rounded(<double>a * a) + rounded(<double>b * b)
        return inf if (magnitude(a) == inf) | (magnitude(b) == inf) else <float>sqrt(square)
    else:
        return hypotenuse(a, b)


cdef inline bint has_root(floating a, floating b, floating square) noexcept nogil:
    """Whether a**2 + b**2 is in range, so that its root is accurate"""
    cdef floating least = 1e-30 if floating is float else 1e-280
    cdef floating most = 1e37 if floating is float else 1e300
    return ((square >= least) & (square <= most)) | ((a == 0) & (b == 0))


cdef void abs_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := |x|, which is real: the root of the squares where these are in range"""
    cdef Py_ssize_t i, block, start, stop
    cdef floating a, b, square
    cdef int lost
    for block in range((n + BLOCK - 1) // BLOCK):
        start, lost = block * BLOCK, 0
        stop = min(n, start + BLOCK)
        for i in range(start, stop):
            a, b = x[2 * i], x[2 * i + 1]
            square = rounded(a * a) + rounded(b * b)
            y[i] = sqrt(square)
            lost |= not has_root(a, b, square)
        if lost:
            for i in range(start, stop):
                a, b = x[2 * i], x[2 * i + 1]
                if not has_root(a, b, rounded(a * a) + rounded(b * b)):
                    y[i] = length(a, b)


cdef void sgn_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x / |x|, and 0 where x is 0"""
    cdef Py_ssize_t i, count, start = 0
    cdef floating[BLOCK] sizes
    cdef floating[2 * BLOCK] of_parts
    cdef floating size, one = 1, zero = 0
    while start < n:
        count = min(n - start, <Py_ssize_t>BLOCK)
        abs_run(x, sizes, count)
        for i in range(count):               # so that the quotients are vectorised
            of_parts[2 * i] = sizes[i]
            of_parts[2 * i + 1] = sizes[i]
        for i in range(2 * count):
            size = one if of_parts[i] == 0 else of_parts[i]
            y[i] = zero if of_parts[i] == 0 else x[i] / size
        x += 2 * count
        y += 2 * count
        start += count


cdef void prod_row(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := the product of n numbers, n at least LANES, some of which are multiplied side by side"""
    cdef floating[2 * MOST_LANES] left, right
    cdef floating* found = left
    cdef floating* other = right
    cdef Py_ssize_t lanes = MOST_LANES if n >= 2 * MOST_LANES else LANES, i
    cdef Py_ssize_t rest = n % lanes, half = lanes
    for i in range(2 * lanes):
        found[i] = x[i]
    for i in range(1, n // lanes):
        mul_run(found, x + 2 * i * lanes, other, lanes)
        found, other = other, found
    if rest:
        mul_run(found, x + 2 * (n - rest), other, rest)
        for i in range(2 * rest):
            found[i] = other[i]
    while half > 1:
        half //= 2
        mul_run(found, found + 2 * half, other, half)
        found, other = other, found
    y[0], y[1] = found[0], found[1]


cdef void prod_fold(void* tag, const floating* x, const floating* c, floating* y, Py_ssize_t outer,
                    Py_ssize_t n, Py_ssize_t inner, Py_ssize_t begin, Py_ssize_t end,
                    Py_ssize_t slice_step, Py_ssize_t step) noexcept nogil:
    """y := the product of x over n; as the loops of reduce.pyx"""
    cdef Py_ssize_t o, i, j
    cdef floating re, im
    cdef const floating* row
    cdef floating* into
    for o in range(outer):
        into = y + 2 * o * inner
        row = x + 2 * o * slice_step
        if inner == 1:
            if n >= LANES:
                prod_row(row, into, n)
                continue
            re, im = row[0], row[1]
            for i in range(1, n):
                multiply(re, im, row[2 * i], row[2 * i + 1], &re, &im)
            into[0], into[1] = re, im
            continue
        for j in range(2 * begin, 2 * end):
            into[j] = row[j]
        for i in range(1, n):
            row += 2 * step
            for j in range(begin, end):
                multiply(into[2 * j], into[2 * j + 1], row[2 * j], row[2 * j + 1], &re, &im)
                into[2 * j] = re
                into[2 * j + 1] = im


cdef inline void invert(floating c, floating d, floating* re, floating* im) noexcept nogil:
    """re + im i := 1 / (c + d i), NaN where an intermediate result is out of range"""
    cdef double g, h, scale, square
    if floating is float:
        g, h = c, d
        square = 1 / (rounded(g * g) + rounded(h * h))
        re[0], im[0] = <float>(g * square), <float>(-h * square)
    else:
        scale = magnitude(c) if magnitude(c) >= magnitude(d) else magnitude(d)
        scale = from_bits64(~bits64(scale) & 0x7FF0000000000000ULL)
        g, h = c * scale, d * scale
        square = rounded(g * g) + rounded(h * h)
        re[0], im[0] = g / square * scale, -h / square * scale


cdef void reciprocal_run(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := 1 / x"""
    cdef Py_ssize_t i, block, start, stop
    cdef floating re, im, zero = 0, one = 1
    cdef floating[2 * BLOCK] found
    cdef int lost
    for block in range((n + BLOCK - 1) // BLOCK):
        start, lost = block * BLOCK, 0
        stop = min(n, start + BLOCK)
        for i in range(start, stop):
            invert(x[2 * i], x[2 * i + 1], &re, &im)
            found[2 * (i - start)] = re
            found[2 * (i - start) + 1] = im
            lost |= (re != re) | (im != im)
        if lost:
            for i in range(start, stop):
                if found[2 * (i - start)] != found[2 * (i - start)] or (
                        found[2 * (i - start) + 1] != found[2 * (i - start) + 1]):
                    recover(one, zero, x[2 * i], x[2 * i + 1], &found[2 * (i - start)])
        for i in range(2 * (stop - start)):
            y[2 * start + i] = found[i]


include "complex_powers.pxi"


def reductions():
    """(name, input dtypes, output dtype, address) of every loop that reduces"""
    return rows_for(COMPLEX, [("prod", <size_t>&prod_fold[float], <size_t>&prod_fold[double])])


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(COMPLEX, [
        ("neg", <size_t>&neg_run[float], <size_t>&neg_run[double]),
        ("conj", <size_t>&conj_run[float], <size_t>&conj_run[double]),
        ("sgn", <size_t>&sgn_run[float], <size_t>&sgn_run[double]),
        ("sqrt", <size_t>&root_run[float], <size_t>&root_run[double]),
        ("reciprocal", <size_t>&reciprocal_run[float], <size_t>&reciprocal_run[double]),
    ]) + rows_for(COMPLEX, [
        ("add", <size_t>&add_run[float], <size_t>&add_run[double]),
        ("sub", <size_t>&sub_run[float], <size_t>&sub_run[double]),
        ("mul", <size_t>&mul_run[float], <size_t>&mul_run[double]),
        ("div", <size_t>&div_run[float], <size_t>&div_run[double]),
        ("pow", <size_t>&pow_run[float], <size_t>&pow_run[double]),
        ("pow_number", <size_t>&pow_number_run[float], <size_t>&pow_number_run[double]),
        ("zmul", <size_t>&zmul_run[float], <size_t>&zmul_run[double]),
        ("add_number", <size_t>&add_number_run[float], <size_t>&add_number_run[double]),
        ("sub_number", <size_t>&sub_number_run[float], <size_t>&sub_number_run[double]),
        ("mul_number", <size_t>&mul_number_run[float], <size_t>&mul_number_run[double]),
    ], 2) + rows_for(COMPLEX, [
        ("addcmul", <size_t>&addcmul_run[float], <size_t>&addcmul_run[double]),
        ("addcdiv", <size_t>&addcdiv_run[float], <size_t>&addcdiv_run[double]),
        ("lerp", <size_t>&lerp_run[float], <size_t>&lerp_run[double]),
    ], 3) + rows_for(COMPLEX, [
        ("addcmul_scaled", <size_t>&addcmul_scaled_run[float], <size_t>&addcmul_scaled_run[double]),
        ("addcdiv_scaled", <size_t>&addcdiv_scaled_run[float], <size_t>&addcdiv_scaled_run[double]),
    ], 4) + [
        ("abs", ("complex64",), "float32", <size_t>&abs_run[float]),
        ("abs", ("complex128",), "float64", <size_t>&abs_run[double])]
