"""Loops of clamp, relu and threshold, of extremes of two integers, and of others that take three:
lerp, addcmul, addcdiv.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from tensorlib._kernels.bounds cimport bounded, from_nearer_end, with_product
from tensorlib._kernels.numbers cimport number
from tensorlib._kernels.vecmath cimport floating

cdef void clamp_run(const number* x, const number* low, const number* high, number* y,
                    Py_ssize_t n) noexcept nogil:
    """y := min(max(x, low), high); NaN if any is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = bounded(x[i], low[i], high[i])


cdef void clamp_number_run(const number* x, const number* low, const number* high, number* y,
                           Py_ssize_t n) noexcept nogil:
    """The same between two numbers, in a quarter of the time."""
    cdef number least = low[0], most = high[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = bounded(x[i], least, most)


ctypedef fused whole:
    uint8_t
    int32_t
    int64_t


cdef void maximum_run(const whole* a, const whole* b, whole* y, Py_ssize_t n) noexcept nogil:
    """y := the larger of a and b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if a[i] > b[i] else b[i]


cdef void minimum_run(const whole* a, const whole* b, whole* y, Py_ssize_t n) noexcept nogil:
    """y := the smaller of a and b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if a[i] < b[i] else b[i]


cdef void maximum_number_run(const whole* a, const whole* b, whole* y, Py_ssize_t n) noexcept nogil:
    """y := the larger of a and b[0]"""
    cdef whole bound = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if a[i] > bound else bound


cdef void minimum_number_run(const whole* a, const whole* b, whole* y, Py_ssize_t n) noexcept nogil:
    """y := the smaller of a and b[0]"""
    cdef whole bound = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] if a[i] < bound else bound


cdef void relu_run(const number* x, number* y, Py_ssize_t n) noexcept nogil:
    """y := max(x, 0); NaN stays"""
    cdef Py_ssize_t i
    cdef number zero = 0
    for i in range(n):
        y[i] = zero if x[i] < 0 else x[i]


cdef void threshold_run(const number* x, const number* border, const number* value, number* y,
                        Py_ssize_t n) noexcept nogil:
    """y := value where x <= border, else x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = value[i] if x[i] <= border[i] else x[i]


cdef void lerp_run(const floating* a, const floating* b, const floating* w, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a + w * (b - a), from the nearer end, so that a and b come out exactly"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = from_nearer_end(a[i], b[i], w[i])


# ---- of three ------------------------------------------------------------------------------------

cdef void addcmul_run(const number* x, const number* a, const number* b, number* y,
                      Py_ssize_t n) noexcept nogil:
    """y := x + a * b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = with_product(x[i], a[i], b[i])


cdef void addcdiv_run(const floating* x, const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := x + a / b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] + a[i] / b[i]


cdef void addcmul_scaled_run(const number* x, const number* a, const number* b, const number* v,
                             number* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a * b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] + <number>(a[i] * v[i]) * b[i]


cdef void addcdiv_scaled_run(const floating* x, const floating* a, const floating* b,
                             const floating* v, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a / b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = x[i] + a[i] * v[i] / b[i]


# ---- of three, some of them numbers --------------------------------------------------------------

ctypedef struct Clamp:
    char unused
ctypedef struct Lerp:
    char unused
ctypedef struct Product:
    char unused
ctypedef struct Quotient:
    char unused

ctypedef fused mixable:
    uint8_t
    int32_t
    int64_t
    float
    double

ctypedef fused Three:
    Clamp
    Lerp
    Product
    Quotient

cdef enum:                   # which of the three are runs: a column is a number for each row
    FIRST = 1
    SECOND = 2
    THIRD = 4


cdef inline mixable of_three(Three* op, mixable a, mixable b, mixable c) noexcept nogil:
    if Three is Clamp:
        return bounded(a, b, c)
    elif Three is Lerp and mixable in floating:
        return from_nearer_end(a, b, c)
    elif Three is Product:
        return with_product(a, b, c)
    elif mixable in floating:
        return a + b / c


cdef void mixed_run(Three* op, const mixable* a, const mixable* b, const mixable* c, mixable* y,
                    Py_ssize_t n, int runs) noexcept nogil:
    """The loops above where one of the three is a number, or the last two are: a number stays in a
    register. 256 columns of 256 took half as long again to write out first."""
    cdef mixable p = a[0], q = b[0], r = c[0]
    cdef Py_ssize_t i
    if runs == FIRST | SECOND:
        for i in range(n):
            y[i] = of_three(op, a[i], b[i], r)
    elif runs == FIRST | THIRD:
        for i in range(n):
            y[i] = of_three(op, a[i], q, c[i])
    elif runs == SECOND | THIRD:
        for i in range(n):
            y[i] = of_three(op, p, b[i], c[i])
    else:
        for i in range(n):
            y[i] = of_three(op, a[i], q, r)


cdef void finite_run(const floating* x, const floating* filling, const floating* most, floating* y,
                     Py_ssize_t n) noexcept nogil:
    """y := x between -most and most, filling for NaN"""
    cdef Py_ssize_t i
    cdef floating bounded
    for i in range(n):
        bounded = most[i] if x[i] > most[i] else x[i]
        bounded = -most[i] if bounded < -most[i] else bounded
        y[i] = filling[i] if x[i] != x[i] else bounded


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    dtypes = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
              "float32", "float64")
    clamps = (
        <size_t>&clamp_run[uint8_t], <size_t>&clamp_run[int8_t], <size_t>&clamp_run[int16_t],
        <size_t>&clamp_run[int32_t], <size_t>&clamp_run[int64_t], <size_t>&clamp_run[uint16_t],
        <size_t>&clamp_run[uint32_t], <size_t>&clamp_run[uint64_t], <size_t>&clamp_run[float],
        <size_t>&clamp_run[double])
    numbers = (
        <size_t>&clamp_number_run[uint8_t], <size_t>&clamp_number_run[int8_t],
        <size_t>&clamp_number_run[int16_t], <size_t>&clamp_number_run[int32_t],
        <size_t>&clamp_number_run[int64_t], <size_t>&clamp_number_run[uint16_t],
        <size_t>&clamp_number_run[uint32_t], <size_t>&clamp_number_run[uint64_t],
        <size_t>&clamp_number_run[float], <size_t>&clamp_number_run[double])
    relus = (
        <size_t>&relu_run[uint8_t], <size_t>&relu_run[int8_t], <size_t>&relu_run[int16_t],
        <size_t>&relu_run[int32_t], <size_t>&relu_run[int64_t], <size_t>&relu_run[uint16_t],
        <size_t>&relu_run[uint32_t], <size_t>&relu_run[uint64_t], <size_t>&relu_run[float],
        <size_t>&relu_run[double])
    thresholds = (
        <size_t>&threshold_run[uint8_t], <size_t>&threshold_run[int8_t],
        <size_t>&threshold_run[int16_t], <size_t>&threshold_run[int32_t],
        <size_t>&threshold_run[int64_t], <size_t>&threshold_run[uint16_t],
        <size_t>&threshold_run[uint32_t], <size_t>&threshold_run[uint64_t],
        <size_t>&threshold_run[float], <size_t>&threshold_run[double])
    products = (
        <size_t>&addcmul_run[uint8_t], <size_t>&addcmul_run[int8_t],
        <size_t>&addcmul_run[int16_t], <size_t>&addcmul_run[int32_t],
        <size_t>&addcmul_run[int64_t], <size_t>&addcmul_run[uint16_t],
        <size_t>&addcmul_run[uint32_t], <size_t>&addcmul_run[uint64_t],
        <size_t>&addcmul_run[float], <size_t>&addcmul_run[double])
    scaled = (
        <size_t>&addcmul_scaled_run[uint8_t], <size_t>&addcmul_scaled_run[int8_t],
        <size_t>&addcmul_scaled_run[int16_t], <size_t>&addcmul_scaled_run[int32_t],
        <size_t>&addcmul_scaled_run[int64_t], <size_t>&addcmul_scaled_run[uint16_t],
        <size_t>&addcmul_scaled_run[uint32_t], <size_t>&addcmul_scaled_run[uint64_t],
        <size_t>&addcmul_scaled_run[float], <size_t>&addcmul_scaled_run[double])
    greater = <size_t>&maximum_run[uint8_t], <size_t>&maximum_run[int32_t], (
        <size_t>&maximum_run[int64_t])
    less = <size_t>&minimum_run[uint8_t], <size_t>&minimum_run[int32_t], (
        <size_t>&minimum_run[int64_t])
    greater_number = <size_t>&maximum_number_run[uint8_t], <size_t>&maximum_number_run[int32_t], (
        <size_t>&maximum_number_run[int64_t])
    less_number = <size_t>&minimum_number_run[uint8_t], <size_t>&minimum_number_run[int32_t], (
        <size_t>&minimum_number_run[int64_t])
    extremes = tuple([(name + kind, *addresses) for names, kind, addresses in (
        (("maximum", "fmax"), "", greater), (("maximum", "fmax"), "_number", greater_number),
        (("minimum", "fmin"), "", less), (("minimum", "fmin"), "_number", less_number))
        for name in names])                      # of integers, of which none is NaN
    mixed_wholes = (<size_t>&mixed_run[Clamp, uint8_t], <size_t>&mixed_run[Clamp, int32_t],
                    <size_t>&mixed_run[Clamp, int64_t])
    mixed = (
        ("clamp", <size_t>&mixed_run[Clamp, float], <size_t>&mixed_run[Clamp, double]),
        ("lerp", <size_t>&mixed_run[Lerp, float], <size_t>&mixed_run[Lerp, double]),
        ("addcmul", <size_t>&mixed_run[Product, float], <size_t>&mixed_run[Product, double]),
        ("addcdiv", <size_t>&mixed_run[Quotient, float], <size_t>&mixed_run[Quotient, double]))
    return [(name + "_mixed", (dtype,) * 3, dtype, address)
            for name, single, wide in mixed
            for dtype, address in (("float32", single), ("float64", wide))] + [
        (name, (dtype,) * 2, dtype, address) for name, *addresses in extremes
        for dtype, address in zip(("uint8", "int32", "int64"), addresses)] + [
        ("clamp_mixed", (dtype,) * 3, dtype, address)
        for dtype, address in zip(("uint8", "int32", "int64"), mixed_wholes)] + [
        ("clamp", (dtype,) * 3, dtype, address) for dtype, address in zip(dtypes, clamps)] + [
        ("clamp_number", (dtype,) * 3, dtype, address)
        for dtype, address in zip(dtypes, numbers)] + [
        ("threshold", (dtype,) * 3, dtype, address)
        for dtype, address in zip(dtypes, thresholds)] + [
        ("addcmul", (dtype,) * 3, dtype, address) for dtype, address in zip(dtypes, products)] + [
        ("addcmul_scaled", (dtype,) * 4, dtype, address)
        for dtype, address in zip(dtypes, scaled)] + [
        ("relu", (dtype,), dtype, address) for dtype, address in zip(dtypes, relus)] + [
        ("lerp", ("float32",) * 3, "float32", <size_t>&lerp_run[float]),
        ("lerp", ("float64",) * 3, "float64", <size_t>&lerp_run[double]),
        ("addcdiv", ("float32",) * 3, "float32", <size_t>&addcdiv_run[float]),
        ("addcdiv", ("float64",) * 3, "float64", <size_t>&addcdiv_run[double]),
        ("addcdiv_scaled", ("float32",) * 4, "float32", <size_t>&addcdiv_scaled_run[float]),
        ("addcdiv_scaled", ("float64",) * 4, "float64", <size_t>&addcdiv_scaled_run[double]),
        ("finite", ("float32",) * 3, "float32", <size_t>&finite_run[float]),
        ("finite", ("float64",) * 3, "float64", <size_t>&finite_run[double])]
