"""Images in folders, one folder a class."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.utils.data.datasets.vision import Function, VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def read_image(path: str) -> Tensor:
    """The image in a file, uint8 of shape (3, H, W), by Pillow. Raises: ImportError without it."""
    try:
        image = importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError("ImageFolder: reading images needs Pillow: pip install pillow; or give "
                          "it a loader=, a function of the path") from None
    with image.open(path) as file:
        pixels = np.array(file.convert("RGB"))
    return tl.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


class DatasetFolder(VisionDataset):
    """Files in folders: the folders in `root` are the classes, in the order of their names.

    An example is what `loader` makes of a file, and the number of its class; `samples` are the
    paths, each with its class.

    Args:
        root: the folder that has a folder for each class.
        loader: a function of the path of a file.
        extensions: the endings of the files, or None.
        transform: a function of what the loader gives.
        target_transform: a function of each target.
        is_valid_file: a function of a path that says whether it is one; in the place of
            `extensions`.
        allow_empty: whether a class may have no files.

    Raises: FileNotFoundError where there are no folders, or no files in one of them; ValueError for
    both, or neither, of `extensions` and `is_valid_file`.
    """

    def __init__(self, root: str | os.PathLike[str], loader: Callable[[str], Any],
                 extensions: str | tuple[str, ...] | None = None,
                 transform: Function | None = None, target_transform: Function | None = None,
                 is_valid_file: Callable[[str], bool] | None = None,
                 allow_empty: bool = False) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        name = type(self).__name__
        if (extensions is None) == (is_valid_file is None):
            raise ValueError(f"{name}: one of extensions and is_valid_file is needed, and one only")
        self.loader, self.extensions = loader, extensions
        endings = (extensions,) if isinstance(extensions, str) else tuple(extensions or ())
        fits = is_valid_file or (lambda path: path.lower().endswith(endings))
        folder = Path(self.root or ".")
        self.classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"{name}: Couldn't find any class folder in {folder}")
        self.class_to_idx = {each: number for number, each in enumerate(self.classes)}
        self.samples: list[tuple[str, int]] = []
        for each, number in self.class_to_idx.items():
            found = [(str(path), number) for path in files_below(folder / each)
                     if fits(str(path))]
            if not found and not allow_empty:
                raise FileNotFoundError(f"{name}: Found no valid file for the class {each!r} in "
                                        f"{folder / each}; endings: {', '.join(endings) or 'any'}")
            self.samples += found
        self.targets = [target for _, target in self.samples]

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self.transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in folders, one for each class, which Pillow reads: uint8 of shape (3, H, W).

    Args:
        root: the folder that has a folder for each class.
        transform: a function of each image.
        target_transform: a function of each target.
        loader: what reads a file, in Pillow's place.
        is_valid_file: a function of a path that says whether it is an image.
        allow_empty: whether a class may have no images.

    Raises: FileNotFoundError where there are no folders, or no images in one of them.
    """

    def __init__(self, root: str | os.PathLike[str], transform: Function | None = None,
                 target_transform: Function | None = None,
                 loader: Callable[[str], Any] = read_image,
                 is_valid_file: Callable[[str], bool] | None = None,
                 allow_empty: bool = False) -> None:
        super().__init__(root, loader, IMG_EXTENSIONS if is_valid_file is None else None,
                         transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples


def files_below(folder: Path) -> Sequence[Path]:
    """All files in a folder and the folders in it, in the order of their names."""
    return [Path(parent) / name for parent, _, names in sorted(os.walk(folder, followlinks=True))
            for name in sorted(names)]
