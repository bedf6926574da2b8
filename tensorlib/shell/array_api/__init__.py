"""The array API standard, version 2025.12, over the operations of the library.

It is what `x.__array_namespace__()` gives. Its arrays are Tensors, and its functions record
gradients as all others do.

>>> xp = tensorlib.ones(2).__array_namespace__()
>>> xp.sum(xp.asarray([1, 2, 3], dtype=xp.int8))
tensor(6)
>>> xp.astype(xp.asarray([0.5, 2.5]), xp.int64)
tensor([0, 2])
"""

from math import e, inf, nan, pi

from tensorlib import (
    bool, complex64, complex128, float32, float64, int8, int16, int32, int64, newaxis, uint8,
    uint16, uint32, uint64,
)
from tensorlib.array_api import fft, linalg
from tensorlib.array_api.creation import (
    arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones,
    ones_like, tril, triu, zeros, zeros_like,
)
from tensorlib.array_api.dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from tensorlib.array_api.elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert,
    bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, ceil, clip, conj, copysign,
    cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater, greater_equal, hypot, imag,
    isfinite, isinf, isnan, less, less_equal, log, log10, log1p, log2, logaddexp, logical_and,
    logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter,
    not_equal, positive, pow, real, reciprocal, remainder, round, sign, signbit, sin, sinh, sqrt,
    square, subtract, tan, tanh, trunc,
)
from tensorlib.array_api.info import __array_namespace_info__
from tensorlib.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from tensorlib.array_api.manipulation import (
    broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, moveaxis,
    permute_dims, repeat, reshape, roll, squeeze, stack, tile, unstack,
)
from tensorlib.array_api.operators import standard_operators
from tensorlib.array_api.reductions import (
    all, any, count_nonzero, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum,
    var,
)
from tensorlib.array_api.searching import (
    argmax, argmin, argsort, isin, nonzero, searchsorted, sort, take, take_along_axis, unique_all,
    unique_counts, unique_inverse, unique_values, where,
)

__array_api_version__ = "2025.12"

__all__ = ["__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add",
           "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh",
           "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
           "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool",
           "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "ceil", "clip",
           "complex128", "complex64", "concat", "conj", "copysign", "cos", "cosh", "count_nonzero",
           "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "empty", "empty_like",
           "equal", "exp", "expand_dims", "expm1", "eye", "fft", "finfo", "flip", "float32",
           "float64", "floor", "floor_divide", "from_dlpack", "full", "full_like", "greater",
           "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64", "int8",
           "isdtype", "isfinite", "isin", "isinf", "isnan", "less", "less_equal", "linalg",
           "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
           "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean",
           "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis",
           "nextafter", "nonzero", "not_equal", "ones", "ones_like", "permute_dims", "pi",
           "positive", "pow", "prod", "real", "reciprocal", "remainder", "repeat", "reshape",
           "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sort",
           "sqrt", "square", "squeeze", "stack", "standard_operators", "std", "subtract", "sum",
           "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc",
           "uint16", "uint32", "uint64", "uint8", "unique_all", "unique_counts", "unique_inverse",
           "unique_values", "unstack", "var", "vecdot", "where", "zeros", "zeros_like"]


def __dir__():
    return __all__
