"""Accessors: functions of an object and a key that read its state, and nothing else.

What they return is recorded, and compared before each replay. Some only inspect the type of a
value.
"""

import warnings
from contextvars import ContextVar
from threading import local
from types import GetSetDescriptorType, MemberDescriptorType, MethodType, WrapperDescriptorType
from typing import Any

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import is_generic
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.reads.known import CONTENTS, base_of, is_of_library, is_of_numpy
from tensorlib.program.reads.read_log import vars_of

FIELDS = GetSetDescriptorType, MemberDescriptorType       # descriptors that run no Python code


def field_of(x: Any, name: str) -> Any:
    """What is in a field that the class of an object has, such as a slot, without a call of the
    user's code; MISSING for nothing."""
    found = in_class(type(x), name)
    try:
        return found.__get__(x, type(x)) if type(found) in FIELDS else MISSING
    except AttributeError:
        return MISSING


def members_of(x: Any, _: Any) -> Any:
    """The members of a set, in its order."""
    return tuple(frozenset.__iter__(x) if isinstance(x, frozenset) else set.__iter__(x))


def contents_of(x: Any, _: Any) -> Any:
    """The contents of an array or a deque."""
    return CONTENTS[id(base_of(type(x)))](x)


def order_of(x: Any, _: Any) -> Any:
    """The keys of an ordered dict, in its order."""
    return tuple(x)


def is_filled(x: Any, _: Any) -> bool:
    """Whether a container has anything in it."""
    base = next(k for k in (list, dict, set, frozenset) if isinstance(x, k))
    return base.__len__(x) > 0


def length_of(x: Any, _: Any) -> int:
    """The length of a container."""
    return len(x)


def is_compared_by_value(x: Any) -> bool:
    """Whether guards compare a value by what is in it, though there may be several equal objects.
    Python has one object of each small number, and of an empty string or tuple."""
    kind = type(x)
    if kind is int:
        return not -5 <= x <= 256
    return kind in (float, complex) or kind in (str, bytes, tuple) and len(x) > 0 or (
        kind in (range, slice, MethodType, frozenset) or issubclass(kind, np.generic))


def args_of(x: BaseException, _: Any) -> Any:
    """The arguments of an exception."""
    return vars(BaseException)["args"].__get__(x)


def attribute_of(x: Tensor, name: str) -> Any:
    """An attribute that a user has set on a tensor; MISSING for none."""
    if type(x) is not Tensor:
        return vars_of(x).get(name, MISSING)
    found = in_class(Tensor, name)
    try:
        return MISSING if found is MISSING else found.__get__(x, Tensor)
    except AttributeError:
        return MISSING


def classes_below(x: type, _: Any) -> Any:
    """The direct subclasses of a class."""
    return tuple(type.__subclasses__(x))


def has_usual_lookup(kind: type) -> bool:
    """Whether a class looks attributes up in Python's own way, or by code written in Python."""
    getter = in_class(kind, "__getattribute__")
    return type(getter) is not WrapperDescriptorType or is_generic(getter.__objclass__)


def is_recorded_apart(recorder: Any, x: Any, name: str) -> bool:
    """Whether an attribute lies elsewhere than those of most objects. It is recorded for an object
    of which each thread has its own attributes; others end the capture."""
    kind = type(x)
    if kind is local and not name.startswith("__"):
        recorder.record_value(x, in_thread, name)
    elif kind is MethodType or has_usual_lookup(kind) or is_of_library(kind) or is_of_numpy(kind):
        return False
    else:                                            # such as a weak reference
        recorder.fail(f"what an attribute of a {kind.__name__} reads is not known, {user_line()}")
    return True


def in_thread(x: local, name: str) -> Any:
    """What this thread has under a name in its own part of an object."""
    return getattr(x, name, MISSING)


def errors_of_numpy(_: Any, __: Any) -> Any:
    """What NumPy does at an error of floating-point numbers; if it warns, also by which filters."""
    ways = (*np.geterr().values(),)
    return ways, tuple(warnings.filters) if "warn" in ways else ()


def in_context(x: ContextVar[Any], _: Any) -> Any:
    """What a variable has in the context that runs, apart from its default."""
    return x.get(MISSING)
