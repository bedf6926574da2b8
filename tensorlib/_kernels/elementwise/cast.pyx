"""Loops of conversion between dtypes: y := x in the dtype of y.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`). The half types
round to nearest even, once, from whatever type. Floating point to integer truncates; what does not
fit, and NaN, becomes the smallest int32 or int64, as on x86, of which shorter integers keep the
low bits. So does uint32 of an int64; a uint64 is the uint64 or the int64 that the number fits in,
2**63 for NaN and 0 beyond. Anything to bool is `x != 0`, so NaN is True. A bool is any byte, since
memory that others made has others than 0 and 1: what is not 0 counts as 1. A complex number is two
floating ones, the real part first; what is real is cast to and from that part.
"""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from tensorlib._kernels.types.half_types cimport (
    brain, brain_bits, brain_value, half, half_bits, half_value)
from tensorlib._kernels.types.numbers cimport number
from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, from_bits32, from_bits64, magnitude)

cdef extern from "types/half.h" nogil:
    Py_ssize_t to_half(const float* x, uint16_t* y, Py_ssize_t n)
    Py_ssize_t from_half(const uint16_t* x, float* y, Py_ssize_t n)

cdef extern from "types/truncate.h" nogil:
    int64_t float_to_int64(float x)
    int64_t double_to_int64(double x)

cdef struct truth:  # bool
    uint8_t byte

ctypedef fused source:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint16_t
    uint32_t
    uint64_t
    truth
    half
    brain
    float
    double

ctypedef fused target:       # uint8, which has the low bits that int8 has, for both
    uint8_t
    int16_t
    int32_t
    int64_t
    uint32_t
    uint64_t
    half
    brain
    float
    double


cdef inline float round_to_odd(double x) noexcept nogil:
    """x as a float with its last bit set if digits were lost

    Rounding that to a half type is rounding x once: S. Boldo & G. Melquiond, "Emulation of FMA
    and correctly rounded sums: proved algorithms using rounding to odd", 2008.
    """
    cdef float nearest = <float>x
    cdef double back = nearest
    cdef uint32_t bits = bits32(nearest), beyond = magnitude(back) > magnitude(x), lost = back != x
    return from_bits32((bits - beyond) | lost)


cdef inline float odd_for_half(double x) noexcept nogil:
    """x as a float, likewise, with loops of integers alone: right for float16, whose least numbers
    are normal floats"""
    cdef uint64_t bits = bits64(x), below = (<uint64_t>1 << 29) - 1
    return <float>from_bits64((bits & ~below) | (((bits & below) + below) & (below + 1)))


cdef inline double int64_to_odd(int64_t x) noexcept nogil:
    """x as a double, likewise: what does not fit into 53 digits leaves its trace in the last"""
    cdef int64_t sticky = (x & ~<int64_t>1023) | ((x & 1023) != 0) << 10
    return <double>(x if -(<int64_t>1 << 53) < x < <int64_t>1 << 53 else sticky)


cdef inline float int32_to_odd(int32_t x) noexcept nogil:
    """the same of an int32, in 24 digits"""
    return <float>(x if -16777216 < x < 16777216 else (x & ~127) | <int32_t>((x & 127) != 0) << 7)


cdef inline int32_t truncate_32(floating x) noexcept nogil:
    cdef floating least = -2147483648.0, most = 2147483648.0
    return <int32_t>(x if (x > least) & (x < most) else least)


cdef inline int64_t truncate_64(floating x) noexcept nogil:
    return float_to_int64(x) if floating is float else double_to_int64(x)


cdef inline double uint64_to_odd(uint64_t x) noexcept nogil:
    """the same of an unsigned one"""
    cdef uint64_t sticky = (x & ~<uint64_t>2047) | <uint64_t>((x & 2047) != 0) << 11
    return <double>(x if x < <uint64_t>1 << 53 else sticky)


cdef inline uint64_t truncate_unsigned(floating x) noexcept nogil:
    """x as a uint64, or as the int64 that has its bits, as x86 does it"""
    cdef floating middle = 9223372036854775808.0, most = 18446744073709551616.0
    if (x >= middle) & (x < most):
        return <uint64_t>x
    return 0 if x >= most else <uint64_t>truncate_64(x)


cdef inline float single(number x) noexcept nogil:
    """x as the float that rounds to the half type that x rounds to"""
    if number is double:
        return round_to_odd(x)
    elif number is int64_t:
        return round_to_odd(int64_to_odd(x))
    elif number is uint64_t:
        return round_to_odd(uint64_to_odd(x))
    elif number is int32_t:
        return int32_to_odd(x)
    return round_to_odd(<double>x) if number is uint32_t else <float>x


cdef inline void put(number x, target* y) noexcept nogil:
    """y[0] := x"""
    if target is half:
        y[0].bits = half_bits(single(x))
    elif target is brain:
        y[0].bits = brain_bits(single(x))
    elif target is float or target is double:
        y[0] = <target>x
    elif number is float or number is double:
        if target is int64_t:
            y[0] = truncate_64(x)
        elif target is uint64_t:
            y[0] = truncate_unsigned(x)
        elif target is uint32_t:
            y[0] = <uint32_t>truncate_64(x)
        else:
            y[0] = <target>truncate_32(x)
    else:
        y[0] = <target>x


cdef enum:
    TOGETHER = 256               # numbers that are floats before the processor makes them halves


cdef bint cast_near(const int64_t* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x, unless a number is beyond 2**50: whether none is

    Added to the bits of 1.5 * 2**52 they are digits of a double. AVX2 has no instruction for int64.
    """
    cdef int64_t reach = <int64_t>1 << 50
    cdef uint64_t beyond = 0
    cdef Py_ssize_t i
    for i in range(n):
        beyond |= <uint64_t>x[i] + <uint64_t>reach
    if beyond >> 51:
        return False
    for i in range(n):
        y[i] = <floating>(from_bits64(<uint64_t>x[i] + 0x4338000000000000u) - 6755399441055744.0)
    return True


cdef inline void cast_to_half(const source* x, uint16_t* y, Py_ssize_t n) noexcept nogil:
    """y := at most TOGETHER numbers, by way of floats"""
    cdef float buffer[TOGETHER]
    cdef double near[TOGETHER]
    cdef Py_ssize_t i, first = 0
    if source is int64_t and cast_near(x, near, n):
        for first in range(n):
            buffer[first] = odd_for_half(near[first])
        first = n
    for i in range(first, n):
        if source is truth:
            buffer[i] = <float>(x[i].byte != 0)
        elif source is brain:
            buffer[i] = brain_value(x[i].bits)
        elif source is half:
            buffer[i] = half_value(x[i].bits)
        elif source is double or source is int32_t or source is uint32_t:
            buffer[i] = odd_for_half(<double>x[i])
        else:
            buffer[i] = single(x[i])
    for i in range(to_half(buffer, y, n), n):
        y[i] = half_bits(buffer[i])


cdef inline void cast_from_half(const uint16_t* x, target* y, Py_ssize_t n) noexcept nogil:
    """y := at most TOGETHER halves, by way of floats"""
    cdef float buffer[TOGETHER]
    cdef Py_ssize_t i
    for i in range(from_half(x, buffer, n), n):
        buffer[i] = half_value(x[i])
    for i in range(n):
        put(buffer[i], &y[i])


cdef void cast_run(const source* x, target* y, Py_ssize_t n) noexcept nogil:
    """y := x"""
    cdef Py_ssize_t i, first = 0
    if source is int64_t and (target is float or target is double):
        while first < n:
            i = min(n, first + <Py_ssize_t>TOGETHER)
            if cast_near(x + first, y + first, i - first):
                first = i
            while first < i:
                y[first] = <target>x[first]
                first += 1
    elif source is float and target is half:
        first = to_half(x, <uint16_t*>y, n)
    elif source is half and target is float:
        first = from_half(<const uint16_t*>x, y, n)
    elif source is half and target is not half:
        while first < n:
            cast_from_half(<const uint16_t*>(x + first), y + first,
                           min(<Py_ssize_t>TOGETHER, n - first))
            first += TOGETHER
    elif target is half and source is not half:
        while first < n:
            cast_to_half(x + first, <uint16_t*>(y + first), min(<Py_ssize_t>TOGETHER, n - first))
            first += TOGETHER
    for i in range(first, n):
        if source is half:
            put(half_value(x[i].bits), &y[i])
        elif source is brain:
            put(brain_value(x[i].bits), &y[i])
        elif source is truth and target is brain:        # which is not vectorised by way of floats
            y[i].bits = <uint16_t>-<int16_t>(x[i].byte != 0) & brain_bits(1.0)
        elif source is truth:
            put(<uint8_t>(x[i].byte != 0), &y[i])
        else:
            put(x[i], &y[i])


cdef void cast_bool_run(const source* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x != 0"""
    cdef Py_ssize_t i
    for i in range(n):
        if source is half or source is brain:
            y[i] = (x[i].bits & 0x7FFF) != 0
        elif source is truth:
            y[i] = x[i].byte != 0
        else:
            y[i] = x[i] != 0


cdef void cast_to_complex_run(const source* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x + 0i"""
    cdef Py_ssize_t i
    for i in range(n):
        if source is half:
            put(half_value(x[i].bits), &y[2 * i])
        elif source is brain:
            put(brain_value(x[i].bits), &y[2 * i])
        elif source is truth:
            put(<uint8_t>(x[i].byte != 0), &y[2 * i])
        else:
            put(x[i], &y[2 * i])
        y[2 * i + 1] = 0


cdef void cast_real_part_run(const floating* x, target* y, Py_ssize_t n) noexcept nogil:
    """y := the real part of x"""
    cdef Py_ssize_t i
    for i in range(n):
        put(x[2 * i], &y[i])


cdef void cast_complex_bool_run(const floating* x, uint8_t* y, Py_ssize_t n) noexcept nogil:
    """y := x != 0: as integers, but for the signs, which are vectorised"""
    cdef Py_ssize_t i
    cdef const uint64_t* bits = <const uint64_t*>x
    for i in range(n):
        if floating is float:
            y[i] = bits[i] & 0x7FFFFFFF7FFFFFFFULL != 0
        else:
            y[i] = (bits[2 * i] | bits[2 * i + 1]) << 1 != 0


cdef void cast_complex_run(const number* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x, both complex"""
    cdef Py_ssize_t i
    if number is float or number is double:
        for i in range(2 * n):
            y[i] = <floating>x[i]


SIGNED = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


cdef dict casts_from(source* tag):
    """The casts from a type that has all of them, by the dtype of what they give"""
    return {
        "uint8": <size_t>&cast_run[source, uint8_t], "int8": <size_t>&cast_run[source, uint8_t],
        "int16": <size_t>&cast_run[source, int16_t], "int32": <size_t>&cast_run[source, int32_t],
        "int64": <size_t>&cast_run[source, int64_t], "float16": <size_t>&cast_run[source, half],
        "bfloat16": <size_t>&cast_run[source, brain], "float32": <size_t>&cast_run[source, float],
        "float64": <size_t>&cast_run[source, double], "bool": <size_t>&cast_bool_run[source],
        "complex64": <size_t>&cast_to_complex_run[source, float],
        "complex128": <size_t>&cast_to_complex_run[source, double],
    }


cdef dict casts_from_complex(floating* tag):
    """The same of a complex type; uint16 has the low bits of the integers that int16 has"""
    return {
        "uint8": <size_t>&cast_real_part_run[floating, uint8_t],
        "int8": <size_t>&cast_real_part_run[floating, uint8_t],
        "int16": <size_t>&cast_real_part_run[floating, int16_t],
        "int32": <size_t>&cast_real_part_run[floating, int32_t],
        "int64": <size_t>&cast_real_part_run[floating, int64_t],
        "uint16": <size_t>&cast_real_part_run[floating, int16_t],
        "uint32": <size_t>&cast_real_part_run[floating, uint32_t],
        "uint64": <size_t>&cast_real_part_run[floating, uint64_t],
        "float16": <size_t>&cast_real_part_run[floating, half],
        "bfloat16": <size_t>&cast_real_part_run[floating, brain],
        "float32": <size_t>&cast_real_part_run[floating, float],
        "float64": <size_t>&cast_real_part_run[floating, double],
        "bool": <size_t>&cast_complex_bool_run[floating],
        "complex64": <size_t>&cast_complex_run[floating, float],
        "complex128": <size_t>&cast_complex_run[floating, double],
    }


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    casts = {
        "uint8": casts_from[uint8_t](NULL), "int8": casts_from[int8_t](NULL),
        "int16": casts_from[int16_t](NULL), "int32": casts_from[int32_t](NULL),
        "int64": casts_from[int64_t](NULL), "float16": casts_from[half](NULL),
        "bfloat16": casts_from[brain](NULL), "float32": casts_from[float](NULL),
        "float64": casts_from[double](NULL), "bool": casts_from[truth](NULL),
        "complex64": casts_from_complex[float](NULL),
        "complex128": casts_from_complex[double](NULL),
    }
    found = {(source_dtype, target_dtype): address
             for source_dtype, addresses in casts.items()
             for target_dtype, address in addresses.items()}
    found.update(unsigned_casts(found))
    return [("cast", (source_dtype,), target_dtype, address)
            for (source_dtype, target_dtype), address in found.items()]


def unsigned_casts(found):
    """The casts from and to uint16, uint32 and uint64: the signed ones where the bits agree.

    Integers become shorter ones, and ones of their own width, by their low bits; only what makes
    an unsigned integer wider or a floating number is a loop of its own.
    """
    casts = {
        ("uint16", "int32"): <size_t>&cast_run[uint16_t, int32_t],
        ("uint16", "int64"): <size_t>&cast_run[uint16_t, int64_t],
        ("uint16", "float16"): <size_t>&cast_run[uint16_t, half],
        ("uint16", "bfloat16"): <size_t>&cast_run[uint16_t, brain],
        ("uint16", "float32"): <size_t>&cast_run[uint16_t, float],
        ("uint16", "float64"): <size_t>&cast_run[uint16_t, double],
        ("uint32", "int64"): <size_t>&cast_run[uint32_t, int64_t],
        ("uint32", "float16"): <size_t>&cast_run[uint32_t, half],
        ("uint32", "bfloat16"): <size_t>&cast_run[uint32_t, brain],
        ("uint32", "float32"): <size_t>&cast_run[uint32_t, float],
        ("uint32", "float64"): <size_t>&cast_run[uint32_t, double],
        ("uint64", "float16"): <size_t>&cast_run[uint64_t, half],
        ("uint64", "bfloat16"): <size_t>&cast_run[uint64_t, brain],
        ("uint64", "float32"): <size_t>&cast_run[uint64_t, float],
        ("uint64", "float64"): <size_t>&cast_run[uint64_t, double],
        ("float16", "uint32"): <size_t>&cast_run[half, uint32_t],
        ("bfloat16", "uint32"): <size_t>&cast_run[brain, uint32_t],
        ("float32", "uint32"): <size_t>&cast_run[float, uint32_t],
        ("float64", "uint32"): <size_t>&cast_run[double, uint32_t],
        ("float16", "uint64"): <size_t>&cast_run[half, uint64_t],
        ("bfloat16", "uint64"): <size_t>&cast_run[brain, uint64_t],
        ("float32", "uint64"): <size_t>&cast_run[float, uint64_t],
        ("float64", "uint64"): <size_t>&cast_run[double, uint64_t],
        ("uint16", "complex64"): <size_t>&cast_to_complex_run[uint16_t, float],
        ("uint32", "complex64"): <size_t>&cast_to_complex_run[uint32_t, float],
        ("uint64", "complex64"): <size_t>&cast_to_complex_run[uint64_t, float],
        ("uint16", "complex128"): <size_t>&cast_to_complex_run[uint16_t, double],
        ("uint32", "complex128"): <size_t>&cast_to_complex_run[uint32_t, double],
        ("uint64", "complex128"): <size_t>&cast_to_complex_run[uint64_t, double],
    }
    dtypes = dict.fromkeys([target for _, target in found])      # a generator takes 15 kB of code
    for source_dtype in (*dtypes, *SIGNED):
        for target_dtype in (*dtypes, *SIGNED):
            pair = source_dtype, target_dtype
            if pair in found or pair in casts:
                continue
            if target_dtype in SIGNED and (source_dtype, SIGNED[target_dtype]) in casts:
                casts[pair] = casts[source_dtype, SIGNED[target_dtype]]
            else:
                casts[pair] = found[SIGNED.get(source_dtype, source_dtype),
                                    SIGNED.get(target_dtype, target_dtype)]
    return casts
