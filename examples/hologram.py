"""Finds a hologram: the phases of a light wave that shows another digit at each distance.

    python examples/hologram.py

A thin plate delays a plane wave, by another phase at each of its places. Behind it the wave goes on
as Maxwell's equations have it: its Fourier transform turns, each frequency at its own pace. The
gradient of what the screens show too much or too little of goes back through the transforms.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import GREY, load_digits, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim

WAVELENGTH = 0.5e-6
PLACE = 8e-6                                  # the width of a place of the plate, in metres
DISTANCES = (0.025, 0.035, 0.045)             # of the screens


def turns(size: int) -> Tensor:
    """What the transform of a wave is multiplied by on its way to each screen: (3, size, size)."""
    frequencies = tl.fft.fftfreq(size, PLACE, dtype=tl.float64)
    across = frequencies.square()[:, None] + frequencies.square()
    along = 2 * math.pi * (WAVELENGTH ** -2 - across).sqrt()
    phases = tl.tensor(DISTANCES, dtype=tl.float64)[:, None, None] * along
    return tl.polar(tl.ones_like(phases), phases).to(tl.complex64)


def digits(size: int) -> Tensor:
    """A digit for each screen, in its middle: (3, size, size), of mean 1."""
    images, labels = load_digits()
    chosen = tl.stack([images[labels == digit][0] for digit in (1, 2, 3)]).reshape(3, 1, 8, 8)
    inner = size * 5 // 8
    large = nn.functional.interpolate(chosen, size=(inner, inner), mode="bicubic").clamp(0, 1)
    before = (size - inner) // 2
    after = size - inner - before
    framed = nn.functional.pad(large, (before, after, before, after))[:, 0] + 0.005
    return framed / framed.mean((1, 2), keepdim=True)


class Plate(nn.Module):
    """Phases, at first drawn at random."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.phases = nn.Parameter(2 * math.pi * tl.rand(size, size))
        self.turns = turns(size)

    def forward(self) -> Tensor:
        """The brightness of each screen."""
        wave = tl.polar(tl.ones_like(self.phases), self.phases)
        return tl.fft.ifft2(tl.fft.fft2(wave) * self.turns).abs().square()


def train(plate: Plate, wanted: Tensor, steps: int) -> list[float]:
    """The mean square error of the amplitudes, in each step."""
    optimizer = optim.Adam(plate.parameters(), lr=0.1)
    history: list[float] = []
    for _ in tqdm(range(steps), unit="step", leave=False, disable=None):
        shown = plate()
        loss = ((shown + 1e-9).sqrt() - wanted.sqrt()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def draw(path: Path, plate: Plate, wanted: Tensor, history: list[float]) -> None:
    figure: Any = Figure(figsize=(9, 2.1), layout="constrained")
    part = slice(0, 32)                        # of the plate, that its places can be seen
    first, second, *rest = figure.subplots(1, 5)
    first.semilogy(history, color=GREY)
    plain(first, "Error of amplitudes", xlabel="step")
    with tl.no_grad():
        shown = plate().numpy()
    phases = plate.phases.detach()[part, part].numpy() % (2 * math.pi)
    pictures: list[Any] = [(second, "A part of the plate", phases, "twilight", None)]
    pictures += [(axes, f"Light at {1000 * z:.0f} mm", image, "magma", float(wanted.max()))
                 for axes, z, image in zip(rest, DISTANCES, shown)]
    for axes, title, image, colors, most in pictures:
        axes.imshow(image, cmap=colors, vmin=0, vmax=most, interpolation="nearest")
        axes.set_title(title, loc="left")
        axes.set_axis_off()
    figure.savefig(path, dpi=50)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "hologram.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 100_000), default=200, help="steps of Adam")
    option("--size", type=number(int, 16, 2048), default=128, help="places along a side")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[float]:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    plate, wanted = Plate(args.size), digits(args.size)
    history = train(plate, wanted, args.steps)
    print(f"error of amplitudes: {history[0]:.3f} at first, {history[-1]:.3f} in the end")
    draw(args.out, plate, wanted, history)
    print(f"see {args.out}")
    return history


if __name__ == "__main__":
    main()
