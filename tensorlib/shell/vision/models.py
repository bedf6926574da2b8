"""`tensorlib.nn.zoo`, where torchvision has its models."""

from typing import Any

from tensorlib.nn import zoo
from tensorlib.nn.zoo import *  # noqa: F403

# Models of torchvision that libraries import wherever it is found, though few programs call them.
ABSENT = ("VGG16_Weights", "resnet50", "vgg16")


class Absent:
    """What stands for a model that is not here: using it is a NotImplementedError."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.__name__}: there is no such model here; tensorlib.nn.zoo "
                                  "has those that there are, without weights")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self()


def resnet18(*, weights: Any = None, progress: bool = True, pretrained: bool = False,
             **options: Any) -> zoo.ResNet:
    """`tensorlib.nn.zoo.resnet18` as torchvision is asked for it.

    Raises: NotImplementedError for trained weights, which are not here.
    """
    if weights is not None or pretrained:
        raise NotImplementedError("resnet18: there are no trained weights here; load_state_dict "
                                  "takes those of torchvision")
    return zoo.resnet18(**options)


def __getattr__(name: str) -> Any:
    if name in ABSENT:
        return Absent(name)
    raise AttributeError(f"module 'tensorlib.vision.models' has no attribute {name!r}")
