"""The cost of reverse mode: the time of a gradient over the time of the function, per operation.

    python -m benchmarks.cost [--quick] [--size 16]

For programs of n operations, n from 10 to 100,000, the ratio must stay between 1 and 4: a gradient
costs a few evaluations, however long the program. The second table is a nest of n soft ReLUs,
log(1 + exp(w x + b)), whose derivative written out as a formula would grow like n squared.

`function` is an evaluation that is recorded, `gradient` one and the sweep of its graph. `plain` is
an evaluation that is not recorded: it reuses a few blocks of memory, which stay in the cache, where
a graph of n operations takes memory for n results. `func.grad` is `gradient` by the functional
transform, which adds a few microseconds per call and a walk over the graph. Times are the best of
several, in nanoseconds per operation; the garbage collector stays on.
"""

import argparse
import sys
import time
from collections.abc import Callable

import tensorlib as tl

LENGTHS = (10, 100, 1_000, 10_000, 100_000)
LEAST, MOST = 1.0, 4.0
Function = Callable[[tl.Tensor], tl.Tensor]


def program(n: int) -> Function:
    """A program of n operations in which every value is used twice."""
    def function(x):
        y = x
        for _ in range(n // 5):
            y = (y * x).sin() + x - y.tanh()
        return y.sum()
    return function


def soft_relus(n: int) -> Function:
    """A nest of n / 5 soft ReLUs: five operations each."""
    one, weight, bias = tl.tensor(1.0), tl.tensor(0.9), tl.tensor(0.1)

    def function(x):
        y = x
        for _ in range(n // 5):
            y = (one + (weight * y + bias).exp()).log()
        return y.sum()
    return function


def seconds(call: Callable[[], object], budget: float) -> float:
    """The best time of a call, tried three times and on for `budget` seconds."""
    best, spent, count = float("inf"), 0.0, 0
    while count < 3 or spent < budget:
        start = time.perf_counter()
        call()
        taken = time.perf_counter() - start
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best


def measure(function: Function, n: int, size: int, budget: float) -> dict[str, float]:
    """Nanoseconds per operation of each way to run a function of n operations."""
    x = tl.full((size,), 0.5)
    leaf = tl.full((size,), 0.5, requires_grad=True)
    slope = tl.func.grad(function)
    calls = {
        "plain": lambda: function(x),
        "function": lambda: function(leaf),
        "gradient": lambda: tl.autograd.grad(function(leaf), leaf),
        "func.grad": lambda: slope(x),
    }
    return {name: seconds(call, budget) / n * 1e9 for name, call in calls.items()}


def table(title: str, make: Callable[[int], Function], lengths, size: int, budget: float) -> bool:
    """Prints the figures of one family of programs; whether all its ratios are in bounds."""
    print(f"\n{title}\n{'n':>8} {'plain':>8} {'function':>9} {'gradient':>9} {'func.grad':>10} "
          f"{'gradient/function':>18}")
    fine = True
    for n in lengths:
        found = measure(make(n), n, size, budget)
        ratio = found["gradient"] / found["function"]
        fine = fine and LEAST <= ratio <= MOST
        print(f"{n:8,d} {found['plain']:8.0f} {found['function']:9.0f} {found['gradient']:9.0f} "
              f"{found['func.grad']:10.0f} {ratio:18.2f}", flush=True)
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short programs, once")
    parser.add_argument("--size", type=int, default=16, help="elements of each value")
    args = parser.parse_args()
    tl.set_num_threads(1)
    lengths, budget = (LENGTHS[:3], 0.01) if args.quick else (LENGTHS, 0.5)
    fine = [
        table("a program of n operations", program, lengths, args.size, budget),
        table("a nest of n / 5 soft ReLUs", soft_relus, lengths, args.size, budget),
    ]
    if not all(fine):
        sys.exit(f"cost: a ratio is not between {LEAST:g} and {MOST:g}")


if __name__ == "__main__":
    main()
