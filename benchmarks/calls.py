"""What tiny eager calls cost: in nanoseconds, or in instructions, which no other work disturbs.

    python -m benchmarks.calls                    nanoseconds, the least of many repeats
    python -m benchmarks.calls --instructions     by `valgrind --tool=callgrind`, in some minutes
    PYTHONPATH=FOLDER python -m benchmarks.calls  of another checkout, which has been built

Instructions are those of a call and of the loop around it, in the process's first thread.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns

CALLS = [
    "a + b", "a * 2.0", "a.tanh()", "a.sum()", "m @ m", "a[3]", "a.reshape(4, 4)", "x.add_(y)",
    "tl.cat((a, b))", "tl.add(a, b, alpha=2)", "r + b", "r * 2.0", "r.tanh()", "r.sum()", "w @ w",
    "r[3]", "r.reshape(4, 4)", "tl.cat((r, b))", "(r * r).sum().backward()"]
COUNT = 1000


def loops():
    """Pairs of what a call is and a function that does it so often."""
    import tensorlib as tl
    names = {"tl": tl, "a": tl.ones(16), "b": tl.ones(16), "m": tl.ones(8, 8), "x": tl.ones(16),
             "y": tl.zeros(16), "r": tl.ones(16, requires_grad=True),
             "w": tl.ones(8, 8, requires_grad=True)}
    for title in CALLS:
        source = f"def run(n):\n    for _ in range(n):\n        {title}"
        exec(source, names)                                # so that each call reads globals alone
        yield title, names["run"]


def nanoseconds(repeats=200):
    """The least time of a call, by what it is."""
    found = {}
    for title, run in loops():
        times = []
        for _ in range(repeats):
            begin = perf_counter_ns()
            run(COUNT)
            times.append((perf_counter_ns() - begin) / COUNT)
        found[title] = min(times)
    return found


def marked():
    """Runs each loop between calls of `getppid`, at which callgrind writes its counts."""
    for _, run in loops():
        run(COUNT)
        os.getppid()
        run(COUNT)
        os.getppid()


def instructions():
    """The number of instructions of a call, by what it is. Valgrind knows no AVX-512."""
    from tensorlib._kernels import available_levels
    if "v3" not in available_levels():
        sys.exit("benchmarks.calls: set TENSORLIB_LEVELS=v3,v4 and build again")
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--dump-before=getppid",
                   f"--callgrind-out-file={folder}/counts", sys.executable, __file__, "--marked"]
        subprocess.run(command, check=True, capture_output=True, env={
            **os.environ, "PYTHONHASHSEED": "0", "TENSORLIB_ISA": "v3",
            "TENSORLIB_NUM_THREADS": "1"})
        files = sorted(Path(folder).glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        totals = [int(re.search(r"^(?:summary|totals): (\d+)", path.read_text(), re.M)[1])
                  for path in files]
    return {title: totals[2 * i + 1] / COUNT for i, title in enumerate(CALLS)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--marked", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.marked:
        marked()
    else:
        for title, cost in (instructions() if asked.instructions else nanoseconds()).items():
            print(f"{title:28}{cost:10.0f}")
