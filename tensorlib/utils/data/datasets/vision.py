"""The common part of image datasets: their folders, and the transforms of examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorlib import Tensor
from tensorlib.utils.data.dataset import Dataset

Function = Callable[[Any], Any]


class VisionDataset(Dataset[Any]):
    """The base of datasets of images. Subclasses define `__getitem__` and `__len__`.

    Args:
        root: the folder of the files.
        transforms: a function of an image and its target, which gives both anew.
        transform: a function of the image alone.
        target_transform: a function of the target alone.

    Raises: ValueError for `transforms` together with one of the others.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None,
                 transforms: Callable[[Any, Any], Any] | None = None,
                 transform: Function | None = None,
                 target_transform: Function | None = None) -> None:
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError(f"{type(self).__name__}: transforms is given, so that neither "
                             "transform nor target_transform can be")
        self.root = os.path.expanduser(root) if root is not None else None
        self.transforms = transforms
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: a VisionDataset defines __len__()")

    def transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        """An image and its target, as the transforms make them."""
        if self.transforms is not None:
            image, target = self.transforms(image, target)
            return image, target
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def on_batches(self) -> Function | None:
        """What does to images together what `transform` does to each, or None where nothing does.

        Transforms that draw nothing say so on their class; what is derived may do something else.
        """
        if self.transforms is not None or self.target_transform is not None:
            return None
        if self.transform is None:
            return as_it_is
        return self.transform if takes_batches(self.transform) else None

    def extra_repr(self) -> str:
        """Further lines of the text; for subclasses to say."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        for name, value in (("Transforms", self.transforms), ("Transform", self.transform),
                            ("Target transform", self.target_transform)):
            if value is not None:
                lines.append(f"{name}: " + repr(value).replace("\n", "\n    "))
        return "\n    ".join([f"Dataset {type(self).__name__}", *lines])


class LabelledImages(VisionDataset):
    """Images in memory, of numbered classes: `data`, whose first dim they lie along, `targets`."""

    data: Any
    targets: Any
    classes: Sequence[str]
    train: bool | None

    def images(self, places: Any) -> Tensor:
        """The image (C, H, W) at one place, or those (N, C, H, W) at several."""
        images: Tensor = self.data[places].unsqueeze(-3)
        return images

    def labels(self, places: Any) -> Tensor:
        """The classes at several places."""
        labels: Tensor = self.targets[places]
        return labels

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class, by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        return self.transformed(self.images(index), int(self.targets[index]))

    @property
    def __getbatch__(self) -> Callable[[Sequence[int]], list[Tensor]] | None:
        transform = self.on_batches()
        if transform is None:
            return None
        return lambda places: [transform(self.images(list(places))), self.labels(list(places))]

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """Which part of the examples these are."""
        return f"Split: {'All' if self.train is None else 'Train' if self.train else 'Test'}"


def as_it_is(images: Any) -> Any:
    """The images."""
    return images


def takes_batches(transform: Any) -> bool:
    """Whether a transform, with all that it is made of, does the same to images in a batch."""
    own = vars(type(transform)).get("on_batches", False)
    return all(map(takes_batches, own(transform))) if callable(own) else bool(own)


def not_there(dataset: VisionDataset, names: str, download: bool) -> RuntimeError:
    """The error for files that are not in the folder."""
    told = "; it downloads nothing" if download else ""
    return RuntimeError(f"{type(dataset).__name__}: Dataset not found: {names} in "
                        f"{Path(dataset.root or '.')}{told}")
