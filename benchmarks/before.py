"""Times every case on this checkout and on another one of tensorlib, in turn.

    python -m benchmarks.before ../before

where `../before` is a checkout that is built in place. A ratio above 1 says that this one is
faster. The quartiles are those of the rounds: a row is slower where even the upper one is below 1.
"""

import argparse
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.run import FULL, OURS, PEER, QUICK, Worker, WorkerError, chosen, run


def parse_arguments(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.before", description=__doc__.partition("\n")[0])
    option = parser.add_argument
    option("folder", type=Path, help="a checkout of tensorlib that is built in place")
    option("--threads", type=int, default=1, help="for each (default: 1)")
    option("--only", default="", metavar="TEXT", help="cases with this in their names")
    option("--quick", action="store_true", help="one short round, without the large cases")
    args = parser.parse_args(argv)
    args.huge = False
    if not (args.folder / "benchmarks").is_dir():
        parser.error(f"{args.folder} is no checkout of tensorlib")
    return args


def line(row: dict) -> str:
    low, high = row["ratio"]["quartiles"]
    before, after = (report.quantity(row[which]["median"], row["figure"]) for which in (PEER, OURS))
    return (f"| {report.title(row)} | {before} | {after} | {row['ratio']['median']:.2f} "
            f"| {low:.2f} to {high:.2f} |")


def main(argv=None) -> None:
    args = parse_arguments(argv)
    try:
        workers = [Worker(OURS, sys.executable, args.threads),
                   Worker(OURS, sys.executable, args.threads, args.folder.resolve())]
    except WorkerError as error:
        sys.exit(f"benchmarks: {error}")
    results, failures = run(workers, chosen(args), QUICK if args.quick else FULL)
    for worker in workers:
        worker.close()
    print("| case | before | after | times as fast | quartiles |\n|---|--:|--:|--:|--:|")
    print(*map(line, results), sep="\n")
    if failures:
        sys.exit(f"benchmarks: {failures} cases failed")


if __name__ == "__main__":
    main()
