"""Loops of clamp, relu and threshold, of extremes of two integers, and of others that take three:
lerp, addcmul, addcdiv.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from tensorlib._kernels.elementwise.bounds cimport (
    bounded, from_nearer_end, summand, with_product, wrapped
)
from tensorlib._kernels.types.numbers cimport number
from tensorlib._kernels.vecmath.basics cimport floating

from tensorlib._kernels import FLOATS, rows_for

cdef void clamp_run(const number* x, const number* low, const number* high, number* y,
                    Py_ssize_t n) noexcept nogil:
    """y := min(max(x, low), high); NaN if any is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = bounded(x[i], low[i], high[i])


cdef void clamp_number_run(const number* x, const number* low, const number* high, number* y,
                           Py_ssize_t n) noexcept nogil:
    """The same with two numbers as bounds, in a quarter of the time."""
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


# ---- of three operands ---------------------------------------------------------------------------

cdef void addcmul_run(const summand* x, const summand* a, const summand* b, summand* y,
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


cdef void addcmul_scaled_run(const summand* x, const summand* a, const summand* b,
                             const summand* v, summand* y, Py_ssize_t n) noexcept nogil:
    """y := x + v * a * b"""
    cdef Py_ssize_t i
    for i in range(n):
        if summand in floating:
            y[i] = x[i] + a[i] * v[i] * b[i]
        else:
            y[i] = with_product(x[i], wrapped(a[i], v[i]), b[i])


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

cdef enum:                   # which of the three are runs; the others are one number
    FIRST = 1
    SECOND = 2
    THIRD = 4


cdef inline mixable of_three(Three* op, mixable a, mixable b, mixable c) noexcept nogil:
    if Three is Clamp:
        return bounded(a, b, c)
    elif Three is Lerp and mixable in floating:
        return from_nearer_end(a, b, c)
    elif Three is Product and mixable in floating:
        return with_product(a, b, c)
    elif mixable in floating:
        return a + b / c


cdef void mixed_run(Three* op, const mixable* a, const mixable* b, const mixable* c, mixable* y,
                    Py_ssize_t n, int runs) noexcept nogil:
    """The loops above, with a number for one of the three operands, or the last two, which stays in
    a register. To write out 256 columns of 256 first took 1.5 times as long."""
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


cdef list rows_of(number* tag, str dtype):
    """The rows of `table()` for loops of all dtypes"""
    return rows_for((dtype,), [("relu", <size_t>&relu_run[number])]) + rows_for((dtype,), [
        ("clamp", <size_t>&clamp_run[number]),
        ("clamp_number", <size_t>&clamp_number_run[number]),
        ("threshold", <size_t>&threshold_run[number]),
    ], 3)


cdef list rows_of_products(summand* tag, tuple dtypes):
    """The rows for sums with products"""
    cdef list rows = []
    for dtype in dtypes:
        rows += rows_for((dtype,), [("addcmul", <size_t>&addcmul_run[summand])], 3)
        rows += rows_for((dtype,), [("addcmul_scaled", <size_t>&addcmul_scaled_run[summand])], 4)
    return rows


cdef list rows_of_extremes(whole* tag, str dtype):
    """The rows for integers, which are never NaN"""
    return rows_for((dtype,), [
        ("maximum", <size_t>&maximum_run[whole]), ("fmax", <size_t>&maximum_run[whole]),
        ("minimum", <size_t>&minimum_run[whole]), ("fmin", <size_t>&minimum_run[whole]),
        ("maximum_number", <size_t>&maximum_number_run[whole]),
        ("fmax_number", <size_t>&maximum_number_run[whole]),
        ("minimum_number", <size_t>&minimum_number_run[whole]),
        ("fmin_number", <size_t>&minimum_number_run[whole]),
    ], 2) + rows_for((dtype,), [("clamp_mixed", <size_t>&mixed_run[Clamp, whole])], 3)


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return [
        *rows_of[uint8_t](NULL, "uint8"), *rows_of[int8_t](NULL, "int8"),
        *rows_of[int16_t](NULL, "int16"), *rows_of[int32_t](NULL, "int32"),
        *rows_of[int64_t](NULL, "int64"), *rows_of[uint16_t](NULL, "uint16"),
        *rows_of[uint32_t](NULL, "uint32"), *rows_of[uint64_t](NULL, "uint64"),
        *rows_of[float](NULL, "float32"), *rows_of[double](NULL, "float64"),
        *rows_of_products[uint8_t](NULL, ("uint8", "int8")),
        *rows_of_products[uint16_t](NULL, ("uint16", "int16")),
        *rows_of_products[uint32_t](NULL, ("uint32", "int32")),
        *rows_of_products[uint64_t](NULL, ("uint64", "int64")),
        *rows_of_products[float](NULL, ("float32",)), *rows_of_products[double](NULL, ("float64",)),
        *rows_of_extremes[uint8_t](NULL, "uint8"), *rows_of_extremes[int32_t](NULL, "int32"),
        *rows_of_extremes[int64_t](NULL, "int64"),
    ] + rows_for(FLOATS, [
        ("lerp", <size_t>&lerp_run[float], <size_t>&lerp_run[double]),
        ("addcdiv", <size_t>&addcdiv_run[float], <size_t>&addcdiv_run[double]),
        ("finite", <size_t>&finite_run[float], <size_t>&finite_run[double]),
        ("clamp_mixed", <size_t>&mixed_run[Clamp, float], <size_t>&mixed_run[Clamp, double]),
        ("lerp_mixed", <size_t>&mixed_run[Lerp, float], <size_t>&mixed_run[Lerp, double]),
        ("addcmul_mixed", <size_t>&mixed_run[Product, float], <size_t>&mixed_run[Product, double]),
        ("addcdiv_mixed", <size_t>&mixed_run[Quotient, float],
         <size_t>&mixed_run[Quotient, double]),
    ], 3) + rows_for(FLOATS, [
        ("addcdiv_scaled", <size_t>&addcdiv_scaled_run[float], <size_t>&addcdiv_scaled_run[double]),
    ], 4)
