"""Learns to draw digits: a variational autoencoder with two hidden numbers.

    python examples/digits_vae.py

An encoder says of each scan where in the plane it lies, and how sure that is; a decoder draws what
lies at a place. The picture shows what it draws at the places of a grid.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import GREY, load_digits, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.distributions import Normal, kl_divergence
from tensorlib.nn.functional import binary_cross_entropy_with_logits, pad
from tensorlib.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    """From images to places in the plane, and from places to images."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.SiLU(), nn.Linear(hidden, hidden),
                                     nn.SiLU(), nn.Linear(hidden, 4))
        self.decoder = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden),
                                     nn.SiLU(), nn.Linear(hidden, 64))

    def places(self, images: Tensor) -> Normal:
        """Where images lie: (N, 64) -> a distribution over (N, 2)."""
        mean, log_std = self.encoder(images).chunk(2, dim=1)
        return Normal(mean, log_std.exp())

    def loss(self, images: Tensor) -> Tensor:
        """The negative evidence lower bound, per image."""
        places = self.places(images)
        drawn = self.decoder(places.rsample())
        missed = binary_cross_entropy_with_logits(drawn, images, reduction="none").sum(1)
        surprise: Tensor = kl_divergence(places, Normal(tl.zeros(2), tl.ones(2))).sum(1)
        return (missed + surprise).mean()


def train(model: Autoencoder, images: Tensor, epochs: int) -> list[float]:
    """The mean loss of each epoch."""
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    history = []
    for epoch in tqdm(range(epochs), unit="epoch", leave=False, disable=None):
        losses = []
        for (batch,) in loader:
            loss = model.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        history.append(sum(losses) / len(losses))
        if epoch % 10 == 9:
            tqdm.write(f"epoch {epoch + 1:3d}   loss {history[-1]:.3f}")
    return history


def draw(path: Path, model: Autoencoder, images: Tensor, digits: Tensor, history: list[float]
         ) -> None:
    figure: Any = Figure(figsize=(12, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[2, 3.2, 3.4])
    left.plot(history, color=GREY)
    plain(left, "Negative evidence bound", xlabel="epoch")
    with tl.no_grad():
        where = model.places(images).mean.numpy()
        across = Normal(0.0, 1.0).icdf(tl.linspace(0.04, 0.96, 9))
        grid = tl.cartesian_prod(-across, across).flip(1)
        drawn = pad(model.decoder(grid).sigmoid().reshape(9, 9, 8, 8), (1, 1, 1, 1))
    points = middle.scatter(where[:, 0], where[:, 1], c=digits.numpy(), cmap="tab10", s=6)
    middle.legend(*points.legend_elements(), frameon=False, fontsize=7, handletextpad=0,
                  loc="center left", bbox_to_anchor=(1, 0.5))
    plain(middle, "Where the scans lie")
    right.imshow(drawn.permute(0, 2, 1, 3).reshape(90, 90).numpy(), cmap="Greys")
    right.set_title("What it draws at places of a grid", loc="left")
    right.set_axis_off()
    figure.savefig(path, dpi=90)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "digits_vae.png")
    option = parser.add_argument
    option("--epochs", type=number(int, 1, 100_000), default=80, help="passes over the scans")
    option("--hidden", type=number(int, 1, 8192), default=128, help="units of each layer")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    images, digits = load_digits()
    model = Autoencoder(args.hidden)
    history = train(model, images, args.epochs)
    draw(args.out, model, images, digits, history)
    print(f"negative evidence bound {history[0]:.2f} at first, {history[-1]:.2f} at the end; "
          f"see {args.out}")
    return history[-1]


if __name__ == "__main__":
    main()
