"""What a call of a function reads, by what kind of function it is."""

from abc import ABCMeta
from contextvars import ContextVar
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
from tensorlib.program.reads.caches import CACHED, cached_called
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
from tensorlib.program.reads.accessors import classes_below, field_of, in_context, length_of
from tensorlib.program.reads.notes import vars_of
from tensorlib.program.reads.recorder import Reads, is_module
from tensorlib.program.run.dispatch import Dispatcher

BOUND = (BuiltinFunctionType, MethodWrapperType)
UNBOUND = (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
SINGLE = {"get", "__getitem__", "__contains__", "setdefault", "pop"}      # of one key of a dict
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset, range, slice, type(None))


def called(reads: Reads, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a call will read, as far as no code tells that by itself."""
    kind = type(f)
    special = SPECIAL_CALLS.get(id(f))
    if special is not None:
        special(reads, *args, **kwargs)
    elif kind is MethodType:
        called(reads, f.__func__, (f.__self__, *args), kwargs)
    elif kind is CACHED:
        cached_called(reads, f, args, kwargs)
    elif (id(f), "called") in reads.met:
        reads.passed((*args, *kwargs.values()))
    elif settings.is_one_of(f, settings.CHANGING, settings.CHANGING_NUMPY):
        unknown(reads, name_of(f))
    elif settings.is_one_of(f, settings.GIVING, settings.GIVING_NUMPY):
        settings.note(reads, f, args)
    elif kind is FunctionType:
        reads.observe(f)
        if is_trusted(sources.own_code(f).co_filename):
            reads.passed((*args, *kwargs.values()))
    elif kind is partial:
        for name in ("func", "args", "keywords"):
            reads.value(f, field_of, name)
        reads.note(f.keywords, "dict", None, list(f.keywords.items()))
        called(reads, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    elif issubclass(kind, Dispatcher):
        called(reads, f._f, args, kwargs)
    elif issubclass(kind, type):
        class_called(reads, f, args, kwargs)
    elif kind in BOUND:
        owner = f.__self__
        if owner is None or type(owner) is ModuleType:
            function_called(reads, f, args, kwargs)
        else:
            method_called(reads, owner, f.__name__, f, args, kwargs)
    elif kind in UNBOUND:
        if args:
            method_called(reads, args[0], f.__name__, f, args[1:], kwargs)
    elif not is_foreign(kind):
        object_called(reads, f, kind, args, kwargs)
    elif kind is COMPILED or is_of_numpy(kind):
        if is_written_in_python(kind):
            reads.passed((f,))
        function_called(reads, f, args, kwargs)
    elif is_of_library(kind):
        reads.passed((f, *args, *kwargs.values()))
    else:
        foreign_called(reads, f, kind, args, kwargs)


def object_called(reads: Reads, f: Any, kind: type, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> None:
    """Records what a call of an object of the user's reads."""
    reads.note(f, "kind", None, kind)
    reads.meet(kind)
    found = reads.in_class(kind, "__call__")
    if is_module(f):
        reads.module(f)
        for name in ("forward", "_compiled_call"):
            reads.attribute(f, name)
        reads.observe(vars_of(f).get("forward"))
    elif type(found) is FunctionType and is_trusted(sources.own_code(found).co_filename):
        reads.passed((f, *args, *kwargs.values()))


def foreign_called(reads: Reads, f: Any, kind: type, args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> None:
    """Records what a call of an object that is not written in Python reads."""
    if kind.__module__ == "typing" or kind.__name__ == "GenericAlias":
        reads.passed((*args, *kwargs.values()))
    else:
        unknown(reads, f"an object of {kind.__module__}.{kind.__qualname__}")


def class_called(reads: Reads, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what making an object reads."""
    if cls is type:
        if len(args) == 1:
            reads.note(args[0], "kind", None, type(args[0]))
        return
    if in_class(cls, "__del__") is not MISSING:
        unknown(reads, f"{name_of(cls)}.__del__")
    if id(cls) in settings.WRITING and not all(id(type(x)) in ATOMS for x in args):
        settings.note_writing(reads)
    if cls is super or id(cls) in CLASSES or is_of_library(cls) or (
            is_of_numpy(cls) and (issubclass(cls, np.generic) or cls is np.dtype)):
        if asks_for_the_time(cls, args):
            unknown(reads, name_of(cls))
        if cls is not super:
            reads.passed((*args, *kwargs.values()))
        return
    if is_foreign(cls):
        trusted = is_of_library(type(cls)) or type(cls).__module__ == "enum"
        if not trusted:
            unknown(reads, name_of(cls))
        return
    reads.meet(cls)
    reads.meet(type(cls))
    if any(is_foreign(x) and x is not object for x in cls.__mro__):
        reads.passed((*args, *kwargs.values()))


def function_called(reads: Reads, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Records what a call of a function reads that is not written in Python."""
    if is_known(f) and not asks_for_the_time(f, args):
        if id(f) in settings.WRITING and id(type(args[0])) not in ATOMS:
            settings.note_writing(reads)
        if is_of_numpy(f) or type(f) is np.ufunc:
            settings.note(reads, np.geterr)
        reads.passed((getattr(f, "__wrapped__", None), *args, *kwargs.values()))
        if id(f) not in settings.WRITING:
            reads.met[id(f), "called"] = f       # and is known from now on
    else:
        unknown(reads, name_of(f))


def asks_for_the_time(f: Any, args: tuple[Any, ...]) -> bool:
    """Whether a function of NumPy's is given the words that it takes for the present time."""
    return is_of_numpy(f) and any(type(x) is str and x.lower() in ("now", "today") for x in args)


def method_called(reads: Reads, owner: Any, name: str, f: Any, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> None:
    """Records what a method of a type that is not written in Python reads, and what it changes."""
    kind = type(owner)
    if issubclass(kind, type):
        static_called(reads, owner, name, f, args, kwargs)
        return
    if name in ("__setattr__", "__delattr__") and args:
        reads.written(owner, args[0])
    elif name == "__getattribute__" and args:
        reads.looked_up(owner, args[0])
    elif issubclass(kind, dict) and name in SINGLE and args:
        reads.key(owner, args[0])
        if kind is not dict:
            reads.meet(kind)
    elif name in ("__init__", "__new__", "__init_subclass__"):
        reads.passed((*args, *kwargs.values()))
    elif issubclass(kind, IMMUTABLE) and not issubclass(kind, np.generic):
        if issubclass(kind, str) and name in ("format", "format_map") and (
                reads_attributes(owner)):
            unknown(reads, "str.format with an attribute in it")
        reads.passed((*args, *kwargs.values()))
    elif kind is ContextVar and name == "get":
        reads.value(owner, in_context, None)
    elif name in WRITING_FILES:
        unknown(reads, f"{kind.__module__}.{kind.__qualname__}.{name}")
    elif reads.whole(owner):
        if name not in KEEPING:
            reads.passed((*args, *kwargs.values()))
    elif issubclass(kind, BaseException) and name in CHANGING:
        reads.require_new(owner, f"{name} of a {kind.__name__} from outside")
    elif id(kind) in ATOMS or kind is GeneratorType or issubclass(
            kind, (BaseException, np.generic)):
        if name in ("send", "throw", "close", "__next__"):
            reads.require_new(owner, f"{name} of a {kind.__name__} from outside")
        reads.passed((*args, *kwargs.values()))
    elif issubclass(kind, (Tensor, Variable)) or is_of_library(kind):
        if name == "initial_seed":
            reads.value(owner, asked, name)
        reads.passed((owner, *args, *kwargs.values()))
    elif not is_foreign(kind) and name in vars(object):
        reads.passed((owner, *args) if name in WHOLE else args)
    elif kind is FunctionType and name == "__get__":
        reads.passed(args)
    elif name in ("__next__", "__iter__", "__length_hint__", "mapping", "isdisjoint"):
        reads.require_new(owner, f"a {kind.__name__} from outside is iterated over")
    else:
        unknown(reads, f"{kind.__module__}.{kind.__qualname__}.{name}")


def reads_attributes(text: str) -> bool:
    """Whether a text for `format` names attributes of what is put in."""
    try:
        return any("." in (field or "") or "." in (how or "") and "{" in (how or "")
                   for _, field, how, _ in Formatter().parse(text))
    except ValueError:                       # which the call raises too
        return False


def static_called(reads: Reads, owner: type, name: str, f: Any, args: tuple[Any, ...],
                  kwargs: dict[str, Any]) -> None:
    """Records what a method of a class reads, such as `dict.fromkeys`."""
    if name in ("__setattr__", "__delattr__") and args:
        reads.written(owner, args[0])
    elif name == "__getattribute__" and args:
        reads.looked_up(owner, args[0])
    elif name == "__subclasses__":
        reads.value(owner, classes_below, None)
    elif is_known_of_class(owner, name):
        reads.passed((*args, *kwargs.values()))
    else:
        unknown(reads, f"{owner.__qualname__}.{name}")


def unknown(reads: Reads, name: str) -> None:
    """Ends a capture at a call of what nobody knows."""
    reads.fail(f"what {name}() reads or changes is not known, {user_line()}")


def name_of(f: Any) -> str:
    """How a function is called in a message."""
    module = getattr(f, "__module__", None)
    own = getattr(f, "__qualname__", None) or type(f).__name__
    return own if module in (None, "builtins") else f"{module}.{own}"


# ---- functions that know of names and types ------------------------------------------------------

def attribute_read(reads: Reads, x: Any, name: Any, *default: Any) -> None:
    """Records what `getattr` and `hasattr` read."""
    reads.looked_up(x, name)


def attribute_written(reads: Reads, x: Any, name: Any, *value: Any) -> None:
    """Records what `setattr` and `delattr` write to."""
    reads.written(x, name)


def length_read(reads: Reads, x: Any) -> None:
    """Records what `len` reads."""
    if type(x) in (list, dict, set, frozenset):
        reads.value(x, length_of, None)
    else:
        if not reads.whole(x):
            reads.operand(x, False)
        if is_module(x) or is_of_library(type(x)):
            reads.passed((x,))


def next_read(reads: Reads, x: Any, *default: Any) -> None:
    """Records what `next` reads: only what the call made itself may go on."""
    if is_foreign(type(x)):
        reads.require_new(x, f"next() of a {type(x).__name__} from outside")
    else:
        reads.operand(x)


def kinds_read(reads: Reads, x: Any, kinds: Any) -> None:
    """Records what `isinstance` and `issubclass` read."""
    if isinstance(x, type):
        reads.in_class(x, "__bases__")         # whose note has the classes above as well
    elif id(type(x)) not in ATOMS and not issubclass(type(x), Tensor):
        reads.attribute(x, "__class__")
        reads.note(x, "kind", None, type(x))
    waiting = [kinds]
    for each in waiting:
        if isinstance(each, tuple):
            waiting += each
        else:
            reads.meet(type(each))
            if issubclass(type(each), ABCMeta):
                settings.note_kinds(reads)
                for name in () if issubclass(type(x), Tensor) else names_asked_for(each):
                    reads.looked_up(x, name)


def names_asked_for(kind: Any) -> set[str]:
    """What an abstract class or a protocol may ask of an object that it is to have."""
    found = set(getattr(kind, "__abstractmethods__", ()))
    if getattr(kind, "_is_protocol", False):
        for cls in kind.__mro__:
            found |= {*vars(cls), *vars(cls).get("__annotations__", ())}
    return found - set(vars(object))


def vars_read(reads: Reads, *x: Any) -> None:
    """Records what `vars` reads."""
    if x and not isinstance(x[0], type):
        reads.attribute(x[0], "__dict__")
    else:
        unknown(reads, "vars")


def called_back(reads: Reads, f: Any, *args: Any, **kwargs: Any) -> None:
    """Records what is called by `callable` and the like: nothing but the class."""
    reads.operand(f, False)


def asked(x: Any, name: str) -> Any:
    """What a method without arguments gives."""
    return getattr(x, name)()


SPECIAL_CALLS: dict[int, Any] = {
    id(getattr): attribute_read, id(hasattr): attribute_read, id(setattr): attribute_written,
    id(delattr): attribute_written, id(len): length_read, id(next): next_read,
    id(isinstance): kinds_read, id(issubclass): kinds_read, id(vars): vars_read,
    id(callable): called_back,
}
WHOLE = {"__dir__", "__getstate__", "__reduce__", "__reduce_ex__", "__sizeof__"}   # of an object
CHANGING = {"add_note", "with_traceback", "__setstate__"}  # of an error
WRITING_FILES = {"tofile", "dump"}                         # of an array
KEEPING = {"append", "insert", "appendleft", "setdefault", "__setitem__"}   # what takes its operand
