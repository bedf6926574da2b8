"""Dtypes: conversions, limits and kinds."""

from typing import NamedTuple

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.array_api.operands import KINDS, common_dtype, kind_of, rank_of


class FloatLimits(NamedTuple):
    """The limits of a floating dtype, as numbers of Python."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: tl.dtype


class IntegerLimits(NamedTuple):
    """The limits of a dtype of integers."""

    bits: int
    max: int
    min: int
    dtype: tl.dtype


def dtype_of(value):
    """The dtype of an array, or a dtype itself."""
    return value.dtype if isinstance(value, Tensor) else value


def astype(x, dtype, /, *, copy=True, device=None):
    """The array in another dtype: a copy, or where nothing changes with `copy=False` itself.

    Raises: TypeError for complex numbers as real ones.
    """
    if x.dtype.is_complex and not dtype.is_complex and dtype is not tl.bool:
        raise TypeError(f"astype: {x.dtype} would lose its imaginary part as {dtype}; take real(x)")
    return x.to(dtype=dtype, device=device, copy=copy)


def can_cast(from_, to, /):
    """Whether promotion leads from one dtype, or that of an array, to another."""
    from_ = dtype_of(from_)
    if from_ == to:
        return True
    if rank_of(from_) != rank_of(to) and (rank_of(from_) < 2 or rank_of(to) < 2):
        return False
    try:
        return tl.promote_types(from_, to) == to
    except RuntimeError:
        return False


def finfo(type, /):
    """The limits of a floating dtype, or of the parts of a complex one."""
    dtype = dtype_of(type)
    part = dtype.to_real() if dtype.is_complex else dtype
    found = tl.finfo(part)
    return FloatLimits(found.bits, found.eps, found.max, found.min, found.smallest_normal, part)


def iinfo(type, /):
    """The limits of a dtype of integers."""
    found = tl.iinfo(dtype_of(type))
    return IntegerLimits(found.bits, found.max, found.min, dtype_of(type))


def isdtype(dtype, kind):
    """Whether a dtype is of a kind, such as "integral", or one of some kinds and dtypes."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, tl.dtype):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: kind must be a dtype or among {', '.join(KINDS)}, got "
                         f"{kind!r}")
    own = kind_of(dtype)
    return own == kind or kind == "integral" and "integer" in own or (
        kind == "numeric" and own != "bool")


def result_type(*arrays_and_dtypes):
    """The dtype of what arrays, dtypes and Python numbers give together."""
    return common_dtype(arrays_and_dtypes)
