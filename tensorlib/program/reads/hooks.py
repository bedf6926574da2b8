"""The functions that instrumented code calls for each read: they do it, and report it."""

import functools
import sys
import warnings
from functools import partial
from operator import attrgetter, methodcaller
from threading import RLock
from types import BuiltinFunctionType
from typing import Any

from tensorlib._core.base.warned import warn_at
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.reads.calls import called
from tensorlib.program.reads.functions import running, told
from tensorlib.program.reads.notes import vars_of
from tensorlib.program.reads.recorder import GETTERS, is_module
from tensorlib.program.reads.tracebacks import without_frames

LOCK = type(RLock())


def attribute(x: Any, name: str) -> Any:
    """`x.name`"""
    reads = running.recorder
    noted = reads is not None and reads.noted(reads.attribute, x, name)
    found = getattr(x, name)
    if reads is not None and noted:
        reads.noted(reads.attribute_value, x, name, found)
    return found


def element(x: Any, key: Any) -> Any:
    """`x[key]`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.element, x, key)
    return x[key]


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`"""
    reads = running.recorder
    if reads is None:
        return in_frame(f, sys._getframe(1), args, kwargs)
    if type(f) in GETTERS and len(args) == 1 and not kwargs:
        return got(f, args[0])
    reads.noted(called, reads, f, args, kwargs)
    found = in_frame(f, sys._getframe(1), args, kwargs)
    if reads.hit is not None:
        reads.noted(reads.found_in_cache, found)
    if type(found) is dict and makes_dict(f) or (f is reversed or f is iter) and (
            type(args[0]) is range):             # of neither does the garbage collector know
        reads.made[id(found)] = found
    return found


def got(f: Any, x: Any) -> Any:
    """What one of the getters of `operator` gives of an object."""
    made, given = f.__reduce__()
    if type(f) is methodcaller:
        named = made.keywords if type(made) is partial else {}
        name, *rest = (*made.args, *given) if type(made) is partial else given
        return call(attribute(x, name), *rest, **named)
    found = []
    for key in given:
        part = x
        for name in key.split(".") if type(f) is attrgetter else ():
            part = attribute(part, name)
        found.append(part if type(f) is attrgetter else element(x, key))
    return tuple(found) if len(found) > 1 else found[0]


def in_frame(f: Any, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`f(*args, **kwargs)`, as if the frame had called it."""
    if f is globals:
        return frame.f_globals
    if f is locals or f is vars and not args:
        return frame.f_locals
    if f is dir and not args:
        return sorted(frame.f_locals)
    if (f is eval or f is exec) and len(args) == 1 and not kwargs:
        return f(args[0], frame.f_globals, frame.f_locals)
    if f is sys._getframe:
        for _ in range(args[0] if args else 0):
            frame = frame.f_back
            while frame.f_globals is globals():
                frame = frame.f_back
        return frame
    if f is warnings.warn and args and set(kwargs) <= {"category", "stacklevel"}:
        found = warning_in(*args, **kwargs)
        if found is not None:                # or else it says itself what it was not given
            return warn_at(frame, *found)
    return f(*args, **kwargs)


def warning_in(message: Any, category: Any = None, stacklevel: Any = 1, *other: Any) -> Any:
    """What `warnings.warn` is to warn of; None for what it does not take."""
    is_kind = category is None or isinstance(category, type) and issubclass(category, Warning)
    if other or not is_kind or type(stacklevel) is not int:
        return None
    return message, category, stacklevel


def makes_dict(f: Any) -> bool:
    """Whether a function gives a dict that is new."""
    return f is dict or type(f) is BuiltinFunctionType and (
        f == dict.fromkeys or type(f.__self__) is dict and f == f.__self__.copy)


def contains(x: Any, container: Any) -> bool:
    """`x in container`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.operand, x, False)
        if type(container) is dict:
            reads.noted(reads.key, container, x)
        elif not issubclass(type(container), Tensor):
            reads.noted(reads.operand, container)
            if is_module(container):
                reads.noted(reads.passed, (container,))
    return x in container


def identical(x: Any, y: Any) -> bool:
    """`x is y`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.identity_compared, x, y)
    return x is y


def telling(way: str, *more: Any) -> Any:
    """A function that gives `x`, after the recorder was told of it in this way."""
    def told_of(x: Any, *name: Any) -> Any:
        reads = running.recorder
        if reads is not None:
            reads.noted(getattr(reads, way), x, *name, *more)
        return x
    return told_of


def operand(x: Any) -> Any:
    """`x`, where C code looks into it."""
    reads = running.recorder
    if reads is not None and type(x) is not Tensor:      # which needs no note, and most are
        reads.noted(reads.operand, x)
    return x


def unpacked(x: Any) -> Any:
    """`x`, where it is iterated over and its elements are taken apart."""
    reads = running.recorder
    if reads is None:
        return x
    reads.noted(reads.iterated, x, True)
    return parts_told(x) if hasattr(type(x), "__next__") else x


def parts_told(x: Any) -> Any:
    """The elements of an iterator, each told of before it is taken apart."""
    for part in x:
        operand(part)
        yield part


def made(x: Any) -> Any:
    """A container that was made just now."""
    reads = running.recorder
    if reads is not None:
        reads.made[id(x)] = x
    return x


def entered(x: Any) -> Any:
    """`x` in `with x:`"""
    reads = running.recorder
    if reads is not None and not is_lock_of_cached_property(x, sys._getframe(1)):
        reads.noted(reads.operand, x)
        for name in ("__enter__", "__exit__"):
            if in_class(type(x), name) is not MISSING:
                reads.in_class(type(x), name)
    return x


def is_lock_of_cached_property(x: Any, frame: Any) -> bool:
    """Whether `with x:` stands in the one of functools, where Python 3.11 has a lock."""
    return type(x) is LOCK and frame.f_code.co_filename == functools.__file__


def matched(x: Any) -> Any:
    """`x` in `match x:`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.passed, (x,), True)
    return x


def matching(cls: Any) -> None:
    """Tells of a class in a pattern of `match`."""
    reads = running.recorder
    if reads is not None and issubclass(type(cls), type):
        reads.noted(reads.in_class, cls, "__match_args__")
        reads.noted(called, reads, isinstance, (None, cls), {})


class decorator:
    """A decorator, which is called as other functions are."""

    def __init__(self, function: Any):
        self.function = function

    def __call__(self, f: Any) -> Any:
        return call(self.function, f)


def augmented_attribute(x: Any, name: str) -> Any:
    """`x` in `x.name += ...`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.attribute, x, name)
        reads.noted(reads.written, x, name)
        found = vars_of(x).get(name) if not issubclass(type(x), Tensor) else None
        reads.noted(reads.operand, found)
    return x


def augmented_part(x: Any) -> Any:
    """`x` in `x[...] += ...`"""
    reads = running.recorder
    if reads is not None:
        reads.noted(reads.written, x, None)
        reads.noted(reads.operand, x)
    return x


def read_cell(x: Any) -> Any:
    """A variable of a function around this one, which the call made."""
    return x


def written_cell() -> None:
    """Tells of a write to such a variable."""


def caught() -> None:
    """Takes the frames of the capture out of the traceback of the error that is handled."""
    without_frames(sys.exc_info()[1])


told.update((f.__name__, f) for f in (
    attribute, caught, element, call, contains, identical, operand, unpacked, made, entered,
    matched, matching, decorator, augmented_attribute, augmented_part, read_cell, written_cell,
    slice))
told.update({
    "tested": telling("tested"),                     # `x`, where it is asked whether it is true
    "iterated": telling("iterated", False),          # where it is iterated over, also as `**x`
    "written_attribute": telling("written"),         # in `x.name = ...`
    "written_part": telling("written", None),        # in `x[...] = ...`
})
