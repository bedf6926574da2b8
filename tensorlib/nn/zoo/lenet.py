"""LeNet-5, the convolutional network that read cheques."""

from __future__ import annotations

from tensorlib import Tensor, nn


class LeNet(nn.Module):
    """LeNet-5 as it is used today: two convolutions with pools, and three linear layers.

    Args:
        num_classes: the classes to tell apart.
        in_channels: the channels of an image.
        size: its height and width; 12 or more.

    Shapes: (N, in_channels, size, size) -> (N, num_classes), the logits
    Source: LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document
    recognition, 1998.

    >>> LeNet()(tensorlib.zeros(2, 1, 28, 28)).shape
    tensorlib.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1, size: int = 28) -> None:
        super().__init__()
        if size < 12:
            raise ValueError(f"LeNet: size must be 12 or more, got {size}: the convolutions would "
                             "leave nothing")
        left = (size // 2 - 4) // 2
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, kernel_size=5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, kernel_size=5), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(16 * left * left, 120), nn.ReLU(), nn.Linear(120, 84),
            nn.ReLU(), nn.Linear(84, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x))
        return logits
