"""`load`: which format a file has, and what is made of it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from functools import partial
from math import prod
from typing import IO, Any

import numpy as np

import tensorlib as tl
from tensorlib.io.files.container import parsed, read_header
from tensorlib.io.files.errors import EmptyFile, LoadError
from tensorlib.io.files.source import Cursor, Source, checked_array, placed, readable, shapes_only
from tensorlib.io.files.structure import Decoder
from tensorlib.io.files.torch_files import load_legacy, load_zip
from tensorlib.io.files.unpickling import as_data, as_objects

__all__ = ["load"]

NUMPY, ZIP, PICKLE = b"\x93NUMPY", b"PK\x03\x04", b"\x80"
EMPTY_ZIP = b"PK\x05\x06"
LARGE = 1 << 30                # bytes from which on an archive may not be a hundred times its file
EXPANSION = 100
PIECE = 1 << 22                # bytes read at a time from an archive


def load(f: str | os.PathLike[str] | IO[bytes], *, map_location: Any, weights_only: bool | None,
         mmap: bool | None) -> Any:
    """See `tensorlib.load`."""
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "read"):
        raise TypeError(f"load: expected a path or a file open for reading, got {type(f).__name__}")
    meta = names_meta(map_location)
    if mmap and not is_path:
        raise RuntimeError("load: mmap=True needs a path, got an open file")
    name = f"{os.fspath(f)!r}: " if isinstance(f, (str, os.PathLike)) else ""
    trusted = weights_only is not None and not weights_only
    with readable(f) as source:
        token = shapes_only.set(meta)
        try:
            source.shared = bool(mmap) and source.file is not None
            found = reader_of(source, as_objects if trusted else as_data)(source)
            source.check_size()
            return found
        except LoadError as error:
            raise type(error)(f"load: {name}{str(error)[:1000]}") from error.__cause__
        except Exception as error:
            raise LoadError(f"load: {name}the file is damaged: {type(error).__name__}: {error}"[
                :1000]) from error
        finally:
            shapes_only.reset(token)


def names_meta(map_location: Any) -> bool:
    """Whether tensors have no memory. A function may say anything.

    Raises: RuntimeError for a device that does not exist, and for `meta` in a dict.
    """
    if isinstance(map_location, (str, tl.device)):
        return tl.device(map_location).type == "meta"
    if isinstance(map_location, dict):
        if any(str(place).partition(":")[0] == "meta" for place in map_location.values()):
            raise RuntimeError("load: map_location takes 'meta' for all tensors, not in a dict")
    elif map_location is not None and not callable(map_location):
        raise TypeError("load: map_location must be a device, its name, a function or a dict, not "
                        f"{type(map_location).__name__}")
    return False


def reader_of(source: Source, pickles: Any) -> Callable[[Source], Any]:
    """The function that reads such a file."""
    begin = bytes(source.read(0, 9))
    if begin.startswith(NUMPY):
        return load_array
    if begin.startswith((ZIP, EMPTY_ZIP)):
        names = zipfile.ZipFile(Cursor(source)).namelist()
        if any(name.endswith("data.pkl") for name in names):
            return partial(load_zip, reader=pickles)
        if all(name.endswith(".npy") for name in names):
            return load_archive
        raise LoadError("a zip file that neither torch.save nor NumPy wrote")
    if begin.startswith(PICKLE):
        return partial(load_legacy, reader=pickles)
    if not begin:
        raise EmptyFile("an empty file")
    if len(begin) < 9 or begin[8:] != b"{":
        raise LoadError("not a file of safetensors, torch.save or NumPy")
    return load_container


def load_container(source: Source) -> Any:
    """A safetensors file: what `save` wrote, or a dict of the tensors that others did."""
    entries, metadata = read_header(source)
    decoder = Decoder(source, entries)
    if "tensorlib" not in metadata:
        return {name: decoder.tensor(name, {}) for name in entries}
    content = parsed(metadata["tensorlib"])
    if content["version"] != 1:
        raise LoadError(f"the file is of version {content['version']}, this library reads 1")
    return decoder.decode(content["content"])


# ---- NumPy's formats ---------------------------------------------------------------------------

def load_array(source: Source) -> Any:
    """The array of a .npy file."""
    return tensor_of(read_array(Cursor(source), source.size))


def load_archive(source: Source) -> dict[str, Any]:
    """The arrays of a .npz file by name. Raises: LoadError for one that expands beyond reason."""
    archive = zipfile.ZipFile(Cursor(source))
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise LoadError("the archive has a name twice")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise LoadError(f"{member.filename!r} is compressed in a way that NumPy does not have, "
                            "by which a few bytes may expand to any number"[:300])
    total = sum(member.file_size for member in members)
    if total > max(LARGE, EXPANSION * source.size):
        raise LoadError(f"an archive of {source.size} bytes that expands to {total}; if it "
                        "can be trusted, read it with numpy.load")
    found = {}
    for member in members:
        with archive.open(member) as file:
            found[member.filename.removesuffix(".npy")] = tensor_of(
                read_array(file, member.file_size))
    return found


def read_array(file: Any, size: int) -> Any:
    """An array in NumPy's format, whose header agrees with how many bytes there are."""
    version = np.lib.format.read_magic(file)
    reads = {(1, 0): np.lib.format.read_array_header_1_0,
             (2, 0): np.lib.format.read_array_header_2_0}
    if version not in reads:
        raise LoadError(f"an array in version {version} of NumPy's format")
    shape, in_columns, dtype = reads[version](file)
    count = prod(shape)
    # NumPy gives strings of no characters some memory
    if dtype.hasobject or count < 0 or count * max(dtype.itemsize, 1) > size:
        raise LoadError(f"an array of shape {shape} and {dtype} in {size} bytes"[:200])
    if not dtype.itemsize:
        return np.zeros(shape, dtype)
    data = bytearray(count * dtype.itemsize)
    done = filled(file, data)
    if done < len(data):
        raise LoadError(f"an array of shape {shape} and {dtype}, cut off after {done} bytes"[:300])
    return checked_array(np.ndarray(shape, dtype, data, order="F" if in_columns else "C"))


def filled(file: Any, memory: bytearray) -> int:
    """Reads a file into memory, a piece at a time; how many bytes there were."""
    view, done = memoryview(memory), 0
    while done < len(view) and (count := file.readinto(view[done:done + PIECE])):
        done += count
    return done


def tensor_of(array: Any) -> Any:
    """A tensor, or the array itself where no dtype of tensorlib's holds its elements."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        return placed(tl.from_numpy(native))
    except TypeError:
        return native


