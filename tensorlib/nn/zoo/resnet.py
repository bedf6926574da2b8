"""Residual networks: ResNet-18, with the names that published weights have."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlib import Tensor, nn


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3, to whose result the input is added.

    Args:
        inplanes: the channels of the input.
        planes: those of the output.
        stride: the step of the first convolution; the output is smaller by it.

    Shapes: (N, inplanes, H, W) -> (N, planes, H / stride, W / stride)
    """

    def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample: nn.Module | None = None
        if stride != 1 or inplanes != planes:       # so that the input can be added
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x: Tensor) -> Tensor:
        """What the block adds to its input, and the input."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        same = x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out + same)
        return result


class ResNet(nn.Module):
    """A residual network of basic blocks, in four stages.

    Args:
        layers: the blocks of each stage.
        num_classes: the classes to tell apart.
        in_channels: the channels of an image.
        small_images: whether images are as small as those of CIFAR: the first convolution is then
            one of 3 x 3, and nothing is left out before the first stage.

    Shapes: (N, in_channels, H, W) -> (N, num_classes), the logits
    Source: He, Zhang, Ren and Sun, Deep residual learning for image recognition, 2015.
    """

    def __init__(self, layers: Sequence[int], num_classes: int = 1000, in_channels: int = 3,
                 small_images: bool = False) -> None:
        super().__init__()
        if len(layers) != 4:
            raise ValueError(f"ResNet: layers has the blocks of 4 stages, got {list(layers)}")
        if small_images:
            self.conv1 = nn.Conv2d(in_channels, 64, 3, padding=1, bias=False)
        else:
            self.conv1 = nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(64, 64, layers[0])
        self.layer2 = stage(64, 128, layers[1], stride=2)
        self.layer3 = stage(128, 256, layers[2], stride=2)
        self.layer4 = stage(256, 512, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


def stage(inplanes: int, planes: int, blocks: int, stride: int = 1) -> nn.Sequential:
    """Blocks one after the other, of which the first one makes images smaller."""
    return nn.Sequential(BasicBlock(inplanes, planes, stride),
                         *(BasicBlock(planes, planes) for _ in range(blocks - 1)))


def resnet18(num_classes: int = 1000, in_channels: int = 3, small_images: bool = False) -> ResNet:
    """ResNet-18, with the names of torchvision's, so that `load_state_dict` takes its weights.

    Args:
        num_classes: the classes to tell apart.
        in_channels: the channels of an image.
        small_images: whether images are as small as those of CIFAR, 32 x 32: see `ResNet`.

    >>> model = resnet18(num_classes=10, in_channels=1, small_images=True).eval()
    >>> model(tensorlib.zeros(1, 1, 8, 8)).shape
    tensorlib.Size([1, 10])
    """
    return ResNet([2, 2, 2, 2], num_classes, in_channels, small_images)
