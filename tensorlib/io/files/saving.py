"""`save`: which format a file gets, and what is written into it."""

from __future__ import annotations

import json
import os
import zipfile
from typing import IO, Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.io.files.atomic import replacing
from tensorlib.io.files.container import NAMES, Entry, write
from tensorlib.io.files.sharing import joined_memory
from tensorlib.io.files.source import bytes_of
from tensorlib.io.files.structure import Encoder

__all__ = ["save"]


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """See `tensorlib.save`."""
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise TypeError(
                f"save: expected a path or a file open for writing, got {type(f).__name__}")
        contained(obj)(f)
        return
    suffix = os.path.splitext(os.fspath(f))[1]
    writer = {".npz": archived, ".npy": arrayed}.get(suffix, contained)(obj)
    with replacing(f) as file:
        writer(file)


def contained(obj: Any) -> Any:
    """Writes a safetensors file; all that can be wrong with the object is noticed before."""
    encoder = Encoder()
    tree = encoder.encode(obj)
    written, views = joined_memory(encoder.tensors, encoder.new_name)
    for node in encoder.nodes:
        if node["tensor"] in views:
            node.update(views[node.pop("tensor")])
    entries = {name: Entry(NAMES[x.dtype], tuple(x.shape), bytes_of(x))
               for name, x in written.items()}
    metadata = {"format": "pt"}               # what some programs look for: PyTorch's dtypes
    if not is_plain(tree):
        metadata["tensorlib"] = json.dumps({"version": 1, "content": tree}, separators=(",", ":"))
    return lambda file: write(file, {**entries, **encoder.data}, metadata)


def is_plain(tree: Any) -> bool:
    """Whether the names and tensors of the file say all that the tree does."""
    items = tree.get("dict") if isinstance(tree, dict) else None
    return isinstance(items, dict) and all(
        node == {"tensor": key} for key, node in items.items())


# ---- NumPy's formats ---------------------------------------------------------------------------

def as_array(value: Any, path: str) -> Any:
    """A tensor, an array or a number as an array. Raises: TypeError."""
    if isinstance(value, Tensor):
        if value.dtype == tl.bfloat16:
            raise TypeError(f"save: obj{path} is of bfloat16, which NumPy does not have; use "
                            ".float(), or a path that does not end with .npz or .npy")
        return value.detach().numpy()
    if isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            return array
    raise TypeError(f"save: obj{path} is of type {type(value).__qualname__}; a file of NumPy "
                    "arrays holds tensors, arrays and numbers")


def archived(obj: Any) -> Any:
    """Writes a NumPy archive."""
    if not isinstance(obj, dict) or not all(isinstance(key, str) for key in obj):
        raise TypeError("save: a path that ends with .npz takes a dict of tensors with strings as "
                        f"keys, got {type(obj).__qualname__}")
    arrays = {key: as_array(value, f"[{key!r}]") for key, value in obj.items()}

    def write_to(file: Any) -> None:
        with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    return write_to


def arrayed(obj: Any) -> Any:
    """Writes one NumPy array."""
    array = as_array(obj, "")
    return lambda file: np.lib.format.write_array(file, array, allow_pickle=False)
