"""The names that pickles of `torch.save` may have, and what each stands for here."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from contextvars import ContextVar
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.io.files import options
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.pickles import Global, Stateful
from tensorlib.io.files.source import checked_array, flat, placed, shapes_only

__all__ = ["UNTYPED", "Memory", "Storage", "StorageType", "elements_follow", "find"]


class Memory:
    """The memory of a storage, over which there may be tensors of several dtypes."""

    def __init__(self, data: Any) -> None:
        self.data = memoryview(data)
        self.vectors: dict[Any, Tensor] = {}

    def vector(self, dtype: Any) -> Tensor:
        if dtype not in self.vectors:
            self.vectors[dtype] = flat(self.data, dtype, self.data.nbytes // dtype.itemsize)
        return self.vectors[dtype]


class StorageType:
    """A dtype of storages; None where the bytes may be anything. `known`: one of ours."""

    def __init__(self, name: str, dtype: str | None, itemsize: int) -> None:
        self.name, self.dtype, self.itemsize = name, dtype, itemsize


class Storage:
    """A storage in a pickle: memory, and the name of the dtype of its elements."""

    def __init__(self, memory: Memory, kind: StorageType) -> None:
        self.memory, self.kind = memory, kind


# ---- tensors -----------------------------------------------------------------------------------

WAITING = dict(conj=True, neg=True)        # what a view of PyTorch's may still have to do
elements_follow = ContextVar("elements_follow", default=False)      # the pickle that is read


def check_elements(what: str) -> None:
    """Raises LoadError where elements are needed while the pickle that they follow is read."""
    if elements_follow.get():
        raise LoadError(f"{what} in the format before zip files, where its elements come too late; "
                        "save it as torch.save does by default")


def dtype_named(name: str | None) -> tl.dtype:
    """The dtype of this name. Raises: LoadError."""
    found = getattr(tl, name or "", None)
    if not isinstance(found, tl.dtype):
        raise LoadError(f"the file has a tensor of {name}, a dtype that tensorlib does not have")
    return found


def tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False,
           hooks: Any = None, metadata: Any = None) -> Tensor:
    """A tensor over a storage that has a dtype."""
    return typed_tensor(storage, offset, size, stride, requires_grad, hooks,
                        dtype_named(storage.kind.dtype), metadata)


def typed_tensor(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any,
                 hooks: Any, dtype: Any, metadata: Any = None) -> Tensor:
    """A tensor over a storage; `as_strided` checks that it lies inside."""
    if not isinstance(storage, Storage) or not isinstance(dtype, tl.dtype):
        raise LoadError("a tensor has no storage, or no dtype")
    waiting = {} if metadata is None else metadata
    if type(waiting) is not dict or not WAITING.items() >= waiting.items():
        raise LoadError(f"a tensor with metadata that load() does not know: {waiting!r}"[:200])
    vector = storage.memory.vector(dtype)
    if 0 in size:
        return placed(tl.empty(tuple(size), dtype=dtype)).requires_grad_(bool(requires_grad))
    x = vector.as_strided(tuple(size), tuple(stride), offset).detach()
    if waiting:
        check_elements("a tensor whose conjugation or sign waits")
        x = x.conj() if "conj" in waiting else x
        x = x.neg() if "neg" in waiting else x
    return x.requires_grad_() if requires_grad else x


def sparse(layout: Any, data: Any) -> Any:
    """A sparse tensor of its parts, which are checked."""
    known = {x: getattr(tl, f"{x.name}_tensor") for x in (
        tl.sparse_coo, tl.sparse_csr, tl.sparse_csc, tl.sparse_bsr, tl.sparse_bsc)}
    if layout not in known or type(data) is not tuple or len(data) not in (3, 4):
        raise LoadError(f"a sparse tensor of layout {layout}"[:200])
    check_elements("a sparse tensor")
    if shapes_only.get():
        raise LoadError("a sparse tensor can't be loaded without its elements, on meta")
    if layout is not tl.sparse_coo or len(data) == 3:
        return known[layout](*data)
    made = tl.sparse_coo_tensor(*data[:3])
    places = made.flat()
    if data[3] and not bool((places[1:] > places[:-1]).all()):
        raise LoadError("a sparse tensor that is called coalesced has positions out of order")
    return made._coalesced_(bool(data[3]))


def layout_named(name: Any) -> Any:
    """The layout of this name. Raises: LoadError."""
    found = getattr(tl, str(name).removeprefix("torch."), None)
    if not isinstance(found, tl.layout):
        raise LoadError(f"the layout {name!r}"[:200])
    return found


def parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Any:
    """A parameter of a tensor, with attributes of its own if a dict holds them."""
    if not isinstance(data, Tensor):
        raise LoadError("a parameter holds no tensor")
    made = nn.Parameter(data.detach(), requires_grad=bool(requires_grad))
    if type(state) is dict:               # another is of slots, which there are none of
        vars(made).update(state)
    return made


def of_type(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """A tensor of a class of its own, with attributes. A plain Tensor has none: they are left out.

    A buffer of a module is such a plain tensor in PyTorch, and a class here.
    """
    if not any(function is known for known in (tensor, typed_tensor, parameter)):
        raise LoadError("a tensor is not made by a function")
    made = function(*arguments)
    attributes = state if type(state) is dict else {}
    if attributes.get("_is_buffer") is True:
        return nn.Buffer(made, persistent=bool(attributes.get("persistent", True)))
    if kind in (Tensor, nn.Parameter) or not (isinstance(kind, type) and issubclass(kind, Tensor)):
        return made
    placed = kind.__new__(kind)
    placed.data = made.detach()
    placed.requires_grad_(made.requires_grad)
    vars(placed).update(attributes)
    return placed


# ---- NumPy's arrays and numbers ----------------------------------------------------------------

class ArrayState(Stateful):
    """An array, which gets its shape, its dtype and its bytes as a state."""

    value: Any = None

    def set_state(self, state: Any) -> None:
        _, shape, dtype, in_columns, data = state
        self.value = array(dtype, shape, data, "F" if in_columns else "C")


KINDS = tuple("biufcSUmM")                # of NumPy's dtypes, whose bytes are all there is to them


class DtypeState(Stateful):
    """A dtype of NumPy's, which gets as a state the order of its bytes, and its unit of time."""

    def __init__(self, name: Any, align: Any = False, copy: Any = False) -> None:
        if not isinstance(name, str) or len(name) > 99 or name[:1] not in KINDS:
            raise LoadError(f"a NumPy array of {name!r}"[:200])
        self.value = np.dtype(name)

    def set_state(self, state: Any) -> None:
        if state[1] in ("<", ">"):
            self.value = self.value.newbyteorder(state[1])
        if self.value.kind in "mM" and len(state) > 8:
            unit, count = bytes(state[8][1][0]).decode(), int(state[8][1][1])
            if unit.isalpha() and unit != "generic":
                self.value = np.dtype(f"{self.value.str}[{count}{unit}]")


def array(dtype: Any, shape: Any, data: Any, order: Any = "C") -> Any:
    """A NumPy array of its bytes. Raises: LoadError for a dtype of objects."""
    if not isinstance(dtype, np.dtype) or dtype.hasobject or not dtype.itemsize:
        raise LoadError("a NumPy array without a dtype")
    if isinstance(data, str):                 # as protocol 2 has bytes
        data = data.encode("latin-1")
    return checked_array(np.ndarray(shape, dtype, bytearray(data), order=order))


def number(dtype: Any, data: Any) -> Any:
    """A NumPy scalar of its bytes."""
    return array(dtype, (), data)[()]


def from_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """A NumPy array of a buffer."""
    return array(dtype, shape, data, order)


# ---- Python's own ------------------------------------------------------------------------------

def encoded(text: Any, encoding: Any = "latin1") -> bytes:
    """Bytes, as protocol 2 writes them."""
    if not isinstance(text, str) or str(encoding).lower() not in ("latin1", "latin-1"):
        raise LoadError(f"bytes in the encoding {encoding!r}"[:200])
    return text.encode("latin-1")


def byte_array(data: Any = b"", encoding: Any = "latin1") -> bytearray:
    """A bytearray of bytes, or of a text in that encoding."""
    return bytearray(data if isinstance(data, (bytes, bytearray)) else encoded(data, encoding))


def default_dict(factory: Any = None) -> Any:
    """A defaultdict. Raises: LoadError for a factory other than of plain containers."""
    if not any(factory is known for known in (None, *FACTORIES)):
        raise LoadError("a defaultdict with a factory that load() does not call")
    return defaultdict(factory)


def collection(kind: Any) -> Any:
    """Calls `kind` with at most a list, a tuple or a dict, whose items it may hash."""
    def make(items: Any = ()) -> Any:
        if type(items) not in (list, tuple, dict, set, frozenset):
            raise LoadError(f"a {kind.__name__} made of a {type(items).__name__}")
        return kind(items)
    make.hashes = True  # type: ignore[attr-defined]
    return make


def device(kind: Any, index: Any = None) -> Any:
    """The CPU, wherever the tensors were."""
    return tl.device("cpu")


def storage_types() -> dict[str, StorageType]:
    """The classes of typed storages, each with the dtype that its name says."""
    names = {"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16",
             "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
             "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128"}
    return {f"{name}Storage": StorageType(f"{name}Storage", dtype, getattr(tl, dtype).itemsize)
            for name, dtype in names.items()}


STORAGES = storage_types()
UNTYPED = StorageType("UntypedStorage", None, 1)
FACTORIES = (int, float, bool, str, list, dict, set, tuple)
DTYPES = ("uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 bool "
          "complex64 complex128 half float double short int long").split()
CALLS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor"): tensor,
    ("torch._utils", "_rebuild_tensor_v2"): tensor,
    ("torch._utils", "_rebuild_tensor_v3"): typed_tensor,
    ("torch._utils", "_rebuild_parameter"): parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): parameter,
    ("torch._utils", "_rebuild_sparse_tensor"): sparse,
    ("torch._tensor", "_rebuild_from_type_v2"): of_type,
    ("torch", "Size"): collection(tl.Size),
    ("torch", "device"): device,
    ("torch.serialization", "_get_layout"): layout_named,
    ("collections", "OrderedDict"): collection(OrderedDict),
    ("collections", "Counter"): collection(Counter),
    ("collections", "defaultdict"): default_dict,
    ("_codecs", "encode"): encoded,
    **{(module, name): call for module in ("builtins", "__builtin__") for name, call in (
        ("set", collection(set)), ("frozenset", collection(frozenset)), ("dict", collection(dict)),
        ("bytearray", byte_array), ("bytes", lambda: b""),
        ("complex", lambda real, imaginary: complex(real, imaginary)))},
    **{(f"numpy.{core}.multiarray", name): call for core in ("core", "_core") for name, call in (
        ("_reconstruct", lambda *_: ArrayState()), ("scalar", number))},
    **{(f"numpy.{core}.numeric", "_frombuffer"): from_buffer for core in ("core", "_core")},
    ("numpy", "dtype"): DtypeState,
}
VALUES: dict[tuple[str, str], Any] = {
    **{("torch", name): found for name, found in STORAGES.items()},
    **{("torch.storage", name): UNTYPED for name in ("UntypedStorage", "TypedStorage")},
    ("torch", "Tensor"): Tensor, ("torch.nn.parameter", "Parameter"): nn.Parameter,
    ("numpy", "ndarray"): np.ndarray,
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__")
       for kind in FACTORIES},
    # Python 2's names, which protocol 2 has for these
    ("__builtin__", "long"): int, ("__builtin__", "unicode"): str,
    # of a tensor with attributes, which names its function among its arguments
    **{key: call for key, call in CALLS.items() if call in (tensor, typed_tensor, parameter)},
}


class UserObject(Stateful):
    """An object of a class that the user has allowed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def set_state(self, state: Any) -> None:
        if hasattr(self.value, "__setstate__"):
            self.value.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        for key, value in {**(attributes or {}), **(slots or {})}.items():
            setattr(self.value, key, value)


def known(module: str, name: str) -> Global | None:
    """What a name of the table stands for, or None."""
    key, full = (module, name), f"{module}.{name}"
    if key in CALLS:
        return Global(full, call=CALLS[key], value=VALUES.get(key))
    if key in VALUES:
        return Global(full, value=VALUES[key])
    if module == "torch" and name in DTYPES:
        return Global(full, value=dtype_named(name))
    return None


def find(module: str, name: str) -> Any:
    """What a name in a pickle stands for. Raises: LoadError for all that is not known."""
    found, full = known(module, name), f"{module}.{name}"
    if found is not None:
        return found
    for one in options.allowed:
        function, named = one if isinstance(one, tuple) else (
            one, f"{one.__module__}.{one.__qualname__}")
        if named == full:
            return Global(full, value=function, call=made_by(function))
    raise LoadError(
        f"the file names {full}, which load() does not build, since a file could run code by it; "
        "if you trust the file, load it with weights_only=False, or allow this name with "
        "tensorlib.serialization.add_safe_globals")


def made_by(function: Any) -> Any:
    """A function that calls this one, or makes an object of this class, for `UserObject`."""
    def call(*arguments: Any) -> Any:
        value = function(*arguments) if not isinstance(function, type) else new(function, arguments)
        return UserObject(value)
    return call


def new(kind: type, arguments: tuple[Any, ...]) -> Any:
    """An instance as a pickle makes one: without `__init__`, unless there are arguments."""
    made: Any = kind
    return made(*arguments) if arguments else made.__new__(kind)
