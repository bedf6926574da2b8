"""What a call of a function reads, by what kind of function it is."""

import copy
import operator
import sys
from abc import ABCMeta
from contextvars import ContextVar
from datetime import date
from functools import partial
from string import Formatter
from types import (
    BuiltinFunctionType, ClassMethodDescriptorType, FunctionType, GeneratorType,
    MethodDescriptorType, MethodType, MethodWrapperType, ModuleType, WrapperDescriptorType,
)
from typing import Any

import numpy as np

from tensorlib._core.graph import owners
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads import settings, sources
from tensorlib.program.reads.accessors import (
    classes_below, errors_of_numpy, field_of, in_context, length_of,
)
from tensorlib.program.reads.caches import CACHED, record_cached_call
from tensorlib.program.reads.known import (
    ATOMS, CLASSES, COMPILED, OF_CLOCK, is_foreign, is_known, is_known_of_class, is_of_library,
    is_of_numpy, is_trusted,
)
from tensorlib.program.reads.objects import WRITING_FILES, is_module
from tensorlib.program.reads.read_log import vars_of
from tensorlib.program.reads.recorder import ReadRecorder
from tensorlib.program.run.dispatch import Dispatcher

BOUND = (BuiltinFunctionType, MethodWrapperType)
UNBOUND = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
# Names of methods.
OF_ONE_KEY = {"get", "__getitem__", "__contains__", "setdefault", "pop"}      # of a dict
READING_ALL = {"__dir__", "__getstate__", "__reduce__", "__reduce_ex__", "__sizeof__"}
STORING = {"append", "insert", "appendleft", "setdefault", "__setitem__"}   # which read no operand
CHANGING_ERRORS = {"add_note", "with_traceback", "__setstate__"}
COMPARING = {operator.contains, operator.countOf, operator.indexOf, operator.eq, operator.ne,
             dict.fromkeys, "index", "count", "remove", "__contains__", "__eq__", "__ne__", "add",
             "update", "union", "intersection", "difference", "discard", "fromkeys"}
OF_STEPS = {"step", "zero_grad"}            # of an optimiser: each replay reads the rates
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset, range, slice, type(None))


def record_call(recorder: ReadRecorder, f: Any, args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> None:
    """Records what a call will read, apart from what instrumented code reports by itself."""
    kind = type(f)
    special = SPECIAL_CALLS.get(id(f))
    if special is not None:
        special(recorder, *args, **kwargs)
    elif kind is MethodType:
        record_call(recorder, f.__func__, (f.__self__, *args), kwargs)
    elif kind is CACHED:
        record_cached_call(recorder, f, args, kwargs)
    elif (id(f), "known") in recorder.visited:
        recorder.record_reachable((*args, *kwargs.values()))
    elif settings.is_one_of(f, settings.SETTERS, settings.OTHER_SETTERS):
        refuse_unknown(recorder, name_of(f))
    elif settings.is_one_of(f, settings.GETTERS, settings.OTHER_GETTERS):
        settings.record_setting(recorder, f, args)
    elif kind is FunctionType:
        recorder.instrument(f)
        path = sources.original_code(f).co_filename
        if is_trusted(path):
            recorder.record_reachable((*args, *kwargs.values()), path == copy.__file__)
            if args and issubclass(type(args[0]), owners.optimizers.base) and (
                    f.__name__ not in OF_STEPS):
                recorder.record_rates(args[0])
    elif kind is partial:
        for name in ("func", "args", "keywords"):
            recorder.record_value(f, field_of, name)
        recorder.record(f.keywords, "dict", None, list(f.keywords.items()))
        record_call(recorder, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    elif issubclass(kind, Dispatcher):
        record_call(recorder, f._f, args, kwargs)
    elif issubclass(kind, type):
        record_construction(recorder, f, args, kwargs)
    elif kind in BOUND:
        owner = f.__self__
        if owner is None or type(owner) is ModuleType:
            record_native_call(recorder, f, args, kwargs)
        else:
            record_native_method(recorder, owner, f.__name__, f, args, kwargs)
    elif kind in UNBOUND:
        if args:
            record_native_method(recorder, args[0], f.__name__, f, args[1:], kwargs)
    elif not is_foreign(kind):
        record_object_call(recorder, f, kind, args, kwargs)
    elif kind is COMPILED or is_of_numpy(kind):
        if is_written_in_python(kind):
            recorder.record_reachable((f,))
        record_native_call(recorder, f, args, kwargs)
    elif is_of_library(kind):
        recorder.record_reachable((f, *args, *kwargs.values()))
    else:
        record_foreign_call(recorder, f, kind, args, kwargs)


def record_object_call(recorder: ReadRecorder, f: Any, kind: type, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> None:
    """Records what a call of an object whose class is the user's reads."""
    recorder.record(f, "kind", None, kind)
    recorder.instrument_class(kind)
    recorder.require_known_state(f)
    found = recorder.look_up_in_class(kind, "__call__")
    if is_module(f):
        recorder.record_module(f)
        for name in ("forward", "_compiled_call"):
            recorder.record_attribute(f, name)
        recorder.instrument(vars_of(f).get("forward"))
    elif type(found) is FunctionType and is_trusted(sources.original_code(found).co_filename):
        recorder.record_reachable((f, *args, *kwargs.values()))


def record_foreign_call(recorder: ReadRecorder, f: Any, kind: type, args: tuple[Any, ...],
                        kwargs: dict[str, Any]) -> None:
    """Records what a call of an object whose class is not written in Python reads."""
    if kind.__module__ == "typing" or kind.__name__ == "GenericAlias":
        recorder.record_reachable((*args, *kwargs.values()))
    else:
        refuse_unknown(recorder, f"an object of {kind.__module__}.{kind.__qualname__}")


def record_construction(recorder: ReadRecorder, cls: type, args: tuple[Any, ...],
                        kwargs: dict[str, Any]) -> None:
    """Records what the construction of an object of a class reads."""
    if cls is type:
        if len(args) == 1:
            recorder.record(args[0], "kind", None, type(args[0]))
        return
    if in_class(cls, "__del__") is not MISSING:
        refuse_unknown(recorder, f"{name_of(cls)}.__del__")
    if id(cls) in settings.FORMATTERS and not all(id(type(x)) in ATOMS for x in args):
        settings.record_print_options(recorder)
        recorder.record_operand(args[0])
    if cls is super or id(cls) in CLASSES or is_of_library(cls) or (
            is_of_numpy(cls) and (issubclass(cls, np.generic) or cls is np.dtype)):
        if reads_clock(cls, args):
            refuse_unknown(recorder, name_of(cls))
        if cls is not super:
            recorder.record_reachable((*args, *kwargs.values()))
        if cls is set or cls is frozenset:
            recorder.refuse_nan(args)
        return
    if is_foreign(cls):
        trusted = is_of_library(type(cls)) or type(cls).__module__ == "enum"
        if not trusted:
            refuse_unknown(recorder, name_of(cls))
        return
    recorder.instrument_class(cls)
    recorder.instrument_class(type(cls))
    if any(is_foreign(x) and x is not object for x in cls.__mro__):
        recorder.record_reachable((*args, *kwargs.values()))


def record_native_call(recorder: ReadRecorder, f: Any, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> None:
    """Records what a call of a function that is not written in Python reads."""
    if is_known(f) and not reads_clock(f, args):
        if id(f) in settings.FORMATTERS and id(type(args[0])) not in ATOMS:
            settings.record_print_options(recorder)
            recorder.record_operand(args[0])
        if f is format:
            recorder.record_format(*args)
        if f in COMPARING:
            recorder.refuse_nan(args)
        if is_of_numpy(f) or type(f) is np.ufunc:
            recorder.record_value(np, errors_of_numpy, None)
        recorder.record_reachable((getattr(f, "__wrapped__", None), *args, *kwargs.values()))
        if id(f) not in settings.FORMATTERS:
            recorder.visited[id(f), "known"] = f       # and is known from now on
    else:
        refuse_unknown(recorder, name_of(f))


def reads_clock(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function of NumPy's is given a word that stands for the present time. Of what else
    may make a date of a word, the result ends the capture (`record_numpy`)."""
    return is_of_numpy(f) and any(
        isinstance(x, (str, bytes)) and x.lower() in ("now", "today", b"now", b"today")
        for x in args)


def record_native_method(recorder: ReadRecorder, owner: Any, name: str, f: Any,
                         args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a method that is not written in Python reads and writes."""
    kind = type(owner)
    if issubclass(kind, type):
        record_class_method(recorder, owner, name, f, args, kwargs)
        return
    if name in ("__setattr__", "__delattr__") and args:
        recorder.record_write(owner, args[0])
    elif name == "__getattribute__" and args:
        recorder.record_attribute_by_name(owner, args[0])
    elif issubclass(kind, dict) and name in OF_ONE_KEY and args:
        recorder.record_key(owner, args[0])
        if kind is not dict:
            recorder.instrument_class(kind)
    elif name in ("__init__", "__new__", "__init_subclass__"):
        recorder.record_reachable((*args, *kwargs.values()))
    elif name == "__hash__" or getattr(f, "__objclass__", None) is object and name == "__repr__":
        record_hash(recorder, owner)
    elif issubclass(kind, IMMUTABLE) and not issubclass(kind, np.generic):
        if issubclass(kind, str) and name in ("format", "format_map"):
            if reads_attributes(owner):
                refuse_unknown(recorder, "str.format with an attribute in it")
            for x in (*args, *kwargs.values()):
                recorder.record_format(x, owner.replace("}", ""))
        if name in COMPARING:
            recorder.refuse_nan((owner, *args))
        recorder.record_reachable((owner, *args, *kwargs.values()))
    elif kind is ContextVar and name == "get":
        recorder.record_value(owner, in_context, None)
    elif name in WRITING_FILES:
        refuse_unknown(recorder, f"{kind.__module__}.{kind.__qualname__}.{name}")
    elif recorder.record_container(owner):
        if name in COMPARING:
            recorder.refuse_nan(args)
        if name not in STORING:
            recorder.record_reachable((*args, *kwargs.values()))
    elif issubclass(kind, BaseException) and name in CHANGING_ERRORS:
        recorder.require_new(owner, f"{name} of a {kind.__name__} from outside")
    elif id(kind) in ATOMS or kind is GeneratorType or issubclass(
            kind, (BaseException, np.generic)):
        if issubclass(kind, date) and name in OF_CLOCK:
            refuse_unknown(recorder, f"{kind.__qualname__}.{name}")
        recorder.record_numpy(kind, owner)
        if name in ("send", "throw", "close", "__next__"):
            recorder.require_new(owner, f"{name} of a {kind.__name__} from outside")
        recorder.record_reachable((*args, *kwargs.values()))
    elif issubclass(kind, (Tensor, Variable)) or is_of_library(kind):
        if name == "initial_seed":
            recorder.record_value(owner, method_result, name)
        recorder.record_reachable((owner, *args, *kwargs.values()))
    elif not is_foreign(kind) and name in vars(object):
        recorder.record_reachable((owner, *args) if name in READING_ALL else args)
    elif kind is FunctionType and name == "__get__":
        recorder.record_reachable(args)
    elif name in ("__next__", "__iter__", "__length_hint__", "mapping", "isdisjoint"):
        recorder.require_new(owner, f"a {kind.__name__} from outside is iterated over")
    else:
        refuse_unknown(recorder, f"{kind.__module__}.{kind.__qualname__}.{name}")


def reads_attributes(text: str) -> bool:
    """Whether a format string reads attributes of the arguments of `format`."""
    try:
        return any("." in (field or "") or "." in (how or "") and "{" in (how or "")
                   for _, field, how, _ in Formatter().parse(text))
    except ValueError:                       # which the call raises too
        return False


def record_class_method(recorder: ReadRecorder, owner: type, name: str, f: Any,
                        args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a method of a class that is not written in Python reads: `dict.fromkeys`."""
    if name in ("__setattr__", "__delattr__") and args:
        recorder.record_write(owner, args[0])
    elif name == "__getattribute__" and args:
        recorder.record_attribute_by_name(owner, args[0])
    elif name == "__subclasses__":
        recorder.record_value(owner, classes_below, None)
    elif is_known_of_class(owner, name):
        recorder.record_reachable((*args, *kwargs.values()))
    else:
        refuse_unknown(recorder, f"{owner.__qualname__}.{name}")


def refuse_unknown(recorder: ReadRecorder, name: str) -> None:
    """Ends the capture at a call of a function that is not known."""
    recorder.fail(f"what {name}() reads or changes is not known, {user_line()}")


def name_of(f: Any) -> str:
    """The name of a function in messages."""
    module = getattr(f, "__module__", None)
    own = getattr(f, "__qualname__", None) or type(f).__name__
    return own if module in (None, "builtins") else f"{module}.{own}"


# ---- built-in functions with rules of their own --------------------------------------------------

def record_getattr(recorder: ReadRecorder, x: Any, name: Any, *default: Any) -> None:
    """Records what `getattr` and `hasattr` read."""
    recorder.record_attribute_by_name(x, name)


def record_setattr(recorder: ReadRecorder, x: Any, name: Any, *value: Any) -> None:
    """Records what `setattr` and `delattr` write to."""
    recorder.record_write(x, name)


def record_len(recorder: ReadRecorder, x: Any) -> None:
    """Records what `len` reads."""
    if type(x) in (list, dict, set, frozenset):
        recorder.record_value(x, length_of, None)
    else:
        if not recorder.record_container(x):
            recorder.record_operand(x, False)
        if is_module(x) or is_of_library(type(x)):
            recorder.record_reachable((x,))


def record_next(recorder: ReadRecorder, x: Any, *default: Any) -> None:
    """Records what `next` reads: only an iterator that the call created itself may advance."""
    if is_foreign(type(x)):
        recorder.require_new(x, f"next() of a {type(x).__name__} from outside")
    else:
        recorder.record_operand(x)


def record_isinstance(recorder: ReadRecorder, x: Any, kinds: Any) -> None:
    """Records what `isinstance` and `issubclass` read."""
    if isinstance(x, type):
        recorder.instrument_class(x)
        recorder.look_up_in_class(x, "__bases__")        # with the classes above
    elif id(type(x)) not in ATOMS and not issubclass(type(x), Tensor):
        recorder.record_attribute(x, "__class__")
        recorder.record(x, "kind", None, type(x))
    waiting = [kinds]
    for each in waiting:
        if isinstance(each, tuple):
            waiting += each
        else:
            recorder.instrument_class(type(each))
            if not isinstance(each, type):                 # a union, or a class of `typing`
                waiting += getattr(each, "__args__", ())
                settings.record_abstract_classes(recorder)
            if issubclass(type(each), ABCMeta):
                settings.record_abstract_classes(recorder)
                for name in () if issubclass(type(x), Tensor) else required_names(each):
                    recorder.record_attribute_by_name(x, name)


def required_names(kind: Any) -> set[str]:
    """The names that an abstract class or a protocol may look up in an object."""
    found = set(getattr(kind, "__abstractmethods__", ()))
    if getattr(kind, "_is_protocol", False):
        for cls in kind.__mro__:
            found |= {*vars(cls), *vars(cls).get("__annotations__", ())}
    return found - set(vars(object))


def record_vars(recorder: ReadRecorder, *x: Any) -> None:
    """Records what `vars` reads."""
    if x and not isinstance(x[0], type):
        recorder.record_attribute(x[0], "__dict__")
    else:
        refuse_unknown(recorder, "vars")


def record_frame(recorder: ReadRecorder, *args: Any) -> None:
    """Ends the capture: a part of a function has not the variables that its frame shows."""
    recorder.of_frames = True
    refuse_unknown(recorder, "sys._getframe")


def record_callable(recorder: ReadRecorder, f: Any, *args: Any, **kwargs: Any) -> None:
    """Records what `callable` reads: nothing but the class."""
    recorder.record_operand(f, False)


def record_id(recorder: ReadRecorder, x: Any) -> None:
    """Records that `id` is asked of an object, which is guarded by what it is read from: of a kind
    that guards compare by identity."""
    if not issubclass(type(x), (FunctionType, ModuleType, type)) or id(x) in recorder.covered:
        refuse_unknown(recorder, "id")
    recorder.require_old(x, f"what id() gives of a {type(x).__name__} that the call makes is not "
                         "known")


def record_hash(recorder: ReadRecorder, x: Any) -> None:
    """Records that an object is asked for its hash, which may be where it is."""
    recorder.refuse_nan((x,))
    if type(x).__hash__ is object.__hash__ or issubclass(type(x), Tensor):
        if issubclass(type(x), Tensor) or id(x) in recorder.covered:
            refuse_unknown(recorder, "hash")
        recorder.require_old(x, f"the hash of a {type(x).__name__} that it makes is not known")
    else:
        recorder.record_operand(x)


def record_is(recorder: ReadRecorder, x: Any, y: Any) -> None:
    """Records what `operator.is_` asks."""
    recorder.record_identity(x, y)


def method_result(x: Any, name: str) -> Any:
    """The result of a method that takes no arguments."""
    return getattr(x, name)()


SPECIAL_CALLS: dict[int, Any] = {
    id(getattr): record_getattr, id(hasattr): record_getattr, id(setattr): record_setattr,
    id(delattr): record_setattr, id(len): record_len, id(next): record_next,
    id(isinstance): record_isinstance, id(issubclass): record_isinstance, id(vars): record_vars,
    id(callable): record_callable, id(id): record_id, id(hash): record_hash,
    id(operator.is_): record_is, id(operator.is_not): record_is,
    id(sys._getframe): record_frame,
}
