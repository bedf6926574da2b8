"""CIFAR-10 and CIFAR-100, from the batches for Python or the binary ones."""

from __future__ import annotations

import io
import os
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.io.files.errors import LoadError
from tensorlib.io.files.unpickling import as_data
from tensorlib.utils.data.datasets.reading import DamagedFile
from tensorlib.utils.data.datasets.vision import (
    Function,
    LabelledImages,
    VisionDataset,
    not_there,
)

PIXELS = 3 * 32 * 32
LARGEST = 1 << 30                # bytes of a file; the largest one of the databases has 1.5e8


def no_storage(name: Any) -> Any:
    """Raises LoadError: the pickles of the data set refer to nothing outside of them."""
    raise LoadError("the pickle refers to something outside of it")


def unpickled(content: bytes) -> Any:
    """What is in a pickle of arrays, lists and texts: nothing that it names is run."""
    return as_data(no_storage)(io.BytesIO(content))


class CIFAR10(LabelledImages):
    """The CIFAR-10 database of small colour images, of its files.

    An example is an image, uint8 of shape (3, 32, 32), and the number of its class. `root` has the
    folder `cifar-10-batches-py` (batches for Python, which are read as data: nothing in them is
    run) or `cifar-10-batches-bin`, or an archive, `cifar-10-python.tar.gz` or
    `cifar-10-binary.tar.gz`; or the batches lie in `root` itself. As in torchvision, `data` is
    an array (N, 32, 32, 3), and `targets` a list.

    Args:
        root: the folder of the files.
        train: whether to read the examples to learn from, or those to test with.
        transform: a function of each image, such as `transforms.ToTensor()`.
        target_transform: a function of each target.
        download: for torchvision's scripts: files that are there are read, and nothing else is.

    Raises: RuntimeError where the files are not there, ValueError for damaged ones.
    """

    base_folder = "cifar-10-batches-py"
    binary_folder = "cifar-10-batches-bin"
    archives = ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz")
    train_list: Sequence[str] = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5")
    test_list: Sequence[str] = ("test_batch",)
    names_in = ("batches.meta", "label_names", "batches.meta.txt")
    label_key, label_bytes, count = "labels", 1, 10
    data: np.ndarray[Any, Any]
    targets: list[int]
    classes: list[str]

    def __init__(self, root: str | os.PathLike[str], train: bool = True,
                 transform: Function | None = None, target_transform: Function | None = None,
                 download: bool = False) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        names = self.train_list if train else self.test_list
        read, binary = self.source(names[0])
        if read is None:
            raise not_there(self, f"{self.base_folder}, {self.binary_folder} or {self.archives[0]}",
                            download)
        images: list[Any] = []
        self.targets = []
        for name in names:
            found = self.of_binary(name, read) if binary else self.of_pickle(name, read)
            images.append(found[0])
            self.targets += found[1]
        self.data = np.concatenate(images).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.classes = self.read_names(read, binary)

    # ---- the files -----------------------------------------------------------------------------

    def source(self, first: str) -> tuple[Callable[[str], bytes | None] | None, bool]:
        """What reads the files by name, and whether these are the binary ones."""
        root = Path(self.root or ".")
        for folder, name, binary in ((root / self.base_folder, first, False),
                                     (root / self.binary_folder, f"{first}.bin", True),
                                     (root, first, False), (root, f"{first}.bin", True)):
            if (folder / name).is_file():
                return in_folder(folder), binary
        for archive, binary in zip(self.archives, (False, True)):
            if (root / archive).is_file():
                base = self.binary_folder if binary else self.base_folder
                return in_archive(root / archive, base), binary
        return None, False

    def of_pickle(self, name: str, read: Callable[[str], bytes | None]) -> tuple[Any, list[int]]:
        """The images (N, 3072) and classes of a batch for Python."""
        batch = self.pickled(name, required(self, name, read))
        images, labels = batch.get("data"), batch.get(self.label_key)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or (
                images.shape[1:] != (PIXELS,)):
            raise DamagedFile(f"{type(self).__name__}: {name}: 'data' is not a uint8 array of rows "
                              f"of {PIXELS}")
        if type(labels) is not list or len(labels) != len(images) or not all(
                type(label) is int and 0 <= label < self.count for label in labels):
            raise DamagedFile(f"{type(self).__name__}: {name}: {self.label_key!r} is not a list of "
                              f"{len(images)} numbers below {self.count}")
        return images, labels

    def pickled(self, name: str, content: bytes) -> dict[str, Any]:
        """The dict in a pickle, its keys as text."""
        try:
            found = unpickled(content)
        except (LoadError, ValueError, UnicodeDecodeError) as error:
            raise DamagedFile(f"{type(self).__name__}: {name}: no batch for Python: {error}"
                              ) from None
        if type(found) is not dict:
            raise DamagedFile(f"{type(self).__name__}: {name}: no dict in it")
        return {key.decode("latin-1") if isinstance(key, bytes) else str(key): value
                for key, value in found.items()}

    def of_binary(self, name: str, read: Callable[[str], bytes | None]) -> tuple[Any, list[int]]:
        """The images (N, 3072) and classes of a binary batch: the class stands before each."""
        content = required(self, f"{name}.bin", read)
        width = self.label_bytes + PIXELS
        if not content or len(content) % width:
            raise DamagedFile(f"{type(self).__name__}: {name}.bin: {len(content):,} bytes are no "
                              f"rows of {width:,}")
        rows = np.frombuffer(content, np.uint8).reshape(-1, width)
        labels = rows[:, self.label_bytes - 1]
        if labels.max() >= self.count:
            raise DamagedFile(f"{type(self).__name__}: {name}.bin: a class is not below "
                              f"{self.count}")
        return rows[:, self.label_bytes:], labels.tolist()

    def read_names(self, read: Callable[[str], bytes | None], binary: bool) -> list[str]:
        """The names of the classes, or their numbers where the file with the names is missing."""
        pickle_name, key, text_name = self.names_in
        content = read(text_name if binary else pickle_name)
        if content is None:
            return [str(number) for number in range(self.count)]
        names = (content.decode("latin-1").split() if binary
                 else self.pickled(pickle_name, content).get(key))
        if type(names) is not list or len(names) != self.count:
            raise DamagedFile(f"{type(self).__name__}: {text_name if binary else pickle_name}: "
                              f"it does not name {self.count} classes")
        return [name.decode("latin-1") if isinstance(name, bytes) else str(name) for name in names]

    # ---- the examples --------------------------------------------------------------------------

    def images(self, places: Any) -> Tensor:
        """The image (3, 32, 32) at one place, or those (N, 3, 32, 32) at several."""
        images = np.moveaxis(self.data[places], -1, -3)
        return tl.from_numpy(np.ascontiguousarray(images))

    def labels(self, places: Any) -> Tensor:
        """The classes at several places."""
        return tl.tensor([self.targets[place] for place in places], dtype=tl.int64)


class CIFAR100(CIFAR10):
    """The CIFAR-100 database, as `CIFAR10`, with 100 classes: the fine ones of its files.

    `root`, `train`, `transform`, `target_transform` and `download` are those of `CIFAR10`.
    """

    base_folder = "cifar-100-python"
    binary_folder = "cifar-100-binary"
    archives = ("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz")
    train_list = ("train",)
    test_list = ("test",)
    names_in = ("meta", "fine_label_names", "fine_label_names.txt")
    label_key, label_bytes, count = "fine_labels", 2, 100


def in_folder(folder: Path) -> Callable[[str], bytes | None]:
    """A function that reads a file in the folder, and gives None if there is none."""
    def read(name: str) -> bytes | None:
        path = folder / name
        return path.read_bytes() if path.is_file() else None
    return read


def in_archive(path: Path, base: str) -> Callable[[str], bytes | None]:
    """A function that reads a file of the archive by name; None where there is none."""
    def read(name: str) -> bytes | None:
        try:
            with tarfile.open(path) as archive:
                member = archive.getmember(f"{base}/{name}")
                if member.size > LARGEST:
                    raise DamagedFile(f"{path}: {name} has {member.size:,} bytes")
                file = archive.extractfile(member)
                return file.read() if file is not None else None
        except KeyError:
            return None
        except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
            raise DamagedFile(f"{path}: the archive is damaged: {error}") from None
    return read


def required(dataset: VisionDataset, name: str, read: Callable[[str], bytes | None]) -> bytes:
    """The content of a file of the data set. Raises: RuntimeError if it is missing."""
    content = read(name)
    if content is None:
        raise RuntimeError(f"{type(dataset).__name__}: Dataset not found: {name} is missing")
    return content
