"""Instrumentation of the functions and classes that a captured function runs."""

import os
import sys
import warnings
import weakref
from enum import EnumMeta
from functools import cached_property, partial
from threading import local
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tensorlib._core.base.garbage import add_pauses
from tensorlib._core.base.registry import Registry
from tensorlib._core.base.settings import AttributeSwap, Held
from tensorlib._core.base.warned import listener
from tensorlib.program.guards.guarded import Watch, in_cell
from tensorlib.program.guards.values import MISSING, in_class, names_in
from tensorlib.program.ir.call_forms import HOME, user_line
from tensorlib.program.reads import settings, sources
from tensorlib.program.reads.known import ATOMS, COMPILED, STANDARD, is_foreign, is_trusted
from tensorlib.program.reads.read_log import ReadLog
from tensorlib.program.run.dispatch import Dispatcher

# Methods that Python looks up by itself, in the class of an object.
SPECIAL = tuple(f"__{name}__" for name in """
    add radd iadd sub rsub isub mul rmul imul matmul rmatmul imatmul truediv rtruediv itruediv
    floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift rlshift ilshift
    rshift rrshift irshift and rand iand xor rxor ixor or ror ior neg pos abs invert lt le eq ne gt
    ge bool len contains iter next reversed getitem setitem delitem missing call enter exit format
    str repr hash index int float complex round trunc floor ceil getattribute getattr setattr
    delattr get set delete new init post_init length_hint fspath bytes instancecheck subclasscheck
    class_getitem await aiter anext aenter aexit torch_function array array_ufunc array_function
    array_interface array_struct array_priority""".split())

WRAPPED = property, staticmethod, classmethod
MEMBERS_OF_ENUM = "_member_map_", "_member_names_", "_value2member_map_"
SHOWN = warnings.WarningMessage.__name__    # the class of what a warning shows
instrumented_codes: dict[int, Any] = {}     # by their ids, those with hooks
HOOKS: dict[str, Any] = {}                  # by their names (hooks.py fills it)


class Active(local):
    """The recorder of the capture that runs in this thread, or None."""

    recorder: Any = None


active = Active()


# Where the library's own code lies that captures, in which users replace nothing.
RECORDERS = tuple(f"{HOME}{os.sep}program{os.sep}{name}{os.sep}"
                  for name in ("capture", "guards", "ir", "reads"))


class Observer(ReadLog):
    """Instruments the functions that this thread runs, under `with`."""

    def __init__(self, is_inside: Any, covered: dict[int, Any]):
        super().__init__(is_inside, covered)
        self.instrumented_functions: list[FunctionType] = []
        self.visited: dict[Any, Any] = {}           # what was instrumented or recorded as a whole
        self.without_source: dict[CodeType, str] = {}       # which can't be instrumented: why
        self.generated: set[CodeType] = set()       # which Python wrote, and need not be
        self.watch = Watch(self.function_begins, self.warning_given)

    def settings(self) -> Held:
        """What has to hold while it observes: hooks and warnings of this thread call it, and no
        garbage is collected."""
        swaps = AttributeSwap(active, "recorder"), AttributeSwap(listener, "callback")
        return Held((add_pauses, *swaps), (1, self, self.warning_given))

    def __enter__(self) -> "Observer":
        self.begin()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            for f in self.instrumented_functions:
                sources.uninstall(f)
        finally:
            self.end()

    def function_begins(self, code: CodeType) -> bool:
        """Is called with the code of each function that begins, whoever calls it; whether that need
        not be done again. It ends the capture for one that should be instrumented and is not."""
        path = code.co_filename
        if path.startswith(HOME) and not path.startswith(RECORDERS):
            self.record_library_function(code, sys._getframe(1))
        if path == warnings.__file__ and code.co_name == "__init__" and (
                code.co_qualname.startswith(SHOWN)):       # code that is not Python's warns
            self.warning_given()
        self.try_record(settings.record_settings_of_file, self, path)
        around = sys._getframe(1).f_globals
        if id(code) in instrumented_codes or is_trusted(path) or code in self.generated or (
                path == "<string>" and is_of_namedtuple(code, around)):
            return True
        frame: Any = sys._getframe(2)
        if id(frame.f_code) not in instrumented_codes and (
                path.startswith(STANDARD) and "site-packages" not in path
                or path == "<string>" and is_trusted(around.get("__file__", ""))):   # a dataclass
            return False                     # for the library's own purposes
        while frame is not None and id(frame.f_code) not in instrumented_codes:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return False                 # what imports find (see `record_import`)
            frame = frame.f_back
        why = self.without_source.get(code, "its caller is not captured")
        self.fail(f"what {code.co_qualname} reads is not known, since {why}, {user_line()}")
        return True

    def record_library_function(self, code: CodeType, frame: Any) -> None:
        """Records a function of the library's that begins, and the functions, classes, methods and
        settings of its module and its class that it names: a user may replace each of them."""
        around, line = frame.f_globals, f"in {code.co_qualname}"
        home, _, name = code.co_qualname.rpartition(".")
        kinds = [around.get(home)]
        if code.co_varnames[:1] == ("self",) and code.co_argcount:
            kinds.append(type(frame.f_locals.get("self")))
        kinds = [x for x in dict.fromkeys(kinds) if isinstance(x, type)]
        names = (*code.co_names, name)
        holders = [around]
        for name in names:
            for holder in holders:
                found = holder.get(name, MISSING)
                is_module = type(found) is ModuleType and holder is around
                self.record_registry(found, line)
                if callable(found) or is_module or id(type(found)) in ATOMS:
                    self.add_entry(holder, "key", name, found, line)
                    self.instrument_replacement(found)
                if is_module:
                    holders = [*holders, vars(found)]
            for kind in kinds:
                found = in_class(kind, name)
                if callable(found) or type(found) in WRAPPED or id(type(found)) in ATOMS:
                    self.add_entry(kind, "class", name, found, line)
                    self.instrument_replacement(found)

    def instrument_replacement(self, f: Any) -> None:
        """Instruments a function of the user's that is in the place of one of the library's. Those
        of Python's are the library's own."""
        path = sources.original_code(f).co_filename if type(f) is FunctionType else ""
        if path and (not path.startswith(STANDARD) or "site-packages" in path):
            self.instrument(f)

    def record_registry(self, x: Any, line: str) -> None:
        """Records all that is in a registry; nothing for anything else."""
        if type(x) is Registry:
            self.add_entry(x, "dict", None, list(x.items()), line)

    def warning_given(self) -> None:
        """Ends the capture at a warning."""
        self.fail(f"it warns, which a replay would not do again, {user_line()}")

    def forget(self) -> None:
        super().forget()
        for found in (self.visited, self.without_source, self.generated,
                      self.instrumented_functions):
            found.clear()

    def try_record(self, method: Any, *args: Any) -> Any:
        """The result of a method that records a read. An error in it, as of code of the user's
        that it calls, ends the capture, and not the function."""
        try:
            return method(*args)
        except Exception as error:
            self.fail(f"what it reads can't be recorded ({type(error).__name__}: {error}), "
                      f"{user_line()}")
            return False

    def instrument(self, f: Any) -> None:
        """Instruments a function, in whatever it is wrapped, and records its code and defaults."""
        kind = type(f)                           # `isinstance` would ask the object
        if issubclass(kind, (staticmethod, classmethod, MethodType)):
            return self.instrument(f.__func__)
        if issubclass(kind, property):
            for part in (f.fget, f.fset, f.fdel):
                self.instrument(part)
            return None
        if issubclass(kind, partial):
            return self.record_reachable((f.func, *f.args, *f.keywords.values()))
        if issubclass(kind, Dispatcher):
            return self.instrument(f._f)
        if issubclass(kind, cached_property):
            return self.instrument(f.func)
        if kind is not FunctionType and kind is not COMPILED or id(f) in self.visited:
            return None
        self.visited[id(f)] = f
        if kind is COMPILED:
            return self.instrument(getattr(f, "__wrapped__", None))   # as of a transform
        code = sources.original_code(f)
        if is_trusted(code.co_filename):
            return self.instrument(getattr(f, "__wrapped__", None))   # as of `@no_grad()`
        if id(f.__code__) in instrumented_codes and code is f.__code__:
            return None
        self.record(f, "function", None, code)
        named = f.__kwdefaults__ or {}
        for name, x in named.items():
            self.record(named, "key", name, x)
        for cell in f.__closure__ or ():
            if in_cell(cell) is MISSING:               # whose load raises before its hook is called
                self.record(cell, "cell", None, MISSING)
        active.recorder = None                  # what reads a source may be what is captured
        try:
            self.watch.without(sources.install, f, lambda found: bind_hooks(found, f))
        except sources.NoSource as error:
            self.without_source[code] = str(error)
            return None
        finally:
            active.recorder = self
        self.instrumented_functions.append(f)
        return None

    def instrument_class(self, kind: type, all: bool = False) -> None:
        """Instruments and records the special methods of a class and of those above it.

        all: all other methods and attributes as well.
        """
        key = id(kind), all
        if key in self.visited or is_foreign(kind):
            return
        self.visited[key] = kind
        if not is_foreign(type(kind)):
            self.record(kind, "kind", None, type(kind))
        if issubclass(type(kind), EnumMeta):
            for name in MEMBERS_OF_ENUM:
                self.record_reachable((vars(kind).get(name),))
        if all:
            self.record(kind, "class", None, names_in(kind))
        for name in SPECIAL:
            self.record(kind, "class", name, in_class(kind, name))
        for cls in kind.__mro__:
            if not is_foreign(cls):
                self.find_generated(cls)
                for name, x in vars(cls).items():
                    if all and name not in SPECIAL:      # whoever it is given to may read it
                        self.record(kind, "class", name, in_class(kind, name))
                    if all or name in SPECIAL:
                        self.instrument(x)
        self.instrument_class(type(kind))

    def find_generated(self, cls: type) -> None:
        """Finds the methods that Python wrote for a dataclass or a named tuple, which are not
        instrumented."""
        own = vars(cls)
        if "__dataclass_fields__" in own or issubclass(cls, tuple) and "_fields" in own:
            for x in own.values():
                x = getattr(x, "__func__", getattr(x, "__wrapped__", x))
                if type(x) is FunctionType and x.__code__.co_filename == "<string>":
                    self.generated.add(x.__code__)
            for field in own.get("__dataclass_fields__", {}).values():
                self.record_reachable((field.default_factory,))

    def record_reachable(self, things: Any) -> None:
        """Records all that can be reached from some objects (objects.py)."""
        raise NotImplementedError


class Globals:
    """The hooks that read and write global variables, for the functions of one module."""

    def __init__(self, holder: dict[str, Any]):
        self.holder = holder

    def read_global(self, name: str) -> Any:
        """The value of a global variable, or of a built-in name."""
        recorder = active.recorder
        holder = self.holder
        built = holder.get("__builtins__")
        built = vars(built) if isinstance(built, ModuleType) else built or {}
        if recorder is not None:
            recorder.record(holder, "key", name, holder.get(name, MISSING))
            if name not in holder:
                recorder.record(built, "key", name, built.get(name, MISSING))
        found = holder.get(name, MISSING)
        if found is MISSING:
            found = built.get(name, MISSING)
        if found is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        return found

    def written_global(self, name: str) -> None:
        """Records a global variable that the function may write to."""
        recorder = active.recorder
        if recorder is not None:
            recorder.record(self.holder, "key", name, self.holder.get(name, MISSING))

    def imported(self, module: str, level: int = 0, *names: str) -> None:
        """Records an import."""
        recorder = active.recorder
        if recorder is not None:
            record_import(recorder, self.holder, module, level, names)


class Cell:
    """The hooks that read and write a variable of an enclosing function."""

    def __init__(self, holder: Any):
        self.holder = holder

    def read_cell(self, value: Any) -> Any:
        """The variable's value, which the instrumented code has read."""
        recorder = active.recorder
        if recorder is not None:
            recorder.record(self.holder, "cell", None, value)
        return value

    def written_cell(self) -> None:
        """Records the variable, which the function may write to."""
        recorder = active.recorder
        if recorder is not None:
            recorder.record(self.holder, "cell", None, in_cell(self.holder))


def bind_hooks(code: CodeType, f: FunctionType) -> CodeType:
    """An instrumented code with hooks for the globals and the closure of this function."""
    cells = dict(zip(f.__code__.co_freevars, map(Cell, f.__closure__ or ())))
    around = Globals(f.__globals__)
    found = sources.with_hooks(code, cells, lambda hook, name: (
        getattr(around, hook) if name == "*" else HOOKS[hook]))
    waiting = [found]
    for x in waiting:
        instrumented_codes[id(x)] = weakref.ref(
            x, lambda _, key=id(x): instrumented_codes.pop(key, None))
        waiting += [y for y in x.co_consts if isinstance(y, CodeType)]
    return found


def record_import(recorder: Any, around: dict[str, Any], module: str, level: int,
                  names: tuple[str, ...]) -> None:
    """Records the modules that an import finds, and what it takes of them."""
    if level:
        package = around.get("__package__") or around.get("__name__", "").rpartition(".")[0]
        parts = package.split(".")
        base = ".".join(parts[:len(parts) - level + 1])
        module = f"{base}.{module}" if module else base
    recorder.record(sys.modules, "key", module, sys.modules.get(module, MISSING))
    found = sys.modules.get(module)
    if found is not None:
        for name in names:
            recorder.record_attribute(found, name)


def is_of_namedtuple(code: CodeType, around: dict[str, Any]) -> bool:
    """Whether a code, with these globals, is the one that Python wrote to make named tuples."""
    return code.co_names == ("_tuple_new",) and around.get("_tuple_new") == tuple.__new__ and (
        around.get("__builtins__") == {})


def is_library_function(f: Any) -> bool:
    """Whether a function is not instrumented: it is trusted, or not written in Python."""
    return type(f) is not FunctionType or is_trusted(sources.original_code(f).co_filename)
