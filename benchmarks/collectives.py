"""Measures training over MPI, and draws what a model of it says of many ranks.

    python -m benchmarks.collectives                   # all of it, with 1, 2 and 4 ranks
    python -m benchmarks.collectives --quick --out ranks.svg
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

RANKS = [2**k for k in range(11)]                        # 1 to 1,024
Rows = list[dict[str, Any]]


def measured(what: str, count: int, quick: bool) -> Rows:
    """What `count` ranks with a thread each measure."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("collectives: there is no mpiexec; pip install 'tensorlib[mpi]'")
    one = {name: "1" for name in ("TENSORLIB_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    done = subprocess.run(
        [launcher, "-n", str(count), sys.executable, "-m", "benchmarks.ranks", what,
         "quick" if quick else "whole"],
        env={**os.environ, **one, "TENSORLIB_DISTRIBUTED_CHECK": "0"},
        stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, check=True, timeout=1200)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("rows ")]
    found: Rows = json.loads(line.removeprefix("rows "))
    return found


# ---- the model -----------------------------------------------------------------------------------

def ring(count: int, nbytes: float, alpha: float, beta: float) -> float:
    """Seconds of an all-reduce on a ring: 2 (n - 1) messages of a part each."""
    return 2 * (count - 1) * (alpha + nbytes / count * beta)


def tree(count: int, nbytes: float, alpha: float, beta: float) -> float:
    """Seconds of an all-reduce on a tree: up and down, with the whole in each message."""
    return 2 * math.ceil(math.log2(count)) * (alpha + nbytes * beta)


def better(count: int, nbytes: float, alpha: float, beta: float) -> float:
    """Seconds of the faster of both."""
    return min(ring(count, nbytes, alpha, beta), tree(count, nbytes, alpha, beta))


def constants(rows: Rows) -> tuple[float, float]:
    """alpha and beta of a message, from the all-reduces of two ranks of the least and most bytes.

    A ring of two sends two messages with half of the bytes each.
    """
    of = {row["bytes"]: row["ours"] for row in rows if row["name"] == "all_reduce"}
    small, large = min(of), max(of)
    beta = max(0.0, (of[large] - of[small]) / (large - small))
    return max(1e-9, of[small] / 2), beta


# ---- tables and the picture ----------------------------------------------------------------------

def told(count: int, rows: Rows) -> None:
    print(f"\n{count} ranks: collectives, us\n{'':18}{'bytes':>12}{'ours':>12}{'mpi4py':>12}"
          f"{'more':>10}{'MB/s':>10}")
    for row in rows:
        ours, plain = 1e6 * row["ours"], 1e6 * row["plain"]
        print(f"{row['name']:18}{row['bytes']:12,}{ours:12.1f}{plain:12.1f}{ours - plain:10.1f}"
              f"{row['bytes'] / row['ours'] / 1e6:10.0f}")


def told_scaling(found: dict[int, Rows]) -> None:
    print(f"\nsteps of models, ms\n{'':20}{'ranks':>6}{'step':>10}{'alone':>10}{'messages':>10}"
          f"{'hidden':>9}{'speed':>8}")
    for count, rows in found.items():
        for row, single in zip(rows, found[1]):
            hidden = 1 - max(0.0, row["step"] - row["alone"]) / row["communication"]
            speed = count * single["step"] / row["step"]
            print(f"{row['name']:20}{count:6}{1e3 * row['step']:10.2f}{1e3 * row['alone']:10.2f}"
                  f"{1e3 * row['communication']:10.2f}{max(0.0, hidden):9.0%}{speed:8.2f}")


def told_memory(found: dict[int, Rows]) -> None:
    print("\nbytes of a rank between two steps of AdamW")
    for count, rows in found.items():
        for row in rows:
            print(f"{row['name']:20}{count:6}{row['bytes']:14,}")


def told_model(alpha: float, beta: float, found: dict[int, Rows]) -> None:
    print(f"\nalpha {1e6 * alpha:.1f} us, beta {1e9 * beta:.3f} ns a byte; all-reduce, us")
    for count, rows in found.items():
        for row in rows:
            if row["name"] == "all_reduce":
                print(f"{count:6}{row['bytes']:12,}   measured {1e6 * row['ours']:10.1f}   model "
                      f"{1e6 * better(count, row['bytes'], alpha, beta):10.1f}")


def draw(path: str, alpha: float, beta: float, steps: Rows, found: dict[int, Rows]) -> None:
    """All-reduces against bytes, and efficiencies of models against ranks."""
    from matplotlib.figure import Figure
    figure: Any = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for count, color in zip(found, ("#2b6cb0", "#d64545")):
        points = [row for row in found[count] if row["name"] == "all_reduce"]
        sizes = [row["bytes"] for row in points]
        left.loglog(sizes, [1e6 * row["ours"] for row in points], "o", color=color,
                    label=f"{count} ranks, measured")
        left.loglog(sizes, [1e6 * better(count, size, alpha, beta) for size in sizes], color=color,
                    linewidth=1, label="model")
    left.set(title="All-reduce, us", xlabel="bytes")
    for row, color in zip(steps, ("#2b6cb0", "#d64545", "#2f855a")):
        for kind, style in ((ring, "-"), (tree, ":")):
            right.semilogx(RANKS, [
                row["alone"] / (row["alone"] + kind(n, row["bytes"], alpha, beta))
                for n in RANKS], style, base=2, color=color,
                label=row["name"] if style == "-" else None)
    right.set(title="Efficiency by the model: ring, tree (dotted)", xlabel="ranks", ylim=(0, 1.05))
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few calls of each, as a trial")
    parser.add_argument("--out", help="the picture")
    args = parser.parse_args(argv)
    calls = {count: measured("collectives", count, args.quick) for count in (2, 4)}
    for count, rows in calls.items():
        told(count, rows)
    steps = {count: measured("scaling", count, args.quick) for count in (1, 2)}
    told_scaling(steps)
    told_memory({count: measured("memory", count, args.quick) for count in (1, 2, 4)})
    alpha, beta = constants(calls[2])
    told_model(alpha, beta, calls)
    if args.out:
        draw(args.out, alpha, beta, steps[1], calls)


if __name__ == "__main__":
    main()
