"""Fits a Gaussian process, and lets the data choose its kernel by the marginal likelihood.

    python examples/gaussian_process.py

A trend, a wave and noise: the kernel is a sum of a smooth one and a periodic one, whose lengths,
period and scales are found by following the gradient through a Cholesky decomposition.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BLUE, GREY, RED, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim

STARTS = {"smooth_scale": 1.0, "smooth_length": 3.0, "wave_scale": 1.0, "wave_length": 1.0,
          "period": 1.4, "noise": 0.3}


class Process(nn.Module):
    """A Gaussian process on a line. Its parameters are the logarithms of scales and lengths."""

    def __init__(self) -> None:
        super().__init__()
        for name, value in STARTS.items():
            self.register_parameter(name, nn.Parameter(tl.tensor(math.log(value)).double()))

    def value(self, name: str) -> Tensor:
        """A scale or a length."""
        return self.get_parameter(name).exp()

    def kernel(self, a: Tensor, b: Tensor) -> Tensor:
        """The covariances of the function at places `a` and `b`: (N,), (M,) -> (N, M)."""
        far = a.unsqueeze(1) - b
        smooth = (-(far / self.value("smooth_length")).square() / 2).exp()
        turn = (tl.pi * far / self.value("period")).sin()
        wave = (-2 * (turn / self.value("wave_length")).square()).exp()
        return (self.value("smooth_scale").square() * smooth
                + self.value("wave_scale").square() * wave)

    def factor(self, x: Tensor) -> Tensor:
        """The Cholesky factor of the covariance of noisy values at `x`."""
        noise = self.value("noise").square() + 1e-6
        return tl.linalg.cholesky(self.kernel(x, x) + noise * tl.eye(len(x), dtype=x.dtype))

    def log_likelihood(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the density of the values, whatever the function is."""
        factor = self.factor(x)
        white = tl.linalg.solve_triangular(factor, y.unsqueeze(1), upper=False)
        return -(white.square().sum() / 2 + factor.diagonal().log().sum()
                 + len(x) / 2 * math.log(2 * math.pi))

    def predict(self, x: Tensor, y: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and deviation of the function at other places, given the values at `x`."""
        factor, across = self.factor(x), self.kernel(x, places)
        white = tl.linalg.solve_triangular(factor, tl.cat([y.unsqueeze(1), across], 1), upper=False)
        values, spread = white[:, :1], white[:, 1:]
        variance = self.kernel(places[:1], places[:1]).squeeze() - spread.square().sum(0)
        return (values * spread).sum(0), variance.clamp(min=0).sqrt()


def make_data(count: int) -> tuple[Tensor, Tensor]:
    """Noisy values of a trend and a wave, with a gap."""
    x = 8 * tl.rand(count, dtype=tl.float64).sort().values
    x = x[(x < 3.5) | (x > 5)]
    return x, wanted(x) + 0.25 * tl.randn(len(x), dtype=tl.float64)


def wanted(x: Tensor) -> Tensor:
    return 0.8 * (x / 2.5).sin() + (2 * tl.pi * x / 1.3).sin()


def train(process: Process, x: Tensor, y: Tensor, steps: int) -> list[float]:
    """The log likelihood in each step."""
    optimizer = optim.Adam(process.parameters(), lr=0.05, maximize=True)
    history: list[float] = []
    for _ in tqdm(range(steps), unit="step", leave=False, disable=None):
        likelihood = process.log_likelihood(x, y)
        optimizer.zero_grad()
        likelihood.backward()
        optimizer.step()
        history.append(likelihood.item())
    return history


def draw(path: Path, process: Process, untrained: Process, x: Tensor, y: Tensor,
         history: list[float]) -> None:
    figure: Any = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 3])
    curve = left.subplots()
    curve.plot(history, color=GREY)
    plain(curve, "Log likelihood", xlabel="step")
    places = tl.linspace(-0.5, 9.5, 400, dtype=tl.float64)
    for axes, shown, title in zip(right.subplots(2, 1, sharex=True), (untrained, process), (
            "With the kernel it starts from", "With the kernel that the data chose")):
        with tl.no_grad():
            mean, deviation = (part.numpy() for part in shown.predict(x, y, places))
        axes.fill_between(places.numpy(), mean - 2 * deviation, mean + 2 * deviation, color=BLUE,
                          alpha=0.2)
        axes.plot(places.numpy(), wanted(places).numpy(), color="#a0aec0", linewidth=3)
        axes.plot(places.numpy(), mean, color=BLUE)
        axes.plot(x.numpy(), y.numpy(), ".", color=RED)
        plain(axes, title, ylim=(-3, 3))
    figure.savefig(path, dpi=90)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "gaussian_process.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 100_000), default=300, help="steps of Adam")
    option("--points", type=number(int, 5, 5000), default=80, help="values to fit")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    x, y = make_data(args.points)
    process = Process()
    history = train(process, x, y, args.steps)
    for name in STARTS:
        print(f"{name:>14}: {STARTS[name]:.3f} -> {process.value(name).item():.3f}")
    draw(args.out, process, Process(), x, y, history)
    print(f"log likelihood {history[0]:.1f} at first, {history[-1]:.1f} at the end; "
          f"see {args.out}")
    return history[-1]


if __name__ == "__main__":
    main()
