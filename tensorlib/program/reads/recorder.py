"""The recorder of reads: what is recorded, and so guarded, for each kind of read."""

from collections import defaultdict
from datetime import date, time
from functools import partial
from types import (
    BuiltinFunctionType, FrameType, FunctionType, GeneratorType, GenericAlias,
    MemberDescriptorType, MethodType, ModuleType,
)
from typing import Any

import numpy as np

from tensorlib._core.graph import owners
from tensorlib._core.tensor.properties import Attribute
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import Guard, TypeGuard, layout_of
from tensorlib.program.guards.values import MISSING, in_class, is_same
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads.accessors import (
    FIELDS, attribute_of, field_of, is_compared_by_value, is_filled, is_recorded_apart,
)
from tensorlib.program.reads.known import (
    ATOMS, COMPILED, CONTENTS, base_of, is_foreign, is_of_library,
)
from tensorlib.program.reads.objects import ObjectRecorder, is_module
from tensorlib.program.reads.observer import SPECIAL, is_library_function
from tensorlib.program.reads.read_log import line_in, vars_of
from tensorlib.program.run.dispatch import Dispatcher

# Keys of dicts whose comparison runs no code of the user's.
SAFE_KEYS = (int, float, bool, str, bytes, type(None), type, FunctionType)
SAFE_HASHES = {x.__hash__ for x in SAFE_KEYS}
CALLABLES = set(map(id, (
    FunctionType, MethodType, BuiltinFunctionType, COMPILED, partial, type, GeneratorType)))
# Attributes of a tensor that give elements of it, or that are recorded in another way.
FORWARDING: dict[Any, Any] = {MethodType: lambda x: x.__func__,
                              GenericAlias: lambda x: x.__origin__}
OWN_DICTS = COMPILED, staticmethod, classmethod
NOT_COMPARED = {"T", "mT", "H", "mH", "data", "real", "imag", "grad", "grad_fn"}


class ReadRecorder(ObjectRecorder):
    """Records what the functions of this thread read, under `with`, before it is read."""

    def operators(self) -> Guard:
        """A guard of the operators of tensors, which any code may use, also the library's."""
        found = {name: in_class(Tensor, name) for name in SPECIAL}
        for x in found.values():
            if type(x) is FunctionType:
                self.instrument(x)
        return TypeGuard(Tensor, found, user_line())

    # ---- attributes

    def record_attribute(self, x: Any, name: str) -> bool:
        """Records where an attribute is found; whether `record_attribute_value` is to be called
        with what it gives."""
        kind = type(x)
        if kind in FORWARDING:                             # what else it has than its class says
            if in_class(kind, name) is MISSING:
                return self.record_attribute(FORWARDING[kind](x), name)
            return False
        if kind is FrameType:
            self.of_frames = True
            self.fail(f"{name} of a frame may be different in each call, {user_line()}")
        if kind in OWN_DICTS:
            self.record(x, "attr", name, vars_of(x).get(name, MISSING))
        if id(kind) in ATOMS or kind is Variable or kind is BuiltinFunctionType or kind is COMPILED:
            return False
        if issubclass(kind, Dispatcher):
            return self.record_attribute(x._f, name)
        if issubclass(kind, Tensor):
            found = self.look_up_in_class(kind, name)      # also Tensor's own may be replaced
            if found is MISSING and kind is Tensor:        # whose class has one of each that is set
                return False
            if found is MISSING or type(found) is Attribute:
                self.record_value(x, attribute_of, name)
                return False
            if kind is not Tensor and name in vars_of(x):
                self.record(x, "attr", name, vars_of(x)[name])
            return name not in NOT_COMPARED
        if issubclass(kind, ModuleType):
            if not is_of_library(kind):             # whose own are loaded late
                self.record(x, "kind", None, kind)
                self.look_up_in_class(kind, "__getattribute__")
                self.look_up_in_class(kind, name)
            self.record_key(vars(x), name)
            if name not in vars(x):
                self.record_key(vars(x), "__getattr__")
                self.instrument(vars(x).get("__getattr__"))
            return False
        if issubclass(kind, np.void):                      # a record, whose fields are attributes
            self.record_container(x)
        if issubclass(kind, type):
            return self.record_class_attribute(x, name)
        if kind is super:
            return self.record_super_attribute(x, name)
        return self.record_object_attribute(x, kind, name)

    def record_attribute_value(self, x: Any, name: str, found: Any) -> None:
        """Records the value of an attribute, after `record_attribute` has asked for it."""
        getter = in_class(type(x), name)
        if type(x) is type(found) is np.ndarray:        # over the same memory
            self.record_container(x)
        elif type(getter) in FIELDS:
            self.record_value(x, field_of, name, found)
        elif issubclass(type(x), Tensor):
            if not callable(found):
                if type(getter) is property and is_library_function(getter.fget):
                    self.record_value(x, getattr, name, found)
            elif not self.is_inside(x):
                self.record_value(x, layout_of, None)

    def record_attribute_by_name(self, x: Any, name: Any) -> None:
        """Records an attribute that C code looks up, such as `getattr`."""
        if isinstance(name, str) and self.record_attribute(x, name):
            self.record_attribute_value(x, name, field_of(x, name))

    def look_up_in_class(self, kind: type, name: str) -> Any:
        """What a class has under a name, after that was recorded and instrumented."""
        found = in_class(kind, name)
        self.record(kind, "class", name, found)
        self.instrument(found)
        if found is not MISSING and not is_foreign(type(found)):
            self.instrument_class(type(found))                     # a descriptor of the user's
        return found

    def record_class_attribute(self, cls: type, name: str) -> bool:
        """Records where a class finds an attribute."""
        meta = type(cls)
        if not is_foreign(meta):
            self.record(cls, "kind", None, meta)
        self.look_up_in_class(meta, name)
        if self.look_up_in_class(cls, name) is MISSING and meta is not type:
            self.look_up_in_class(meta, "__getattr__")
        self.instrument_class(meta)
        if name == "__dict__":
            self.require_new(cls, "what is read of the __dict__ of a class is not tracked")
        return name in ("__bases__", "__name__", "__qualname__", "__doc__", "__module__", "__mro__")

    def record_super_attribute(self, x: Any, name: str) -> bool:
        """Records where `super()` finds an attribute."""
        kind = x.__self_class__ or object
        own = kind if type(x.__self__) is kind else type(x.__self__)
        for cls in {*kind.__mro__, *own.__mro__}:
            self.look_up_in_class(cls, name)
        return False

    def record_object_attribute(self, x: Any, kind: type, name: str) -> bool:
        """Records where an object finds an attribute."""
        if not is_foreign(kind):
            if id(x) not in self.visited:
                self.visited[id(x)] = x
                self.record(x, "kind", None, kind)
            self.look_up_in_class(kind, "__getattribute__")
        if is_recorded_apart(self, x, name):
            return False
        found = self.look_up_in_class(kind, name)
        setter = in_class(type(found), "__set__") if found is not MISSING else MISSING
        if setter is not MISSING:
            getter = in_class(type(found), "__get__")
            if is_library_function(found.fget if isinstance(found, property) else getter) and (
                    isinstance(found, property) or type(getter) is FunctionType):
                self.record_reachable((x,))              # as of an Enum's `value`
            if type(found) is MemberDescriptorType and field_of(x, name) is MISSING:
                self.record_value(x, field_of, name)
            if name == "__dict__":
                self.dicts[id(vars_of(x))] = vars_of(x), x
                self.record(x, "attrs", None, list(vars_of(x).items()))
            return type(found) in FIELDS and name not in ("__dict__", "__class__")
        own = vars_of(x)
        self.record(x, "attr", name, own.get(name, MISSING))
        if name not in own and found is MISSING:
            getter = self.look_up_in_class(kind, "__getattr__")
            if getter is not MISSING and is_library_function(getter) and not is_module(x):
                self.record_reachable((x,))
        return False

    def record_key(self, holder: dict[Any, Any], key: Any) -> None:
        """Records what a dict has under a key."""
        self.refuse_nan((key,))
        if type(key) is tuple and all(type(x) in SAFE_KEYS for x in key) or (
                isinstance(key, SAFE_KEYS) and type(key).__hash__ in SAFE_HASHES):
            self.record(holder, "key", key, dict.get(holder, key, MISSING))
        else:
            self.record_container(holder)

    def record_element(self, x: Any, key: Any) -> None:
        """Records what `x[key]` reads."""
        kind = type(x)
        if id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor):
            self.record_index(key)
        elif issubclass(kind, tuple):
            self.record_operand(x, False)
        elif issubclass(kind, dict):
            self.record_key(x, key)
            if kind is not dict:
                self.instrument_class(kind)
                if kind is defaultdict:
                    self.record_value(x, field_of, "default_factory")
                    self.record_reachable((x.default_factory,))
        elif issubclass(kind, list) and type(key) is int and -len(x) <= key < len(x):
            self.record(x, "item", key, list.__getitem__(x, key))
            if kind is not list:
                self.instrument_class(kind)
        elif not self.record_container(x):
            if issubclass(kind, type):
                self.look_up_in_class(kind, "__getitem__")
                self.look_up_in_class(x, "__class_getitem__")
            self.record_operand(x)
            if is_module(x) or is_of_library(kind):
                self.record_reachable((x,))

    def record_index(self, key: Any) -> None:
        """Records the parts of an index of a tensor."""
        if type(key) in (list, tuple, slice, np.ndarray):
            self.record_reachable((key,))

    def record_identity(self, x: Any, y: Any) -> None:
        """Records `x is y`. It ends the capture where guards or signatures compare both by value,
        so that another call may have other objects that are equal."""
        kind = type(x)
        if kind is not type(y) or issubclass(kind, Tensor):
            return
        if id(x) in self.covered or id(y) in self.covered:
            self.fail(f"whether a {kind.__name__} is the one that is an argument is not known, "
                      f"{user_line()}")
        elif is_compared_by_value(x) and is_same(x, y):
            self.fail(f"whether a {kind.__name__} is the same object as an equal one is not known, "
                      f"{user_line()}")

    def record_operand(self, x: Any, deep: bool = True) -> None:
        """Records what C code reads of an operand or a part of a text.

        deep: whether it may read all that is in a container, too.
        """
        kind = type(x)
        if kind is int:
            self.record_digits(x)
        if id(kind) in ATOMS or kind is Tensor or kind is Variable:
            return
        self.record_numpy(kind, x)
        if deep and self.record_container(x):
            self.record_reachable((x,))
            self.refuse_nan((x,))
        elif issubclass(kind, Tensor):
            self.instrument_class(kind)
        elif is_module(x) or is_of_library(kind):
            self.record_reachable((x,))
            if issubclass(kind, owners.optimizers.base):         # which is written as a text
                self.record_rates(x)
        elif not is_foreign(kind):
            self.record(x, "kind", None, kind)
            self.instrument_class(kind)
            self.require_known_state(x)
            if hasattr(kind, "__dataclass_fields__"):
                self.record_reachable((x,))
            elif issubclass(kind, type):
                self.instrument_class(x)
        elif issubclass(kind, type):
            self.instrument_class(x)
            self.instrument_class(type(x))
        elif issubclass(kind, BaseException):
            self.require_known_state(x)
        elif id(kind) not in CALLABLES and not issubclass(
                kind, (ModuleType, np.generic, tuple, slice)):
            self.require_new(x, f"what a {kind.__name__} does is not known")

    def record_condition(self, x: Any) -> None:
        """Records what C code reads of a condition: of a container whether it is empty."""
        kind = type(x)
        if issubclass(kind, (list, dict, set, frozenset)):
            self.record_value(x, is_filled, None)
            self.instrument_class(kind)
        elif id(base_of(kind)) in CONTENTS:
            self.record_container(x)
        else:
            self.record_operand(x, False)

    def record_iteration(self, x: Any, unpacks: bool) -> None:
        """Records what is read where `x` is iterated over.

        unpacks: whether its elements are unpacked, and so iterated over, too.
        """
        kind = type(x)
        if id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor):
            return
        if self.record_container(x):
            if unpacks:
                self.record_reachable((x,))
        elif is_module(x) or is_of_library(kind):
            self.record_reachable((x,))
        elif is_foreign(kind) and not issubclass(kind, type):
            self.require_new(x, f"a {kind.__name__} from outside is iterated over")
        else:
            self.record_operand(x)

    def refuse_nan(self, things: Any) -> None:
        """Ends the capture if there is a NaN among some objects, and in containers: it is equal to
        itself there, and to no other NaN, while guards compare what is in it."""
        waiting, seen = [*things], set()
        for x in waiting:
            kind = type(x)
            if kind in (tuple, list, set, frozenset, dict):
                if id(x) not in seen:
                    seen.add(id(x))
                    waiting += self.members_of_container(x)
            elif (kind in (float, complex) or issubclass(kind, np.inexact)) and x != x:
                self.fail(f"whether a NaN is the same object as another one is not known, "
                          f"{user_line()}")

    def record_hashed(self, x: Any) -> None:
        """Records what is read of a key of a dict or a member of a set that is made."""
        self.refuse_nan((x,))
        self.record_operand(x)

    def record_identified(self, x: Any) -> None:
        """Records that `is` asks which object `x` is, and with which it is compared is unknown."""
        self.record_identity(x, x)

    def record_format(self, x: Any, how: Any = "") -> None:
        """Records what is read beside an object that is written in a format. It ends the capture
        where that may be the time zone of the machine, or the language."""
        kind = type(x)
        if issubclass(kind, (date, time)) and how or (
                issubclass(kind, (int, float, complex)) and how.endswith("n")):
            self.fail(f"how a {kind.__name__} is written in this format is not known, "
                      f"{user_line()}")

    def record_write(self, x: Any, name: str | None) -> None:
        """Records what is there before an attribute is written to, or an element for None."""
        kind = type(x)
        if issubclass(kind, Dispatcher):
            return self.record_write(x._f, name)
        if name is None:
            if not (id(kind) in ATOMS or kind is Variable or issubclass(kind, Tensor)):
                if not self.record_container(x):
                    self.record_operand(x)
                    if is_module(x) or is_of_library(kind):
                        self.record_reachable((x,))
            return None
        if issubclass(kind, Tensor):
            if kind is not Tensor and in_class(kind, name) is MISSING:
                self.record(x, "attr", name, vars_of(x).get(name, MISSING))
            return None
        if issubclass(kind, ModuleType):
            return self.record_key(vars(x), name)
        if issubclass(kind, type):
            self.look_up_in_class(x, name)
            return self.instrument_class(type(x))
        if is_recorded_apart(self, x, name):
            return None
        self.written[id(vars_of(x)), name] = line_in(self.root)
        self.look_up_in_class(kind, "__setattr__")
        found = self.look_up_in_class(kind, name)
        if is_module(x):
            self.record_module(x)
        if found is not MISSING and in_class(type(found), "__set__") is not MISSING:
            if type(found) in FIELDS:
                self.record_value(x, field_of, name)
        else:
            self.record(x, "attr", name, vars_of(x).get(name, MISSING))
        return None
