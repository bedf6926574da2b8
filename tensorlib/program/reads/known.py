"""Known functions that are not written in Python: without side effects, and without hidden inputs.

A call of any other such function ends a capture.
"""

import _abc
import _bisect
import _heapq
import _operator
import array
import builtins
import cmath
import collections
import copy
import datetime
import enum
import fractions
import functools
import itertools
import math
import operator
import os.path
import re
import sys
import types
import typing
from typing import Any

import numpy as np

from tensorlib._core.base.device import device
from tensorlib._core.base.dtypes import dtype
from tensorlib._core.base.formats import Format
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.ir.call_forms import HOME

# Classes are told apart by their ids: those of the user's may have no hash.
# What nobody can change, and what has nothing in it that changes.
ATOMS = frozenset(map(id, (
    int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), range,
    dtype, device, Format, type(np.dtype), *(type(np.dtype(x)) for x in "?bBhHiIlLqQefdgFDGmMSUVO"),
    re.Pattern, re.Match, datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    datetime.timezone, types.CodeType, types.TracebackType, property, staticmethod, classmethod,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.GenericAlias,
    types.UnionType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType)))
# What has a state of elements, and how they are seen all at once, whatever a subclass says.
CONTENTS: dict[int, Any] = {
    id(bytearray): lambda x: bytes(memoryview(x)),
    id(array.array): lambda x: (vars(array.array)["typecode"].__get__(x), array.array.tobytes(x)),
    id(collections.deque): lambda x: (vars(collections.deque)["maxlen"].__get__(x),
                                      *collections.deque.__iter__(x)),
    id(types.MappingProxyType): lambda x: tuple(x.items()),
    id(np.ndarray): lambda x: (
        x.dtype, x.shape, x.strides, x.flags.writeable, contents_of_array(x)),
    id(np.void): lambda x: (x.dtype, contents_of_array(x)),      # which is a view of an array
}
LARGEST = 1 << 18             # bytes of an array whose contents are compared

COMPILED = type(is_written_in_python)      # what Cython makes of a function

CLASSES = {id(x) for x in (
    bool, bytearray, bytes, complex, dict, enumerate, filter, float, frozenset, int, list, map,
    memoryview, object, property, range, reversed, set, slice, staticmethod, classmethod, str,
    super, tuple, zip, functools.partial, functools.partialmethod, types.SimpleNamespace,
    types.MethodType,
    types.MappingProxyType, types.FunctionType, collections.deque, collections.OrderedDict,
    collections.defaultdict, array.array, fractions.Fraction, datetime.timedelta,
    datetime.datetime, datetime.date, operator.itemgetter, operator.attrgetter,
    operator.methodcaller, *(x for x in vars(itertools).values() if isinstance(x, type)),
    *(x for x in vars(builtins).values() if isinstance(x, type) and issubclass(x, BaseException)),
)}
# Methods of dates that read the clock, the time zone of the machine or its language.
OF_CLOCK = {"now", "today", "utcnow", "fromtimestamp", "strptime", "timestamp", "astimezone",
            "strftime", "__format__"}
NAMES = """abs all any ascii bin callable chr divmod format hex isinstance issubclass iter len
max min oct ord pow repr reversed round sorted sum __build_class__""".split()
FUNCTIONS = {
    *(getattr(builtins, name) for name in NAMES), functools.reduce, functools.cmp_to_key,
    *(x for module in (math, cmath, operator, _operator, _abc, _bisect, _heapq)
      for x in vars(module).values()
      if isinstance(x, types.BuiltinFunctionType)),
    typing.cast, os.fspath,
} - {operator.is_, operator.is_not}              # which ask where an object is
# Python's own modules whose functions are taken as they are.
MODULES = (abc_files := ("<frozen abc>", "<frozen _collections_abc>"),
           *(getattr(x, "__file__", "") for x in (copy, enum, fractions, re, types, typing)))
TRUSTED = {*abc_files, *(x for x in MODULES if isinstance(x, str))}
TRUSTED_FOLDERS = (HOME, f"{os.path.dirname(np.__file__)}{os.sep}",
                   f"{os.path.dirname(re.__file__)}{os.sep}", "<frozen importlib")
# Where Python's own modules lie, without those that were installed.
STANDARD = (f"{os.path.dirname(os.path.__file__)}{os.sep}", "<frozen ")
RANDOM = f"{os.path.dirname(np.random.__file__)}{os.sep}"


def contents_of_array(x: Any) -> Any:
    """The bytes of a small array; no two of what is large, or holds objects, are the same."""
    return x.tobytes() if x.nbytes <= LARGEST and not x.dtype.hasobject else object()


def may_be_now(kind: type, x: Any) -> bool:
    """Whether an array, or a scalar of NumPy's, has dates: NumPy reads the clock for a text such as
    "now" wherever it makes a date of it."""
    return issubclass(kind, (np.ndarray, np.generic)) and (
        x.dtype.kind == "M" or x.dtype.kind == "V" and "M8" in repr(x.dtype))


def is_trusted(path: str) -> bool:
    """Whether functions of a file are taken as they are: those of the library, of NumPy, and a few
    of Python's."""
    return path in TRUSTED or path.startswith(TRUSTED_FOLDERS) and not path.startswith(RANDOM)


def base_of(kind: type) -> type:
    """The class not written in Python whose state objects of a class have: `object` for none."""
    for cls in kind.__mro__:
        if id(cls) in CONTENTS:
            return cls
    return next((cls for cls in kind.__mro__
                 if is_foreign(cls) and (cls.__basicsize__ > object.__basicsize__)), object)


def is_of_library(x: Any) -> bool:
    """Whether a class or a compiled function is the library's."""
    module = getattr(x, "__module__", None)
    return type(module) is str and (module == "tensorlib" or module.startswith("tensorlib."))


def is_definition_of_library(cls: type) -> bool:
    """Whether a class stands in a module of the library, which makes it when it is imported."""
    return is_of_library(cls) and getattr(
        sys.modules.get(cls.__module__), cls.__name__, None) is cls


def is_of_numpy(x: Any) -> bool:
    """Whether a class or a function is NumPy's, and draws no numbers."""
    module = getattr(x, "__module__", None)
    return type(module) is str and module.partition(".")[0] == "numpy" and (
        not module.startswith("numpy.random"))


def is_known(f: Any) -> bool:
    """Whether a function that is not written in Python is known."""
    if type(f) is COMPILED:                    # which may have the name of what it wraps
        name = f.__globals__.get("__name__", "")
        return name.startswith(("tensorlib.", "numpy.")) and not name.startswith("numpy.random")
    return is_of_library(f) or is_of_numpy(f) or type(f) is np.ufunc or (
        type(f) is types.BuiltinFunctionType and f in FUNCTIONS)


def is_known_of_class(owner: type, name: str) -> bool:
    """Whether a method of a class is known that is not written in Python, such as
    `dict.fromkeys`."""
    if id(owner) in CLASSES:
        return not (issubclass(owner, datetime.date) and name in OF_CLOCK)
    return is_of_library(owner) or not is_foreign(owner) or name in (
        "__new__", "__init__", "__init_subclass__", "__call__", "mro", "__subclasshook__",
        "__instancecheck__", "__subclasscheck__")


def is_foreign(kind: type) -> bool:
    """Whether a class is not written in Python, or trusted: its methods are not looked at."""
    return not is_written_in_python(kind) or is_of_library(kind) or is_of_numpy(kind)
