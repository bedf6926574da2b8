"""`tensorlib.utils.data.datasets`, where torchvision has it, and what it has beside them."""

from collections.abc import Sequence
from typing import Any

from tensorlib import Generator, randint
from tensorlib.utils.data.datasets import *  # noqa: F403
from tensorlib.utils.data.datasets.vision import Function, VisionDataset


class FakeData(VisionDataset):
    """Images of noise and random classes, the same ones each time, to try a program on.

    An image is a tensor (C, H, W) of uint8.

    >>> image, label = FakeData(size=10, image_size=(3, 8, 8))[4]
    >>> image.shape, image.dtype, 0 <= label < 10
    (tensorlib.Size([3, 8, 8]), tensorlib.uint8, True)
    """

    def __init__(self, size: int = 1000, image_size: Sequence[int] = (3, 224, 224),
                 num_classes: int = 10, transform: Function | None = None,
                 target_transform: Function | None = None, random_offset: int = 0) -> None:
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes = size, tuple(image_size), num_classes
        self.random_offset = random_offset

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"FakeData: index {index} is out of range for {len(self)} images")
        draws = Generator().manual_seed(index + self.random_offset)
        image = randint(0, 256, self.image_size, generator=draws).byte()
        return self.transformed(image, int(randint(self.num_classes, (), generator=draws)))
