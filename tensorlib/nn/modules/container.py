"""Modules and parameters in sequences and dicts."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from operator import attrgetter, index as as_int, itemgetter
from typing import Any, Self, overload

from tensorlib import Tensor
from tensorlib.nn.modules.module import Module, indented, laid_out
from tensorlib.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """A module that is given others by name."""

    def __init__(self, **kwargs: Module) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Row(Module):
    """What modules in a row have in common: positions count from either end."""

    def _get_abs_string_index(self, idx: Any) -> str:
        """The name of the module at a position. Raises: IndexError, TypeError."""
        return next(islice(self._modules, position(self, idx, "modules"), None))

    def _get_module(self, idx: Any) -> Any:
        """The module at a position. Raises: IndexError, TypeError."""
        return next(islice(self._modules.values(), position(self, idx, "modules"), None))

    def take(self, modules: Iterable[Module]) -> None:
        """Replaces all modules by these, numbered from 0."""
        modules = list(modules)
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            gone = list(self._modules)[idx]
        else:
            gone = [self._get_abs_string_index(idx)]
        self.take(module for name, module in self._modules.items() if name not in gone)

    def pop(self, idx: Any) -> Any:
        """Removes the module at a position, and returns it."""
        module = self[idx]  # type: ignore[index]
        del self[idx]
        return module

    def append(self, module: Module) -> Self:
        """This one with another module at the end. Raises: TypeError unless it is a module."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Inserts a module before the one at a position."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}.insert: expected a Module, got "
                            f"{type(module).__name__}")
        modules = list(self)
        modules.insert(index, module)
        self.take(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """This one with more modules at the end. Raises: TypeError."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"{type(self).__name__}.extend: expected modules, got "
                            f"{type(modules).__name__}")
        for i, module in enumerate(list(modules), len(self)):
            self.add_module(str(i), module)
        return self

    def __add__(self, other: Iterable[Module]) -> Self:
        if not isinstance(other, Iterable):
            return NotImplemented
        joined = type(self)()
        return joined.extend(chain(self, other))

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)


class Sequential(Row):
    """Modules one after the other: each is given the output of the one before.

    >>> model = Sequential(Linear(3, 4), ReLU(), Linear(4, 1))
    >>> model(tensorlib.ones(2, 3)).shape
    tensorlib.Size([2, 1])
    """

    @overload
    def __init__(self, *args: Module) -> None: ...

    @overload
    def __init__(self, arg: "OrderedDict[str, Module]", /) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.take(args)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._get_module(idx)

    def insert(self, index: int, module: Module) -> Self:
        """This one with a module before that at a position. Raises: IndexError, TypeError."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Sequential.insert: index {index} is out of range for {len(self)} "
                             "modules")
        return super().insert(index, module)

    def __mul__(self, other: int) -> Self:
        if not isinstance(other, int):
            return NotImplemented
        if other < 1:
            raise ValueError(f"Sequential: can be repeated 1 or more times, got {other}")
        return type(self)(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        self.take((self * other)._modules.values())
        return self


class ModuleList(Row):
    """Modules in a list, all of them parts of the module that has the list.

    >>> layers = ModuleList(Linear(3, 3) for _ in range(4))
    >>> len(layers), len(list(layers.parameters()))
    (4, 8)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._get_module(idx)

    def _get_abs_string_index(self, idx: Any) -> str:
        """The name of the module at a position: its number, which needs no search."""
        name = str(position(self, idx, "modules"))
        return name if name in self._modules else super()._get_abs_string_index(idx)

    def insert(self, index: int, module: Module) -> None:
        """Inserts a module before the one at a position."""
        super().insert(index, module)

    def __repr__(self) -> str:
        """Modules of the same text that follow each other share a line."""
        runs, start = [], 0
        for text, same in groupby(map(repr, self)):
            count = len(list(same))
            head = f"({start})" if count == 1 else f"({start}-{start + count - 1})"
            times = "" if count == 1 else f"{count} x "
            runs.append(f"{head}: {times}{indented(text)}")
            start += count
        return laid_out(self._get_name(), [], runs)


class ModuleDict(Module):
    """Modules by name, all of them parts of the module that has the dict.

    >>> heads = ModuleDict({"mean": Linear(3, 1), "scale": Linear(3, 1)})
    >>> heads["mean"]
    Linear(in_features=3, out_features=1, bias=True)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes the module of a name, and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a dict, or from pairs of names and modules. Raises: TypeError."""
        for key, module in pairs("ModuleDict.update", modules):
            self[key] = module


class ParameterList(Module):
    """Parameters in a list; tensors become parameters, other values stay as they are.

    >>> ParameterList([tensorlib.ones(2), tensorlib.ones(3)])
    ParameterList(
        (0): Parameter containing: [tensorlib.float32 of size 2]
        (1): Parameter containing: [tensorlib.float32 of size 3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _get_abs_string_index(self, idx: Any) -> str:
        """The name of the value at a position. Raises: IndexError, TypeError."""
        return str(position(self, idx, "values"))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(*idx.indices(len(self)))])
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), learnt(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def append(self, value: Any) -> Self:
        """This list with a value more at the end."""
        setattr(self, str(self._size), learnt(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """This list with more values at the end. Raises: TypeError."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend: expected several values, got "
                            f"{type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {described(value)}" for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList: holds values, and is not to be called")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, other values stay as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: names are strings, got {type(key).__name__}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"attribute '{key}' already exists")
        setattr(self, key, learnt(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> "ParameterDict":
        """Another dict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, after it was put there if there was none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes the value of a name, and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last value, and returns its name and it."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default` where there is none."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """A new dict of these names, all with one value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds values from a dict, or from pairs of names and values. Raises: TypeError.

        The names of a plain dict are sorted, as PyTorch does: the order of parameters is that of
        their states in an optimizer.
        """
        entries = pairs("ParameterDict.update", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            entries.sort(key=itemgetter(0))
        for key, value in entries:
            self[key] = value

    def __or__(self, other: "ParameterDict") -> "ParameterDict":
        joined = self.copy()
        joined.update(other)
        return joined

    def __ior__(self, other: "ParameterDict") -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {described(value, Tensor.type)}"
                         for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict: holds values, and is not to be called")


def position(container, idx, what):
    """A position from the start, of one from either end. Raises: IndexError, TypeError."""
    number, count = as_int(idx), len(container)
    if not -count <= number < count:
        raise IndexError(f"{type(container).__name__}: index {number} is out of range for "
                         f"{count} {what}")
    return number % count


def learnt(value):
    """A tensor as a parameter; other values as they are."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def described(value, kind_of=attrgetter("dtype")):
    """A value in the text of a list or dict, where PyTorch names a tensor by its type."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(map(str, value.shape))
    return f"{kind} containing: [{kind_of(value)} of size {size}]"


def pairs(name, entries):
    """Names and values of a dict, or pairs. Raises: TypeError, or ValueError for other lengths."""
    if isinstance(entries, (Mapping, ModuleDict, ParameterDict)):
        return list(entries.items())
    if not isinstance(entries, Iterable):
        raise TypeError(f"{name}: expected a dict or pairs, got {type(entries).__name__}")
    found = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, Iterable):
            raise TypeError(f"{name}: entry {i} must be a pair, got {type(entry).__name__}")
        entry = tuple(entry)
        if len(entry) != 2:
            raise ValueError(f"{name}: entry {i} must be a pair, got {len(entry)} values")
        found.append(entry)
    return found
