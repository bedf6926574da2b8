"""Learns sine waves with two LSTM cells, and goes on with them by itself.

    python examples/sine_lstm.py

Each wave starts somewhere else. The network sees three periods of them and predicts each next
point; then it is fed what it predicts itself, for six periods. LBFGS fits all waves at once.
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
from tensorlib.nn.functional import mse_loss

PERIOD = 40.0          # in points
SEEN = 120
AHEAD = 240


class Waves(nn.Module):
    """The next point of each wave, from all before it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.point = nn.Linear(hidden, 1)

    def forward(self, waves: Tensor, ahead: int = 0) -> Tensor:
        """What follows each point of `waves`, and `ahead` points more. (N, L) -> (N, L + ahead)."""
        hidden, state = self.lstm(waves.unsqueeze(-1))
        points = [self.point(hidden).squeeze(-1)]
        for _ in range(ahead):
            hidden, state = self.lstm(points[-1][:, -1:].unsqueeze(-1), state)
            points.append(self.point(hidden).squeeze(-1))
        return tl.cat(points, 1)


def make_waves(count: int, length: int) -> Tensor:
    """Sine waves of one period, each from a place of its own: (count, length)."""
    starts = 4 * PERIOD * tl.rand(count, 1, dtype=tl.float64)
    return (2 * tl.pi * (starts + tl.arange(length)) / PERIOD).sin()


def train(model: Waves, waves: Tensor, steps: int) -> list[float]:
    """The loss of each step."""
    optimizer = optim.LBFGS(model.parameters(), max_iter=20, history_size=20,
                            line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = mse_loss(model(waves[:, :-1]), waves[:, 1:])
        loss.backward()
        return loss

    for step in tqdm(range(steps), unit="step", leave=False, disable=None):
        losses.append(optimizer.step(closure).item())
        tqdm.write(f"step {step + 1:3d}   loss {losses[-1]:.2e}")
    return losses


def draw(path: Path, losses: list[float], truth: Tensor, went_on: Tensor) -> None:
    figure: Any = Figure(figsize=(10, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 3])
    left.semilogy(losses, ".-", color=GREY)
    plain(left, "Squared error", xlabel="step of LBFGS")
    for k, color in ((0, BLUE), (1, RED)):
        right.plot(truth[k].numpy(), color="#cbd5e0", linewidth=5)
        right.plot(range(SEEN), truth[k, :SEEN].numpy(), color=color)
        right.plot(range(SEEN, truth.shape[1]), went_on[k, SEEN - 1:].numpy(), "--", color=color)
    right.axvline(SEEN, color=GREY, linewidth=0.8)
    plain(right, "Seen, then predicted (dashed) over the truth (grey)", xlabel="point")
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "sine_lstm.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 1000), default=15, help="steps of LBFGS")
    option("--hidden", type=number(int, 1, 512), default=32, help="units of each cell")
    option("--waves", type=number(int, 3, 10_000), default=20, help="waves to learn from")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    model = Waves(args.hidden).double()
    losses = train(model, make_waves(args.waves, SEEN), args.steps)
    truth = make_waves(2, SEEN + AHEAD)
    with tl.no_grad():
        went_on = model(truth[:, :SEEN], ahead=AHEAD - 1)
    error = (went_on[:, SEEN - 1:-1] - truth[:, SEEN:-1]).square().mean().sqrt().item()
    draw(args.out, losses, truth, went_on)
    print(f"\n{AHEAD} points ahead it is {error:.3f} off (root mean square); see {args.out}")
    return losses[-1]


if __name__ == "__main__":
    main()
