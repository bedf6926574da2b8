"""Random numbers that are a function of (seed, offset, i): Philox4x32-10.

A row of `table()` is (kind, input dtypes, output dtype, address), with the signatures

    void fill(uint64_t seed, uint64_t offset, T* y, Py_ssize_t begin, Py_ssize_t end)
    void integers(uint64_t seed, uint64_t offset, int64_t low, uint64_t span, int64_t* y,
                  Py_ssize_t begin, Py_ssize_t end)

They write y[begin:end]; element i does not depend on how the array is cut into parts. The generator
takes a new offset for each array: offsets are independent streams of 2**66 words each. `bits` are
raw 64 bits, `uniform` lies in [0, 1) with 24 or 53 bits, `normal` has mean 0 and variance 1,
`integers` lie in [low, low + span), where span 0 stands for 2**64.

Words come in groups of 64 from 16 counters: word w of counter c stands at 16 * w + c, so that the
sixteen run in vector registers.

Source: Salmon, Moraes, Dror & Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from tensorlib._kernels.vecmath.basics cimport floating, sqrt
from tensorlib._kernels.vecmath.log cimport log
from tensorlib._kernels.vecmath.trig cimport cos, cos_sin_turn, sin

ctypedef fused number:
    float
    double
    uint64_t

cdef enum Law:
    BITS
    UNIFORM
    NORMAL

cdef enum:
    WORDS = 64       # in a group: 64 elements of float32, 32 of a type of 64 bits


cdef extern from "random/philox_group.h" nogil:
    # the words of counters 16 * group to 16 * group + 15 of stream `offset`
    void philox "philox_group"(uint64_t seed, uint64_t offset, uint64_t group, uint32_t* words)


cdef inline uint64_t pair(const uint32_t* words, int i) noexcept nogil:
    """The 64 bits of element i of a group."""
    return <uint64_t>words[i] << 32 | words[WORDS // 2 + i]


cdef inline void group_bits(const uint32_t* words, uint64_t* y) noexcept nogil:
    cdef int i
    for i in range(WORDS // 2):
        y[i] = pair(words, i)


cdef inline void group_uniform(const uint32_t* words, floating* y) noexcept nogil:
    cdef int i
    if floating is float:
        for i in range(WORDS):
            y[i] = <float>(<int>(words[i] >> 8)) * <float>(1.0 / 16777216.0)
    else:
        for i in range(WORDS // 2):
            y[i] = <double>(<int64_t>(pair(words, i) >> 11)) * (1.0 / 9007199254740992.0)


cdef inline void group_normal(const uint32_t* words, floating* y) noexcept nogil:
    """Box-Muller: sqrt(-2 log u) * (cos, sin)(2 pi v), u in (0, 1] so that the log is finite.

    float32 takes u from 32 bits, so it reaches 6.7 standard deviations; float64 reaches 8.5.
    """
    cdef int half = WORDS // 2 if floating is float else WORDS // 4
    cdef floating u, angle, radius, cosine, sine
    cdef floating turn = 6.283185307179586
    cdef floating two = 2
    cdef floating unit32 = 1.0 / 4294967296.0
    cdef floating unit24 = 1.0 / 16777216.0
    cdef floating unit53 = 1.0 / 9007199254740992.0
    cdef int i
    for i in range(half):
        if floating is float:
            u = (<floating>words[i] + <floating>0.5) * unit32
            cosine = cos_sin_turn(<floating>(<int>(words[half + i] >> 8)) * unit24, &sine)
        else:
            u = <floating>(<int64_t>(pair(words, i) >> 11) + 1) * unit53
            angle = <floating>(<int64_t>(pair(words, half + i) >> 11)) * unit53 * turn
            cosine, sine = cos(angle), sin(angle)
        radius = sqrt(-two * log(u))
        y[i] = radius * cosine
        y[half + i] = radius * sine


cdef inline void group_of(Law law, const uint32_t* words, number* y) noexcept nogil:
    """The elements of a group; the distribution is a constant at every call."""
    if number is uint64_t:
        group_bits(words, y)
    elif law == UNIFORM:
        group_uniform(words, y)
    else:
        group_normal(words, y)


cdef inline uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil:
    """The upper 64 bits of a * b."""
    cdef uint64_t low = 0xFFFFFFFF
    cdef uint64_t middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32)
    return (a >> 32) * (b >> 32) + (middle >> 32) + ((a & low) * (b >> 32) + (middle & low) >> 32)


cdef inline void copy_part(const number* values, number* y, Py_ssize_t first, Py_ssize_t size,
                           Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Writes the elements of a group from element `first` on that are in [begin, end)."""
    cdef Py_ssize_t i
    for i in range(max(first, begin), min(first + size, end)):
        y[i] = values[i - first]


cdef inline void fill(Law law, uint64_t seed, uint64_t offset, number* y, Py_ssize_t begin,
                      Py_ssize_t end) noexcept nogil:
    """Writes whole groups in place, and the parts of the first and the last one through a
    buffer."""
    cdef uint32_t words[WORDS]
    cdef number values[WORDS]
    cdef Py_ssize_t size = WORDS * sizeof(uint32_t) // sizeof(number)
    cdef Py_ssize_t group = begin // size
    while group * size < end:
        philox(seed, offset, group, words)
        if group * size >= begin and group * size + size <= end:
            group_of(law, words, y + group * size)
        else:
            group_of(law, words, <number*>values)
            copy_part(<const number*>values, y, group * size, size, begin, end)
        group += 1


cdef void fill_bits(uint64_t seed, uint64_t offset, uint64_t* y, Py_ssize_t begin,
                    Py_ssize_t end) noexcept nogil:
    fill(BITS, seed, offset, y, begin, end)


cdef void fill_uniform(uint64_t seed, uint64_t offset, floating* y, Py_ssize_t begin,
                       Py_ssize_t end) noexcept nogil:
    fill(UNIFORM, seed, offset, y, begin, end)


cdef void fill_normal(uint64_t seed, uint64_t offset, floating* y, Py_ssize_t begin,
                      Py_ssize_t end) noexcept nogil:
    fill(NORMAL, seed, offset, y, begin, end)


cdef void fill_integers(uint64_t seed, uint64_t offset, int64_t low, uint64_t span, int64_t* y,
                        Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := low + floor(bits * span / 2**64): no value is off by more than span / 2**64"""
    cdef Py_ssize_t i
    cdef uint64_t half = 0xFFFFFFFF
    cdef uint64_t* bits = <uint64_t*>y
    fill_bits(seed, offset, bits, begin, end)
    if 0 < span <= half:                 # the same in two products
        for i in range(begin, end):
            bits[i] = <uint64_t>low + (
                ((bits[i] >> 32) * span + ((bits[i] & half) * span >> 32)) >> 32)
        return
    for i in range(begin, end):
        bits[i] = <uint64_t>low + (high_product(bits[i], span) if span else bits[i])


def table():
    return [
        ("bits", (), "uint64", <size_t>&fill_bits),
        ("uniform", (), "float32", <size_t>&fill_uniform[float]),
        ("uniform", (), "float64", <size_t>&fill_uniform[double]),
        ("normal", (), "float32", <size_t>&fill_normal[float]),
        ("normal", (), "float64", <size_t>&fill_normal[double]),
        ("integers", (), "int64", <size_t>&fill_integers),
    ]
