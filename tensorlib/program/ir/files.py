"""Programs in files: the text, and the values of persistable variables, in one safetensors file.

Other programs can read the values by their names; the text is in the file's metadata. Reading such
a file executes nothing.
"""

import json
import os
import re
from typing import Any

import numpy as np

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.io.atomic import replacing
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.ir.errors import ProgramError
from tensorlib.program.ir.model import check_program
from tensorlib.program.ir.text import program_text

# safetensors' names of the dtypes
CODES = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32",
         "int64": "I64", "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16",
         "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64",
         "complex128": "C128"}
NAMES = {code: name for name, code in CODES.items()}
LARGEST_HEADER = 100_000_000
MOST_DIMS = 64                              # of a tensor; sizes are multiplied


def save(program: Any, path: str | os.PathLike[str]) -> None:
    """Writes a program to a file, with the values of its parameters and constants.

    Raises: ProgramError for one that has what no text says, such as a generator of its own.
    """
    check_program("save", program)
    path = os.fspath(path)                  # a number is no path: Python would write to its file
    text = program_text(program)
    if "<" in re.sub(r"'(?:[^'\\]|\\.)*'|# .*", "", text):
        raise ProgramError("save: the program has what no text says: an object of Python's, such "
                           "as an optimiser or a generator of its own")
    header: dict[str, Any] = {"__metadata__": {"format": "tensorlib", "program": text}}
    parts, place = [], 0
    for x in program.persistables():
        if x.value is None:
            continue
        data = bytes_of(x.value)
        header[x.name] = {"dtype": CODES[x.dtype.name], "shape": list(x.value.shape),
                          "data_offsets": [place, place + len(data)]}
        parts.append(data)
        place += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with replacing(path) as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.writelines(parts)


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Tensor]]:
    """The text and the values in a file that `save` wrote. Raises: ProgramError."""
    with open(os.fspath(path), "rb") as file:
        data = file.read()
    try:
        size = int.from_bytes(data[:8], "little")
        if not 2 <= size <= min(LARGEST_HEADER, len(data) - 8):
            raise ValueError("its header has no length")
        header = json.loads(data[8:8 + size])
        text = header.pop("__metadata__")["program"]
        values = {name: tensor_of(entry, memoryview(data)[8 + size:])
                  for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProgramError(f"load: {os.fspath(path)!r} holds no program: {error}") from None
    if not isinstance(text, str):
        raise ProgramError(f"load: {os.fspath(path)!r} holds no program")
    return text, values


def bytes_of(x: Tensor) -> bytes:
    """The elements of a tensor in row-major order, as safetensors has them."""
    x = x.detach().contiguous()
    if x.dtype.name == "bfloat16":               # NumPy has none: its bits are float32's upper ones
        bits = x.to(BY_NAME["float32"]).numpy().view(np.uint32)
        return bytes((bits >> 16).astype("<u2").tobytes())
    if x.dtype.name == "bool":                   # any byte but 0 is true
        return bytes((x.numpy().view(np.uint8) != 0).tobytes())
    return bytes(x.numpy().astype(x.numpy().dtype.newbyteorder("<"), copy=False).tobytes())


def tensor_of(entry: dict[str, Any], data: memoryview) -> Tensor:
    """The tensor of an entry of the header. Raises: ValueError, KeyError, TypeError."""
    name, shape = NAMES[entry["dtype"]], entry["shape"]
    begin, end = entry["data_offsets"]
    if not isinstance(shape, list) or len(shape) > MOST_DIMS or not all(
            type(x) is int and 0 <= x < 2**48 for x in (*shape, begin, end)) or not (
            begin <= end <= len(data)):
        raise ValueError("a tensor lies outside of the file")
    code = {"bfloat16": "<u2", "bool": "|b1"}.get(name) or np.dtype(name).newbyteorder("<")
    count = 1
    for size in shape:
        count *= size
    if count * np.dtype(code).itemsize != end - begin:
        raise ValueError("a tensor does not have the size that its shape says")
    array = np.frombuffer(data[begin:end], code).reshape(shape).copy()
    if name == "bool" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError("a tensor has bools that are neither 0 nor 1")
    if name == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return FUNCTIONS["tensor"](array, dtype=BY_NAME[name])
