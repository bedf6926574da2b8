"""What a call of a function reads, by what kind of function it is."""

from abc import ABCMeta
from functools import partial
from string import Formatter
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads import settings, sources
from tensorlib.program.reads.accessors import classes_below, field_of, length_of
from tensorlib.program.reads.known import (
    ATOMS,
    CLASSES,
    COMPILED,
    is_foreign,
    is_known,
    is_known_of_class,
    is_of_library,
    is_of_numpy,
    is_trusted,
)
from tensorlib.program.reads.objects import is_module
from tensorlib.program.reads.read_log import vars_of
from tensorlib.program.reads.recorder import ReadRecorder
from tensorlib.program.run.dispatch import Dispatcher

BOUND = (BuiltinFunctionType, MethodWrapperType)
UNBOUND = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
# Names of methods.
OF_ONE_KEY = {"get", "__getitem__", "__contains__", "setdefault", "pop"}      # of a dict
READING_ALL = {"__dir__", "__getstate__", "__reduce__", "__reduce_ex__", "__sizeof__"}
STORING = {"append", "insert", "appendleft", "setdefault", "__setitem__"}   # which read no operand
WRITING_FILES = {"tofile", "dump"}                                          # of an array
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset, range, slice, type(None))


def record_call(reads: ReadRecorder, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a call will read, apart from what instrumented code reports by itself."""
    kind = type(f)
    special = SPECIAL_CALLS.get(id(f))
    if special is not None:
        special(reads, *args, **kwargs)
    elif kind is MethodType:
        record_call(reads, f.__func__, (f.__self__, *args), kwargs)
    elif (id(f), "known") in reads.visited:
        reads.record_reachable((*args, *kwargs.values()))
    elif settings.is_one_of(f, settings.SETTERS, settings.NUMPY_SETTERS):
        refuse_unknown(reads, name_of(f))
    elif settings.is_one_of(f, settings.GETTERS, settings.NUMPY_GETTERS):
        settings.record_setting(reads, f, args)
    elif kind is FunctionType:
        reads.instrument(f)
        if is_trusted(sources.original_code(f).co_filename):
            reads.record_reachable((*args, *kwargs.values()))
    elif kind is partial:
        for name in ("func", "args", "keywords"):
            reads.record_value(f, field_of, name)
        reads.record(f.keywords, "dict", None, list(f.keywords.items()))
        record_call(reads, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    elif issubclass(kind, Dispatcher):
        record_call(reads, f._f, args, kwargs)
    elif issubclass(kind, type):
        record_construction(reads, f, args, kwargs)
    elif kind in BOUND:
        owner = f.__self__
        if owner is None or type(owner) is ModuleType:
            record_native_call(reads, f, args, kwargs)
        else:
            record_native_method(reads, owner, f.__name__, f, args, kwargs)
    elif kind in UNBOUND:
        if args:
            record_native_method(reads, args[0], f.__name__, f, args[1:], kwargs)
    elif not is_foreign(kind):
        record_object_call(reads, f, kind, args, kwargs)
    elif kind is COMPILED or is_of_numpy(kind):
        if is_written_in_python(kind):
            reads.record_reachable((f,))
        record_native_call(reads, f, args, kwargs)
    elif is_of_library(kind):
        reads.record_reachable((f, *args, *kwargs.values()))
    else:
        record_foreign_call(reads, f, kind, args, kwargs)


def record_object_call(reads: ReadRecorder, f: Any, kind: type, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> None:
    """Records what a call of an object whose class is the user's reads."""
    reads.record(f, "kind", None, kind)
    reads.instrument_class(kind)
    found = reads.in_class(kind, "__call__")
    if is_module(f):
        reads.record_module(f)
        for name in ("forward", "_compiled_call"):
            reads.attribute(f, name)
        reads.instrument(vars_of(f).get("forward"))
    elif type(found) is FunctionType and is_trusted(sources.original_code(found).co_filename):
        reads.record_reachable((f, *args, *kwargs.values()))


def record_foreign_call(reads: ReadRecorder, f: Any, kind: type, args: tuple[Any, ...],
                        kwargs: dict[str, Any]) -> None:
    """Records what a call of an object whose class is not written in Python reads."""
    if kind.__module__ == "typing" or kind.__name__ == "GenericAlias":
        reads.record_reachable((*args, *kwargs.values()))
    else:
        refuse_unknown(reads, f"an object of {kind.__module__}.{kind.__qualname__}")


def record_construction(reads: ReadRecorder, cls: type, args: tuple[Any, ...],
                        kwargs: dict[str, Any]) -> None:
    """Records what the construction of an object of a class reads."""
    if cls is type:
        if len(args) == 1:
            reads.record(args[0], "kind", None, type(args[0]))
        return
    if in_class(cls, "__del__") is not MISSING:
        refuse_unknown(reads, f"{name_of(cls)}.__del__")
    if id(cls) in settings.FORMATTERS and not all(id(type(x)) in ATOMS for x in args):
        settings.record_print_options(reads)
    if cls is super or id(cls) in CLASSES or is_of_library(cls) or (
            is_of_numpy(cls) and (issubclass(cls, np.generic) or cls is np.dtype)):
        if reads_clock(cls, args):
            refuse_unknown(reads, name_of(cls))
        if cls is not super:
            reads.record_reachable((*args, *kwargs.values()))
        return
    if is_foreign(cls):
        trusted = is_of_library(type(cls)) or type(cls).__module__ == "enum"
        if not trusted:
            refuse_unknown(reads, name_of(cls))
        return
    reads.instrument_class(cls)
    reads.instrument_class(type(cls))
    if any(is_foreign(x) and x is not object for x in cls.__mro__):
        reads.record_reachable((*args, *kwargs.values()))


def record_native_call(reads: ReadRecorder, f: Any, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> None:
    """Records what a call of a function that is not written in Python reads."""
    if is_known(f) and not reads_clock(f, args):
        if id(f) in settings.FORMATTERS and id(type(args[0])) not in ATOMS:
            settings.record_print_options(reads)
        if is_of_numpy(f) or type(f) is np.ufunc:
            settings.record_setting(reads, np.geterr)
        reads.record_reachable((getattr(f, "__wrapped__", None), *args, *kwargs.values()))
        if id(f) not in settings.FORMATTERS:
            reads.visited[id(f), "known"] = f       # and is known from now on
    else:
        refuse_unknown(reads, name_of(f))


def reads_clock(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function of NumPy's is given a word that stands for the present time."""
    return is_of_numpy(f) and any(type(x) is str and x.lower() in ("now", "today") for x in args)


def record_native_method(reads: ReadRecorder, owner: Any, name: str, f: Any,
                         args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a method that is not written in Python reads and writes."""
    kind = type(owner)
    if issubclass(kind, type):
        record_class_method(reads, owner, name, f, args, kwargs)
        return
    if name in ("__setattr__", "__delattr__") and args:
        reads.written(owner, args[0])
    elif name == "__getattribute__" and args:
        reads.attribute_by_name(owner, args[0])
    elif issubclass(kind, dict) and name in OF_ONE_KEY and args:
        reads.key(owner, args[0])
        if kind is not dict:
            reads.instrument_class(kind)
    elif name in ("__init__", "__new__", "__init_subclass__"):
        reads.record_reachable((*args, *kwargs.values()))
    elif issubclass(kind, IMMUTABLE) and not issubclass(kind, np.generic):
        if issubclass(kind, str) and name in ("format", "format_map") and (
                reads_attributes(owner)):
            refuse_unknown(reads, "str.format with an attribute in it")
        reads.record_reachable((*args, *kwargs.values()))
    elif name in WRITING_FILES:
        refuse_unknown(reads, f"{kind.__module__}.{kind.__qualname__}.{name}")
    elif reads.record_container(owner):
        if name not in STORING:
            reads.record_reachable((*args, *kwargs.values()))
    elif id(kind) in ATOMS or kind is GeneratorType or issubclass(
            kind, (BaseException, np.generic)):
        if name in ("send", "throw", "close", "__next__"):
            reads.require_new(owner, f"{name} of a {kind.__name__} from outside")
        reads.record_reachable((*args, *kwargs.values()))
    elif issubclass(kind, (Tensor, Variable)) or is_of_library(kind):
        if name == "initial_seed":
            reads.record_value(owner, method_result, name)
        reads.record_reachable((owner, *args, *kwargs.values()))
    elif not is_foreign(kind) and name in vars(object):
        reads.record_reachable((owner, *args) if name in READING_ALL else args)
    elif kind is FunctionType and name == "__get__":
        reads.record_reachable(args)
    elif name in ("__next__", "__iter__", "__length_hint__", "mapping", "isdisjoint"):
        reads.require_new(owner, f"a {kind.__name__} from outside is iterated over")
    else:
        refuse_unknown(reads, f"{kind.__module__}.{kind.__qualname__}.{name}")


def reads_attributes(text: str) -> bool:
    """Whether a format string reads attributes of the arguments of `format`."""
    try:
        return any("." in (field or "") or "." in (how or "") and "{" in (how or "")
                   for _, field, how, _ in Formatter().parse(text))
    except ValueError:                       # which the call raises too
        return False


def record_class_method(reads: ReadRecorder, owner: type, name: str, f: Any,
                        args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a method of a class that is not written in Python reads: `dict.fromkeys`."""
    if name in ("__setattr__", "__delattr__") and args:
        reads.written(owner, args[0])
    elif name == "__getattribute__" and args:
        reads.attribute_by_name(owner, args[0])
    elif name == "__subclasses__":
        reads.record_value(owner, classes_below, None)
    elif is_known_of_class(owner, name):
        reads.record_reachable((*args, *kwargs.values()))
    else:
        refuse_unknown(reads, f"{owner.__qualname__}.{name}")


def refuse_unknown(reads: ReadRecorder, name: str) -> None:
    """Ends the capture at a call of a function that is not known."""
    reads.fail(f"what {name}() reads or changes is not known, {user_line()}")


def name_of(f: Any) -> str:
    """The name of a function in messages."""
    module = getattr(f, "__module__", None)
    own = getattr(f, "__qualname__", None) or type(f).__name__
    return own if module in (None, "builtins") else f"{module}.{own}"


# ---- built-in functions with rules of their own --------------------------------------------------

def record_getattr(reads: ReadRecorder, x: Any, name: Any, *default: Any) -> None:
    """Records what `getattr` and `hasattr` read."""
    reads.attribute_by_name(x, name)


def record_setattr(reads: ReadRecorder, x: Any, name: Any, *value: Any) -> None:
    """Records what `setattr` and `delattr` write to."""
    reads.written(x, name)


def record_len(reads: ReadRecorder, x: Any) -> None:
    """Records what `len` reads."""
    if type(x) in (list, dict, set, frozenset):
        reads.record_value(x, length_of, None)
    else:
        if not reads.record_container(x):
            reads.operand(x, False)
        if is_module(x) or is_of_library(type(x)):
            reads.record_reachable((x,))


def record_next(reads: ReadRecorder, x: Any, *default: Any) -> None:
    """Records what `next` reads: only an iterator that the call created itself may advance."""
    if is_foreign(type(x)):
        reads.require_new(x, f"next() of a {type(x).__name__} from outside")
    else:
        reads.operand(x)


def record_isinstance(reads: ReadRecorder, x: Any, kinds: Any) -> None:
    """Records what `isinstance` and `issubclass` read."""
    if isinstance(x, type):
        reads.in_class(x, "__bases__")         # whose entry has the classes above as well
    elif id(type(x)) not in ATOMS and not issubclass(type(x), Tensor):
        reads.attribute(x, "__class__")
        reads.record(x, "kind", None, type(x))
    waiting = [kinds]
    for each in waiting:
        if isinstance(each, tuple):
            waiting += each
        else:
            reads.instrument_class(type(each))
            if issubclass(type(each), ABCMeta):
                settings.record_abstract_classes(reads)
                for name in () if issubclass(type(x), Tensor) else required_names(each):
                    reads.attribute_by_name(x, name)


def required_names(kind: Any) -> set[str]:
    """The names that an abstract class or a protocol may look up in an object."""
    found = set(getattr(kind, "__abstractmethods__", ()))
    if getattr(kind, "_is_protocol", False):
        for cls in kind.__mro__:
            found |= {*vars(cls), *vars(cls).get("__annotations__", ())}
    return found - set(vars(object))


def record_vars(reads: ReadRecorder, *x: Any) -> None:
    """Records what `vars` reads."""
    if x and not isinstance(x[0], type):
        reads.attribute(x[0], "__dict__")
    else:
        refuse_unknown(reads, "vars")


def record_callable(reads: ReadRecorder, f: Any, *args: Any, **kwargs: Any) -> None:
    """Records what `callable` reads: nothing but the class."""
    reads.operand(f, False)


def method_result(x: Any, name: str) -> Any:
    """The result of a method that takes no arguments."""
    return getattr(x, name)()


SPECIAL_CALLS: dict[int, Any] = {
    id(getattr): record_getattr, id(hasattr): record_getattr, id(setattr): record_setattr,
    id(delattr): record_setattr, id(len): record_len, id(next): record_next,
    id(isinstance): record_isinstance, id(issubclass): record_isinstance, id(vars): record_vars,
    id(callable): record_callable,
}
