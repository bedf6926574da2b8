"""Pickles as `torch.save` writes them: objects of any class, and tensors under PyTorch's names.

Where a tensor lies is only known when all have been seen, since those that share memory share a
storage. So its place is left open in the pickle, and filled in at the end.
"""

from __future__ import annotations

import codecs
import pickle
from collections import OrderedDict
from typing import Any

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.io.files.sharing import dense, joined_memory

__all__ = ["pickled"]

# PyTorch's classes of typed storages; tensors of other dtypes lie in storages of bytes
STORAGES = {
    "float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}
UNTYPED = "uint16", "uint32", "uint64"
DEFAULT_REDUCE = Tensor.__reduce_ex__
NO_HOOKS = b"ccollections\nOrderedDict\n)R"


class Name:
    """A name that the pickle has, of something that need not be there when it is written."""

    def __init__(self, module: str, name: str) -> None:
        self.text = f"c{module}\n{name}\n".encode()

    def __call__(self) -> None:
        """Never: a pickler asks for something that can be called."""


class Place:
    """The arguments that rebuild a tensor, which are left open; `called`, with their call."""

    def __init__(self, tensor: Tensor, called: bool) -> None:
        self.tensor, self.called = tensor, called


class Text(bytearray):
    """What has been written, as the file that a pickler asks for."""

    def write(self, data: Any) -> None:
        self.extend(data)


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Python's own, in Python: the compiled one imports every name before it writes it.

    It writes protocol 2, as PyTorch does, whose reader takes no other without trust.
    """

    def __init__(self) -> None:
        self.text = Text()
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[int, str] = {}             # of the tensors, by id
        self.open: list[tuple[int, str]] = []       # where a tensor's arguments go, and which
        super().__init__(self.text, 2)

    def reducer_override(self, value: Any) -> Any:
        """What rebuilds a value, if it has another name in PyTorch."""
        kind = type(value)
        if kind is tl.Size:
            return Name("torch", "Size"), (tuple(value),)
        if kind is tl.device:
            return Name("torch", "device"), ("cpu",)
        if kind is tl.layout:
            return Name("torch.serialization", "_get_layout"), (f"torch.{value.name}",)
        if isinstance(value, Tensor) and value.layout is not tl.strided:
            if isinstance(value, nn.Parameter):
                return Name("torch._utils", "_rebuild_parameter"), (
                    value.detach(), value.requires_grad, OrderedDict())
            rebuild = Name("torch._utils", "_rebuild_sparse_tensor")
            return rebuild, (value.layout, sparse_parts(value))
        if kind is Tensor or not isinstance(value, Tensor) or (
                kind.__reduce_ex__ is not DEFAULT_REDUCE):
            return NotImplemented
        state = dict(getattr(value, "__dict__", None) or {})
        if kind is nn.Parameter:
            data = Place(value, True), value.requires_grad, OrderedDict()
            if state:
                return Name("torch._utils", "_rebuild_parameter_with_state"), (*data, state)
            return Name("torch._utils", "_rebuild_parameter"), data
        shown: Any = kind
        if kind is nn.Buffer:             # a plain tensor there, known by an attribute
            shown = Name("torch", "Tensor")
            state.update(persistent=value.persistent, _is_buffer=True)
        return Name("torch._tensor", "_rebuild_from_type_v2"), (
            rebuilder(value), shown, Place(value, False), state)

    def save_name(self, name: Name) -> None:
        self.write(name.text)

    def save_place(self, place: Place) -> None:
        x = place.tensor
        if place.called:
            self.write(rebuilder(x).text)
        name = self.names.setdefault(id(x), str(len(self.names)))
        self.tensors[name] = x
        self.open.append((len(self.text), name))
        if place.called:
            self.write(pickle.REDUCE)

    def save_tensor(self, x: Tensor) -> None:
        self.save_place(Place(x, True))
        self.memoize(x)

    def save_dtype(self, dtype: tl.dtype) -> None:
        self.write(dtype_name(dtype).text)

    def save_bytes(self, value: bytes) -> None:
        """As Python does, but for no bytes: those would be a call that PyTorch does not trust."""
        if value:
            super().save_bytes(value)
        else:
            self.save_reduce(codecs.encode, ("", "latin1"), obj=value)

    dispatch: dict[type, Any] = {
        **pickle._Pickler.dispatch,  # type: ignore[attr-defined]
        Name: save_name, Place: save_place, Tensor: save_tensor, tl.dtype: save_dtype,
        bytes: save_bytes}


def rebuilder(x: Tensor) -> Name:
    """The function of PyTorch's that makes a tensor of its storage, by the dtype."""
    return Name("torch._utils", f"_rebuild_tensor_v{3 if x.dtype.name in UNTYPED else 2}")


def sparse_parts(x: Any) -> tuple[Any, ...]:
    """What PyTorch rebuilds a sparse tensor from."""
    if x.layout is tl.sparse_coo:
        return x._indices(), x._values().detach(), x.size(), x.is_coalesced()
    bounds = (x.crow_indices(), x.col_indices()) if x.layout in (
        tl.sparse_csr, tl.sparse_bsr) else (x.ccol_indices(), x.row_indices())
    return (*bounds, x.values().detach(), x.size())


def dtype_name(dtype: tl.dtype) -> Name:
    """The name of a dtype in PyTorch."""
    return Name("torch", dtype.name)


def pickled(obj: Any) -> tuple[bytearray, list[Tensor]]:
    """The pickle of an object, and the tensors whose elements are its storages, in order.

    Raises: TypeError for what has no pickle, ValueError for what is nested too deeply.
    """
    pickler = Pickler()
    try:
        pickler.dump(obj)
    except RecursionError as error:
        raise ValueError("save: the object is nested too deeply for a pickle") from error
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"save: the object can't be pickled: {error}") from error
    written, views = joined_memory(pickler.tensors, lambda name: name)
    storages: list[Tensor] = []
    keys: dict[str, int] = {}
    strides: dict[str, Any] = {}
    out, end = bytearray(), 0
    for place, name in pickler.open:
        out += pickler.text[end:place]
        end = place
        view = views.get(name)
        owner = name if view is None else view["view"]
        if owner not in keys:
            keys[owner] = len(storages)
            memory, strides[owner] = dense(written[owner])
            storages.append(memory)
        offset, stride = (0, strides[owner]) if view is None else (view["offset"], view["stride"])
        out += arguments(pickler.tensors[name], keys[owner], storages[keys[owner]].numel(),
                         offset, stride)
    return out + pickler.text[end:], storages


# ---- what is filled in ---------------------------------------------------------------------------

def arguments(x: Tensor, key: int, count: int, offset: int, stride: Any) -> bytes:
    """The tuple of arguments that PyTorch rebuilds a tensor with, without an entry in the memo."""
    untyped = x.dtype.name in UNTYPED
    kind = Name("torch.storage", "UntypedStorage") if untyped else Name(
        "torch", f"{STORAGES[x.dtype.name]}Storage")
    units = count * x.itemsize if untyped else count
    storage = b"(%b%b%b%b%btQ" % (
        string("storage"), kind.text, string(str(key)), string("cpu"), integer(units))
    grad = pickle.NEWTRUE if x.requires_grad else pickle.NEWFALSE
    more = dtype_name(x.dtype).text if untyped else b""
    return b"(%b%b%b%b%b%b%bt" % (
        storage, integer(offset), integers(x.shape), integers(stride), grad, NO_HOOKS, more)


def string(text: str) -> bytes:
    """The pickle of a short text."""
    data = text.encode()
    return b"X%b%b" % (len(data).to_bytes(4, "little"), data)


def integer(value: int) -> bytes:
    """The pickle of an int."""
    if 0 <= value < 256:
        return b"K%c" % value
    return pickle.dumps(int(value), 2)[2:-1]        # without its beginning and its end


def integers(values: Any) -> bytes:
    """The pickle of a tuple of ints."""
    return b"(%bt" % b"".join(map(integer, values))
