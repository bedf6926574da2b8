"""Comparison of Python values in signatures and guards: by identity, exact type and bits."""

from array import array
from collections import OrderedDict, deque
from types import MemberDescriptorType, MethodType, SimpleNamespace

import numpy as np

from tensorlib._core.base.device import device
from tensorlib._core.base.dtypes import dtype
from tensorlib._core.base.formats import Format

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport memcmp

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define TYPE_LOOKUP _PyType_LookupRef
    #else
    #define TYPE_LOOKUP(t, name) Py_XNewRef(_PyType_Lookup(t, name))
    #endif
    """
    PyObject* TYPE_LOOKUP(PyTypeObject* t, PyObject* name)     # a new reference, or NULL


class Missing:
    """The type of MISSING, which stands for what is not there."""

    def __repr__(self):
        return "nothing"


MISSING = Missing()

# Types that are compared by what is in them, which may change.
cdef tuple MUTABLE = (set, bytearray, deque, array)
# Types whose `==` compares all there is.
cdef frozenset COMPARED_BY_EQUALITY = frozenset((bytes, bytearray, dtype, device, Format))


cdef inline object owned_object(PyObject* reference):
    """The object of a new reference, which is given up."""
    found = <object>reference
    Py_XDECREF(reference)
    return found


cpdef in_class(kind, str name):
    """What a class, or one above it, has under a name; MISSING for nothing."""
    cdef PyObject* found = TYPE_LOOKUP(<PyTypeObject*>kind, <PyObject*>name)
    return MISSING if found == NULL else owned_object(found)


cpdef tuple names_in(kind):
    """All names that a class and those above it have."""
    return tuple([tuple(type.__getattribute__(cls, "__dict__"))
                  for cls in type.__getattribute__(kind, "__mro__")])


cpdef bint is_same(x, y) except -1:
    """Whether no function can tell two values apart: 0.0 is not -0.0, 1 not True, and NaN is NaN.

    What has a state, and what is of a class of the user's, is the same if it is one object: nobody
    asks a class of the user's whether two of its objects are equal.
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
    if isinstance(x, tuple):
        return (type(x) is tuple or not (attributes_of(x) or attributes_of(y))) and (
            are_same(<tuple>x, <tuple>y))
    return is_equal(x, y)


# By the kinds of what wraps functions, the descriptors of these.
cdef dict WRAPPERS = {kind: [vars(kind)[name] for name in names] for kind, names in (
    (property, ("fget", "fset", "fdel")), (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)))}


cpdef tuple functions_in(x):
    """The functions in a property, or a static or class method; () for all else."""
    for kind, fields in WRAPPERS.items():
        if issubclass(type(x), kind):
            return tuple([field.__get__(x) for field in fields])
    return ()


cdef dict attributes_of(x):
    """The attributes of an object beside those of its class; None where it can't have any."""
    try:
        found = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else dict.copy(found)


cpdef dict items_of(x):
    """The items of a dict in its order, whatever its class overrides."""
    if type(x) is dict:
        return x
    if issubclass(type(x), OrderedDict):
        return {key: dict.__getitem__(x, key) for key in OrderedDict.__iter__(x)}
    return dict.copy(x)


cpdef members_of(x):
    """The members of a list or a tuple, whatever its class overrides."""
    if type(x) is list or type(x) is tuple:
        return x
    return list(list.__iter__(x) if isinstance(x, list) else tuple.__iter__(x))


cdef bint are_same(tuple x, tuple y) except -1:
    """Whether two tuples have the same members, in the sense of `is_same`."""
    cdef Py_ssize_t i
    if len(x) != len(y):
        return False
    for i in range(len(x)):
        if not is_same(x[i], y[i]):
            return False
    return True


cdef bint is_equal(x, y) except -1:
    """Whether two values of one type, which is none of those above, are the same."""
    kind = type(x)
    if kind is complex:
        return is_same(x.real, y.real) and is_same(x.imag, y.imag)
    if kind in COMPARED_BY_EQUALITY:
        return bool(x == y)
    if kind is slice or kind is range:
        return are_same((x.start, x.stop, x.step), (y.start, y.stop, y.step))
    if kind is set or kind is frozenset:
        return are_same(tuple(x), tuple(y))              # in the order that each has
    if kind is deque or kind is array:
        return (kind is array or x.maxlen == y.maxlen) and are_same(
            (getattr(x, "typecode", 0), *x), (getattr(y, "typecode", 0), *y))
    if kind is MethodType:
        return x.__self__ is y.__self__ and x.__func__ is y.__func__
    if issubclass(kind, np.generic):                     # one of a class below may have attributes
        return kind is x.dtype.type and x.dtype == y.dtype and x.tobytes() == y.tobytes()
    return False


cdef object snapshot(value):
    """A value that stays as it is now: a copy if it is mutable, else itself."""
    return type(value)(value) if type(value) in MUTABLE else value


def is_mutable_value(value):
    """Whether a value is mutable, and compared by what is in it."""
    return type(value) in MUTABLE


cpdef dict fields_of(value):
    """By name the fields of a dataclass or a namespace, or the attributes of a container whose
    class lets it have some; None for all else."""
    kind = type(value)
    if kind is dict or kind is list or kind is tuple:
        return None
    if isinstance(value, (dict, list, tuple)):
        return attributes_of(value)
    if kind is SimpleNamespace or is_namespace(kind):
        return attributes_of(value)
    names = in_class(kind, "__dataclass_fields__")
    if names is MISSING or callable(value):         # a module is more than its fields
        return None
    return attributes_of(value) or slots_of(value, names)


cdef bint is_namespace(kind) except -1:
    """Whether a class is `argparse.Namespace`, which need not be imported."""
    return type.__getattribute__(kind, "__name__") == "Namespace" and (
        type.__getattribute__(kind, "__module__") == "argparse")


cdef dict slots_of(value, names):
    """What is in the slots of these names, or in the class, without a call of the user's code."""
    cdef dict found = {}
    kind = type(value)
    for name in names:
        part = in_class(kind, name)
        if type(part) is MemberDescriptorType:
            try:
                found[name] = part.__get__(value, kind)
            except AttributeError:
                pass
        elif part is not MISSING and in_class(type(part), "__get__") is MISSING:
            found[name] = part
    return found
