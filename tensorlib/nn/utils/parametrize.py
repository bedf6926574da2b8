"""Parameters that are computed from others: `register_parametrization`.

>>> class Symmetric(Module):
...     def forward(self, x):
...         return x.triu() + x.triu(1).mT
>>> layer = register_parametrization(Linear(3, 3), "weight", Symmetric())
>>> bool((layer.weight == layer.weight.mT).all())
True
>>> list(layer.state_dict())
['bias', 'parametrizations.weight.original']
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tensorlib import Tensor, no_grad
from tensorlib._core.base.error_names import type_name
from tensorlib._core.graph import owners
from tensorlib.nn.modules.container import ModuleDict, ModuleList
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]

cache: dict[tuple[int, str], Tensor] = {}
caching = 0


@contextmanager
def cached() -> Iterator[None]:
    """Within it each parametrized tensor is computed once, when it is first asked for. Compiled
    functions that ask for one run eagerly."""
    global caching
    caching += 1
    try:
        yield
    finally:
        caching -= 1
        if not caching:
            cache.clear()


owners.modules.keep = lambda: caching > 0


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what it is computed from.

    That is `original`, or `original0`, `original1` and so on where the first parametrization's
    `right_inverse` gives a sequence.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor | Parameter,
                 unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        wanted = original.shape, original.dtype
        new = inverted(modules, original)
        if not unsafe and not isinstance(new, Sequence):
            check_like(new, original, "right_inverse")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        for name, value in zip(self.names(), [new] if self.is_tensor else new):
            if self.is_tensor:                  # whoever holds the parameter still does
                with no_grad():
                    original.data = value.detach()
                value = original
            elif isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            if isinstance(original, Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)
        if unsafe:
            return
        value = self()
        check_tensor(value, "register_parametrization")
        if (value.shape, value.dtype) != wanted:
            raise ValueError(
                "register_parametrization: a parametrization may change neither shape nor dtype, "
                f"unless unsafe=True; got {tuple(value.shape)} of {value.dtype} for "
                f"{tuple(wanted[0])} of {wanted[1]}")

    def names(self) -> list[str]:
        """The names of the tensors that it is computed from."""
        return ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Sets what the tensor is computed from, so that the tensor becomes `value`."""
        with no_grad():
            new = inverted(list(self), value, needed=True)
            parts = [new] if isinstance(new, Tensor) else new
            if isinstance(new, Tensor) != self.is_tensor or len(parts) != self.ntensors:
                got = "one Tensor" if isinstance(new, Tensor) else f"a sequence of {len(new)}"
                raise ValueError(f"right_inverse: must give {', '.join(self.names())}, got {got}")
            for name, each in zip(self.names(), parts):
                original = getattr(self, name)
                check_like(each, original, "right_inverse")
                original.copy_(each)

    def forward(self) -> Tensor:
        first, *others = self
        value: Tensor = first(*[getattr(self, name) for name in self.names()])
        for each in others:
            value = each(value)
        return value


def inverted(modules: Sequence[Module], value: Any, needed: bool = False) -> Any:
    """What goes into the first parametrization so that the last one gives `value`.

    Unless it is `needed`, a parametrization that has no inverse is taken for the identity.
    """
    with no_grad():
        for module in reversed(list(modules)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    if needed:
                        raise
            elif needed:
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement "
                                   "right_inverse, so its tensor can't be assigned to")
    if not isinstance(value, (Tensor, Sequence)):
        raise ValueError("right_inverse: must return a Tensor or a sequence of tensors, got "
                         f"{type_name(value)}")
    for each in [value] if isinstance(value, Tensor) else value:
        check_tensor(each, "right_inverse")
    return value


def check_tensor(value: Any, name: str) -> None:
    """Raises ValueError for what is not a tensor."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: must give tensors, got {type(value).__name__}")


def check_like(new: Any, old: Tensor, name: str) -> None:
    """Raises ValueError for what is not a tensor, or has another shape or dtype."""
    check_tensor(new, name)
    if (new.shape, new.dtype) != (old.shape, old.dtype):
        raise ValueError(f"{name}: gave shape {tuple(new.shape)} and {new.dtype}, expected "
                         f"{tuple(old.shape)} and {old.dtype}")


# ---- on a module -------------------------------------------------------------------------------

def computed(name: str) -> property:
    """The property that computes a parametrized tensor."""
    def get(module: Any) -> Tensor:
        if not caching:
            found: Tensor = module.parametrizations[name]()
            return found
        key = id(module), name
        if key not in cache:
            cache[key] = module.parametrizations[name]()
        return cache[key]

    def put(module: Any, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)
        cache.pop((id(module), name), None)

    return property(get, put)


def rebuilt(cls: type[Module], names: tuple[str, ...]) -> Module:
    """An empty module of a parametrized class: for copies and pickles."""
    return subclass(cls, names).__new__(subclass(cls, names))


def subclass(cls: type[Module], names: tuple[str, ...]) -> type[Module]:
    """The class of a module of class `cls` with parametrized tensors of these names."""
    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return rebuilt, (cls, names), vars(self)

    return type(f"Parametrized{cls.__name__}", (cls,), {
        "__module__": cls.__module__, "__doc__": cls.__doc__, "__reduce_ex__": __reduce_ex__,
        "class_before": cls, **{name: computed(name) for name in names}})


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that a module had before any of its tensors was parametrized."""
    return getattr(type(module), "class_before", type(module))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether any tensor of a module, or that of a name, is parametrized."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Any:
    """This module, with a parameter or buffer computed by `parametrization` from now on.

    `parametrization` is a module that takes the tensor, or what other parametrizations of it gave
    before, and gives one of the same shape and dtype, unless `unsafe` is set. With a method
    `right_inverse` it can be assigned to, and its value is kept at first. The parametrization must
    not use the tensor itself.

    Raises: ValueError where there is no such tensor, or it changes shape or dtype.
    """
    training = parametrization.training
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        old = module.parametrizations[tensor_name]
        if not unsafe:
            value = getattr(module, tensor_name)
            check_like(parametrization(value), value, "register_parametrization")
            check_like(inverted([parametrization], value), value, "right_inverse")
        old.append(parametrization)
        old.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = made
        reclassed(module)
    else:
        parametrization.train(training)
        raise ValueError(f"register_parametrization: {type(module).__name__} has no parameter, "
                         f"buffer or parametrized tensor {tensor_name!r}")
    return module


def reclassed(module: Any) -> None:
    """Gives a module the class that computes what is parametrized."""
    cls, names = type_before_parametrizations(module), tuple(module.parametrizations)
    module.__class__ = subclass(cls, names) if names else cls


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """This module, with a plain tensor in the place of a parametrized one.

    Its value stays, unless `leave_parametrized` is False: then it is what it was computed from.

    Raises: ValueError where it is not parametrized, or was computed from several tensors.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {type(module).__name__} has no parametrization "
                         f"on {tensor_name!r}")
    parts = module.parametrizations[tensor_name]
    if not parts.is_tensor and not leave_parametrized:
        raise ValueError("remove_parametrizations: cannot leave unparametrized a tensor that is "
                         "parametrized in terms of a sequence of tensors")
    value = getattr(module, tensor_name).detach()
    first = getattr(parts, parts.names()[0])
    if not parts.is_tensor:
        first = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    elif leave_parametrized:
        learns = first.requires_grad
        first.requires_grad_(False)
        first.data = value
        first.requires_grad_(learns)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        cls = type_before_parametrizations(module)
        del module.parametrizations
        module.__class__ = cls
    else:
        reclassed(module)
    if isinstance(first, Parameter):
        module.register_parameter(tensor_name, first)
    else:
        module.register_buffer(tensor_name, first)
    return module


def transfer_parametrizations_and_params(from_module: Any, to_module: Any,
                                         tensor_name: str | None = None) -> Any:
    """`to_module`, with the parametrizations of `from_module` and its values, of one tensor or all.

    The parametrizations are shared, the tensors are not.
    """
    names = list(getattr(from_module, "parametrizations", {})) if tensor_name is None else [
        tensor_name]
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            value = getattr(from_module, name).detach().clone()
            to_module.register_parameter(name, Parameter(value))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization, unsafe=source.unsafe)
        target = to_module.parametrizations[name]
        with no_grad():
            for own in source.names():
                getattr(target, own).copy_(getattr(source, own))
    return to_module
