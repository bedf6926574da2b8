"""The functions that instrumented code calls for each read: they do it, and report it."""

import functools
import sys
import warnings
from functools import partial
from operator import attrgetter, methodcaller
from threading import RLock
from types import BuiltinFunctionType, FrameType, FunctionType
from typing import Any

from tensorlib._core.base.warned import warn_at
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.reads.calls import record_call
from tensorlib.program.reads.objects import OPERATOR_GETTERS, is_module
from tensorlib.program.reads.observer import HOOKS, active
from tensorlib.program.reads.read_log import vars_of
from tensorlib.program.reads.sources import original_code
from tensorlib.program.reads.tracebacks import frame_behind, without_frames

LOCK = type(RLock())


def attribute(x: Any, name: str) -> Any:
    """`x.name`"""
    recorder = active.recorder
    needs_value = recorder is not None and recorder.try_record(recorder.record_attribute, x, name)
    found = getattr(x, name)
    if name == "__code__" and type(x) is FunctionType:
        found = original_code(x)                 # and not what it has while it is instrumented
    elif name == "f_back" and type(x) is FrameType:
        found = frame_behind(x)
    if recorder is not None and needs_value:
        recorder.try_record(recorder.record_attribute_value, x, name, found)
    return found


def element(x: Any, key: Any) -> Any:
    """`x[key]`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_element, x, key)
    return x[key]


def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`"""
    recorder = active.recorder
    if recorder is None:
        return call_in_frame(f, sys._getframe(1), args, kwargs)
    if type(f) in OPERATOR_GETTERS and len(args) == 1 and not kwargs:
        return call_getter(f, args[0])
    recorder.try_record(record_call, recorder, f, args, kwargs)
    found = call_in_frame(f, sys._getframe(1), args, kwargs)
    if recorder.hit is not None:
        recorder.try_record(recorder.found_in_cache, found)
    if type(found) is dict and makes_dict(f) or (f is reversed or f is iter) and (
            type(args[0]) is range):             # of neither does the garbage collector know
        recorder.created[id(found)] = found
    return found


def call_getter(f: Any, x: Any) -> Any:
    """`f(x)` of an `attrgetter`, `itemgetter` or `methodcaller`, whose reads are reported."""
    make, given = f.__reduce__()
    if type(f) is methodcaller:
        named = make.keywords if type(make) is partial else {}
        name, *rest = (*make.args, *given) if type(make) is partial else given
        return call(attribute(x, name), *rest, **named)
    found = []
    for key in given:
        part = x
        for name in key.split(".") if type(f) is attrgetter else ():
            part = attribute(part, name)
        found.append(part if type(f) is attrgetter else element(x, key))
    return tuple(found) if len(found) > 1 else found[0]


def call_in_frame(f: Any, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
            frame = frame_behind(frame)
            if frame is None:
                raise ValueError("call stack is not deep enough")
        return frame
    if f is warnings.warn and args and set(kwargs) <= {"category", "stacklevel"}:
        found = warning_arguments(*args, **kwargs)
        if found is not None:                # or else it says itself what it was not given
            return warn_at(frame, *found)
    return f(*args, **kwargs)


def warning_arguments(message: Any, category: Any = None, stacklevel: Any = 1, *other: Any) -> Any:
    """The arguments of `warnings.warn` with its defaults; None for those that it would refuse."""
    is_kind = category is None or isinstance(category, type) and issubclass(category, Warning)
    if other or not is_kind or type(stacklevel) is not int:
        return None
    return message, category, stacklevel


def makes_dict(f: Any) -> bool:
    """Whether a function returns a new dict."""
    return f is dict or type(f) is BuiltinFunctionType and (
        f == dict.fromkeys or type(f.__self__) is dict and f == f.__self__.copy)


def contains(x: Any, container: Any) -> bool:
    """`x in container`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_operand, x, False)
        recorder.try_record(recorder.refuse_nan, (x,))
        if type(container) is dict:
            recorder.try_record(recorder.record_key, container, x)
        elif not issubclass(type(container), Tensor):
            recorder.try_record(recorder.record_operand, container)
            if is_module(container):
                recorder.try_record(recorder.record_reachable, (container,))
    return x in container


def identical(x: Any, y: Any) -> bool:
    """`x is y`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_identity, x, y)
    return x is y


def reporting_hook(way: str, *more: Any) -> Any:
    """A hook that gives `x` after it has called the recorder's method `way` with it and `more`."""
    def hook(x: Any, *name: Any) -> Any:
        recorder = active.recorder
        if recorder is not None:
            recorder.try_record(getattr(recorder, way), x, *name, *more)
        return x
    return hook


def operand(x: Any) -> Any:
    """`x`, where C code looks into it."""
    recorder = active.recorder
    if recorder is not None and type(x) is not Tensor:      # nothing is recorded of one
        recorder.try_record(recorder.record_operand, x)
    return x


def formatted(x: Any, how: Any) -> Any:
    """`x`, where it is written in a format; `how`: the format, or what is known of it."""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_format, x, how)
    return operand(x)


def unpacked(x: Any) -> Any:
    """`x`, where it is iterated over and its elements are unpacked."""
    recorder = active.recorder
    if recorder is None:
        return x
    recorder.try_record(recorder.record_iteration, x, True)
    return reported(x) if hasattr(type(x), "__next__") else x


def reported(x: Any) -> Any:
    """The elements of an iterator, each reported before it is unpacked."""
    for part in x:
        operand(part)
        yield part


def created(x: Any) -> Any:
    """A container that the function has just created."""
    recorder = active.recorder
    if recorder is not None:
        recorder.created[id(x)] = x
    return x


def entered(x: Any) -> Any:
    """`x` in `with x:`"""
    recorder = active.recorder
    if recorder is not None and not is_lock_of_cached_property(x, sys._getframe(1)):
        recorder.try_record(recorder.record_operand, x)
        for name in ("__enter__", "__exit__"):
            if in_class(type(x), name) is not MISSING:
                recorder.look_up_in_class(type(x), name)
    return x


def is_lock_of_cached_property(x: Any, frame: Any) -> bool:
    """Whether `with x:` stands in the one of functools, where Python 3.11 has a lock."""
    return type(x) is LOCK and frame.f_code.co_filename == functools.__file__


def matched(x: Any) -> Any:
    """`x` in `match x:`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_reachable, (x,), True)
    return x


def matched_class(cls: Any) -> None:
    """Reports a class in a pattern of `match`."""
    recorder = active.recorder
    if recorder is not None and issubclass(type(cls), type):
        recorder.try_record(recorder.look_up_in_class, cls, "__match_args__")
        recorder.try_record(record_call, recorder, isinstance, (None, cls), {})


class decorator:
    """A decorator, which is called as other functions are."""

    def __init__(self, function: Any):
        self.function = function

    def __call__(self, f: Any) -> Any:
        return call(self.function, f)


def augmented_attribute(x: Any, name: str) -> Any:
    """`x` in `x.name += ...`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_attribute, x, name)
        recorder.try_record(recorder.record_write, x, name)
        found = vars_of(x).get(name) if not issubclass(type(x), Tensor) else None
        recorder.try_record(recorder.record_operand, found)
    return x


def augmented_part(x: Any) -> Any:
    """`x` in `x[...] += ...`"""
    recorder = active.recorder
    if recorder is not None:
        recorder.try_record(recorder.record_write, x, None)
        recorder.try_record(recorder.record_operand, x)
    return x


def read_cell(x: Any) -> Any:
    """A variable of an enclosing function that the call itself created."""
    return x


def written_cell() -> None:
    """Does nothing: a write to such a variable needs no guard."""


def caught() -> None:
    """Takes the frames of the capture out of the traceback of the error that is handled."""
    without_frames(sys.exc_info()[1])


HOOKS.update((f.__name__, f) for f in (
    attribute, caught, element, call, contains, formatted, identical, operand, unpacked, created,
    entered, matched, matched_class, decorator, augmented_attribute, augmented_part, read_cell,
    written_cell, slice))
HOOKS.update({
    "hashed": reporting_hook("record_hashed"),             # in `{x, ...}` and `{x: ...}`
    "identified": reporting_hook("record_identified"),     # in `x is y is z`
    "tested": reporting_hook("record_condition"),              # `x` as a condition
    "iterated": reporting_hook("record_iteration", False),     # where it is iterated over, or `**x`
    "written_attribute": reporting_hook("record_write"),       # in `x.name = ...`
    "written_part": reporting_hook("record_write", None),      # in `x[...] = ...`
})
