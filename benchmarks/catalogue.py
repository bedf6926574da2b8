"""Compares every operation of the registry with PyTorch's, and with what the machine can do.

    python -m benchmarks.catalogue --peer-python PATH --sample 300  # the routine run
    python -m benchmarks.catalogue --peer-python PATH --threads 1 2 --lines run.jsonl --write
    python -m benchmarks.catalogue --only softmax --all             # every row of some operations
    python -m benchmarks.catalogue --no-peer --sample 100           # tensorlib alone

A row is an expression on tensors of one size, dtype and layout, forward or with its gradient:
"softmax: x.softmax(1); 65,536 float32 plain forward". Expressions follow from the samples of an
operation (`rows.py`), modules and losses are listed (`module_rows.py`). Results are compared before
they are timed. What a library refuses (softmax of integers) is left out and counted.

Printed are families by the geometric mean of PyTorch's time over ours, rows behind PyTorch, rows
that take more than twice the least time that the machine allows (`limits.py`), and rows that
became slower than in `catalogue.tsv`, the figures of the last run with --write. With --lines a run
that was interrupted goes on where it ended.
"""

import argparse
import json
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks import limits
from benchmarks.module_rows import module_rows
from benchmarks.report import quantity
from benchmarks.rows import broadcast_rows, rows
from benchmarks.run import Effort, WorkerError, add_threads, start_workers, time_in_turn
from benchmarks.settings import (
    SIZES,
    broadcast_settings,
    case_named,
    module_settings,
    name_of,
    parts_of,
    settings,
)
from tensorlib.ops import registry

TABLE = Path(__file__).parent / "catalogue.tsv"
SLOWER = 1.3                # times the last figure, relative to PyTorch's: more than noise
FULL = Effort(rounds=3, batches=2, batch_ns=1_000_000)
QUICK = Effort(rounds=1, batches=1, batch_ns=100_000)
PATIENCE = 10               # seconds: what takes longer at some size is not timed at it

PRODUCTS = {"matmul", "mm", "inner", "addmm", "einsum", "cov", "corrcoef"}
QUADRATIC = {"kron", "outer", "addr", "tensordot", "cdist", "pdist", "block_diag", "diag_embed",
             "combinations", "cartesian_prod", "meshgrid"}


def left_out(op, size, dtype):
    """Products of large matrices of integers, which take minutes; results with more elements than
    fit into memory; and what differs: sums of bools, which stay bools here in `sum_to_size` and not
    in PyTorch, long sums of powers, of which PyTorch's `dist` of float32 has four digits, and
    `torch.triplet_margin_loss`, which by default is no mean, as that of `nn.functional` is."""
    return (op in PRODUCTS and size == SIZES[-1] and dtype != "float32"
            or op in QUADRATIC and size != SIZES[0]
            or op == "sum_to_size" and dtype == "bool"
            or op == "dist" and size == SIZES[-1]
            or op == "triplet_margin_loss")


def names():
    """The name of every row."""
    expressions = rows()
    for setting in settings():
        yield from (name_of(op, code, *setting) for op, code in expressions
                    if not left_out(op, *setting[:2]))
    for setting in broadcast_settings():
        yield from (name_of(op, code, *setting) for op, code in broadcast_rows())
    for op, code, shape in module_rows():
        yield from (name_of(op, code, *setting) for setting in module_settings(shape))


# ---- the run -------------------------------------------------------------------------------------

def measured(name, workers, effort):
    """The times of a row in nanoseconds, ours first, and its work; or {"refused"} or {"wrong"}."""
    try:
        found = time_in_turn(case_named(name), workers, effort)
        size, operations = workers[0].ask("work", None)
    except WorkerError as error:
        left = "Refused" in str(error) or "no answer" in str(error)
        return {"refused" if left else "wrong": str(error)}
    times = [min(each[place]["time"] for each in found) for place in range(len(workers))]
    return {"times": times, "bytes": size, "operations": operations}


def run(workers, chosen, effort, threads, known, lines):
    """What `measured` says of each row; rows that are `known` are not timed again."""
    figures = {}
    for name in chosen:
        if (name, threads) not in known:
            if sys.stderr.isatty():
                print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)
            known[name, threads] = measured(name, workers, effort)
            if lines:
                print(json.dumps([name, threads, known[name, threads]]), file=lines, flush=True)
        figures[name] = known[name, threads]
    return figures


def read_lines(path):
    """What the lines of an earlier run say, by row and number of threads."""
    if not path or not path.exists():
        return {}
    return {(name, threads): found for name, threads, found in
            map(json.loads, path.read_text().splitlines())}


# ---- the table -----------------------------------------------------------------------------------

def read_table(path=TABLE):
    """(our time, PyTorch's) by row and number of threads.

    A line is an expression, or a setting of it with four times: with one thread, and with two.
    """
    table, code = {}, ""
    for line in path.read_text().splitlines()[1:] if path.exists() else ():
        setting, *times = line.split("\t")
        if not times:
            code = setting
        for threads, place in ((1, 0), (2, 2)):
            if times and times[place]:
                found = float(times[place]), float(times[place + 1])
                table[f"{code}; {setting}", threads] = found
    return table


def write_table(table, path=TABLE):
    """Writes what `read_table` reads, with three digits."""
    lines, last = ["expression or setting\ttensorlib, ns\tPyTorch\twith 2 threads\tPyTorch"], ""
    for name in sorted({name for name, _ in table}):
        code, setting = name.rsplit("; ", 1)
        lines += [code] * (code != last)
        times = [f"{t:.3g}" for threads in (1, 2) for t in table.get((name, threads), ())]
        empty = [""] * (2 * ((name, 1) not in table))
        lines.append("\t".join([setting, *empty, *times] + [""] * (4 - len(empty + times))))
        last = code
    path.write_text("\n".join(lines) + "\n")


# ---- what is printed -----------------------------------------------------------------------------

def family(name):
    """The module that declares the operation of a row."""
    op, _, (*_, layout, _) = parts_of(name)
    if layout == "module":
        return "modules and losses"
    return registry[op].family.removeprefix("tensorlib.") if op in registry else op


def families(ratios):
    """The geometric mean, the least and the number behind of each family, lowest mean first."""
    grouped = defaultdict(list)
    for name, ratio in ratios.items():
        grouped[family(name)].append(ratio)
    means = sorted((statistics.geometric_mean(found), key) for key, found in grouped.items())
    return "\n".join(["| family | rows | geometric mean | least | behind |",
                      "| :-- | --: | --: | --: | --: |"] + [
        f"| {key} | {len(grouped[key])} | {mean:.2f} | {min(grouped[key]):.2f} "
        f"| {sum(r < 1 for r in grouped[key])} |" for mean, key in means])


def listed(head, entries):
    """A table of (what counts, name, our time, the other time), least first."""
    return "\n".join([f"| {head} | ratio | tensorlib | beside |", "| :-- | --: | --: | --: |"] + [
        f"| {name} | {ratio:.2f} | {quantity(ours, 'time')} | {quantity(beside, 'time')} |"
        for ratio, name, ours, beside in sorted(entries)])


def report(figures, threads, machine, last, below):
    """All that is printed of the rows timed with one number of threads."""
    timed = {name: found for name, found in figures.items() if "times" in found}
    pairs = {name: found["times"] for name, found in timed.items() if len(found["times"]) == 2}
    ratios = {name: theirs / ours for name, (ours, theirs) in pairs.items()}
    parts = []
    if ratios:
        behind = [(r, name, *pairs[name]) for name, r in ratios.items() if r < below]
        parts += [families(ratios), listed("behind PyTorch", behind)]
    far = [(least / found["times"][0], name, found["times"][0], least)
           for name, found in timed.items()
           if (least := limits.least(machine, found["bytes"], found["operations"], threads))
           < found["times"][0] / 2]
    parts.append(listed("beyond twice the limit", far))
    worse = [(before / now, name, pairs[name][0], pairs[name][0] * before / now)
             for name, ratio in ratios.items() if (name, threads) in last
             for before, now in [(last[name, threads][0] / last[name, threads][1], 1 / ratio)]
             if now > SLOWER * before]
    parts.append(listed("slower than in the last run", worse))
    refused = sum("refused" in found for found in figures.values())
    parts.append(f"{len(timed)} rows timed with {threads} thread{'s' * (threads > 1)}, {refused} "
                 "refused by a library.")
    if ratios:
        parts.append(f"{sum(r < 1 for r in ratios.values())} of {len(ratios)} behind PyTorch; "
                     f"geometric mean {statistics.geometric_mean(ratios.values()):.2f}.")
    return "\n\n".join(parts)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="benchmarks.catalogue",
                                     description=__doc__.partition("\n")[0])
    option = parser.add_argument
    option("--peer-python", default=sys.executable, metavar="PATH",
           help="the interpreter that has PyTorch (default: this one)")
    option("--no-peer", action="store_true", help="time tensorlib alone")
    add_threads(parser)
    option("--only", default="", metavar="TEXT", help="rows with all these words in their names")
    option("--sample", type=int, metavar="N", help="as many rows, drawn by --seed")
    option("--seed", type=int, default=0, help="of --sample (default: 0)")
    option("--below", type=float, default=1.0, help="ratios that count as behind (default: 1)")
    option("--all", action="store_true", help="print every row as if it was behind")
    option("--quick", action="store_true", help="one short round")
    option("--lines", type=Path, metavar="PATH", help="keep each row there; go on from what it has")
    option("--write", action="store_true", help="renew the rows of catalogue.tsv")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    chosen = [name for name in dict.fromkeys(names())
              if all(word in name for word in args.only.split())]
    if args.sample is not None:
        picked = set(random.Random(args.seed).sample(chosen, min(args.sample, len(chosen))))
        chosen = [name for name in chosen if name in picked]    # in order: inputs are made once
    known, last, wrong = read_lines(args.lines), read_table(), {}
    lines = args.lines.open("a") if args.lines else None
    machine, table = limits.machine(), dict(last)
    for threads in args.threads:
        workers = start_workers(args, threads)
        for worker in workers:
            worker.patience = PATIENCE
        figures = run(workers, chosen, QUICK if args.quick else FULL, threads, known, lines)
        for worker in workers:
            worker.close()
        wrong |= {name: found["wrong"] for name, found in figures.items() if "wrong" in found}
        table |= {(name, threads): tuple(found["times"]) for name, found in figures.items()
                  if len(found.get("times", ())) == 2}
        print(report(figures, threads, machine, last, 1e9 if args.all else args.below), "\n")
    if args.write:
        write_table(table)
    for name, error in wrong.items():
        print(f"{name}: {error}", file=sys.stderr)
    if wrong:
        sys.exit(f"benchmarks.catalogue: {len(wrong)} rows failed")


if __name__ == "__main__":
    main()
