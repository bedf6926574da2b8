"""An ordinary differential equation with adaptive steps, differentiated through the steps it took.

    python examples/adaptive_ode.py

A body is thrown round a heavy one: x'' = -x / |x|**3. The integrator of Bogacki and Shampine takes
as long steps as its error allows: short ones where the bodies are near, long ones elsewhere. That
is a `while_loop`, since nobody knows before how many steps there will be. As a program it is one
call with blocks, and `gradients` adds the loop that runs its steps in reverse. So the throw that
ends at a given place is found by Newton's method, with derivatives of the integrator itself.

Source: P. Bogacki & L. F. Shampine, "A 3(2) pair of Runge-Kutta formulas", Applied Mathematics
Letters 2(4), 1989.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BLUE, GREY, RED, number, options, plain
from matplotlib.figure import Figure

import tensorlib as tl
from tensorlib import Tensor, program

Throw = tuple[Tensor, float, int]       # velocity, distance from the target, steps that it took

DURATION, TOLERANCE = 5.0, 1e-4
TARGET = (0.9, -0.5)


def slope(state: Tensor) -> Tensor:
    """The velocity and the acceleration of a body at `state`, its place and its velocity."""
    place, velocity = state[:2], state[2:]
    return tl.cat([velocity, -place * (place * place).sum() ** -1.5])


def step(state: Tensor, h: Any) -> tuple[Tensor, Tensor]:
    """The state a time `h` later, and how far off it may be."""
    k1 = slope(state)
    k2 = slope(state + h / 2 * k1)
    k3 = slope(state + 3 / 4 * h * k2)
    later = state + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
    k4 = slope(later)
    error = h * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8)
    return later, (error * error).sum().sqrt()


def end_of(throw: Tensor) -> tuple[Tensor, Tensor]:
    """Where a body thrown from (1, 0) is in the end, and how many steps that took."""
    start = tl.cat([tl.tensor([1.0, 0.0], dtype=throw.dtype), throw])
    zero = tl.tensor(0.0, dtype=throw.dtype)

    def going(time: Tensor, h: Tensor, state: Tensor, count: Tensor) -> Tensor:
        return (time < DURATION) & (count < 10_000)

    def body(time: Tensor, h: Tensor, state: Tensor, count: Tensor) -> tuple[Tensor, ...]:
        h = tl.minimum(h, DURATION - time)
        later, error = step(state, h)
        factor = (0.9 * (TOLERANCE / (error.detach() + 1e-12)) ** (1 / 3)).clamp(0.2, 4.0)
        time, state = tl.cond(error <= TOLERANCE, lambda: (time + h, later),
                              lambda: (time, state))
        return time, h * factor, state, count + 1

    found = tl.while_loop(going, body, (zero, zero + 0.01, start, tl.tensor(0)))
    return found[2][:2], found[3]


def aimed(throw: Tensor, tries: int) -> list[Throw]:
    """The throws of Newton's method, each with its distance from the target and number of steps.

    A throw that ends farther away is taken back, and half as much tried.
    """
    target = tl.tensor(TARGET, dtype=throw.dtype)
    made = program.trace(end_of, throw)
    place, count = made.outputs
    with made:
        coordinates = [place[0], place[1]]
    rows: list[Any] = [program.gradients(x, made.inputs)[0] for x in coordinates]
    found: list[Throw] = []
    best, change = float("inf"), tl.zeros_like(throw)
    for _ in range(tries):
        end, steps, *slopes = made.run({"throw": throw + change}, [place, count, *rows])
        distance = (end - target).norm().item()
        if distance >= best:
            change = change / 2
            continue
        throw, best = throw + change, distance
        found.append((throw, best, int(steps)))
        change = tl.linalg.solve(tl.stack(slopes), target - end)
    return found


def path_of(throw: Tensor) -> list[list[float]]:
    """The places of the body at each step that an integrator took, for the picture."""
    state, time, h, places = tl.cat([tl.tensor([1.0, 0.0]).to(throw.dtype), throw]), 0.0, 0.01, []
    while time < DURATION:
        h = min(h, DURATION - time)
        later, error = step(state, h)
        if float(error) <= TOLERANCE:
            places.append(state[:2].tolist())
            state, time = later, time + h
        h *= min(4.0, max(0.2, 0.9 * (TOLERANCE / (float(error) + 1e-12)) ** (1 / 3)))
    return [*places, state[:2].tolist()]


def draw(path: Path, throws: list[Throw]) -> None:
    figure: Any = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 2])
    left.semilogy([distance for _, distance, _ in throws], "o-", color=GREY)
    plain(left, "Distance from the target", xlabel="throw")
    for place, (throw, _, _) in enumerate(throws):
        last = place == len(throws) - 1
        right.plot(*zip(*path_of(throw)), ".-" if last else "-", color=BLUE if last else GREY,
                   linewidth=1.2 if last else 0.7, markersize=4,
                   label="the last throw, a dot for each step" if last else None)
    right.plot(0, 0, "o", color="black", markersize=9)
    right.plot(*TARGET, "x", color=RED, markersize=10, markeredgewidth=2.5, label="target")
    right.set_aspect("equal")
    right.legend(frameon=False, loc="upper left", fontsize=8)
    plain(right, "Orbits of the throws")
    figure.savefig(path, dpi=90)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "adaptive_ode.png")
    parser.add_argument("--tries", type=number(int, 1, 1000), default=20,
                        help="throws of Newton's method")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> list[Throw]:
    args = parse_arguments(argv)
    throws = aimed(tl.tensor([0.1, 1.1], dtype=tl.float64), args.tries)
    for place, (throw, distance, count) in enumerate(throws):
        print(f"throw {place}: ({throw[0]:.4f}, {throw[1]:.4f}), distance {distance:.1e} "
              f"after {count} steps")
    draw(args.out, throws)
    print(f"see {args.out}")
    return throws


if __name__ == "__main__":
    main()
