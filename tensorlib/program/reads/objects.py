"""Records what can be reached from an object: containers, attributes, modules and optimisers."""

import sys
from collections import OrderedDict, deque
from datetime import date
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from types import (
    BuiltinFunctionType, FunctionType, GenericAlias, MemberDescriptorType, MethodType,
    MethodWrapperType, ModuleType,
)
from typing import Any

import numpy as np

from tensorlib._core.graph import owners
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.values import MISSING, in_class
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads import settings
from tensorlib.program.reads.accessors import (
    args_of, contents_of, errors_of_numpy, field_of, members_of, order_of,
)
from tensorlib.program.reads.known import (
    ATOMS, COMPILED, CONTENTS, OF_CLOCK, base_of, is_foreign, is_known, is_known_of_class,
    is_of_library, is_of_numpy, may_be_now,
)
from tensorlib.program.reads.observer import Observer
from tensorlib.program.reads.read_log import vars_of
from tensorlib.program.run.dispatch import Dispatcher

# The attributes that `nn.Module` has, apart from those that a user's class adds.
MODULE_PARTS = "_parameters", "_buffers", "_modules"
MODULE_ATTRIBUTES = (*MODULE_PARTS, "training", "_hooks", "_compiled_call",
                     "_non_persistent_buffers_set", "forward")
# Whose state is recorded where it is read, or never changes.
KNOWN_STATE = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type, ModuleType,
               np.ndarray)
OPERATOR_GETTERS = attrgetter, itemgetter, methodcaller
WRITING_FILES = {"tofile", "dump"}                                          # of an array
SHORTEST_LIMIT = sys.int_info.str_digits_check_threshold   # digits that no limit is less than
# Objects that nobody can change, and what others may call or read through them.
HOLDERS: dict[Any, Any] = {
    MethodWrapperType: lambda x: (x.__self__,), property: lambda x: (x.fget, x.fset, x.fdel),
    staticmethod: lambda x: (x.__func__,), classmethod: lambda x: (x.__func__,),
    GenericAlias: lambda x: (x.__origin__,),
}


class ObjectRecorder(Observer):
    """Records all of an object, or all that can be reached from it."""

    def record_numpy(self, kind: type, x: Any) -> None:
        """Records what any use of an array, or a scalar of NumPy's, reads beside it."""
        if issubclass(kind, (np.ndarray, np.generic)):
            self.record_value(np, errors_of_numpy, None)
            if may_be_now(kind, x):
                self.fail(f"what makes a {x.dtype} may read the clock, {user_line()}")

    def record_container(self, x: Any) -> bool:
        """Records all that is in a container of Python's; whether `x` is one."""
        kind = type(x)
        if issubclass(kind, dict):
            if not self.is_recorded(x, "dict"):
                self.record(x, "dict", None, list(dict.items(x)))
                if issubclass(kind, OrderedDict):
                    self.record_value(x, order_of, None)
        elif issubclass(kind, list):
            if not self.is_recorded(x, "list"):
                self.record(x, "list", None, tuple(list.__iter__(x)))
        elif issubclass(kind, (set, frozenset)):
            self.record_value(x, members_of, None)
        elif id(base_of(kind)) in CONTENTS:
            self.record_numpy(kind, x)
            self.record_value(x, contents_of, None)
            if is_of_numpy(kind) and vars_of(x):          # such as the mask of a masked array
                self.record(x, "attrs", None, list(vars_of(x).items()))
                self.record_reachable(vars_of(x).values())
        elif not issubclass(kind, tuple):
            return False
        if kind is not dict and kind is not list:
            self.instrument_class(kind)
        return True

    def members_of_container(self, x: Any) -> list[Any]:
        """The members of a container of Python's; of a dict its keys and values."""
        kind = type(x)
        if issubclass(kind, dict):
            return [*dict.keys(x), *dict.values(x)]
        base = next((k for k in (list, tuple, set, frozenset, deque) if issubclass(kind, k)), None)
        return list(base.__iter__(x)) if base else []

    def record_reachable(self, things: Any, attributes: bool = False) -> None:
        """Records all that can be reached from some objects, which code may read that was given
        them and that is not instrumented. attributes: also those of modules that the library's own
        code does not read."""
        waiting = list(things)
        while waiting:
            x = waiting.pop()
            kind = type(x)
            if kind is int or kind is str or kind is bytes:
                self.record_digits(x)
            elif kind in HOLDERS:
                waiting += HOLDERS[kind](x)
            if id(kind) in ATOMS or kind is Tensor or kind is Variable or (
                    (id(x), "reachable", attributes) in self.visited):
                continue
            self.visited[id(x), "reachable", attributes] = x
            if issubclass(kind, type):
                self.instrument_class(x, all=True)
                if not is_foreign(x):
                    waiting.append(vars(x).get("__annotations__"))
            elif kind is BuiltinFunctionType or kind is COMPILED:
                self.instrument(x)
                owner = getattr(x, "__self__", None)
                self.refuse_settings(x)
                if owner is not None and type(owner) is not ModuleType:
                    waiting.append(owner)
                    known = x.__name__ not in WRITING_FILES and not (
                        isinstance(owner, date) and x.__name__ in OF_CLOCK) and (
                        not issubclass(type(owner), type) or is_known_of_class(owner, x.__name__))
                else:
                    known = is_known(x)
                if not known:
                    self.fail(f"what {x.__qualname__}() reads or changes is not known, "
                              f"{user_line()}")
            elif issubclass(kind, (FunctionType, MethodType, partial, Dispatcher)):
                if kind is MethodType:
                    waiting.append(x.__self__)
                elif kind is FunctionType:
                    self.refuse_settings(x)
                elif kind is partial:
                    for name in ("func", "args", "keywords"):
                        self.record_value(x, field_of, name)
                    self.record(x.keywords, "dict", None, list(x.keywords.items()))
                self.instrument(x)
            elif kind in OPERATOR_GETTERS:
                self.fail(f"what {kind.__name__} reads is not known where others call it, "
                          f"{user_line()}")
            elif issubclass(kind, Tensor):
                self.instrument_class(kind)
            elif self.record_container(x):
                waiting += self.members_of_container(x)
            elif kind is slice:
                waiting += x.start, x.stop, x.step
            elif is_module(x):
                self.record_module(x)
                if attributes:
                    self.record(x, "attrs", None, list(vars_of(x).items()))
                    waiting += vars_of(x).values()
                waiting += [y for y in vars_of(x).get("_modules", {}).values() if y is not None]
            elif issubclass(kind, owners.optimizers.base):
                self.record_optimizer(x)
            else:
                waiting += self.record_object(x)

    def record_digits(self, x: Any) -> None:
        """Records how many digits integers may have as text, if a number or a text has that many.
        No limit is less than `SHORTEST_LIMIT`."""
        if x.bit_length() > 3 * SHORTEST_LIMIT if type(x) is int else len(x) > SHORTEST_LIMIT:
            settings.record_setting(self, sys.get_int_max_str_digits)

    def refuse_settings(self, f: Any) -> None:
        """Ends the capture if a function gets or sets a setting: code that is not instrumented may
        call it, and nobody sees with what, nor when."""
        if any(settings.is_one_of(f, *ways) for ways in (
                (settings.GETTERS, settings.OTHER_GETTERS),
                (settings.SETTERS, settings.OTHER_SETTERS))):
            self.fail(f"what {f.__qualname__}() reads or changes is not known where others call "
                      f"it, {user_line()}")

    def record_object(self, x: Any) -> list[Any]:
        """Records the class and the attributes of an object; the values of the attributes."""
        kind = type(x)
        if is_written_in_python(kind) or is_of_library(kind):
            self.instrument_class(kind, all=True)
            self.require_known_state(x)
            self.record(x, "kind", None, kind)
            found = vars_of(x)
            if found is vars_of(x):                     # it has a dict, be it empty
                self.record(x, "attrs", None, list(found.items()))
            values = list(found.values())
            for cls in kind.__mro__:
                slots = vars(cls) if not is_foreign(cls) else {}
                for name, slot in slots.items():
                    if type(slot) is MemberDescriptorType and in_class(kind, name) is slot:
                        self.record_value(x, field_of, name)
                        values.append(field_of(x, name))
            return values
        self.record_numpy(kind, x)
        if kind is not object and not issubclass(kind, (ModuleType, np.generic)) and not (
                is_of_numpy(kind)):
            self.require_new(x, f"the state of a {kind.__name__} is not known")
        return []

    def record_module(self, x: Any) -> None:
        """Records what the library's code reads of a module of `nn`."""
        if (id(x), "module") in self.visited or "_modules" not in vars_of(x):
            return
        self.visited[id(x), "module"] = x
        kind, own = type(x), vars_of(x)
        self.record(x, "kind", None, kind)
        for name in ("forward", "__call__"):
            self.look_up_in_class(kind, name)
        base = owners.modules.base
        if any(issubclass(cls, base) and cls is not base and is_of_library(cls)
               for cls in kind.__mro__):
            self.record(x, "attrs", None, list(own.items()))
        else:
            members = (key for part in MODULE_PARTS for key in own.get(part, ()))
            for name in (*MODULE_ATTRIBUTES, *members):
                self.record(x, "attr", name, own.get(name, MISSING))
        self.instrument(own.get("forward"))
        for part in MODULE_PARTS:
            self.record(own[part], "dict", None, list(dict.items(own[part])))
        self.record_reachable(y for y in own.values() if issubclass(type(y), (list, dict, tuple)))
        self.instrument_class(kind, all=True)

    def record_optimizer(self, x: Any) -> None:
        """Records an optimiser's parameters, and whether its steps have gradients: all else is
        read at each step."""
        groups = vars_of(x).get("param_groups", [])
        self.record(x, "attr", "param_groups", groups)
        self.record_container(groups)
        for group in groups:
            for name in ("params", "differentiable"):
                self.record(group, "key", name, group.get(name, MISSING))
            self.record_container(group["params"])

    def record_rates(self, x: Any) -> None:
        """Records all that is in the groups of an optimiser, such as its learning rates."""
        for group in vars_of(x).get("param_groups", []):
            self.record_container(group)
            self.record_reachable((group,))

    def record_value(self, holder: Any, accessor: Any, key: Any, found: Any = MISSING) -> None:
        """Records what an accessor gives, which reads nothing but the holder (accessors.py).

        found: that, if it is known already.
        """
        if not self.is_recorded(holder, "value", (accessor, key)):
            self.record(holder, "value", (accessor, key),
                        accessor(holder, key) if found is MISSING else found)

    def require_known_state(self, x: Any) -> None:
        """Refuses an object from before the call if a base class of it that is not written in
        Python has state that can't be compared."""
        base = base_of(type(x))
        if issubclass(base, BaseException) and base.__basicsize__ == BaseException.__basicsize__:
            self.record_value(x, args_of, None)
        elif base is not object and not (
                issubclass(base, KNOWN_STATE) or is_of_library(base) or is_of_numpy(base)):
            self.require_new(x, f"what a {base.__name__} has in it is not known")


def is_module(x: Any) -> bool:
    """Whether an object is a module of `nn`."""
    return issubclass(type(x), owners.modules.base)
