"""Finds the parameters of a differential equation by differentiating its solver.

    python examples/ode_parameters.py

Hares breed and are eaten by foxes, as Lotka and Volterra have it. From noisy counts of both, the
four rates and the numbers at the start are found: the gradient of the misfit goes back through all
steps of a Runge-Kutta solver.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BLUE, GREY, RED, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim

TRUTH = (1.1, 0.4, 0.4, 0.1)                 # of hares: born, eaten; of foxes: dying, fed
NAMES = ("hares born", "hares eaten", "foxes dying", "foxes fed")
BEGIN = (10.0, 5.0)
STEP, EVERY = 0.125, 4                       # of the solver; it is counted each fourth step


def change(state: Tensor, rates: Tensor) -> Tensor:
    """How fast hares and foxes become more."""
    hares, foxes = state.unbind()
    born, eaten, dying, fed = rates.unbind()
    return tl.stack([hares * (born - eaten * foxes), foxes * (fed * hares - dying)])


def solve(state: Tensor, rates: Tensor, steps: int) -> Tensor:
    """The numbers at each moment, by Runge and Kutta's method of fourth order: (steps + 1, 2)."""
    states = [state]
    for _ in range(steps):
        k1 = change(state, rates)
        k2 = change(state + STEP / 2 * k1, rates)
        k3 = change(state + STEP / 2 * k2, rates)
        k4 = change(state + STEP * k3, rates)
        state = state + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    return tl.stack(states)


class Nature(nn.Module):
    """Rates and first numbers, of which the logarithms are found: they stay above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.Parameter(tl.tensor([0.7, 0.25, 0.6, 0.16], dtype=tl.float64).log())
        self.begin = nn.Parameter(tl.tensor([8.0, 6.0], dtype=tl.float64).log())

    def forward(self, steps: int) -> Tensor:
        return solve(self.begin.exp(), self.rates.exp(), steps)


def train(model: Nature, counts: Tensor, steps: int) -> list[float]:
    """The misfit in each step. The stretch that is fitted grows: late parts mislead at first."""
    optimizer = optim.Adam(model.parameters(), lr=0.04)
    falling = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=1e-3)
    history: list[float] = []
    for step in tqdm(range(steps), unit="step", leave=False, disable=None):
        fitted = min(len(counts), 8 + len(counts) * 2 * step // steps)
        found = model(EVERY * (fitted - 1))[::EVERY]
        loss = (found.log() - counts[:fitted].log()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
        history.append(loss.item())
    return history


def draw(path: Path, model: Nature, first: Tensor, counts: Tensor, history: list[float]) -> None:
    figure: Any = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 3])
    left.semilogy(history, color=GREY)
    plain(left, "Misfit", xlabel="step")
    with tl.no_grad():
        found = model(EVERY * (len(counts) - 1))
    time = STEP * tl.arange(len(found)).numpy()
    for k, (color, name) in enumerate(((BLUE, "hares"), (RED, "foxes"))):
        right.plot(time, first[:, k].numpy(), ":", color=color, linewidth=1)
        right.plot(time, found[:, k].numpy(), color=color, label=name)
        right.plot(time[::EVERY], counts[:, k].numpy(), "o", color=color, markersize=3, alpha=0.5)
    right.legend(frameon=False)
    plain(right, "Counts, the solution found, and where it started (dotted)", xlabel="years",
          ylim=(0, 1.4 * counts.max().item()))
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "ode_parameters.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 100_000), default=150, help="steps of Adam")
    option("--counts", type=number(int, 8, 10_000), default=30, help="moments of counting")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[float]:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    truth = tl.tensor(TRUTH, dtype=tl.float64)
    exact = solve(tl.tensor(BEGIN, dtype=tl.float64), truth, EVERY * (args.counts - 1))[::EVERY]
    counts = exact * (0.1 * tl.randn_like(exact)).exp()
    model = Nature()
    with tl.no_grad():
        first = model(EVERY * (args.counts - 1))
    history = train(model, counts, args.steps)
    found: list[float] = model.rates.exp().tolist()
    for name, value, wanted in zip(NAMES, found, TRUTH):
        print(f"{name:>11}: {value:.3f}   (truth {wanted:.3f})")
    draw(args.out, model, first, counts, history)
    print(f"see {args.out}")
    return found


if __name__ == "__main__":
    main()
