"""Compares every operation of the registry with PyTorch's, by size, dtype, layout and direction.

    python -m benchmarks.operations --peer-python PATH          # prints what is slower, worst first
    python -m benchmarks.operations --only softmax --all        # every figure of some operations
    python -m benchmarks.operations --quick --no-peer           # a smoke run of tensorlib alone
    python -m benchmarks.operations --threads 1 2               # columns for one thread and for two

A case is a row of `benchmarks.rows` on matrices of one size, dtype and layout: "softmax:
x.softmax(1); 65,536 float32 plain forward". Results are compared before they are timed. What a
library refuses (softmax of integers) is left out and counted. `--json PATH` keeps all ratios,
`--below 1.2` prints more of them.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

from benchmarks.report import quantity
from benchmarks.run import Effort, WorkerError, add_threads, start_workers, time_in_turn
from benchmarks.rows import rows
from benchmarks.settings import SIZES, case_named, name_of, settings

# What answers with a bool or a number, or makes no new values: there is no work to time.
QUESTIONS = {"allclose", "detach", "equal", "is_complex", "is_floating_point", "is_tensor", "numel"}

PRODUCTS = {"matmul", "mm", "inner", "addmm"}


def left_out(op, size, dtype, layout, direction):
    """Products of large matrices of integers, which take minutes; sums of bools, which stay bools
    here in `sum_to_size` and are int64 in PyTorch."""
    return (op in PRODUCTS and (size, dtype) == (SIZES[-1], "int64")
            or op == "sum_to_size" and dtype == "bool")


def cases():
    """Every row in every setting, by name."""
    names = [name_of(op, code, *setting) for setting in settings() for op, code in rows()
             if not left_out(op, *setting)]
    return {name: case_named(name) for name in names}


# ---- the run -------------------------------------------------------------------------------------

FULL = Effort(rounds=3, batches=3, batch_ns=2_000_000)
QUICK = Effort(rounds=1, batches=1, batch_ns=100_000)


def compare(workers, chosen, effort):
    """The figures of each case by name, what was refused, and what went wrong."""
    figures, refused, wrong = {}, {}, {}
    for case in chosen:
        if sys.stderr.isatty():
            print(f"\r\033[K{case.name}", end="", file=sys.stderr, flush=True)
        try:
            rounds = time_in_turn(case, workers, effort)
        except WorkerError as error:
            (refused if "Refused" in str(error) else wrong)[case.name] = str(error)
            continue
        figures[case.name] = [statistics.median(each[place]["time"] for each in rounds)
                              for place in range(len(workers))]
    return figures, refused, wrong


def table(figures, below):
    """The cases whose ratio is less than `below`, worst first, in Markdown.

    `figures` are those of each number of threads, which has its columns; the worst ratio counts.
    """
    worst = {}
    for found in figures.values():
        for name, (our, their) in found.items():
            worst[name] = min(worst.get(name, math.inf), their / our)
    heads = "".join(f" tensorlib, {count} | PyTorch | ratio |" for count in figures)
    lines = [f"| threads: |{heads}", "| :-- |" + " --: | --: | --: |" * len(figures)]
    for ratio, name in sorted((ratio, name) for name, ratio in worst.items() if ratio < below):
        cells = [cell for found in figures.values() for cell in columns(found.get(name))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def columns(pair):
    """Both times and their ratio, nothing where the case could not be timed."""
    if pair is None:
        return "", "", ""
    return quantity(pair[0], "time"), quantity(pair[1], "time"), f"{pair[1] / pair[0]:.2f}"


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="benchmarks.operations",
                                     description=__doc__.partition("\n")[0])
    option = parser.add_argument
    option("--peer-python", default=sys.executable, metavar="PATH",
           help="the interpreter that has PyTorch (default: this one)")
    option("--no-peer", action="store_true", help="time tensorlib alone")
    add_threads(parser)
    option("--only", default="", metavar="TEXT", help="cases with all these words in their names")
    option("--below", type=float, default=1.0, help="print ratios below this (default: 1)")
    option("--all", action="store_true", help="print every case")
    option("--quick", action="store_true", help="one short round on the two smaller sizes")
    option("--json", type=Path, metavar="PATH", help="write all figures there")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    chosen = [case for case in cases().values()
              if all(word in case.name for word in args.only.split())]
    if args.quick:
        chosen = [case for case in chosen if "65,536" not in case.name
                  and "4,194,304" not in case.name]
    figures, refused, wrong = {}, {}, {}
    for threads in args.threads:
        workers = start_workers(args, threads)
        figures[threads], refused, failed = compare(
            workers, chosen, QUICK if args.quick else FULL)
        wrong |= failed
        for worker in workers:
            worker.close()
    if len(workers) > 1:
        print(table(figures, math.inf if args.all else args.below) + "\n")
        for threads, found in figures.items():
            ratios = [their / our for our, their in found.values()]
            if ratios:
                print(f"{len(ratios)} cases compared with {threads} thread{'s' * (threads > 1)}, "
                      f"{sum(r < 1 for r in ratios)} slower than PyTorch; geometric mean "
                      f"{statistics.geometric_mean(ratios):.2f}.")
    print(f"{len(figures[args.threads[0]])} cases timed, {len(refused)} refused by a library.")
    if args.json:
        args.json.write_text(json.dumps(
            {"figures": figures, "refused": refused, "wrong": wrong}, indent=1) + "\n")
    for name, error in wrong.items():
        print(f"{name}: {error}", file=sys.stderr)
    if wrong:
        sys.exit(f"benchmarks.operations: {len(wrong)} cases failed")


if __name__ == "__main__":
    main()
