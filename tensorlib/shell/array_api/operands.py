"""Arguments as the standard has them: what two arrays have in common, axes, and devices."""

from functools import reduce

import tensorlib as tl
from tensorlib import Tensor

# Dtypes of the standard, by kind. Others of the library (float16, bfloat16) are floating, too.
KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

RANKS = {bool: 0, int: 1, float: 2, complex: 3}


def kind_of(dtype):
    """The kind of a dtype: "bool", "signed integer", and so on."""
    if dtype.is_complex:
        return "complex floating"
    if dtype.is_floating_point:
        return "real floating"
    if dtype is tl.bool:
        return "bool"
    return "unsigned integer" if dtype.name.startswith("u") else "signed integer"


def rank_of(dtype):
    """The place of a dtype's kind among those of Python's numbers."""
    if dtype is tl.bool:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


def dtype_beside(value, dtype):
    """The dtype of a Python number beside an array of `dtype`: its own, unless the kind is higher.

    Raises: TypeError for what is not a number.
    """
    if type(value) not in RANKS and not isinstance(value, (bool, int, float, complex)):
        raise TypeError(f"array_api: takes arrays and Python numbers, got {type(value).__name__}")
    rank = RANKS.get(type(value), 2)
    if rank <= rank_of(dtype):
        return dtype
    if rank == 3:
        return dtype.to_complex() if dtype.is_floating_point else tl.complex64
    return tl.get_default_dtype() if rank == 2 else tl.int64


def common_dtype(values):
    """The dtype in which arrays, dtypes and Python numbers meet, whatever their shapes are.

    Raises: TypeError without an array or dtype, RuntimeError for dtypes that meet nowhere.
    """
    dtypes = [value.dtype if isinstance(value, Tensor) else value for value in values
              if isinstance(value, (Tensor, tl.dtype))]
    if not dtypes:
        raise TypeError("array_api: at least one argument must be an array or a dtype")
    common = reduce(tl.promote_types, dtypes)
    for value in values:
        if not isinstance(value, (Tensor, tl.dtype)):
            common = dtype_beside(value, common)
    return common


def as_dtype(value, dtype, like):
    """An array or a number as an array of `dtype`."""
    if isinstance(value, Tensor):
        return value if value.dtype == dtype else value.to(dtype)
    return tl.full((), value, dtype=dtype, device=like.device)


def together(*values):
    """Arrays and numbers as arrays of the dtype in which they meet; None stays."""
    given = [value for value in values if value is not None]
    dtype = common_dtype(given)
    like = next(value for value in given if isinstance(value, Tensor))
    return [None if value is None else as_dtype(value, dtype, like) for value in values]


def as_shape(shape):
    """A shape, of which one size may be said alone."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def named(function, name, doc):
    """A function of this module's making under its name."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
