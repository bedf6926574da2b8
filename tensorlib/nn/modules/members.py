"""The members of a module: registration and lookup of parameters, buffers and submodules."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Self

from tensorlib import Tensor
from tensorlib._core.base.error_names import type_name
from tensorlib.nn.modules.registered import members_of
from tensorlib.nn.parameter import Buffer, Parameter

# Hooks that see each registration of any module, by kind: see `nn.modules.module`.
registration_hooks: dict[str, dict[Any, Callable[..., Any]]] = {
    "_parameters": {}, "_buffers": {}, "_modules": {}}


def takes_anything(found: Any) -> bool:
    """Whether what a class has under a name is set by code of its own, as a property with a setter;
    one without is of the class's own making, and the member is registered under its name."""
    return hasattr(found, "__set__") and getattr(found, "fset", found) is not None


class Members:
    """Registration by attribute, and the walks through what is registered."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _gives_members = False               # by a `__getattr__` of its own

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._gives_members = cls.__getattr__ is not Members.__getattr__

    # ---- by attribute ------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = vars(self)
        kind = kind_of(value)
        if kind is None and ("_modules" not in attributes or not (
                name in attributes or self._gives_members and is_member(self, name))):
            object.__setattr__(self, name, value)
            if name == "__class__" and "_modules" in attributes:
                for each in registration_hooks:
                    members_of(self, each).place()
        elif name in registration_hooks:
            replace_members(self, name, value)
        elif kind is None:
            replace_member(self, name, value)
        elif takes_anything(getattr(type(self), name, None)):
            object.__setattr__(self, name, value)
        else:
            if name not in members_of(self, kind):
                check_replaceable(self, kind, name, value)
                forget(self, name)
            register(self, kind, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in registration_hooks:
            if name in vars(self).get(kind, ()):
                del members_of(self, kind)[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        for kind in registration_hooks:      # where members are no attributes: see `Registered`
            members = vars(self).get(kind, ())
            if name in members:
                return members[name]
        found = getattr(type(self), name, None)
        if isinstance(found, property):      # it raised an AttributeError: raise that again
            return found.__get__(self)
        text = f"'{type(self).__name__}' object has no attribute '{name}'"
        if name in ("training", "_non_persistent_buffers_set", *registration_hooks):
            text += f": call super().__init__() first in {type(self).__name__}.__init__"
        raise AttributeError(text, name=name, obj=self)

    def __dir__(self) -> list[str]:
        members = (vars(self).get(kind, ()) for kind in registration_hooks)
        names = {*object.__dir__(self), *chain.from_iterable(members)}
        return sorted(name for name in names if name.isidentifier())

    # ---- by method -----------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under a name; None keeps the name for one that is absent.

        Raises: TypeError for what is no `Parameter`, KeyError for a name that is taken, empty or
        has a dot, ValueError for the result of an operation.
        """
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter: '{name}' must be a Parameter or None, got "
                            f"{type(param).__name__}")
        check_name(self, "_parameters", name)
        register(self, "_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is kept and not learnt; `state_dict` has it if it is persistent.

        Raises: TypeError for what is not a tensor, KeyError for a name that is taken.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: '{name}' must be a Tensor or None, got "
                            f"{type_name(tensor)}")
        check_name(self, "_buffers", name)
        register(self, "_buffers", name, tensor)
        self._non_persistent_buffers_set.discard(name)
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Adds a module under a name; None keeps the name for one that is absent.

        Raises: TypeError for what is not a module, KeyError for a name that is taken.
        """
        if module is not None and not isinstance(module, Members):
            is_class = isinstance(module, type) and issubclass(module, Members)
            raise TypeError(f"add_module: '{name}' must be a Module or None, got " + (
                f"the class {module.__name__}: {module.__name__}() makes a module of it"
                if is_class else type(module).__name__))
        check_name(self, "_modules", name)
        register(self, "_modules", name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # ---- walks ---------------------------------------------------------------------------------

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """This module and all inside it, each with its dotted name, the outer before the inner.

        Raises: RecursionError for a module inside itself, if each place of a module counts.
        """
        seen = set() if memo is None else memo
        waiting: list[tuple[str, Any, Any]] = [(prefix, self, None)]
        while waiting:
            name, module, around = waiting.pop()
            if module in seen:
                continue
            if remove_duplicate:
                seen.add(module)
            elif is_among(module, around):
                raise RecursionError(f"{type(self).__name__}: the module {name!r} is inside itself")
            yield name, module
            if children := module._modules:
                start = name + "." if name else ""
                around = None if remove_duplicate else (module, around)
                waiting += [(start + own, child, around)
                            for own, child in reversed(children.items()) if child is not None]

    def modules(self) -> Iterator[Any]:
        """This module and all inside it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly in this one, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly in this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with their dotted names."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse,
                                   remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once: what an optimiser takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, with their dotted names."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse,
                                   remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(self, get_members_fn: Callable[[Any], Any], prefix: str = "",
                       recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Members that a function gives of each module, with their dotted names."""
        seen: dict[int, Any] = {}        # keeps objects alive, so that ids stay unique
        modules = (self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
                   if recurse else [(prefix, self)])
        for start, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen[id(member)] = member
                yield (f"{start}.{name}" if start else name), member

    # ---- by dotted name ----------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module of a dotted name such as "encoder.layers.0"; the empty name is this module.

        Raises: AttributeError where there is none.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute '{name}'")
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"'{name}' of '{target}' is not a Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replaces the module of a dotted name; if `strict`, there must be one.

        Raises: AttributeError, or ValueError for the empty name or what is not a module.
        """
        if not target:
            raise ValueError("set_submodule: the name is empty")
        if not isinstance(module, Members):
            raise ValueError(f"set_submodule: expected a Module, got {type(module).__name__}")
        parent, name = self.owner_of(target)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute '{name}'")
        if not isinstance(getattr(parent, name, module), Members):
            raise AttributeError(f"'{name}' of '{target}' is not a Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name. Raises: AttributeError where there is none."""
        parent, name = self.owner_of(target)
        if not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute '{name}'")
        found = getattr(parent, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"'{target}' is not a Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name. Raises: AttributeError where there is none."""
        parent, name = self.owner_of(target)
        if not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute '{name}'")
        if name not in parent._buffers:
            raise AttributeError(f"'{target}' is not a buffer")
        found: Tensor = getattr(parent, name)
        return found

    def owner_of(self, target: str) -> tuple[Any, str]:
        """The module that has what a dotted name says, and its own name there."""
        path, _, name = target.rpartition(".")
        return self.get_submodule(path), name

    # ---- copies and pickles ------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for kind in registration_hooks:
            members_of(self, kind)

    def __copy__(self) -> Self:
        other = type(self).__new__(type(self))
        other.__setstate__({
            name: value.copy() if name in registration_hooks else value
            for name, value in vars(self).items()})
        return other


def is_member(module: Any, name: str) -> bool:
    """Whether a parameter, a buffer or a module is registered under the name."""
    return any(name in vars(module).get(kind, ()) for kind in registration_hooks)


def is_among(module: Any, around: Any) -> bool:
    """Whether a module is one of those around it: pairs of one and what is around that."""
    while around is not None:
        if around[0] is module:
            return True
        around = around[1]
    return False


def kind_of(value):
    """Which dict of a module takes a value; None for what is not a member."""
    if isinstance(value, Tensor):
        if isinstance(value, Parameter):
            return "_parameters"
        return "_buffers" if isinstance(value, Buffer) else None
    return "_modules" if isinstance(value, Members) else None


# What takes the place of a member of each kind. A member also gives way to one of a kind before it.
WANTED = {"_parameters": "Parameter", "_modules": "Module", "_buffers": "Tensor"}


def check_replaceable(module, kind, name, value):
    """Raises TypeError where a name has a member that one of this kind does not replace."""
    for other in WANTED:
        if other == kind:
            return
        if name in members_of(module, other):
            refuse_assignment(other, name, value)


def replace_member(module, name, value):
    """Assigns a plain value where there may be a member, which only its like or None replaces."""
    for kind in WANTED:
        if name not in vars(module)[kind]:
            continue
        if value is not None and not (kind == "_buffers" and isinstance(value, Tensor)):
            refuse_assignment(kind, name, value)
        return register(module, kind, name, value)
    object.__setattr__(module, name, value)


def refuse_assignment(kind, name, value):
    """Raises TypeError: there is a member of another kind."""
    what = {"_parameters": "parameter", "_modules": "child module", "_buffers": "buffer"}[kind]
    raise TypeError(f"cannot assign '{type(value).__name__}' as {what} '{name}' "
                    f"({WANTED[kind]} or None expected)")


def replace_members(module, kind, members):
    """Takes another dict for all members of a kind: those of before are attributes no longer.

    Raises: TypeError for what is not a dict.
    """
    if not isinstance(members, dict):
        raise TypeError(f"cannot assign {type(members).__name__} as '{kind}': expected a dict of "
                        f"the {kind[1:]} by their names")
    members = dict(members)
    members_of(module, kind).clear()
    members_of(module, kind).update(members)


def register(module, kind, name, value):
    """Puts a member in its place, after the hooks have seen it."""
    for hook in registration_hooks[kind].values():
        result = hook(module, name, value)
        value = value if result is None else result
    if kind == "_parameters" and value is not None and value.grad_fn is not None:
        raise ValueError(f"'{name}' is the result of an operation ({value.grad_fn.operation}); a "
                         "parameter must be a leaf: compute it in forward() instead")
    members_of(module, kind)[name] = value
    if kind == "_buffers" and isinstance(value, Buffer):
        keep = module._non_persistent_buffers_set
        (keep.discard if value.persistent else keep.add)(name)


def forget(module, name):
    """Removes whatever has the name, so that a member of another kind can have it."""
    vars(module).pop(name, None)
    for kind in registration_hooks:
        members = members_of(module, kind)
        if name in members:
            del members[name]
    module._non_persistent_buffers_set.discard(name)


def check_name(module, kind, name):
    """Raises TypeError or KeyError for a name that a new member can't have."""
    members = members_of(module, kind)
    if not isinstance(name, str):
        raise TypeError(f"the name of a member of a module must be a str, got "
                        f"{type(name).__name__}")
    if "." in name:
        raise KeyError(f"the name of a member of a module can't contain \".\", got \"{name}\"")
    if name == "":
        raise KeyError("the name of a member of a module can't be the empty string \"\"")
    if name not in members and has_attribute(module, name):
        raise KeyError(f"attribute '{name}' already exists")


def has_attribute(module, name):
    """The same as `hasattr`, which makes the text of an error where there is none."""
    if name in vars(module):
        return True
    asks = module._gives_members or hasattr(type(module), name)
    return asks and hasattr(module, name)
