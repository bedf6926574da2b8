"""Changes of images for training, under torchvision's names: modules, and functions of tensors.

An image is a tensor (..., C, H, W); what comes before its channels stands for more of them, to all
of which the same is done. Integers go from 0 to the largest one of their dtype, floating-point
numbers from 0 to 1. What is random follows from `tensorlib.manual_seed`.

>>> from tensorlib.utils.data import transforms
>>> augment = transforms.Compose([
...     transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
...     transforms.ToTensor(), transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))])
>>> augment(tensorlib.zeros(3, 32, 32, dtype=tensorlib.uint8)).min()
tensor(-2.)
"""

from tensorlib._core.base.explained import explain
from tensorlib.utils.data.transforms import functional
from tensorlib.utils.data.transforms.composed import (
    Compose,
    Lambda,
    RandomApply,
    RandomChoice,
    RandomOrder,
)
from tensorlib.utils.data.transforms.deterministic import (
    CenterCrop,
    ConvertImageDtype,
    Grayscale,
    Normalize,
    Pad,
    PILToTensor,
    Resize,
    ToPILImage,
    ToTensor,
)
from tensorlib.utils.data.transforms.random_colours import (
    ColorJitter,
    GaussianBlur,
    RandomErasing,
    RandomGrayscale,
)
from tensorlib.utils.data.transforms.random_geometry import (
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
)
from tensorlib.utils.data.transforms.images import InterpolationMode

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "ConvertImageDtype", "GaussianBlur", "Grayscale",
    "InterpolationMode", "Lambda", "Normalize", "PILToTensor", "Pad", "RandomAffine", "RandomApply",
    "RandomChoice", "RandomCrop", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip",
    "RandomOrder", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize",
    "ToPILImage", "ToTensor", "functional"]

explain(vars(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
