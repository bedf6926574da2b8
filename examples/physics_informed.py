"""Solves the heat equation with a network that is told the equation, and no solution.

    python examples/physics_informed.py

u(x, t) obeys du/dt = k d2u/dx2 on a rod whose ends are kept at 0. The network gets points where
nothing is known, and is asked there for derivatives that fit: the loss differentiates it twice with
respect to its inputs, and the sweep goes through these derivatives.
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
from tensorlib.autograd import grad

K = 0.1


def start(x: Tensor) -> Tensor:
    """The temperature at time 0."""
    return (tl.pi * x).sin() + 0.5 * (2 * tl.pi * x).sin()


def exact(x: Tensor, t: Tensor) -> Tensor:
    """The solution, to compare with."""
    return ((tl.pi * x).sin() * (-K * tl.pi**2 * t).exp()
            + 0.5 * (2 * tl.pi * x).sin() * (-4 * K * tl.pi**2 * t).exp())


class Temperature(nn.Module):
    """u(x, t): a small network, bent so that it is right at time 0 and at both ends."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden),
                                 nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        bend: Tensor = self.net(tl.cat([x, t], 1))
        return start(x) + t * x * (1 - x) * bend


def residual(model: Temperature, x: Tensor, t: Tensor) -> Tensor:
    """By how much the equation is missed at each point."""
    x, t = x.requires_grad_(), t.requires_grad_()
    u = model(x, t)
    du_dx, du_dt = grad(u.sum(), (x, t), create_graph=True)
    d2u_dx2, = grad(du_dx.sum(), x, create_graph=True)
    return du_dt - K * d2u_dx2


def train(model: Temperature, steps: int, points: int) -> list[float]:
    """The mean squared residual in each step, at fresh points."""
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    falling = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for _ in tqdm(range(steps), unit="step", leave=False, disable=None):
        loss = residual(model, tl.rand(points, 1), tl.rand(points, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
        losses.append(loss.item())
    return losses


def draw(path: Path, model: Temperature, losses: list[float]) -> None:
    figure: Any = Figure(figsize=(10, 3.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    left.semilogy(losses, color=GREY, linewidth=0.8)
    plain(left, "Squared residual", xlabel="step")
    x = tl.linspace(0, 1, 101).unsqueeze(1)
    with tl.no_grad():
        for t, color in ((0.0, GREY), (0.1, RED), (0.4, BLUE), (1.0, "black")):
            time = tl.full_like(x, t)
            middle.plot(x.numpy(), exact(x, time).numpy(), color="#cbd5e0", linewidth=5)
            middle.plot(x.numpy(), model(x, time).numpy(), color=color, label=f"t = {t}")
        grid_x, grid_t = tl.meshgrid([x[:, 0], x[:, 0]], indexing="xy")
        u = model(grid_x.reshape(-1, 1), grid_t.reshape(-1, 1)).reshape(101, 101)
    middle.legend(frameon=False, fontsize=8)
    plain(middle, "Found, over the exact (grey)", xlabel="x")
    image = right.imshow(u.numpy(), origin="lower", extent=(0, 1, 0, 1), cmap="inferno",
                         aspect="auto")
    figure.colorbar(image, ax=right)
    right.set(xlabel="x", ylabel="t")
    right.set_title("u(x, t)", loc="left")
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "physics_informed.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 1_000_000), default=2000, help="steps of Adam")
    option("--points", type=number(int, 1, 1_000_000), default=256, help="points in each step")
    option("--hidden", type=number(int, 1, 4096), default=32, help="units of each layer")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    model = Temperature(args.hidden)
    losses = train(model, args.steps, args.points)
    x, t = tl.rand(10_000, 1), tl.rand(10_000, 1)
    with tl.no_grad():
        error: float = (model(x, t) - exact(x, t)).abs().max().item()
    draw(args.out, model, losses)
    print(f"squared residual {losses[0]:.3g} at first, {losses[-1]:.2e} at the end")
    print(f"farthest from the exact solution: {error:.4f}; see {args.out}")
    return error


if __name__ == "__main__":
    main()
