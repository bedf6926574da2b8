"""Checks of arguments that operations of several families share."""

from operator import index as as_int

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import BY_NAME

BOOL = BY_NAME["bool"]


def integer(name, word, value):
    """An argument as an int. Raises: TypeError."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name}: {word} must be an int, got {value!r}")
    return as_int(value)


def refuse_bools(name, x, error=UnsupportedDtype):
    """Raises an error for a tensor of bools."""
    if x.dtype is BOOL:
        raise error(f"{name}: not implemented for bools")


def refuse_complex(name, *tensors):
    """Raises UnsupportedDtype for a tensor of complex numbers, which have no order."""
    for x in tensors:
        if x.is_complex():
            raise UnsupportedDtype(f"{name}: not implemented for {x.dtype}")


def require_dims(name, x, least):
    """Raises RuntimeError for a tensor of too few dims."""
    if x.ndim < least:
        raise RuntimeError(f"{name}: expects a tensor with at least {least} dims, got {x.ndim}")
