"""The idx format, in which MNIST and similar datasets come."""

import os

import numpy as np

from tensorlib import Tensor, from_numpy
from tensorlib.utils.data.datasets.reading import DamagedFile, opened, part, read

DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMS = 32


def read_idx(path: str | os.PathLike[str]) -> Tensor:
    """The tensor in a file of the idx format, which may be compressed by gzip.

    Args:
        path: the file, `train-images-idx3-ubyte.gz` for instance.

    Raises: ValueError for a file of another kind, or with more or fewer elements than it says.
    Source: the description on the page of the MNIST database.

    >>> with open("three.idx", "wb") as file:
    ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]))
    >>> read_idx("three.idx")
    tensor([5, 6, 7], dtype=tensorlib.uint8)
    """
    where = f"read_idx: {os.fspath(path)}"
    with opened(path) as file:
        zero, code, ndim = int.from_bytes(read(file, 2, where)), *read(file, 2, where)
        if zero or code not in DTYPES or ndim > MOST_DIMS:
            raise DamagedFile(f"{where}: this is not an idx file: it begins with the bytes "
                              f"{zero >> 8:02x} {zero & 255:02x} {code:02x} {ndim:02x}")
        shape = tuple(np.frombuffer(read(file, 4 * ndim, where), ">u4").tolist())
        dtype, count = np.dtype(DTYPES[code]), 1
        for size in shape:
            count *= size
        elements = read(file, count * dtype.itemsize, where)
        if part(file, 1, where):
            raise DamagedFile(f"{where}: there is more in it than {shape} elements")
    array = np.frombuffer(elements, dtype).astype(dtype.newbyteorder("="))
    return from_numpy(array.reshape(shape))
