"""Composed functions on half types: computed in float32, and rounded once at the end.

Each operation rounds its result, so a composition would round several times, and intermediate
values could overflow though the result does not.
"""

from tensorlib._core.base.dtypes cimport FLOAT32, dtype_id, dtype_object
from tensorlib._core.base.recursion cimport enter, leave
from tensorlib._core.base.upcalls cimport TO, registered
from tensorlib._core.interpreters.foreign cimport is_tensor_like
from tensorlib._core.tensor.tensor cimport Tensor

from _thread import _local as local   # avoids the import of `threading`

cdef object SINGLE = dtype_object(FLOAT32)


class Rounding(local):
    """The state of a thread. keeps: says which functions keep float32 results, or None.

    casts: whether `autocast` casts float32 and half types to one dtype for operations.
    """

    keeps = None
    casts = False


rounding = Rounding()


def are_cast(*tensors):
    """Whether tensors of different dtypes may be mixed, since `autocast` casts them."""
    return rounding.casts and all([
        x is None or x.dtype.name in ("float32", "float16", "bfloat16") for x in tensors])


cdef object widened(object function, tuple args, dict kwargs):
    """The result of a function; if its tensors are of one half type, computed in float32."""
    cdef bint found = False
    for x in args:
        if isinstance(x, Tensor):
            found = found or is_half((<Tensor>x).type)
        elif x is not None and type(x) is not int and type(x) is not float:
            found = found or has_half(x)
    if kwargs:
        for x in kwargs.values():
            found = found or has_half(x)
    if found:
        return in_single(function, args, kwargs)
    return function(*args, **kwargs) if kwargs else function(*args)


def rounded_once(function):
    """A wrapper of a function of tensors, which computes half types in float32."""
    def made(*args, **kwargs):
        return widened(function, args, kwargs)
    return made


cdef bint has_half(object x) except -1:
    """Whether a value is a tensor of a half type, or contains one."""
    if isinstance(x, Tensor):
        return is_half((<Tensor>x).type)
    if isinstance(x, (tuple, list)):
        return any_half(x)
    return is_tensor_like(x) and is_half(dtype_id(x.dtype))


cdef bint any_half(object parts) except -1:
    """Whether an item of a sequence is, or contains, a tensor of a half type."""
    enter(b" in the arguments of a function")
    try:
        for part in parts:
            if has_half(part):
                return True
        return False
    finally:
        leave()


cdef object in_single(object function, tuple args, dict kwargs):
    """`function` in float32, unless other tensors or `dtype=` determine another dtype."""
    cdef dict given = dict(kwargs)
    cdef object out = given.pop("out", None), dtype = given.get("dtype")
    cdef object half = half_of((args, tuple(given.values())))
    if half is None or dtype is not None and not is_half(dtype_id(dtype)):
        return function(*args, **kwargs)
    if dtype is not None:
        half, given["dtype"] = dtype, SINGLE
    given = {name: in_float32(x) for name, x in given.items()}
    if "out" in kwargs:
        given["out"] = out
    result = function(*in_float32(args), **given)
    if result is out:
        return out
    if dtype is None and out is None and rounding.keeps is not None and rounding.keeps(function):
        return result
    return in_half(result, half)


cdef object half_of(object values):
    """The half type of all floating tensors with dims, or of all if none has dims; or None."""
    cdef list found = []
    collect(values, found)
    cdef set deciding = {x.dtype for x in found if x.ndim} or {x.dtype for x in found}
    if len(deciding) != 1:
        return None
    half = deciding.pop()
    return half if is_half(dtype_id(half)) else None


cdef int collect(object values, list found) except -1:
    """Adds the floating tensors in values, also nested ones, to a list."""
    enter(b" in the arguments of a function")
    try:
        for x in values:
            if isinstance(x, (tuple, list)):
                collect(x, found)
            elif is_tensor_like(x) and x.dtype.is_floating_point:
                found.append(x)
        return 0
    finally:
        leave()


cdef object in_float32(object x):
    """A value with its tensors of half types cast to float32."""
    return in_dtype(x, SINGLE, True)


cdef object in_half(object x, object half):
    """A value with its tensors of float32 cast to a half type."""
    return in_dtype(x, half, False)


cdef object in_dtype(object x, object dtype, bint from_half):
    """A value with its tensors of half types, or of float32, cast to another dtype."""
    if isinstance(x, (tuple, list)):
        enter(b" in the arguments of a function")
        try:
            return with_parts(x, [in_dtype(part, dtype, from_half) for part in x])
        finally:
            leave()
    if is_tensor_like(x) and (is_half(dtype_id(x.dtype)) if from_half else x.dtype is SINGLE):
        return registered(TO)(x, dtype)
    return x


cdef object with_parts(object x, list parts):
    """A sequence of the type of `x`."""
    if isinstance(x, list):
        return parts
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
