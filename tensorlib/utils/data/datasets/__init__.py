"""Datasets in files that people have, under torchvision's names; nothing is downloaded.

>>> from tensorlib.utils.data import DataLoader, datasets
>>> digits = datasets.Digits(train=True)
>>> images, labels = next(iter(DataLoader(digits, batch_size=32)))
>>> images.shape, labels.dtype
(tensorlib.Size([32, 1, 8, 8]), tensorlib.int64)
"""

from tensorlib._core.base.explained import explain
from tensorlib.utils.data.datasets.cifar import CIFAR10, CIFAR100
from tensorlib.utils.data.datasets.digits import Digits
from tensorlib.utils.data.datasets.folder import DatasetFolder, ImageFolder
from tensorlib.utils.data.datasets.idx import read_idx
from tensorlib.utils.data.datasets.mnist import KMNIST, MNIST, FashionMNIST
from tensorlib.utils.data.datasets.text import TextDataset
from tensorlib.utils.data.datasets.vision import VisionDataset

__all__ = [
    "CIFAR10", "CIFAR100", "DatasetFolder", "Digits", "FashionMNIST", "ImageFolder", "KMNIST",
    "MNIST", "TextDataset", "VisionDataset", "read_idx"]

explain(vars(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
