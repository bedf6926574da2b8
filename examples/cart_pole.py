"""Learns to balance a pole on a cart, by the gradient of a policy.

    python examples/cart_pole.py

The cart is pushed left or right by a policy that sees where it is and how the pole leans. Many
carts run side by side as rows of one tensor. Pushes that led to more time upright than usual become
more likely (REINFORCE, with the mean over carts as what is usual).
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
from tensorlib.distributions import Categorical

GRAVITY, CART, POLE, HALF, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LONGEST = 500                                # pushes, after which a cart has done it
WIDE, LEAN = 2.4, 0.209                      # where it ends: metres from the middle, radians


def push(state: Tensor, right: Tensor) -> Tensor:
    """The states (x, speed, angle, its speed) of carts a moment later. (N, 4), (N,) -> (N, 4)."""
    _, speed, angle, turn = state.unbind(1)
    force = tl.where(right == 1, FORCE, -FORCE)
    sin, cos = angle.sin(), angle.cos()
    pull = (force + POLE * HALF * turn.square() * sin) / (CART + POLE)
    turning = (GRAVITY * sin - cos * pull) / (
        HALF * (4 / 3 - POLE * cos.square() / (CART + POLE)))
    moving = pull - POLE * HALF * turning * cos / (CART + POLE)
    change = tl.stack([speed, moving, turn, turning], 1)
    return state + SECONDS * change


def run(policy: nn.Module, carts: int) -> tuple[Tensor, Tensor, Tensor]:
    """A run of some carts: log probabilities of pushes, which were made upright, and all angles.

    Each is (moments, carts).
    """
    state = 0.1 * tl.rand(carts, 4) - 0.05
    upright = tl.ones(carts, dtype=tl.bool)
    log_probs, alive, angles = [], [], []
    for _ in range(LONGEST):
        choice = Categorical(logits=policy(state))
        right = choice.sample()
        log_probs.append(choice.log_prob(right))
        alive.append(upright)
        angles.append(state[:, 2])
        state = push(state, right)
        upright = upright & (state[:, 0].abs() < WIDE) & (state[:, 2].abs() < LEAN)
        if not upright.any():
            break
    return tl.stack(log_probs), tl.stack(alive), tl.stack(angles)


def policy_loss(log_probs: Tensor, alive: Tensor, discount: float = 0.99) -> Tensor:
    """What the gradient of the policy descends."""
    rewards = alive.float()
    to_come = tl.zeros_like(rewards)
    following = tl.zeros(rewards.shape[1])
    for moment in range(len(rewards) - 1, -1, -1):
        following = rewards[moment] + discount * following * rewards[moment]
        to_come[moment] = following
    seen = to_come[alive]
    advantage = (to_come - seen.mean()) / (seen.std() + 1e-6)
    return -(log_probs * advantage * rewards).sum() / rewards.sum()


def train(policy: nn.Module, steps: int, carts: int, lr: float) -> list[float]:
    """How many pushes the carts stayed upright, on average, in each step."""
    optimizer = optim.Adam(policy.parameters(), lr=lr)
    history: list[float] = []
    for step in tqdm(range(steps), unit="step", leave=False, disable=None):
        log_probs, alive, _ = run(policy, carts)
        loss = policy_loss(log_probs, alive)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(alive.sum(0).float().mean().item())
        if step % 10 == 9:
            tqdm.write(f"step {step + 1:3d}   upright for {history[-1]:5.1f} pushes of {LONGEST}")
    return history


def draw(path: Path, history: list[float], before: Tensor, after: Tensor) -> None:
    figure: Any = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(history, color=BLUE)
    plain(left, f"Pushes upright, of {LONGEST}", xlabel="step", ylim=(0, LONGEST + 10))
    for angles, color, label in ((before, RED, "before"), (after, BLUE, "after")):
        for k, angle in enumerate(angles.unbind(1)):
            lean = tl.rad2deg(angle[angle.abs() < LEAN])
            right.plot(lean.numpy(), color=color, linewidth=0.8, label=None if k else label)
    right.axhline(0, color=GREY, linewidth=0.6)
    right.legend(frameon=False)
    plain(right, "How far the pole leans, in degrees", xlabel="push")
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "cart_pole.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 100_000), default=50, help="steps of Adam")
    option("--carts", type=number(int, 2, 100_000), default=32, help="carts in each step")
    option("--lr", type=number(float, 1e-6, 1), default=0.02, help="learning rate")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    tl.manual_seed(args.seed)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    with tl.no_grad():
        _, _, before = run(policy, 5)
    history = train(policy, args.steps, args.carts, args.lr)
    with tl.no_grad():
        _, _, after = run(policy, 5)
    draw(args.out, history, before, after)
    print(f"upright for {history[0]:.0f} pushes at first, {history[-1]:.0f} at the end; "
          f"see {args.out}")
    return history[-1]


if __name__ == "__main__":
    main()
