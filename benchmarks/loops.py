"""What a `while_loop` in a program costs for each step: its time, and the memory it takes.

`python -m benchmarks.loops [STEPS ...]` runs loops of so many steps, without a gradient and with
one, and prints the microseconds of a step and the most memory in use. Without a gradient the memory
is that of one step; with one it grows by what each step keeps.
"""

import argparse
import time

import tensorlib as tl
from tensorlib import program

WIDTH = 256                  # elements of the state
MOST_WITH_GRADIENT = 100_000


def looping(steps):
    """A program of a loop of 4 operations a step, its input, result, and gradient of the input."""
    with program.Program() as p:
        x = program.data("x", (WIDTH,))
        x.stop_gradient = False
        y = tl.while_loop(lambda i, y: i < steps, lambda i, y: (i + 1, (y * 0.999).sin()),
                          (tl.tensor(0), x))[1].sum()
    without = p.clone()
    (g,) = program.gradients(y, x)
    return (without, without.variable(y.name)), (p, g)


def measure(p, fetch):
    """The seconds of a run, and the most bytes in use beyond those before it."""
    feed = {"x": tl.linspace(-1, 1, WIDTH)}
    tl.memory.reset_peak()
    before = tl.memory.stats()["in_use"]
    begin = time.thread_time()
    p.run(feed, fetch)
    return time.thread_time() - begin, tl.memory.stats()["peak"] - before


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", type=int, default=[100, 1_000, 10_000, 100_000])
    for steps in parser.parse_args(arguments).steps:
        without, with_gradient = looping(steps)
        for kind, (p, fetch) in (("values", without), ("gradient", with_gradient)):
            if kind == "gradient" and steps > MOST_WITH_GRADIENT:
                continue
            seconds, peak = measure(p, fetch)
            print(f"{steps:9,} steps, {kind:8}  {seconds / steps * 1e6:6.2f} us a step"
                  f"   {peak / 1e3:12,.1f} kB", flush=True)


if __name__ == "__main__":
    main()
