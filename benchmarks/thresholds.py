"""From which sizes on threads share the work of an operation, and what that gains.

    python -m benchmarks.thresholds                  # one thread beside two
    python -m benchmarks.thresholds --only gather    # the families with "gather" in their names

For each family of work the size doubles. A row says at which size a worker first takes part, how
long one thread takes there, from which size on two threads are a tenth faster, and the gain at the
largest size. Work is to be shared from some 10 us on, and sharing is never to be slower. The
constants behind it stand in the sources as GRAIN, PIECE, CHUNK and COSTS; after a change of one of
them, or of a loop, run this on a machine that does nothing else.
"""

import argparse
import timeit

import tensorlib as tl
from benchmarks.report import quantity
from tensorlib._core.base import pool

BATCH_NS = 1_000_000
BATCHES = 7
JOBS = 100                      # in a row, to count what the workers do of them

LENGTHS = tuple(2**i for i in range(12, 23))
SIDES = (64, 96, 128, 192, 256, 384, 512, 768, 1024)


def vectors(n):
    return {"x": tl.rand(n) + 0.5, "y": tl.rand(n) + 0.5}


def matrices(n):
    return {"x": tl.rand(n, n), "y": tl.rand(n, n), "v": tl.rand(n)}


def rows(n):
    """Matrices of 256 columns that have n elements."""
    x = tl.rand(n // 256, 256)
    positions = tl.randint(0, n // 256, (n // 256,))
    return {"x": x, "y": tl.rand(256, n // 256).t(), "i": positions,
            "j": tl.randint(0, 256, x.shape), "parts": tuple(x.split(16))}


# Each family of work by name: an expression, the sizes n to try, and what its names are at a size.
FAMILIES = {
    **{code: (code, LENGTHS, vectors) for code in (
        "x + y", "x * 2", "x.sqrt()", "x.exp()", "x.sin()", "x ** y", "x.clone()", "x.sum()",
        "x.max()", "x.argmax()", "x.var()", "x.softmax(0)", "x.cumsum(0)", "tl.cat((x, y))",
        "tl.zeros(n)", "tl.rand(n)")},
    **{f"{code}, rows of 256": (code, LENGTHS, rows) for code in (
        "x + y", "y.contiguous()", "x.sum(0)", "x.sum(1)", "x.max(1)", "x.softmax(1)",
        "x.cumsum(1)", "x.gather(1, j)", "x.index_select(0, i)", "tl.cat(parts)")},
    **{f"{code}, n x n": (code, SIDES, matrices) for code in ("x @ y", "x @ v")},
    "x @ y, n x 64 and 64 x 64": ("x @ y", (64, 128, 256, 512, 1024, 2048, 4096), lambda n: {
        "x": tl.rand(n, 64), "y": tl.rand(64, 64)}),
    "x @ y, n of 32 x 32": ("x @ y", (2, 4, 8, 16, 32, 64, 128, 256), lambda n: {
        "x": tl.rand(n, 32, 32), "y": tl.rand(n, 32, 32)}),
}


def times(timer):
    """The nanoseconds of one run with one thread and with two: the least of batches in turn."""
    least = [float("inf")] * 2
    loops = max(1, int(BATCH_NS / max(timer.timeit(1) * 1e9, 1)))
    for _ in range(BATCHES):
        for place in range(2):
            pool.set_num_threads(place + 1)
            timer.timeit(max(1, loops // 10))          # the worker wakes
            least[place] = min(least[place], timer.timeit(loops) / loops * 1e9)
    return least


def is_shared(timer):
    """Whether a worker takes part in any of many jobs."""
    pool.set_num_threads(2)
    before = pool.chunks_by_workers()
    timer.timeit(JOBS)
    return pool.chunks_by_workers() > before


def line(name, expression, sizes, make):
    """One row of the table."""
    shared = faster = alone = None
    for n in sizes:
        timer = timeit.Timer(expression, globals={"tl": tl, "n": n, **make(n)})
        one, two = times(timer)
        if shared is None and is_shared(timer):
            shared, alone = n, one
        if faster is None and one > 1.1 * two:
            faster = n
    cells = [f"{shared:,}" if shared else "never", quantity(alone, "time") if shared else "",
             f"{faster:,}" if faster else "never", f"{one / two:.2f} at {n:,}"]
    return f"| {name} | {' | '.join(cells)} |"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks.thresholds",
                                     description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="families with this in their names")
    args = parser.parse_args(argv)
    print("| | shared from n | one thread takes there | faster from n | times as fast |")
    print("| :-- | --: | --: | --: | --: |")
    for name, (expression, sizes, make) in FAMILIES.items():
        if args.only in name:
            print(line(name, expression, sizes, make), flush=True)


if __name__ == "__main__":
    main()
