"""Comparison of Python values in signatures and guards: by identity, exact type and bits."""

from array import array
from collections import deque
from types import SimpleNamespace

import numpy as np

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact
from libc.string cimport memcmp
from tensorlib._core.tensor.tensor cimport Tensor

# What has the value of its parts, which its owner may change.
cdef tuple CHANGEABLE = (set, bytearray, deque, array)


cdef bint is_same(x, y) except -1:
    """Whether no function can tell two values apart: 0.0 is not -0.0, 1 not True, and NaN is NaN.

    Tensors and arrays are the same if they are one object. All else is asked whether it is equal.
    """
    cdef double a, b
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if PyFloat_CheckExact(x):
        a, b = PyFloat_AS_DOUBLE(x), PyFloat_AS_DOUBLE(y)
        return memcmp(&a, &b, sizeof(double)) == 0
    if PyLong_CheckExact(x) or PyUnicode_CheckExact(x):
        return x == y
    if isinstance(x, (Tensor, np.ndarray)):
        return False
    if isinstance(x, tuple):
        return are_same(<tuple>x, <tuple>y)
    return is_equal(x, y)


cdef bint are_same(tuple x, tuple y) except -1:
    cdef Py_ssize_t i
    if len(x) != len(y):
        return False
    for i in range(len(x)):
        if not is_same(x[i], y[i]):
            return False
    return True


cdef bint is_equal(x, y) except -1:
    """Whether two values of one type, which is none of those above, are the same."""
    if isinstance(x, np.generic):
        return x.dtype == y.dtype and x.tobytes() == y.tobytes()
    if isinstance(x, complex):
        return repr(x) == repr(y)                        # which has the sign of each zero
    if isinstance(x, slice):
        return are_same((x.start, x.stop, x.step), (y.start, y.stop, y.step))
    try:
        return bool(x == y) and (not isinstance(x, (set, frozenset)) or types_in(x) == types_in(y))
    except Exception:                # of a class of the user's, that compares otherwise or not
        return False


cdef set types_in(values):
    """The members of a set, each with its type: 1, 1.0 and True are equal."""
    return {(type(x), x) for x in values}


cdef object settled(value):
    """A value that stays as it is while its owner may change the first: itself, or a copy."""
    return type(value)(value) if type(value) in CHANGEABLE else value


cdef dict fields_of(value):
    """The fields of an object that is there for them, by name; None for all else."""
    kind = type(value)
    if kind is SimpleNamespace or (
            kind.__module__ == "argparse" and kind.__name__ == "Namespace"):
        return <dict?>value.__dict__
    names = getattr(kind, "__dataclass_fields__", None)
    if names is None or callable(value):         # a module is more than its fields
        return None
    own = getattr(value, "__dict__", None)
    return own if own else {x: getattr(value, x) for x in names if hasattr(value, x)}
