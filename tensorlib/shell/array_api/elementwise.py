"""Functions element by element, whose dtype follows from dtypes alone, never from shapes."""

import tensorlib as tl
from tensorlib.array_api.operands import common_dtype, named, together

def unary(name, operation):
    """The standard's function of one array."""
    def function(x, /):
        return operation(x)
    return named(function, name, operation.__doc__)


def binary(name, operation):
    """The standard's function of two arrays, of which one may be a Python number."""
    def function(x1, x2, /):
        return operation(*together(x1, x2))
    return named(function, name, operation.__doc__)


abs = unary("abs", tl.abs)
acos = unary("acos", tl.acos)
acosh = unary("acosh", tl.acosh)
asin = unary("asin", tl.asin)
asinh = unary("asinh", tl.asinh)
atan = unary("atan", tl.atan)
atanh = unary("atanh", tl.atanh)
bitwise_invert = unary("bitwise_invert", tl.bitwise_not)
ceil = unary("ceil", tl.ceil)
conj = unary("conj", tl.conj)
cos = unary("cos", tl.cos)
cosh = unary("cosh", tl.cosh)
exp = unary("exp", tl.exp)
expm1 = unary("expm1", tl.expm1)
floor = unary("floor", tl.floor)
imag = unary("imag", tl.imag)
isfinite = unary("isfinite", tl.isfinite)
isinf = unary("isinf", tl.isinf)
isnan = unary("isnan", tl.isnan)
log = unary("log", tl.log)
log10 = unary("log10", tl.log10)
log1p = unary("log1p", tl.log1p)
log2 = unary("log2", tl.log2)
logical_not = unary("logical_not", tl.logical_not)
negative = unary("negative", tl.negative)
positive = unary("positive", tl.positive)
real = unary("real", tl.real)
reciprocal = unary("reciprocal", tl.reciprocal)
signbit = unary("signbit", tl.signbit)
sin = unary("sin", tl.sin)
sinh = unary("sinh", tl.sinh)
sqrt = unary("sqrt", tl.sqrt)
square = unary("square", tl.square)
tan = unary("tan", tl.tan)
tanh = unary("tanh", tl.tanh)
trunc = unary("trunc", tl.trunc)

add = binary("add", tl.add)
atan2 = binary("atan2", tl.atan2)
bitwise_and = binary("bitwise_and", tl.bitwise_and)
bitwise_left_shift = binary("bitwise_left_shift", tl.bitwise_left_shift)
bitwise_or = binary("bitwise_or", tl.bitwise_or)
bitwise_right_shift = binary("bitwise_right_shift", tl.bitwise_right_shift)
bitwise_xor = binary("bitwise_xor", tl.bitwise_xor)
copysign = binary("copysign", tl.copysign)
divide = binary("divide", tl.divide)
equal = binary("equal", tl.eq)
greater = binary("greater", tl.greater)
greater_equal = binary("greater_equal", tl.greater_equal)
hypot = binary("hypot", tl.hypot)
less = binary("less", tl.less)
less_equal = binary("less_equal", tl.less_equal)
logaddexp = binary("logaddexp", tl.logaddexp)
logical_and = binary("logical_and", tl.logical_and)
logical_or = binary("logical_or", tl.logical_or)
logical_xor = binary("logical_xor", tl.logical_xor)
maximum = binary("maximum", tl.maximum)
minimum = binary("minimum", tl.minimum)
multiply = binary("multiply", tl.multiply)
nextafter = binary("nextafter", tl.nextafter)
not_equal = binary("not_equal", tl.not_equal)
pow = binary("pow", tl.pow)
subtract = binary("subtract", tl.subtract)


def round(x, /):
    """The nearest whole number for each element, the even one of two."""
    return tl.round(x)


def sign(x, /):
    """-1, 0 or 1 for each element, NaN for NaN; the number of size 1 in its direction for complex
    ones."""
    if x.dtype.is_complex:
        return tl.sgn(x)
    found = tl.sign(x)
    return tl.where(tl.isnan(x), x, found) if x.dtype.is_floating_point else found


def floor_divide(x1, x2, /):
    """The whole number not above x1 / x2 for each element; that itself if one of both is infinite.

    PyTorch and NumPy give NaN for infinities divided, and -1 for -1 / inf.
    """
    x1, x2 = together(x1, x2)
    found = tl.floor_divide(x1, x2)
    if not x1.dtype.is_floating_point:
        return found
    infinite = tl.isinf(x1) & tl.isfinite(x2) | tl.isfinite(x1) & tl.isinf(x2)
    return tl.where(infinite, tl.div(x1, x2), found)


def remainder(x1, x2, /):
    """What x1 - floor(x1 / x2) * x2 is for each element, a zero with the sign of `x2`."""
    x1, x2 = together(x1, x2)
    if not x1.dtype.is_floating_point:
        return tl.remainder(x1, x2)
    # -0 + 0 and 0 - (-0) are 0; no other sum of these changes a number or its derivative
    return tl.where(tl.signbit(x2), -tl.remainder(0.0 - x1, -x2), tl.remainder(x1 + 0.0, x2))


def clip(x, /, min=None, max=None):
    """The elements of `x`, not below `min` and not above `max`, in the dtype of `x`."""
    if min is None and max is None:
        return tl.clone(x)
    return tl.clamp(*together(x, min, max)).to(common_dtype([x]))
