"""Instrumentation of the functions and classes that a captured function runs."""

import os
import sys
import weakref
from functools import cached_property, partial
from threading import local
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tensorlib._core.base.garbage import add_pauses
from tensorlib._core.base.registry import Registry
from tensorlib._core.base.settings import AttributeSwap, Held
from tensorlib._core.base.warned import told as told_of_warnings
from tensorlib.program.guards.guarded import Watch, in_cell
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.ir.call_forms import HOME, user_line
from tensorlib.program.reads import sources
from tensorlib.program.reads.known import ATOMS, COMPILED, STANDARD, is_foreign, is_trusted
from tensorlib.program.reads.notes import Notes
from tensorlib.program.run.dispatch import Dispatcher

# Methods that Python looks up by itself, in the class of an object.
SPECIAL = tuple(f"__{name}__" for name in """
    add radd iadd sub rsub isub mul rmul imul matmul rmatmul imatmul truediv rtruediv itruediv
    floordiv rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift rlshift ilshift
    rshift rrshift irshift and rand iand xor rxor ixor or ror ior neg pos abs invert lt le eq ne gt
    ge bool len contains iter next reversed getitem setitem delitem missing call enter exit format
    str repr hash index int float complex round trunc floor ceil getattribute getattr setattr
    delattr get set delete new init post_init length_hint fspath bytes instancecheck subclasscheck
    class_getitem await aiter anext aenter aexit torch_function array""".split())

WRAPPED = property, staticmethod, classmethod
telling: dict[int, Any] = {}           # the codes that tell what they read
told: dict[str, Any] = {}              # the functions that they tell it (hooks.py)


class Running(local):
    """What is told of the reads of this thread."""

    recorder: Any = None


running = Running()


# Of what records no user replaces a part.
RECORDERS = tuple(f"{HOME}{os.sep}program{os.sep}{name}{os.sep}"
                  for name in ("capture", "guards", "ir", "reads"))


class Observer(Notes):
    """Has the functions of this thread tell what they read, under `with`."""

    def __init__(self, is_inside: Any, covered: dict[int, Any]):
        super().__init__(is_inside, covered)
        self.replaced: list[FunctionType] = []
        self.met: dict[Any, Any] = {}               # classes, functions and what was passed
        self.unread: dict[CodeType, str] = {}       # of functions that can't be looked at: why
        self.taken: set[CodeType] = set()           # of those that are taken as they are
        self.watch = Watch(self.began, self.warned)

    def settings(self) -> Held:
        """What has to hold while it observes: this thread's code tells it what is read, and no
        garbage is collected."""
        swaps = AttributeSwap(running, "recorder"), AttributeSwap(told_of_warnings, "by")
        return Held((add_pauses, *swaps), (1, self, self.warned))

    def __enter__(self) -> "Observer":
        self.begin()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            for f in self.replaced:
                sources.restore(f)
        finally:
            self.end()

    def began(self, code: CodeType) -> bool:
        """Is told of the code of each function that begins, whoever calls it; whether it may run
        without being told of again."""
        path = code.co_filename
        if path.startswith(HOME) and not path.startswith(RECORDERS):
            self.replaceable(code, sys._getframe(1))
        if id(code) in telling or is_trusted(path) or code in self.taken or (
                path == "<string>" and code.co_varnames[:1] == ("_cls",)):    # of a namedtuple
            return True
        frame: Any = sys._getframe(2)
        if id(frame.f_code) not in telling and (
                path.startswith(STANDARD) and "site-packages" not in path
                or code.co_qualname.startswith("__create_fn__")):      # of a dataclass
            return False                     # for the library's own purposes
        while frame is not None and id(frame.f_code) not in telling:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return False                 # what imports find (see `import_noted`)
            frame = frame.f_back
        why = self.unread.get(code, "its caller is not captured")
        self.fail(f"what {code.co_qualname} reads is not known, since {why}, {user_line()}")
        return True

    def replaceable(self, code: CodeType, frame: Any) -> None:
        """Records a function of the library's that begins, in whose place a user may put another,
        with the functions, classes and methods that it names, and the settings that it names: of
        its module and its class."""
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
                self.registry(found, line)
                if callable(found) or is_module or id(type(found)) in ATOMS:
                    self.notes.setdefault((id(holder), "key", name),
                                          (holder, "key", name, found, line))
                    self.observe_replaced(found)
                if is_module:
                    holders = [*holders, vars(found)]
            for kind in kinds:
                found = in_class(kind, name)
                if callable(found) or type(found) in WRAPPED or id(type(found)) in ATOMS:
                    self.notes.setdefault((id(kind), "class", name),
                                          (kind, "class", name, found, line))
                    self.observe_replaced(found)

    def observe_replaced(self, f: Any) -> None:
        """Has a function of the user's, in the place of one of the library's, tell what it reads.
        Those of Python's are the library's own."""
        path = sources.own_code(f).co_filename if type(f) is FunctionType else ""
        if path and (not path.startswith(STANDARD) or "site-packages" in path):
            self.observe(f)

    def registry(self, x: Any, line: str) -> None:
        """Notes all that is in a registry."""
        if type(x) is Registry:
            self.notes.setdefault((id(x), "dict", None), (x, "dict", None, list(x.items()), line))

    def warned(self) -> None:
        """Is told of each warning."""
        self.fail(f"it warns, which a replay would not do again, {user_line()}")

    def forget(self) -> None:
        super().forget()
        for found in (self.met, self.unread, self.taken, self.replaced):
            found.clear()

    def noted(self, note: Any, *args: Any) -> Any:
        """What a way to record gives. What goes wrong in it, such as code of the user's that it
        came upon, ends the capture, and not the function."""
        try:
            return note(*args)
        except Exception as error:
            self.fail(f"what it reads can't be recorded ({type(error).__name__}: {error}), "
                      f"{user_line()}")
            return False

    def observe(self, f: Any) -> None:
        """Has a function tell what it reads, in whatever it is wrapped."""
        kind = type(f)                           # `isinstance` would ask the object
        if issubclass(kind, (staticmethod, classmethod, MethodType)):
            return self.observe(f.__func__)
        if issubclass(kind, property):
            for part in (f.fget, f.fset, f.fdel):
                self.observe(part)
            return None
        if issubclass(kind, partial):
            return self.passed((f.func, *f.args, *f.keywords.values()))
        if issubclass(kind, Dispatcher):
            return self.observe(f._f)
        if issubclass(kind, cached_property):
            return self.observe(f.func)
        if kind is not FunctionType and kind is not COMPILED or id(f) in self.met:
            return None
        self.met[id(f)] = f
        if kind is COMPILED:
            return self.observe(getattr(f, "__wrapped__", None))   # as of a transform
        code = sources.own_code(f)
        if is_trusted(code.co_filename):
            return self.observe(getattr(f, "__wrapped__", None))   # as of `@no_grad()`
        if id(f.__code__) in telling and code is f.__code__:
            return None
        self.note(f, "function", None, code)
        named = f.__kwdefaults__ or {}
        for name, x in named.items():
            self.note(named, "key", name, x)
        for cell in f.__closure__ or ():
            if in_cell(cell) is MISSING:               # whose load raises before it is told of
                self.note(cell, "cell", None, MISSING)
        running.recorder = None                  # what reads a source may be what is captured
        try:
            self.watch.without(sources.replace, f, lambda found: filled(found, f))
        except sources.NoSource as error:
            self.unread[code] = str(error)
            return None
        finally:
            running.recorder = self
        self.replaced.append(f)
        return None

    def meet(self, kind: type, all: bool = False) -> None:
        """Has the special methods of a class tell what they read, or all methods."""
        key = id(kind), all
        if key in self.met or is_foreign(kind):
            return
        self.met[key] = kind
        for name in SPECIAL:
            self.note(kind, "class", name, in_class(kind, name))
        for cls in kind.__mro__:
            if not is_foreign(cls):
                self.take_generated(cls)
                for name, x in vars(cls).items():
                    if all and name not in SPECIAL:      # whoever it is given to may read it
                        self.note(kind, "class", name, in_class(kind, name))
                    if all or name in SPECIAL:
                        self.observe(x)
        self.meet(type(kind))

    def take_generated(self, cls: type) -> None:
        """Takes those methods of a class as they are that Python wrote for it."""
        own = vars(cls)
        if "__dataclass_fields__" in own or issubclass(cls, tuple) and "_fields" in own:
            for x in own.values():
                x = getattr(x, "__func__", getattr(x, "__wrapped__", x))
                if type(x) is FunctionType and x.__code__.co_filename == "<string>":
                    self.taken.add(x.__code__)
            for field in own.get("__dataclass_fields__", {}).values():
                self.passed((field.default_factory,))

    def passed(self, things: Any) -> None:
        """Notes all that code may read of what it is given (recorder.py)."""
        raise NotImplementedError


class Globals:
    """Functions that read and write global variables, for the code of one module."""

    def __init__(self, holder: dict[str, Any]):
        self.holder = holder

    def read_global(self, name: str) -> Any:
        """A global variable, or what Python has under its name."""
        recorder = running.recorder
        holder = self.holder
        built = holder.get("__builtins__")
        built = vars(built) if isinstance(built, ModuleType) else built or {}
        if recorder is not None:
            recorder.note(holder, "key", name, holder.get(name, MISSING))
            if name not in holder:
                recorder.note(built, "key", name, built.get(name, MISSING))
        found = holder.get(name, MISSING)
        if found is MISSING:
            found = built.get(name, MISSING)
        if found is MISSING:
            raise NameError(f"name '{name}' is not defined", name=name)
        return found

    def written_global(self, name: str) -> None:
        """Tells of a global variable that the function may write to."""
        recorder = running.recorder
        if recorder is not None:
            recorder.note(self.holder, "key", name, self.holder.get(name, MISSING))

    def imported(self, module: str, level: int = 0, *names: str) -> None:
        """Tells of an import."""
        recorder = running.recorder
        if recorder is not None:
            import_noted(recorder, self.holder, module, level, names)


class Cell:
    """Functions that read and write a variable of a function around the one that runs."""

    def __init__(self, holder: Any):
        self.holder = holder

    def read_cell(self, value: Any) -> Any:
        """The variable's value, which was read just now."""
        recorder = running.recorder
        if recorder is not None:
            recorder.note(self.holder, "cell", None, value)
        return value

    def written_cell(self) -> None:
        """Tells of a variable that the function may write to."""
        recorder = running.recorder
        if recorder is not None:
            recorder.note(self.holder, "cell", None, in_cell(self.holder))


def filled(code: CodeType, f: FunctionType) -> CodeType:
    """The code of a function that tells what it reads, for this function."""
    readers = dict(zip(f.__code__.co_freevars, map(Cell, f.__closure__ or ())))
    around = Globals(f.__globals__)
    found = sources.filled(code, readers, lambda what, name: (
        getattr(around, what) if name == "*" else told[what]))
    waiting = [found]
    for x in waiting:
        telling[id(x)] = weakref.ref(x, lambda _, key=id(x): telling.pop(key, None))
        waiting += [y for y in x.co_consts if isinstance(y, CodeType)]
    return found


def import_noted(recorder: Any, around: dict[str, Any], module: str, level: int,
                 names: tuple[str, ...]) -> None:
    """Records the modules that an import finds, and what it takes of them."""
    if level:
        package = around.get("__package__") or around.get("__name__", "").rpartition(".")[0]
        parts = package.split(".")
        base = ".".join(parts[:len(parts) - level + 1])
        module = f"{base}.{module}" if module else base
    recorder.note(sys.modules, "key", module, sys.modules.get(module, MISSING))
    found = sys.modules.get(module)
    if found is not None:
        for name in names:
            recorder.attribute(found, name)


def is_library_function(f: Any) -> bool:
    """Whether a function's source is the library's, or another that is taken as it is."""
    return type(f) is not FunctionType or is_trusted(sources.own_code(f).co_filename)
