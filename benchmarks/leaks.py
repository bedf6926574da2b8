"""Looks for leaks: resident memory over many training steps must stay flat.

    python -m benchmarks.leaks [--steps 100000] [--library tensorlib]
"""

import argparse
import importlib
import sys

from benchmarks.resident import resident_bytes
from benchmarks.training import perceptron_step

ALLOWED = 1 << 20  # bytes of growth after the first tenth of the steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100_000, help="at least 10")
    parser.add_argument("--library", default="tensorlib")
    args = parser.parse_args()
    if args.steps < 10:
        parser.error(f"--steps: {args.steps} is less than 10")

    lib = importlib.import_module(args.library)
    lib.set_num_threads(1)
    step = perceptron_step(lib, batch=8, hidden=16)
    sizes = []
    for tenth in range(1, 11):
        for _ in range(args.steps // 10):
            loss = step()
        sizes.append(resident_bytes())
        print(f"{tenth * (args.steps // 10):10,d} steps  {sizes[-1] / 2**20:8.2f} MB resident  "
              f"loss {loss.item():.6f}", flush=True)
    grown = sizes[-1] - sizes[0]
    print(f"{args.library}: grew by {grown / 1024:,.0f} KB after the first tenth")
    if grown > ALLOWED:
        sys.exit(f"leaks: grew by more than {ALLOWED / 1024:,.0f} KB")


if __name__ == "__main__":
    main()
