"""Five known architectures as code to read, to copy from, and to train: without weights.

>>> from tensorlib.nn import zoo
>>> model = zoo.resnet18(num_classes=10)
>>> sum(p.numel() for p in model.parameters())
11181642
"""

from tensorlib._core.base.explained import explain
from tensorlib.nn.zoo.gpt import GPT
from tensorlib.nn.zoo.lenet import LeNet
from tensorlib.nn.zoo.perceptron import MLP
from tensorlib.nn.zoo.resnet import BasicBlock, ResNet, resnet18
from tensorlib.nn.zoo.unet import UNet

__all__ = ["BasicBlock", "GPT", "LeNet", "MLP", "ResNet", "UNet", "resnet18"]

explain(vars(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
