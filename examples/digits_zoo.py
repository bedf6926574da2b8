"""Three architectures of `nn.zoo` learn to read the digits, and a fourth to clean them.

    python examples/digits_zoo.py
    python examples/digits_zoo.py --epochs 12

A perceptron, LeNet and a small ResNet see scans that are moved, turned and hidden in parts, so that
none is seen twice; a U-Net is shown scans under noise and learns what they were. The picture has
the accuracy of each after every epoch, and scans before and after the U-Net.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import BLUE, GREEN, RED, number, options, plain
from matplotlib.figure import Figure

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn import functional as F
from tensorlib.nn import zoo
from tensorlib.utils.data import DataLoader, Subset, datasets, transforms

NOISE = 0.6                      # its standard deviation; ink is 1
SHOWN = 8


def models() -> dict[str, nn.Module]:
    """The architectures, for images of 12 x 12."""
    return {"perceptron": nn.Sequential(nn.Flatten(), zoo.MLP(144, [128, 10])),
            "LeNet": zoo.LeNet(size=12),
            "ResNet": zoo.ResNet([1, 1, 1, 1], 10, in_channels=1, small_images=True)}


def loaders(count: int) -> tuple[DataLoader[Any], DataLoader[Any]]:
    """Batches to learn from, changed at random, and batches of scans held out, as they are."""
    fit = transforms.Pad(2)
    augment = transforms.Compose([
        fit, transforms.RandomAffine(12, translate=(0.08, 0.08), scale=(0.9, 1.1),
                                     interpolation="bilinear"),
        transforms.RandomErasing(0.3, scale=(0.02, 0.1))])
    seen: Subset[Any] = Subset(datasets.Digits(train=True, transform=augment), range(count))
    held_out: Subset[Any] = Subset(datasets.Digits(train=False, transform=fit),
                                   range(min(count, 360)))
    return DataLoader(seen, 32, shuffle=True), DataLoader(held_out, 120)


def epoch(model: nn.Module, batches: DataLoader[Any], optimizer: optim.Optimizer,
          loss_of: Callable[[Tensor, Tensor], Tensor]) -> None:
    """One pass over the scans."""
    model.train()
    for images, labels in batches:
        loss = loss_of(images, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accuracy(model: nn.Module, batches: DataLoader[Any]) -> float:
    """How many of the scans held out it reads, in percent."""
    model.eval()
    with tl.no_grad():
        right = [(model(images).argmax(1) == labels).float() for images, labels in batches]
    return 100 * tl.cat(right).mean().item()


def read(model: nn.Module, seen: DataLoader[Any], held_out: DataLoader[Any], epochs: int,
         lr: float) -> list[float]:
    """The accuracy after each epoch of training."""
    optimizer = optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    found: list[float] = []
    for _ in range(epochs):
        epoch(model, seen, optimizer, lambda x, y: F.cross_entropy(model(x), y))
        found.append(accuracy(model, held_out))
    return found


def clean(seen: DataLoader[Any], epochs: int, lr: float) -> nn.Module:
    """A U-Net that learned what scans were under noise."""
    model = zoo.UNet(1, 1, channels=(8, 16, 32))
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    for _ in range(epochs):
        epoch(model, seen, optimizer, lambda x, y: F.mse_loss(model(noisy(x)), x))
    return model.eval()


def noisy(images: Tensor) -> Tensor:
    return images + NOISE * tl.randn_like(images)


def draw(path: Path, found: dict[str, list[float]], scans: Sequence[Tensor]) -> None:
    figure: Any = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[3, 4])
    axes = left.subplots()
    for (name, accuracies), colour in zip(found.items(), (BLUE, RED, GREEN)):
        axes.plot(np.arange(len(accuracies)) + 1, accuracies, ".-", color=colour, label=name)
    plain(axes, "Held-out accuracy, %", xlabel="epoch")
    axes.legend(frameon=False)
    rows = right.subplots(3, SHOWN)
    right.suptitle("Scans, under noise, and cleaned by the U-Net", x=0.02, ha="left", fontsize=12)
    for row, images in zip(rows, scans):
        for place, image in zip(row, images):
            place.imshow(image[0].numpy(), cmap="Greys", vmin=0, vmax=1)
            place.set_axis_off()
    figure.savefig(path, dpi=90)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "digits_zoo.png")
    option = parser.add_argument
    option("--epochs", type=number(int, 1, 10_000), default=5, help="passes over the scans")
    option("--lr", type=number(float, 1e-6, 1), default=3e-3, help="learning rate")
    option("--scans", type=number(int, 1, 1437), default=1437, help="to learn from")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> dict[str, list[float]]:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    seen, held_out = loaders(args.scans)
    found: dict[str, list[float]] = {}
    for name, model in models().items():
        found[name] = read(model, seen, held_out, args.epochs, args.lr)
        count = sum(p.numel() for p in model.parameters())
        print(f"{name:10s} {count:10,} parameters   reads {found[name][-1]:5.1f} %")
    cleaner = clean(seen, args.epochs, args.lr)
    images = next(iter(held_out))[0]
    with tl.no_grad():
        spoilt = noisy(images)
        cleaned = cleaner(spoilt)
    print(f"U-Net: mean squared error {F.mse_loss(spoilt, images).item():.3f} under noise, "
          f"{F.mse_loss(cleaned, images).item():.3f} cleaned")
    draw(args.out, found, [images[:SHOWN], spoilt[:SHOWN], cleaned[:SHOWN]])
    print(f"see {args.out}")
    return found


if __name__ == "__main__":
    main()
