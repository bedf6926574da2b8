"""MNIST and datasets in its format."""

from __future__ import annotations

import os
from pathlib import Path

import tensorlib as tl
from tensorlib.utils.data.datasets.idx import read_idx
from tensorlib.utils.data.datasets.reading import DamagedFile, first_there
from tensorlib.utils.data.datasets.vision import Function, LabelledImages, not_there


class MNIST(LabelledImages):
    """The MNIST database of handwritten digits, of its four files.

    An example is an image, uint8 of shape (1, 28, 28), and the number of its class. The files have
    the names of the database, with `.gz` or without, and lie in `root`, or in `MNIST/raw` there,
    where torchvision puts them. All images are `data`, (N, 28, 28), and their classes `targets`.

    Args:
        root: the folder of the files.
        train: whether to read the examples to learn from, or those to test with.
        transform: a function of each image, such as `transforms.ToTensor()`.
        target_transform: a function of each target.
        download: for torchvision's scripts: files that are there are read, and nothing else is.

    Raises: RuntimeError where the files are not there, ValueError for damaged ones.
    """

    classes = (
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six",
        "7 - seven", "8 - eight", "9 - nine")

    def __init__(self, root: str | os.PathLike[str], train: bool = True,
                 transform: Function | None = None, target_transform: Function | None = None,
                 download: bool = False) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        stem = "train" if train else "t10k"
        images = self.path_of(f"{stem}-images", "idx3", download)
        labels = self.path_of(f"{stem}-labels", "idx1", download)
        self.data, self.targets = read_idx(images), read_idx(labels).long()
        self.check(images, labels)

    def path_of(self, stem: str, kind: str, download: bool) -> Path:
        """Where a file is: in one of the folders, under one of the names that it goes by."""
        folders = [Path(self.raw_folder), Path(self.root or ".")]
        found = first_there(*(folder / f"{stem}{dot}{kind}-ubyte{packed}" for folder in folders
                              for dot in "-." for packed in ("", ".gz")))
        if found is None:
            raise not_there(self, f"{stem}-{kind}-ubyte or {stem}-{kind}-ubyte.gz", download)
        return Path(found)

    def check(self, images: Path, labels: Path) -> None:
        """Whether the two files are images and their classes. Raises: ValueError."""
        name, data, targets = type(self).__name__, self.data, self.targets
        if data.ndim != 3 or data.dtype != tl.uint8:
            raise DamagedFile(f"{name}: {images}: images are (N, H, W) of uint8, these are "
                              f"{tuple(data.shape)} of {data.dtype.name}")
        if targets.shape != data.shape[:1]:
            raise DamagedFile(f"{name}: {labels}: {len(data)} images need as many classes, not "
                              f"{tuple(targets.shape)}")
        if len(targets) and not 0 <= targets.min() <= targets.max() < len(self.classes):
            raise DamagedFile(f"{name}: {labels}: a class is not below {len(self.classes)}")

    @property
    def raw_folder(self) -> str:
        """Where torchvision puts the files."""
        return os.path.join(self.root or "", type(self).__name__, "raw")


class FashionMNIST(MNIST):
    """Zalando's images of clothes, in the files of MNIST: in `root`, or in `FashionMNIST/raw`.

    `train`, `transform`, `target_transform` and `download` are those of `MNIST`.
    """

    classes = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
               "Bag", "Ankle boot")


class KMNIST(MNIST):
    """Kuzushiji characters, in the files of MNIST: in `root`, or in `KMNIST/raw` there.

    `train`, `transform`, `target_transform` and `download` are those of `MNIST`.
    """

    classes = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
