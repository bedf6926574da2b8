"""Loops of arithmetic and comparison on two floating-point inputs, and of powers and shifts of
integers.

Every loop sees one contiguous run of n elements (`tensorlib/_kernels/__init__.py`).
"""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy

from tensorlib._kernels.elementwise.bounds cimport modular, wrapped
from tensorlib._kernels.types.numbers cimport number
from tensorlib._kernels.elementwise.powers cimport pow_by_hand, pow_run
from tensorlib._kernels.elementwise.zero_products cimport strong_product
from tensorlib._kernels.vecmath.basics cimport (
    bits32, bits64, floating, from_bits32, from_bits64, infinity, magnitude, sqrt, with_sign)
from tensorlib._kernels.vecmath.hypot cimport hypotenuse

from tensorlib._kernels import FLOATS, rows_for


cdef inline floating larger(floating a, floating b) noexcept nogil:
    cdef floating most = a if a >= b else b
    return a if a != a else most


cdef inline floating smaller(floating a, floating b) noexcept nogil:
    cdef floating least = a if a <= b else b
    return a if a != a else least


cdef void add_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a + b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] + b[i]


cdef void sub_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a - b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] - b[i]


cdef void mul_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a * b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] * b[i]


cdef void div_run(const floating* a, const floating* b, floating* y,
                  Py_ssize_t n) noexcept nogil:
    """y := a / b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] / b[i]


cdef void maximum_run(const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := the larger of a and b; NaN if either is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = larger(a[i], b[i])


cdef void minimum_run(const floating* a, const floating* b, floating* y,
                      Py_ssize_t n) noexcept nogil:
    """y := the smaller of a and b; NaN if either is"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = smaller(a[i], b[i])


cdef void zmul_run(const floating* a, const floating* b, floating* y,
                   Py_ssize_t n) noexcept nogil:
    """y := a * b, but 0 where a == 0 whatever b is (the strong zero of derivatives)"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = strong_product(a[i], b[i])


# ---- with one number as second input -------------------------------------------------------------

cdef void add_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a + b[0]"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] + number


cdef void sub_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a - b[0]"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] - number


cdef void sub_first_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := b - a for one number b"""
    cdef Py_ssize_t i
    cdef floating number = b[0]
    for i in range(n):
        y[i] = number - a[i]


cdef void div_first_run(const floating* a, const floating* b, floating* y,
                        Py_ssize_t n) noexcept nogil:
    """y := b / a for one number b"""
    cdef Py_ssize_t i
    cdef floating number = b[0]
    for i in range(n):
        y[i] = number / a[i]


cdef void mul_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a * b[0]"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] * number


cdef void div_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a / b[0]"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] / number


cdef void maximum_number_run(const floating* a, const floating* b, floating* y,
                             Py_ssize_t n) noexcept nogil:
    """y := the larger of a and b[0]; NaN if either is"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = larger(a[i], number)


cdef void minimum_number_run(const floating* a, const floating* b, floating* y,
                             Py_ssize_t n) noexcept nogil:
    """y := the smaller of a and b[0]; NaN if either is"""
    cdef floating number = b[0]
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = smaller(a[i], number)


cdef void pow_number_run(const floating* a, const floating* b, floating* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a ** b[0]

    The number is repeated in memory: with a constant operand GCC 12 does not vectorise the loop
    of float64, which then takes four times as long.
    """
    cdef floating exponents[256]
    cdef Py_ssize_t i
    if pow_by_hand(a, b[0], y, 0, n):
        return
    for i in range(min(n, <Py_ssize_t>256)):
        exponents[i] = b[0]
    for i in range(0, n, 256):
        pow_run(a + i, <const floating*>exponents, y + i, min(n - i, <Py_ssize_t>256))


# ---- powers of integers --------------------------------------------------------------------------

cdef enum:
    BLOCK = 256              # elements of which powers are taken together

cdef void whole_pow_run(const modular* a, const modular* b, modular* y,
                        Py_ssize_t n) noexcept nogil:
    """y := a ** b for b >= 0, by repeated squaring of a whole block, without a branch for each
    element"""
    cdef modular squares[BLOCK]
    cdef modular exponents[BLOCK]
    cdef modular powers[BLOCK]
    cdef modular bits
    cdef Py_ssize_t i, count
    while n > 0:
        count = min(n, <Py_ssize_t>BLOCK)
        bits = 0
        for i in range(count):
            squares[i], exponents[i], powers[i] = a[i], b[i], 1
            bits |= exponents[i]
        while bits:
            for i in range(count):
                powers[i] = wrapped(powers[i], squares[i] if exponents[i] & 1 else 1)
                squares[i] = wrapped(squares[i], squares[i])
                exponents[i] >>= 1
            bits >>= 1
        for i in range(count):
            y[i] = powers[i]
        a += count
        b += count
        y += count
        n -= count


cdef void whole_pow_number_run(const modular* a, const modular* b, modular* y,
                               Py_ssize_t n) noexcept nogil:
    """y := a ** b[0]"""
    cdef modular squares[BLOCK]
    cdef modular powers[BLOCK]
    cdef modular bits
    cdef bint begun
    cdef Py_ssize_t i, count
    while n > 0:
        count = min(n, <Py_ssize_t>BLOCK)
        bits = b[0]
        begun = bits & 1
        for i in range(count):
            squares[i], powers[i] = a[i], a[i] if bits & 1 else 1
        bits >>= 1
        while bits:
            for i in range(count):
                squares[i] = wrapped(squares[i], squares[i])
            if bits & 1 and begun:
                for i in range(count):
                    powers[i] = wrapped(powers[i], squares[i])
            elif bits & 1:
                memcpy(powers, squares, sizeof(powers))
                begun = True
            bits >>= 1
        for i in range(count):
            y[i] = powers[i]
        a += count
        y += count
        n -= count


# ---- of signs and magnitudes ---------------------------------------------------------------------

cdef void hypot_run(const floating* a, const floating* b, floating* y,
                    Py_ssize_t n) noexcept nogil:
    """y := sqrt(a**2 + b**2); of float32 the squares are in range as doubles"""
    cdef Py_ssize_t i
    cdef float inf = infinity[float](0)
    cdef double square
    for i in range(n):
        if floating is float:
            square = <double>a[i] * a[i] + <double>b[i] * b[i]
            y[i] = inf if (magnitude(a[i]) == inf) | (magnitude(b[i]) == inf) else (
                <float>sqrt(square))
        else:
            y[i] = hypotenuse(a[i], b[i])


cdef void copysign_run(const floating* a, const floating* b, floating* y,
                       Py_ssize_t n) noexcept nogil:
    """y := |a| with the sign of b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = with_sign(magnitude(a[i]), b[i])


cdef inline floating next_number(floating a, floating b) noexcept nogil:
    """the next number after a towards b, by its bits, whose order is that of magnitudes"""
    cdef floating next, least
    cdef bint away = (a < b) == (a > 0)
    if floating is float:
        next = from_bits32(bits32(a) + (1 if away else <uint32_t>-1))
        least = from_bits32(1)
    else:
        next = from_bits64(bits64(a) + (1 if away else <uint64_t>-1))
        least = from_bits64(1)
    next = with_sign(least, b) if a == 0 else next
    next = b if a == b else next
    return a + b if (a != a) | (b != b) else next


cdef void nextafter_run(const floating* a, const floating* b, floating* y,
                          Py_ssize_t n) noexcept nogil:
    """y := the number after a on the way to b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = next_number(a[i], b[i])


# ---- comparisons and logic -----------------------------------------------------------------------

cdef void eq_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a == b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] == b[i]


cdef void ne_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a != b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] != b[i]


cdef void eq_bool_run(const uint8_t* a, const uint8_t* b, uint8_t* y,
                      Py_ssize_t n) noexcept nogil:
    """y := a == b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] == 0) == (b[i] == 0)


cdef void lt_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a < b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] < b[i]


cdef void le_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a <= b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] <= b[i]


cdef void gt_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a > b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] > b[i]


cdef void ge_run(const floating* a, const floating* b, uint8_t* y,
                 Py_ssize_t n) noexcept nogil:
    """y := a >= b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = a[i] >= b[i]


cdef void logical_and_run(const floating* a, const floating* b, uint8_t* y,
                          Py_ssize_t n) noexcept nogil:
    """y := a and b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) & (b[i] != 0)


cdef void logical_or_run(const floating* a, const floating* b, uint8_t* y,
                         Py_ssize_t n) noexcept nogil:
    """y := a or b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) | (b[i] != 0)


cdef void logical_xor_run(const floating* a, const floating* b, uint8_t* y,
                          Py_ssize_t n) noexcept nogil:
    """y := either a or b"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (a[i] != 0) != (b[i] != 0)


# ---- steps ---------------------------------------------------------------------------------------

cdef void heaviside_run(const number* a, const number* b, number* y,
                        Py_ssize_t n) noexcept nogil:
    """y := b where a is 0, else whether a is positive"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = b[i] if a[i] == 0 else <number>(a[i] > 0)


# NumPy's loop for bytes is not vectorised. Shifts by 8 places or more, and by negative numbers,
# leave nothing.

cdef void left_shift_run(const uint8_t* x, const uint8_t* by, uint8_t* y,
                         Py_ssize_t n) noexcept nogil:
    """y := x << by, by doubling: vectors shift no bytes"""
    cdef Py_ssize_t i
    cdef uint8_t moved, more, places
    for i in range(n):
        moved, places = x[i], by[i]
        more = <uint8_t>(moved + moved)
        moved = more if places & 1 else moved
        more = <uint8_t>(4 * moved)
        moved = more if places & 2 else moved
        more = <uint8_t>(16 * moved)
        moved = more if places & 4 else moved
        y[i] = moved if places < 8 else 0


cdef void right_shift_run(const uint8_t* x, const uint8_t* by, uint8_t* y,
                          Py_ssize_t n) noexcept nogil:
    """y := x >> by, in the numbers of 16 bits that vectors shift"""
    cdef Py_ssize_t i
    cdef uint16_t wide, places
    for i in range(n):
        wide, places = x[i], by[i]
        y[i] = <uint8_t>(wide >> (places if places < 8 else 8))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("add", <size_t>&add_run[float], <size_t>&add_run[double]),
        ("sub", <size_t>&sub_run[float], <size_t>&sub_run[double]),
        ("mul", <size_t>&mul_run[float], <size_t>&mul_run[double]),
        ("div", <size_t>&div_run[float], <size_t>&div_run[double]),
        ("maximum", <size_t>&maximum_run[float], <size_t>&maximum_run[double]),
        ("minimum", <size_t>&minimum_run[float], <size_t>&minimum_run[double]),
        ("zmul", <size_t>&zmul_run[float], <size_t>&zmul_run[double]),
        ("heaviside", <size_t>&heaviside_run[float], <size_t>&heaviside_run[double]),
        ("pow", <size_t>&pow_run[float], <size_t>&pow_run[double]),
        ("hypot", <size_t>&hypot_run[float], <size_t>&hypot_run[double]),
        ("copysign", <size_t>&copysign_run[float], <size_t>&copysign_run[double]),
        ("nextafter", <size_t>&nextafter_run[float], <size_t>&nextafter_run[double]),
        ("add_number", <size_t>&add_number_run[float], <size_t>&add_number_run[double]),
        ("sub_number", <size_t>&sub_number_run[float], <size_t>&sub_number_run[double]),
        ("sub_first", <size_t>&sub_first_run[float], <size_t>&sub_first_run[double]),
        ("div_first", <size_t>&div_first_run[float], <size_t>&div_first_run[double]),
        ("mul_number", <size_t>&mul_number_run[float], <size_t>&mul_number_run[double]),
        ("div_number", <size_t>&div_number_run[float], <size_t>&div_number_run[double]),
        ("maximum_number", <size_t>&maximum_number_run[float],
         <size_t>&maximum_number_run[double]),
        ("minimum_number", <size_t>&minimum_number_run[float],
         <size_t>&minimum_number_run[double]),
        ("pow_number", <size_t>&pow_number_run[float], <size_t>&pow_number_run[double]),
    ], 2) + rows_for(FLOATS, [
        ("eq", <size_t>&eq_run[float], <size_t>&eq_run[double]),
        ("ne", <size_t>&ne_run[float], <size_t>&ne_run[double]),
        ("lt", <size_t>&lt_run[float], <size_t>&lt_run[double]),
        ("le", <size_t>&le_run[float], <size_t>&le_run[double]),
        ("gt", <size_t>&gt_run[float], <size_t>&gt_run[double]),
        ("ge", <size_t>&ge_run[float], <size_t>&ge_run[double]),
        ("logical_and", <size_t>&logical_and_run[float], <size_t>&logical_and_run[double]),
        ("logical_or", <size_t>&logical_or_run[float], <size_t>&logical_or_run[double]),
        ("logical_xor", <size_t>&logical_xor_run[float], <size_t>&logical_xor_run[double]),
    ], 2, "bool") + rows_for(("bool",), [("eq", <size_t>&eq_bool_run)], 2) + rows_for(
        ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), [
            ("heaviside", <size_t>&heaviside_run[uint8_t], <size_t>&heaviside_run[uint8_t],
             <size_t>&heaviside_run[int8_t], <size_t>&heaviside_run[int16_t],
             <size_t>&heaviside_run[int32_t], <size_t>&heaviside_run[int64_t],
             <size_t>&heaviside_run[uint16_t], <size_t>&heaviside_run[uint32_t],
             <size_t>&heaviside_run[uint64_t]),
    ], 2) + rows_for(("uint8", "int8"), [
        ("bitwise_left_shift", <size_t>&left_shift_run, <size_t>&left_shift_run),
    ], 2) + rows_for(("uint8",), [
        ("bitwise_right_shift", <size_t>&right_shift_run),
    ], 2) + [row for sign in ("", "u") for row in rows_for(
        (sign + "int8", sign + "int16", sign + "int32", sign + "int64"), [
            ("pow", <size_t>&whole_pow_run[uint8_t], <size_t>&whole_pow_run[uint16_t],
             <size_t>&whole_pow_run[uint32_t], <size_t>&whole_pow_run[uint64_t]),
            ("pow_number", <size_t>&whole_pow_number_run[uint8_t],
             <size_t>&whole_pow_number_run[uint16_t], <size_t>&whole_pow_number_run[uint32_t],
             <size_t>&whole_pow_number_run[uint64_t]),
    ], 2)]
