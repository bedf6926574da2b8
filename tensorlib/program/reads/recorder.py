"""The recorder of reads: what has to be guarded for each kind of read."""

from collections import OrderedDict, defaultdict, deque
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from tensorlib._core.graph import owners
from tensorlib._core.tensor.properties import Attribute
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import Guard, TypeGuard, is_written_in_python
from tensorlib.program.guards.values import MISSING, in_class, is_alike
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads import settings
from tensorlib.program.reads.functions import SPECIAL, Observer, is_library_function
from tensorlib.program.reads.known import (
    ATOMS,
    COMPILED,
    CONTENTS,
    base_of,
    is_foreign,
    is_known,
    is_known_of_class,
    is_of_library,
    is_of_numpy,
)
from tensorlib.program.reads.accessors import (
    FIELDS,
    args_of,
    attribute_of,
    contents_of,
    field_of,
    is_filled,
    is_noted_apart,
    is_one_of_many,
    layout_of,
    members_of,
    order_of,
)
from tensorlib.program.reads.notes import vars_of
from tensorlib.program.run.dispatch import Dispatcher

# What a module has of its own, apart from what a user's class adds to it.
PARTS = "_parameters", "_buffers", "_modules"
OF_MODULES = (*PARTS, "training", "_hooks", "_compiled_call", "_non_persistent_buffers_set",
              "forward")
SAFE_KEYS = (int, float, bool, str, bytes, type(None), type, FunctionType)


class Reads(Observer):
    """Records what this thread reads, under `with`."""

    def operators(self) -> Guard:
        """A guard of the operators of tensors, which all code may use, be it the library's."""
        found = {name: in_class(Tensor, name) for name in SPECIAL}
        for x in found.values():
            if type(x) is FunctionType:
                self.observe(x)
        return TypeGuard(Tensor, found, user_line())

    # ---- what has parts

    def whole(self, x: Any) -> bool:
        """Notes all that a container of Python's has in it; whether it is one."""
        kind = type(x)
        if issubclass(kind, dict):
            if not self.is_noted(x, "dict"):
                self.note(x, "dict", None, list(dict.items(x)))
                if issubclass(kind, OrderedDict):
                    self.value(x, order_of, None)
        elif issubclass(kind, list):
            if not self.is_noted(x, "list"):
                self.note(x, "list", None, tuple(list.__iter__(x)))
        elif issubclass(kind, (set, frozenset)):
            self.value(x, members_of, None)
        elif id(base_of(kind)) in CONTENTS:
            self.value(x, contents_of, None)
        else:
            return issubclass(kind, tuple)
        if kind is not dict and kind is not list:
            self.meet(kind)
        return True

    def parts(self, x: Any) -> list[Any]:
        """What is in a container of Python's."""
        kind = type(x)
        if issubclass(kind, dict):
            return [*dict.keys(x), *dict.values(x)]
        base = next((k for k in (list, tuple, set, frozenset, deque) if issubclass(kind, k)), None)
        return list(base.__iter__(x)) if base else []

    def passed(self, things: Any, attributes: bool = False) -> None:
        """Notes all that code may read of what it is given, however deep. attributes: also those
        of modules that no code of the library's reads."""
        waiting = list(things)
        while waiting:
            x = waiting.pop()
            kind = type(x)
            if id(kind) in ATOMS or kind is Tensor or kind is Variable or (
                    (id(x), "passed", attributes) in self.met):
                continue
            self.met[id(x), "passed", attributes] = x
            if issubclass(kind, type):
                self.meet(x, all=True)
            elif kind is BuiltinFunctionType or kind is COMPILED:
                self.observe(x)
                owner = getattr(x, "__self__", None)
                self.setting_passed(x)
                if owner is not None and type(owner) is not ModuleType:
                    waiting.append(owner)
                    known = not issubclass(type(owner), type) or (
                        is_known_of_class(owner, x.__name__))
                else:
                    known = is_known(x)
                if not known:
                    self.fail(f"what {x.__qualname__}() reads or changes is not known, "
                              f"{user_line()}")
            elif issubclass(kind, (FunctionType, MethodType, partial, Dispatcher)):
                if kind is MethodType:
                    waiting.append(x.__self__)
                elif kind is FunctionType:
                    self.setting_passed(x)
                elif kind is partial:
                    for name in ("func", "args", "keywords"):
                        self.value(x, field_of, name)
                    self.note(x.keywords, "dict", None, list(x.keywords.items()))
                self.observe(x)
            elif kind in GETTERS:
                self.fail(f"what {kind.__name__} reads is not known where others call it, "
                          f"{user_line()}")
            elif issubclass(kind, Tensor):
                self.meet(kind)
            elif self.whole(x):
                waiting += self.parts(x)
            elif kind is slice:
                waiting += x.start, x.stop, x.step
            elif is_module(x):
                self.module(x)
                if attributes:
                    self.note(x, "attrs", None, list(vars_of(x).items()))
                waiting += [y for y in vars_of(x).get("_modules", {}).values() if y is not None]
            elif issubclass(kind, owners.optimizers.base):
                self.optimizer(x)
            else:
                waiting += self.parts_of_object(x)

    def setting_passed(self, f: Any) -> None:
        """Ends the capture where others may call what gets or sets a setting: nobody sees with
        what, nor when."""
        if any(settings.is_one_of(f, *ways) for ways in (
                (settings.GIVING, settings.GIVING_NUMPY),
                (settings.CHANGING, settings.CHANGING_NUMPY))):
            self.fail(f"what {f.__qualname__}() reads or changes is not known where others call "
                      f"it, {user_line()}")

    def parts_of_object(self, x: Any) -> list[Any]:
        """Records what an object has that is no container; the parts to be looked at."""
        kind = type(x)
        if is_written_in_python(kind) or is_of_library(kind):
            self.meet(kind, all=True)
            self.state(x)
            self.note(x, "kind", None, kind)
            found = vars_of(x)
            if found is vars_of(x):                     # it has a dict, be it empty
                self.note(x, "attrs", None, list(found.items()))
            values = list(found.values())
            for cls in kind.__mro__:
                slots = vars(cls) if not is_foreign(cls) else {}
                for name, slot in slots.items():
                    if type(slot) is MemberDescriptorType and in_class(kind, name) is slot:
                        self.value(x, field_of, name)
                        values.append(field_of(x, name))
            return values
        if not issubclass(kind, (ModuleType, np.generic)) and not is_of_numpy(kind):
            self.require_new(x, f"the state of a {kind.__name__} is not known")
        return []

    def module(self, x: Any) -> None:
        """Records what the library's code reads of a module of `nn`."""
        if (id(x), "module") in self.met or "_modules" not in vars_of(x):
            return
        self.met[id(x), "module"] = x
        kind, own = type(x), vars_of(x)
        self.note(x, "kind", None, kind)
        for name in ("forward", "__call__"):
            self.in_class(kind, name)
        base = owners.modules.base
        if any(issubclass(cls, base) and cls is not base and is_of_library(cls)
               for cls in kind.__mro__):
            self.note(x, "attrs", None, list(own.items()))
        else:
            for name in (*OF_MODULES, *(key for part in PARTS for key in own.get(part, ()))):
                self.note(x, "attr", name, own.get(name, MISSING))
        self.observe(own.get("forward"))
        for part in PARTS:
            self.note(own[part], "dict", None, list(dict.items(own[part])))
        self.passed(y for y in own.values() if isinstance(y, (list, dict, tuple)))
        self.meet(kind, all=True)

    def optimizer(self, x: Any) -> None:
        """Records an optimiser's parameters, and whether its steps have gradients: all else is
        read at each step."""
        groups = vars_of(x).get("param_groups", [])
        self.note(x, "attr", "param_groups", groups)
        self.whole(groups)
        for group in groups:
            for name in ("params", "differentiable"):
                self.note(group, "key", name, group.get(name, MISSING))
            self.whole(group["params"])

    def value(self, holder: Any, look: Any, key: Any, found: Any = MISSING) -> None:
        """Records what a function that looks at no more than the holder gives."""
        if not self.is_noted(holder, "value", (look, key)):
            self.note(holder, "value", (look, key),
                      look(holder, key) if found is MISSING else found)

    def state(self, x: Any) -> None:
        """Has an object be made by the call where its class is a user's, of one that is not written
        in Python and keeps what nobody sees."""
        base = base_of(type(x))
        if issubclass(base, BaseException) and base.__basicsize__ == BaseException.__basicsize__:
            self.value(x, args_of, None)
        elif base is not object and not (
                issubclass(base, SEEN) or is_of_library(base) or is_of_numpy(base)):
            self.require_new(x, f"what a {base.__name__} has in it is not known")

    # ---- attributes

    def attribute(self, x: Any, name: str) -> bool:
        """Records where an attribute is found. True if its value, once there, is to be recorded."""
        kind = type(x)
        if id(kind) in ATOMS or kind is Variable or kind is BuiltinFunctionType or kind is COMPILED:
            return False
        if issubclass(kind, Dispatcher):
            return self.attribute(x._f, name)
        if issubclass(kind, Tensor):
            found = self.in_class(kind, name)         # methods may be replaced, also Tensor's own
            if found is MISSING or type(found) is Attribute:
                self.value(x, attribute_of, name)
                return False
            if kind is not Tensor and name in vars_of(x):
                self.note(x, "attr", name, vars_of(x)[name])
            return name not in MADE_OF_TENSORS
        if issubclass(kind, ModuleType):
            if not is_of_library(kind):             # whose own are loaded late
                self.note(x, "kind", None, kind)
                self.in_class(kind, "__getattribute__")
                self.in_class(kind, name)
            self.key(vars(x), name)
            if name not in vars(x):
                self.key(vars(x), "__getattr__")
                self.observe(vars(x).get("__getattr__"))
            return False
        if issubclass(kind, type):
            return self.class_attribute(x, name)
        if kind is super:
            return self.super_attribute(x, name)
        return self.object_attribute(x, kind, name)

    def attribute_value(self, x: Any, name: str, found: Any) -> None:
        """Records the value of an attribute, where `attribute` says that it is to be."""
        getter = in_class(type(x), name)
        if type(x) is type(found) is np.ndarray:        # over the same memory
            self.whole(x)
        elif type(getter) in FIELDS:
            self.value(x, field_of, name, found)
        elif issubclass(type(x), Tensor):
            if not callable(found):
                if type(getter) is property and is_library_function(getter.fget):
                    self.value(x, getattr, name, found)
            elif not self.is_inside(x):
                self.value(x, layout_of, None)

    def looked_up(self, x: Any, name: Any) -> None:
        """Records an attribute that C code looks up by its name."""
        if isinstance(name, str) and self.attribute(x, name):
            self.attribute_value(x, name, field_of(x, name))

    def in_class(self, kind: type, name: str) -> Any:
        """What a class has under a name, which is recorded."""
        found = in_class(kind, name)
        self.note(kind, "class", name, found)
        self.observe(found)
        if found is not MISSING and not is_foreign(type(found)):
            self.meet(type(found))                     # a descriptor of the user's
        return found

    def class_attribute(self, cls: type, name: str) -> bool:
        """Records where a class finds an attribute."""
        meta = type(cls)
        self.in_class(meta, name)
        if self.in_class(cls, name) is MISSING and meta is not type:
            self.in_class(meta, "__getattr__")
        self.meet(meta)
        if name == "__dict__":
            self.require_new(cls, "what is read of the __dict__ of a class is not tracked")
        return name in ("__bases__", "__name__", "__qualname__", "__doc__", "__module__", "__mro__")

    def super_attribute(self, x: Any, name: str) -> bool:
        """Records where `super()` finds an attribute."""
        kind = x.__self_class__ or object
        own = kind if type(x.__self__) is kind else type(x.__self__)
        for cls in {*kind.__mro__, *own.__mro__}:
            self.in_class(cls, name)
        return False

    def object_attribute(self, x: Any, kind: type, name: str) -> bool:
        """Records where an object finds an attribute."""
        if not is_foreign(kind):
            if id(x) not in self.met:
                self.met[id(x)] = x
                self.note(x, "kind", None, kind)
            self.in_class(kind, "__getattribute__")
        if is_noted_apart(self, x, name):
            return False
        found = self.in_class(kind, name)
        setter = in_class(type(found), "__set__") if found is not MISSING else MISSING
        if setter is not MISSING:
            getter = in_class(type(found), "__get__")
            if is_library_function(found.fget if isinstance(found, property) else getter) and (
                    isinstance(found, property) or type(getter) is FunctionType):
                self.passed((x,))              # as of an Enum's `value`
            if type(found) is MemberDescriptorType and field_of(x, name) is MISSING:
                self.value(x, field_of, name)
            if name == "__dict__":
                self.dicts[id(vars_of(x))] = vars_of(x), x
                self.note(x, "attrs", None, list(vars_of(x).items()))
            return type(found) in FIELDS and name not in ("__dict__", "__class__")
        own = vars_of(x)
        self.note(x, "attr", name, own.get(name, MISSING))
        if name not in own and found is MISSING:
            getter = self.in_class(kind, "__getattr__")
            if getter is not MISSING and is_library_function(getter) and not is_module(x):
                self.passed((x,))
        return False

    def key(self, holder: dict[Any, Any], key: Any) -> None:
        """Records what is under a key of a dict."""
        if isinstance(key, SAFE_KEYS) and type(key).__hash__ in HASHES or type(key) is tuple and (
                all(type(x) in SAFE_KEYS for x in key)):
            self.note(holder, "key", key, dict.get(holder, key, MISSING))
        else:
            self.whole(holder)

    def element(self, x: Any, key: Any) -> None:
        """Records an element that is read."""
        kind = type(x)
        if id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor):
            self.positions(key)
        elif issubclass(kind, tuple):
            self.operand(x, False)
        elif issubclass(kind, dict):
            self.key(x, key)
            if kind is not dict:
                self.meet(kind)
                if kind is defaultdict:
                    self.value(x, field_of, "default_factory")
                    self.passed((x.default_factory,))
        elif issubclass(kind, list) and type(key) is int and -len(x) <= key < len(x):
            self.note(x, "item", key, list.__getitem__(x, key))
            if kind is not list:
                self.meet(kind)
        elif not self.whole(x):
            if issubclass(kind, type):
                self.in_class(kind, "__getitem__")
                self.in_class(x, "__class_getitem__")
            self.operand(x)
            if is_module(x) or is_of_library(kind):
                self.passed((x,))

    def positions(self, key: Any) -> None:
        """Records what an index of a tensor is made of."""
        if type(key) in (list, tuple, slice, np.ndarray):
            self.passed((key,))

    def identity_compared(self, x: Any, y: Any) -> None:
        """Records that it was asked whether two things are one. What is compared by what is in it
        when it is an argument may be given as one of its likes."""
        kind = type(x)
        if kind is not type(y) or issubclass(kind, Tensor):
            return
        if id(x) in self.covered or id(y) in self.covered:
            self.fail(f"whether a {kind.__name__} is the one that is an argument is not known, "
                      f"{user_line()}")
        elif is_one_of_many(x) and is_alike(x, y):
            self.fail(f"whether a {kind.__name__} is the same object as an equal one is not known, "
                      f"{user_line()}")

    def operand(self, x: Any, deep: bool = True) -> None:
        """Records what C code reads of an operand, a condition or a part of a text."""
        kind = type(x)
        if id(kind) in ATOMS or kind is Tensor or kind is Variable:
            return
        if deep and self.whole(x):
            self.passed((x,))
        elif issubclass(kind, Tensor):
            self.meet(kind)
        elif not is_foreign(kind):
            self.meet(kind)
            self.state(x)
            if hasattr(kind, "__dataclass_fields__"):
                self.passed((x,))
        elif issubclass(kind, type):
            self.meet(type(x))
        elif issubclass(kind, BaseException):
            self.state(x)
        elif id(kind) not in CALLABLE and not issubclass(kind, (ModuleType, np.generic)) and not (
                is_of_library(kind) or issubclass(kind, (tuple, slice))):
            self.require_new(x, f"what a {kind.__name__} does is not known")

    def tested(self, x: Any) -> None:
        """Records whether a container is empty, or what else C code asks of a condition."""
        kind = type(x)
        if issubclass(kind, (list, dict, set, frozenset)):
            self.value(x, is_filled, None)
            self.meet(kind)
        elif id(base_of(kind)) in CONTENTS:
            self.whole(x)
        else:
            self.operand(x, False)

    def iterated(self, x: Any, unpacks: bool) -> None:
        """Records what is iterated over."""
        kind = type(x)
        if id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor):
            return
        if self.whole(x):
            if unpacks:
                self.passed((x,))
        elif is_module(x) or is_of_library(kind):
            self.passed((x,))
        elif is_foreign(kind) and not issubclass(kind, type):
            self.require_new(x, f"a {kind.__name__} from outside is iterated over")
        else:
            self.meet(kind)
            self.state(x)

    def written(self, x: Any, name: str | None) -> None:
        """Records what is there before it is written to: an attribute, or any element for None."""
        kind = type(x)
        if issubclass(kind, Dispatcher):
            return self.written(x._f, name)
        if name is None:
            if not (id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor)):
                if not self.whole(x):
                    self.operand(x)
                    if is_module(x) or is_of_library(kind):
                        self.passed((x,))
            return None
        if issubclass(kind, Tensor):
            if kind is not Tensor and in_class(kind, name) is MISSING:
                self.note(x, "attr", name, vars_of(x).get(name, MISSING))
            return None
        if issubclass(kind, ModuleType):
            return self.key(vars(x), name)
        if issubclass(kind, type):
            self.in_class(x, name)
            return self.meet(type(x))
        if is_noted_apart(self, x, name):
            return None
        self.in_class(kind, "__setattr__")
        found = self.in_class(kind, name)
        if is_module(x):
            self.module(x)
        if found is not MISSING and in_class(type(found), "__set__") is not MISSING:
            if type(found) in FIELDS:
                self.value(x, field_of, name)
        else:
            self.note(x, "attr", name, vars_of(x).get(name, MISSING))
        return None


def is_module(x: Any) -> bool:
    """Whether an object is a module of `nn`."""
    return issubclass(type(x), owners.modules.base)


GETTERS = attrgetter, itemgetter, methodcaller
# Whose state is recorded where it is read, or never changes.
SEEN = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type, ModuleType,
        np.ndarray)
HASHES = {x.__hash__ for x in SAFE_KEYS}
CALLABLE = set(map(id, (
    FunctionType, MethodType, BuiltinFunctionType, COMPILED, partial, type, GeneratorType)))
# Attributes of a tensor that are made of its elements, or are told of in another way.
MADE_OF_TENSORS = {"T", "mT", "H", "mH", "data", "real", "imag", "grad", "grad_fn"}
