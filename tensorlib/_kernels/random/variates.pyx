"""Random numbers whose distribution has parameters for each element: by rejection or inversion.

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    void one(uint64_t seed, uint64_t offset, const double* a, double* y, begin, end)
    void two(uint64_t seed, uint64_t offset, const double* a, const double* b, double* y, begin,
             end)

They write y[begin:end]; element i takes as many words as it needs from counters of its own, so that
it is the same whatever part is filled by whom. `gamma` and `log_gamma` give gamma numbers of shape
a > 0 and scale 1, and their logarithms; `poisson` those of rate a >= 0; `binomial` how many of a
trials of chance b succeed.

Sources: Salmon, Moraes, Dror & Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011);
Marsaglia & Tsang, A Simple Method for Generating Gamma Variables (ACM TOMS 26, 2000); Hoermann, The
Transformed Rejection Method for Generating Poisson Random Variables (Insurance: Mathematics and
Economics 12, 1993) and The Generation of Binomial Random Variates (Journal of Statistical
Computation and Simulation 46, 1993).
"""

from libc.math cimport floor
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tensorlib._kernels.vecmath.basics cimport infinity, magnitude, nan, sqrt
from tensorlib._kernels.vecmath.exp cimport exp
from tensorlib._kernels.vecmath.gamma cimport lgamma_positive
from tensorlib._kernels.vecmath.log cimport log, log1p
from tensorlib._kernels.vecmath.trig cimport cos

cdef enum:
    ROUNDS = 10
    FEW = 12                 # rates below go by inversion
    ATTEMPTS = 10000         # each of which succeeds more often than not

cdef struct Stream:
    uint64_t seed, offset, element
    uint32_t block           # the next one
    int held                 # of the two numbers of the last block, how many were not used yet
    double first, second


cdef inline double pair(uint64_t seed, uint64_t offset, uint64_t element, uint32_t block,
                        double* second) noexcept nogil:
    """Two numbers in (0, 1), of 53 bits and one half each."""
    cdef uint32_t a = <uint32_t>element, b = <uint32_t>(element >> 32) ^ (block << 12)
    cdef uint32_t c = <uint32_t>offset, d = <uint32_t>(offset >> 32)
    cdef uint32_t key0 = <uint32_t>seed, key1 = <uint32_t>(seed >> 32)
    cdef uint64_t p, q
    cdef int r
    for r in range(ROUNDS):
        p = <uint64_t>a * <uint64_t>0xD2511F53
        q = <uint64_t>c * <uint64_t>0xCD9E8D57
        a = <uint32_t>(q >> 32) ^ b ^ key0
        b = <uint32_t>q
        c = <uint32_t>(p >> 32) ^ d ^ key1
        d = <uint32_t>p
        key0 += <uint32_t>0x9E3779B9
        key1 += <uint32_t>0xBB67AE85
    second[0] = unit(<uint64_t>c << 32 | d)
    return unit(<uint64_t>a << 32 | b)


cdef inline double uniform(Stream* stream) noexcept nogil:
    """A number in (0, 1); two come from each block."""
    if stream.held == 0:
        stream.first = pair(stream.seed, stream.offset, stream.element, stream.block,
                            &stream.second)
        stream.block += 1
        stream.held = 2
    stream.held -= 1
    return stream.first if stream.held else stream.second


cdef inline double unit(uint64_t bits) noexcept nogil:
    return (<double>(<int64_t>(bits >> 12)) + 0.5) * (1.0 / 4503599627370496.0)


cdef inline double gamma_parts(double a, Stream* stream, double* boost) noexcept nogil:
    """g and boost: the gamma number is g * exp(boost)"""
    cdef double d, c, x, v, u
    cdef int i
    boost[0] = 0.0
    if not 0 < a < infinity(a):
        return a if a >= 0 else nan(a)
    if a < 1.0:                              # gamma(a) = gamma(a + 1) * u**(1 / a)
        boost[0] = log(uniform(stream)) / a
        a = a + 1.0
    d = a - 0.3333333333333333
    c = 1.0 / (3.0 * sqrt(d))
    for i in range(ATTEMPTS):
        x = sqrt(-2.0 * log(uniform(stream))) * cos(6.283185307179586 * uniform(stream))
        v = 1.0 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = uniform(stream)
        if u < 1.0 - 0.0331 * (x * x) * (x * x):         # most end here, without a logarithm
            return d * v
        if log(u) < 0.5 * x * x + d - d * v + d * log(v):
            return d * v
    return d


cdef inline double poisson_number(double rate, double none, Stream* stream) noexcept nogil:
    """none: e**-rate, the chance of 0"""
    cdef double u, v, b, a, invalpha, vr, us, k, chance, logarithm
    cdef int i
    if not 0 < rate < infinity(rate):
        return rate
    if rate < FEW:                           # the first number at which the sum of chances is u
        u, k, chance = uniform(stream), 0.0, none
        while u > chance and k < 1000.0:
            u -= chance
            k += 1.0
            chance *= rate / k
        return k
    logarithm = log(rate)
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    invalpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2.0)
    for i in range(ATTEMPTS):
        u, v = uniform(stream) - 0.5, uniform(stream)
        us = 0.5 - magnitude(u)
        k = floor((2.0 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= vr:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if log(v * invalpha / (a / (us * us) + b)) <= (
                k * logarithm - rate - lgamma_positive(k + 1.0)):
            return k
    return floor(rate)


cdef inline double few_successes(double n, double p, double none, Stream* stream) noexcept nogil:
    """By inversion, for n * p < 10 and p <= 0.5; none: the chance of 0"""
    cdef double u = uniform(stream), k = 0.0, chance = none, odds = p / (1.0 - p)
    while u > chance and k < n and k < 1000.0:
        u -= chance
        k += 1.0
        chance *= odds * (n - k + 1.0) / k
    return k


cdef inline double many_successes(double n, double p, Stream* stream) noexcept nogil:
    """By rejection, for n * p >= 10 and p <= 0.5"""
    cdef double spread = sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * spread, u, v, us, k
    cdef double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, vr = 0.92 - 4.2 / b
    cdef double m = floor((n + 1.0) * p), alpha = 0.0, odds = 0.0, top = -1.0
    cdef int i
    for i in range(ATTEMPTS):
        u, v = uniform(stream) - 0.5, uniform(stream)
        us = 0.5 - magnitude(u)
        k = floor((2.0 * a / us + b) * u + c)
        if us >= 0.07 and v <= vr:           # most end here, without a logarithm
            return k
        if k < 0 or k > n:
            continue
        if top < 0:
            alpha = (2.83 + 5.1 / b) * spread
            odds = log(p / (1.0 - p))
            top = lgamma_positive(m + 1.0) + lgamma_positive(n - m + 1.0)
        if log(v * alpha / (a / (us * us) + b)) <= (
                top - lgamma_positive(k + 1.0) - lgamma_positive(n - k + 1.0) + (k - m) * odds):
            return k
    return m


cdef inline double binomial_number(double n, double p, double none,
                                   Stream* stream) noexcept nogil:
    """none: the chance of no success, of what is rarer of success and failure"""
    cdef double less = 1.0 - p if p > 0.5 else p, k
    if not (0 <= n < infinity(n) and 0 <= p <= 1.0):
        return nan(n)
    if n * less < 10.0:
        k = few_successes(n, less, none, stream)
    else:
        k = many_successes(n, less, stream)
    return n - k if p > 0.5 else k


cdef inline Stream stream_of(uint64_t seed, uint64_t offset, Py_ssize_t i) noexcept nogil:
    cdef Stream stream
    stream.seed, stream.offset, stream.element = seed, offset, <uint64_t>i
    stream.block, stream.held = 0, 0
    return stream


cdef inline void pairs(uint64_t seed, uint64_t offset, Py_ssize_t begin, Py_ssize_t count,
                       uint32_t block, double* first, double* second) noexcept nogil:
    """A block of the streams of up to 64 elements in a row: drawn side by side in vectors."""
    cdef Py_ssize_t i
    for i in range(count):
        first[i] = pair(seed, offset, <uint64_t>(begin + i), block, second + i)


cdef void gamma_block(uint64_t seed, uint64_t offset, const double* a, Py_ssize_t begin,
                      Py_ssize_t count, double* g, double* boost) noexcept nogil:
    """`gamma_parts` of up to 64 elements, of which most need no second attempt: the first one of
    all in vectors, in 64 lanes however many count, so that no tail is computed otherwise."""
    cdef double[64] first, second, third, fourth, shape, end
    cdef bint done[64]
    cdef double d, x, v, u, size
    cdef Stream stream
    cdef Py_ssize_t i
    for i in range(64):
        shape[i] = a[min(i, count - 1)]
    pairs(seed, offset, begin, 64, 0, first, second)
    pairs(seed, offset, begin, 64, 1, third, fourth)
    for i in range(64):
        u = log(first[i]) / shape[i]
        boost[i] = u if shape[i] < 1.0 else 0.0
    for i in range(64):
        x = second[i] if shape[i] < 1.0 else first[i]
        end[i] = sqrt(-2.0 * log(x))
    for i in range(64):
        u = third[i] if shape[i] < 1.0 else second[i]
        end[i] *= cos(6.283185307179586 * u)
    for i in range(64):
        u = fourth[i] if shape[i] < 1.0 else third[i]
        size = shape[i] + 1.0 if shape[i] < 1.0 else shape[i]
        d = size - 0.3333333333333333
        x = end[i]
        v = 1.0 + 1.0 / (3.0 * sqrt(d)) * x
        g[i] = d * (v * v * v)
        done[i] = (v > 0) & (u < 1.0 - 0.0331 * (x * x) * (x * x)) & (shape[i] > 0) & (
            shape[i] < infinity(d))
    for i in range(count):
        if not done[i]:
            stream = stream_of(seed, offset, begin + i)
            g[i] = gamma_parts(a[i], &stream, boost + i)


cdef void gamma_run(uint64_t seed, uint64_t offset, const double* a, double* y, Py_ssize_t begin,
                    Py_ssize_t end) noexcept nogil:
    cdef double[64] g, boost
    cdef Py_ssize_t i, start, count
    for start in range(begin, end, 64):
        count = min(end - start, <Py_ssize_t>64)
        gamma_block(seed, offset, a + start, start, count, g, boost)
        for i in range(64):
            g[i] *= exp(boost[i])
        for i in range(count):
            y[start + i] = g[i]


cdef void log_gamma_run(uint64_t seed, uint64_t offset, const double* a, double* y,
                        Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef double[64] g, boost
    cdef Py_ssize_t i, start, count
    for start in range(begin, end, 64):
        count = min(end - start, <Py_ssize_t>64)
        gamma_block(seed, offset, a + start, start, count, g, boost)
        for i in range(64):
            g[i] = log(g[i]) + boost[i]
        for i in range(count):
            y[start + i] = g[i]


cdef inline Stream begun(uint64_t seed, uint64_t offset, Py_ssize_t i, double first,
                         double second) noexcept nogil:
    """The stream of an element whose first block is these numbers."""
    cdef Stream stream = stream_of(seed, offset, i)
    stream.block, stream.held, stream.first, stream.second = 1, 2, first, second
    return stream


cdef void poisson_run(uint64_t seed, uint64_t offset, const double* a, double* y, Py_ssize_t begin,
                      Py_ssize_t end) noexcept nogil:
    cdef double first[64]
    cdef double second[64]
    cdef double none[64]
    cdef Stream stream
    cdef Py_ssize_t i, start, count
    for start in range(begin, end, 64):
        count = min(end - start, <Py_ssize_t>64)
        pairs(seed, offset, start, count, 0, first, second)
        for i in range(count):
            none[i] = exp(-a[start + i])
        for i in range(count):
            stream = begun(seed, offset, start + i, first[i], second[i])
            y[start + i] = poisson_number(a[start + i], none[i], &stream)


cdef void binomial_run(uint64_t seed, uint64_t offset, const double* a, const double* b, double* y,
                       Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef double first[64]
    cdef double second[64]
    cdef double none[64]
    cdef double p
    cdef Stream stream
    cdef Py_ssize_t i, start, count
    for start in range(begin, end, 64):
        count = min(end - start, <Py_ssize_t>64)
        pairs(seed, offset, start, count, 0, first, second)
        for i in range(count):
            p = b[start + i]
            p = 1.0 - p if p > 0.5 else p
            none[i] = exp(a[start + i] * log1p(-p))
        for i in range(count):
            stream = begun(seed, offset, start + i, first[i], second[i])
            y[start + i] = binomial_number(a[start + i], b[start + i], none[i], &stream)


def table():
    one = [("gamma", <size_t>&gamma_run), ("log_gamma", <size_t>&log_gamma_run),
           ("poisson", <size_t>&poisson_run)]
    return [(kind, ("float64",), "float64", address) for kind, address in one] + [
        ("binomial", ("float64", "float64"), "float64", <size_t>&binomial_run)]
