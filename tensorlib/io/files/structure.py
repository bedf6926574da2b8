"""Containers as JSON: what stands around the tensors of a file.

A string, a bool, None, an int and a finite float are themselves, and a list is a list. All else is
an object with one key, the kind, some with more that say something about it. Tensors and the bytes
of other things are entries of the file, which the JSON names:

    {"dict": {"w": {"tensor": "w"}, "betas": {"tuple": [0.9, 0.999]}, "step": 7}}

`Encoder` has a method for each type, `Decoder` one for each kind.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.io.files.container import DTYPES, Entry
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.source import Source, checked_array, flat, shaped

__all__ = ["Decoder", "Encoder"]

DEEPEST = 200
CLASSES = ("Parameter", "Buffer")           # of nn, which are tensors
ARRAY_KINDS = "biufcSUmM"                   # NumPy's dtypes whose bytes are all there is to them
ARRAY_NAMES = {                             # those that the format has names for
    "|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<u2": "U16", "<i2": "I16", "<u4": "U32", "<i4": "I32",
    "<u8": "U64", "<i8": "I64", "<f2": "F16", "<f4": "F32", "<f8": "F64", "<c8": "C64"}


class Encoder:
    """Turns an object into JSON and collects its tensors and arrays by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.data: dict[str, Entry] = {}        # of arrays and bytes
        self.known: dict[int, str] = {}         # names of tensors, by id
        self.nodes: list[dict[str, Any]] = []   # of tensors, in the JSON
        self.open: list[int] = []               # the containers around what is being encoded
        self.counts: dict[str, int] = {}        # of names that were wanted more than once

    def encode(self, value: Any, path: str = "", name: str = "") -> Any:
        """JSON for `value`. `path` is its place for error messages, `name` for its tensors."""
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and abs(value) < 2**63):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Tensor):
            return self.tensor(value, path, name)
        if isinstance(value, np.ndarray) and kind is np.ndarray:
            return self.array(value, path, name)
        if isinstance(value, np.generic):
            return {**self.array(np.asarray(value), path, name), "scalar": True}
        if kind in SIMPLE:
            return SIMPLE[kind](value)
        if kind in (bytes, bytearray):
            at = self.new_name(name)
            self.data[at] = Entry("U8", (len(value),), value)
            return {kind.__name__: at}
        return self.container(value, path, name)

    def container(self, value: Any, path: str, name: str) -> Any:
        kind = type(value)
        if kind not in (list, tuple, set, frozenset, dict, OrderedDict, Counter):
            remedy = "; save its state_dict()" if hasattr(value, "state_dict") else ""
            raise TypeError(f"save: obj{path} is of type {kind.__module__}.{kind.__qualname__}, "
                            f"which a file of tensors can't hold{remedy}")
        if id(value) in self.open:
            raise ValueError(f"save: obj{path} contains itself")
        if len(self.open) == DEEPEST:
            raise ValueError(f"save: containers are nested more than {DEEPEST} deep: obj{path}"[
                :300])
        self.open.append(id(value))
        if isinstance(value, dict):
            made = self.mapping(value, path, name)
        else:
            items = [self.encode(one, f"{path}[{i}]", joined(name, i))
                     for i, one in enumerate(value)]
            made = items if kind is list else {kind.__name__: items}
        self.open.pop()
        return made

    def mapping(self, value: dict[Any, Any], path: str, name: str) -> Any:
        items = [(self.key(key, path), self.encode(one, f"{path}[{key!r}]", joined(name, key)))
                 for key, one in value.items()]
        if type(value) is dict and all(type(key) is str for key in value):
            return {"dict": dict(items)}
        made = {type(value).__name__: [list(pair) for pair in items]}
        attributes = getattr(value, "__dict__", None)
        if attributes:                          # `_metadata` of a module's state dict
            made["attributes"] = self.encode(attributes, f"{path}.__dict__", joined(name, "dict"))
        return made

    def key(self, key: Any, path: str) -> Any:
        if isinstance(key, Tensor):
            raise TypeError(f"save: a key of obj{path} is a Tensor")
        return self.encode(key, f"{path} (a key)", "key")

    def tensor(self, x: Tensor, path: str, name: str) -> Any:
        node: dict[str, Any] = {"tensor": self.known.get(id(x)) or self.new_name(name)}
        self.known[id(x)] = node["tensor"]
        self.tensors[node["tensor"]] = x
        self.nodes.append(node)
        if type(x) is not Tensor:
            named = [name for name in CLASSES if type(x) is getattr(nn, name, None)]
            if not named:
                remedy = ("call the lazy module once, so that it sees an input"
                          if nn.parameter.is_lazy(x) else "save x.detach()")
                raise TypeError(f"save: obj{path} is of type {type(x).__qualname__}; of Tensor's "
                                f"subclasses a file has {' and '.join(CLASSES)}; {remedy}")
            node["class"] = named[0]
            if not getattr(x, "persistent", True):
                node["persistent"] = False
        if x.requires_grad != (node.get("class") == "Parameter"):
            node["requires_grad"] = x.requires_grad
        return node

    def array(self, array: Any, path: str, name: str) -> Any:
        if array.dtype.kind not in ARRAY_KINDS:
            raise TypeError(f"save: obj{path} is a NumPy array of {array.dtype}, which a file of "
                            "tensors can't hold")
        at, data = self.new_name(name), array.tobytes()
        known = ARRAY_NAMES.get(array.dtype.str)
        self.data[at] = Entry(known or "U8", array.shape if known else (len(data),), data)
        return {"array": at, "dtype": array.dtype.str, "shape": list(array.shape)}

    def new_name(self, name: str) -> str:
        """`name`, or one made of it that no other entry has."""
        name = wanted = name or "value"
        while wanted in self.tensors or wanted in self.data or wanted == "__metadata__":
            number = self.counts[name] = self.counts.get(name, 1) + 1
            wanted = f"{name}#{number}"
        return wanted


def joined(name: str, key: Any) -> str:
    """The name of a part, `key` behind the name of the whole and a dot."""
    return f"{name}.{key}" if name else str(key)


SIMPLE: dict[type, Callable[[Any], Any]] = {
    int: lambda value: {"int": hex(value)},
    complex: lambda value: {"complex": [repr(value.real), repr(value.imag)]},
    tl.Size: lambda value: {"Size": list(value)},
    tl.dtype: lambda value: {"dtype": str(value).rpartition(".")[2]},
    tl.device: lambda value: {"device": str(value)},
}


class Decoder:
    """Turns JSON back into the object; tensors are made once for each name."""

    def __init__(self, source: Source, entries: dict[str, Entry]) -> None:
        self.source, self.entries = source, entries
        self.vectors: dict[str, Tensor] = {}
        self.made: dict[str, Tensor] = {}
        self.taken: set[str] = set()            # entries of arrays and bytes

    def decode(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return [self.decode(one) for one in node]
        kind = next(iter(node), None)
        method = self.KINDS.get(kind)
        if method is None:
            raise LoadError(f"the structure has the kind {kind!r}, which is not known"[:200])
        return method(self, node[kind], node)

    def mapping(self, kind: Callable[[Any], Any], items: Any, node: Any) -> Any:
        made = kind([(self.decode(key), self.decode(value)) for key, value in items])
        if "attributes" in node:
            vars(made)["_metadata"] = self.decode(node["attributes"])["_metadata"]
        return made

    def entry(self, name: Any) -> Entry:
        if not isinstance(name, str) or name not in self.entries:
            raise LoadError(f"the structure names {name!r}, which the file does not have"[:200])
        return self.entries[name]

    def raw(self, name: Any) -> bytearray:
        """The bytes of an entry, which one thing has, so that a short file takes no more memory."""
        start, stop = self.entry(name).data
        if name in self.taken:
            raise LoadError(f"the structure has {name!r} twice"[:200])
        self.taken.add(name)
        return self.source.read(start, stop)

    def vector(self, name: str) -> Tensor:
        """All elements of an entry, the same memory each time."""
        if name not in self.vectors:
            entry = self.entry(name)
            if entry.dtype not in DTYPES:
                raise LoadError(f"{name!r} has dtype {entry.dtype}, which tensorlib does not have")
            dtype = DTYPES[entry.dtype]
            start, stop = entry.data
            memory = self.source.part(start, stop, dtype.itemsize, dtype is not tl.bool)
            self.vectors[name] = flat(memory, dtype, math.prod(entry.shape))
        return self.vectors[name]

    def tensor(self, name: str, node: Any) -> Tensor:
        """The tensor of a name, which is the same object each time."""
        if name not in self.made:
            self.made[name] = self.classed(
                shaped(self.vector(name), self.entry(name).shape).detach(), node)
        return self.made[name]

    def view(self, name: str, node: Any) -> Tensor:
        """A tensor of its own over the memory of an entry."""
        key = node["key"]
        if key not in self.made:
            self.made[key] = self.classed(self.vector(name).as_strided(
                node["shape"], node["stride"], node["offset"]).detach(), node)
        return self.made[key]

    def classed(self, x: Tensor, node: Any) -> Tensor:
        kind = node.get("class")
        if kind == "Parameter":
            return nn.Parameter(x, requires_grad=node.get("requires_grad", True))
        if kind == "Buffer":
            x = nn.Buffer(x, persistent=node.get("persistent", True))
        return x.requires_grad_() if node.get("requires_grad") else x

    def array(self, name: str, node: Any) -> Any:
        dtype = np.dtype(node["dtype"])
        if dtype.kind not in ARRAY_KINDS or dtype.str != node["dtype"] or not dtype.itemsize:
            raise LoadError(f"{name!r} is an array of {node['dtype']!r}, which is not known"[:200])
        array = np.ndarray(tuple(node["shape"]), dtype, self.raw(name))
        return checked_array(array)[()] if node.get("scalar") else checked_array(array)

    KINDS: dict[Any, Callable[[Decoder, Any, Any], Any]] = {
        "tensor": tensor, "view": view, "array": array,
        "dict": lambda self, items, node: (
            {key: self.decode(value) for key, value in items.items()} if isinstance(items, dict)
            else self.mapping(dict, items, node)),
        "OrderedDict": lambda self, items, node: self.mapping(OrderedDict, items, node),
        "Counter": lambda self, items, node: self.mapping(lambda pairs: Counter(dict(pairs)), items,
                                                          node),
        "tuple": lambda self, items, node: tuple([self.decode(one) for one in items]),
        "set": lambda self, items, node: {self.decode(one) for one in items},
        "frozenset": lambda self, items, node: frozenset([self.decode(one) for one in items]),
        "bytes": lambda self, name, node: bytes(self.raw(name)),
        "bytearray": lambda self, name, node: self.raw(name),
        "float": lambda self, text, node: float(text),
        "int": lambda self, text, node: int(text, 16),
        "complex": lambda self, parts, node: complex(float(parts[0]), float(parts[1])),
        "Size": lambda self, sizes, node: tl.Size([index(size) for size in sizes]),
        "dtype": lambda self, name, node: named_dtype(name),
        "device": lambda self, name, node: tl.device(name),
    }


def named_dtype(name: Any) -> tl.dtype:
    """The dtype of this name. Raises: LoadError."""
    found = getattr(tl, name, None) if isinstance(name, str) else None
    if not isinstance(found, tl.dtype):
        raise LoadError(f"the dtype {name!r} is not known"[:200])
    return found
