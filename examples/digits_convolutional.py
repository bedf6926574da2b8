"""Reads handwritten digits with a convolutional network that can be stopped and resumed.

    python examples/digits_convolutional.py
    python examples/digits_convolutional.py --epochs 40 --resume

Scans are moved by a pixel at random while it learns, the learning rate rises and falls in one
cycle, and after each epoch all that is needed to go on is saved: stopped at any moment and resumed,
it ends with the same bits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BLUE, GREY, RED, Scans, number, options, plain, split_digits
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn.functional import cross_entropy, pad
from tensorlib.utils.data import DataLoader, TensorDataset


class Reader(nn.Module):
    """Three convolutions, two pools and a linear layer."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.BatchNorm2d(2 * channels),
            nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(2 * channels, 4 * channels, 3, padding=1), nn.BatchNorm2d(4 * channels),
            nn.ReLU(), nn.MaxPool2d(2))
        self.classes = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(16 * channels, 10))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classes(self.features(x))
        return logits


def moved(images: Tensor) -> Tensor:
    """The images, all moved by up to one pixel each way."""
    down, right = tl.randint(0, 3, (2,)).tolist()
    return pad(images, (1, 1, 1, 1))[:, :, down:down + 8, right:right + 8]


def accuracy(model: nn.Module, scans: Scans) -> tuple[float, Tensor]:
    """The percentage of scans read right, and the probabilities of all digits."""
    model.eval()
    with tl.inference_mode():
        p = model(scans[0]).softmax(1)
    model.train()
    return 100 * (p.argmax(1) == scans[1]).double().mean().item(), p


class Training:
    """A model, what trains it, and how far it is: `state` is all that going on needs."""

    def __init__(self, seen: Scans, channels: int, epochs: int, lr: float) -> None:
        self.model = Reader(channels)
        self.loader = DataLoader(TensorDataset(*seen), batch_size=32, shuffle=True)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=lr, weight_decay=0.05)
        self.schedule = optim.lr_scheduler.OneCycleLR(
            self.optimizer, lr, epochs=epochs, steps_per_epoch=len(self.loader))
        self.history: list[tuple[float, float]] = []          # loss and held-out accuracy

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(), "random": tl.get_rng_state(),
                "history": self.history}

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.history = state["history"]
        tl.set_rng_state(state["random"])

    def epoch(self) -> float:
        """The mean loss of one pass over the scans."""
        total = 0.0
        for images, digits in self.loader:
            loss = cross_entropy(self.model(moved(images)), digits, label_smoothing=0.05)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item()
        return total / len(self.loader)


def draw(path: Path, history: Sequence[tuple[float, float]], scans: Scans, p: Tensor) -> None:
    figure: Any = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2, 3])
    losses, read = zip(*history)
    above, below = left.subplots(2, 1, sharex=True)
    above.plot(losses, color=GREY)
    plain(above, "Training loss")
    below.semilogy([100 - each for each in read], color=BLUE)
    plain(below, f"Held-out errors in %: {100 - read[-1]:.1f} at the end", xlabel="epoch")
    below.yaxis.set_major_formatter("{x:g}")
    right.suptitle("The least certain, errors in red", x=0.02, ha="left", fontsize=12)
    images, digits = scans[0], scans[1].tolist()
    guesses, hardest = p.argmax(1).tolist(), p.amax(1).argsort().tolist()
    for axes, i in zip(right.subplots(3, 7).flat, hardest):
        wrong = guesses[i] != digits[i]
        axes.imshow(images[i, 0].numpy(), cmap="Reds" if wrong else "Greys", vmax=1.1)
        axes.set_title(f"{guesses[i]}, not {digits[i]}" if wrong else str(guesses[i]), fontsize=9,
                       color=RED if wrong else GREY, pad=3)
        axes.set_axis_off()
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "digits_convolutional.png")
    option = parser.add_argument
    option("--epochs", type=number(int, 1, 10_000), default=20, help="passes over the scans")
    option("--lr", type=number(float, 1e-6, 1), default=0.01, help="the highest learning rate")
    option("--channels", type=number(int, 1, 256), default=16, help="of the first convolution")
    option("--checkpoint", type=Path, default="digits_convolutional.safetensors",
           help="where to save after each epoch")
    option("--resume", action="store_true", help="go on from what was saved")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    seen, held_out = ((images.reshape(-1, 1, 8, 8), digits) for images, digits in split_digits())
    training = Training(seen, args.channels, args.epochs, args.lr)
    print(tl.summary(training.model, (32, 1, 8, 8)))
    if args.resume:
        training.load(tl.load(args.checkpoint))
        print(f"goes on after epoch {len(training.history)}")
    done = len(training.history)
    for epoch in tqdm(range(done, args.epochs), unit="epoch", leave=False, disable=None):
        loss = training.epoch()
        read, _ = accuracy(training.model, held_out)
        training.history.append((loss, read))
        tl.save(training.state(), args.checkpoint)
        tqdm.write(f"epoch {epoch + 1:3d}   training loss {loss:.4f}   held out {read:5.1f} %")
    read, p = accuracy(training.model, held_out)
    draw(args.out, training.history, held_out, p)
    print(f"\n{read:.1f} % of {len(p)} held-out scans read; see {args.out}")
    return read


if __name__ == "__main__":
    main()
