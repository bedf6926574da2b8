"""Bayesian regression by Hamiltonian Monte Carlo: what slopes and noise do the data allow?

    python examples/bayesian_hmc.py

A line is fitted to 30 points, of which three are far off; their errors are taken to have Student's
distribution, which does not mind. Many chains move together as the rows of one tensor, so that one
sweep gives the gradients of all.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import BLUE, GREY, RED, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.autograd import grad
from tensorlib.distributions import Normal, StudentT

LogDensity = Callable[[Tensor], Tensor]       # of positions (chains, parameters): (chains,)
TRUTH = (1.0, 2.0, 0.3)                       # intercept, slope, scale of the errors


def make_data() -> tuple[Tensor, Tensor]:
    """Thirty points near a line, three of them far from it."""
    x = tl.linspace(-1, 1, 30)
    y = TRUTH[0] + TRUTH[1] * x + TRUTH[2] * tl.randn(30)
    y[tl.tensor([1, 3, 6])] += tl.tensor([5.0, 4.5, 4.0])
    return x, y


def log_density(x: Tensor, y: Tensor) -> LogDensity:
    """The logarithm of prior times likelihood, for rows (intercept, slope, log of the scale)."""
    prior = Normal(tl.zeros(3), tl.tensor([5.0, 5.0, 2.0]))

    def density(position: Tensor) -> Tensor:
        intercept, slope, log_scale = position.unbind(1)
        line = intercept.unsqueeze(1) + slope.unsqueeze(1) * x
        errors = StudentT(3.0, line, log_scale.exp().unsqueeze(1))
        prior_part: Tensor = prior.log_prob(position).sum(1)
        likelihood: Tensor = errors.log_prob(y).sum(1)
        return prior_part + likelihood
    return density


def with_gradient(density: LogDensity, position: Tensor) -> tuple[Tensor, Tensor]:
    """The log density of each chain, and its gradient."""
    position = position.detach().requires_grad_()
    value = density(position)
    return value.detach(), grad(value.sum(), position)[0]


def sample(density: LogDensity, position: Tensor, samples: int, warmup: int, leaps: int
           ) -> tuple[Tensor, float]:
    """Positions (samples, chains, parameters) and the share of moves that were accepted.

    During the warm-up the step length is adapted, so that four moves of five are accepted.
    """
    step, kept, accepted = 0.1, [], []
    value, slope = with_gradient(density, position)
    for turn in tqdm(range(warmup + samples), unit="move", leave=False, disable=None):
        momentum = tl.randn_like(position)
        energy = momentum.square().sum(1) / 2 - value
        moved, new_value, new_slope = position, value, slope
        length = step * (0.5 + tl.rand(len(position), 1))        # no chain goes round in circles
        for _ in range(leaps):                                   # leapfrog
            momentum = momentum + length / 2 * new_slope
            moved = moved + length * momentum
            new_value, new_slope = with_gradient(density, moved)
            momentum = momentum + length / 2 * new_slope
        new_energy = momentum.square().sum(1) / 2 - new_value
        taken = tl.rand(len(position)).log() < energy - new_energy
        position = tl.where(taken.unsqueeze(1), moved, position)
        slope = tl.where(taken.unsqueeze(1), new_slope, slope)
        value = tl.where(taken, new_value, value)
        rate = taken.float().mean().item()
        if turn < warmup:
            step *= 1.05 if rate > 0.8 else 0.9
        else:
            kept.append(position)
            accepted.append(rate)
    return tl.stack(kept), sum(accepted) / len(accepted)


def draw(path: Path, x: Tensor, y: Tensor, samples: Tensor) -> None:
    figure: Any = Figure(figsize=(10, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[3, 2, 2])
    intercept, slope, log_scale = samples.reshape(-1, 3).unbind(1)
    lines = intercept[::37, None] + slope[::37, None] * x
    low, high = lines.quantile(tl.tensor([0.025, 0.975]), dim=0)
    left.fill_between(x.numpy(), low.numpy(), high.numpy(), color=BLUE, alpha=0.25,
                      label="95 % of lines")
    left.plot(x.numpy(), lines.mean(0).numpy(), color=BLUE, label="mean")
    degree = np.polyfit(x.numpy(), y.numpy(), 1)
    left.plot(x.numpy(), np.polyval(degree, x.numpy()), "--", color=GREY, label="least squares")
    left.plot(x.numpy(), y.numpy(), "o", color=RED, markersize=4)
    left.legend(frameon=False, fontsize=8)
    plain(left, "Lines that the data allow", xlabel="x", xticks=[-1, 0, 1])
    middle.hist2d(intercept.numpy(), slope.numpy(), bins=50, cmap="Blues")
    middle.plot(*TRUTH[:2], "x", color=RED, markersize=9)
    plain(middle, "Intercept and slope")
    right.hist(log_scale.exp().numpy(), bins=60, color=BLUE, alpha=0.7)
    right.axvline(TRUTH[2], color=RED)
    plain(right, "Scale of the errors", yticks=[])
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "bayesian_hmc.png")
    option = parser.add_argument
    option("--samples", type=number(int, 2, 1_000_000), default=300, help="moves that are kept")
    option("--warmup", type=number(int, 0, 1_000_000), default=150, help="moves before them")
    option("--chains", type=number(int, 2, 100_000), default=32, help="chains side by side")
    option("--leaps", type=number(int, 1, 1000), default=12, help="steps of each move")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> Tensor:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    x, y = make_data()
    samples, rate = sample(log_density(x, y), 0.3 * tl.randn(args.chains, 3), args.samples,
                           args.warmup, args.leaps)
    between, within = samples.mean(0).var(0), samples.var(0).mean(0)
    print(f"{100 * rate:.0f} % of moves accepted")
    names = ("intercept", "slope", "log scale")
    for k, name in enumerate(names):
        values = samples[:, :, k]
        print(f"{name:>10}: {values.mean().item():6.3f} +- {values.std().item():.3f}   "
              f"chains agree to {(1 + between[k] / within[k]).sqrt().item():.3f}")
    draw(args.out, x, y, samples)
    print(f"see {args.out}")
    return samples


if __name__ == "__main__":
    main()
