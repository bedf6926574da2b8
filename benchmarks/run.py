"""Times every case on tensorlib and on PyTorch in turn and prints the ratios.

Each library runs in a process of its own. For each case the results are compared first; then the
two are timed round by round, each going first in every other round, so that the noise of the
machine meets both. A figure is the median over the rounds of the fastest batch in each. Who has
answered is stopped until it is asked again: the threads of PyTorch's pool look for work for some 20
ms after each call, on a processor that the other library then lacks.
"""

import argparse
import atexit
import json
import os
import select
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.case import Case
from benchmarks.cases import in_order

HERE = Path(__file__).parent
OURS, PEER = "tensorlib", "torch"
LONE_ROUNDS = 3  # of a case whose every round starts fresh processes


@dataclass(frozen=True)
class Effort:
    rounds: int
    batches: int
    batch_ns: int


FULL = Effort(rounds=7, batches=3, batch_ns=20_000_000)
QUICK = Effort(rounds=1, batches=5, batch_ns=1_000_000)


class WorkerError(Exception):
    """A library failed in its process."""


@dataclass
class Worker:
    """A library in a process of its own; `folder` has the benchmarks, and tensorlib where built."""

    library: str
    python: str
    threads: int
    folder: Path = HERE.parent
    patience: float | None = None           # seconds to wait for an answer; None: for ever
    versions: dict = field(init=False)

    def __post_init__(self):
        self._start()
        atexit.register(self.close)         # one that is stopped does not see that its input ended

    def _start(self) -> None:
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads)
        )
        self._process = subprocess.Popen(
            [self.python, "-m", "benchmarks.worker", self.library, str(self.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=self.folder, env=os.environ | threads,
        )
        self.versions = self._receive()

    def _receive(self):
        answered = select.select([self._process.stdout], [], [], self.patience)[0]
        if not answered:
            self.close()
            raise WorkerError(f"{self.library}: no answer in {self.patience} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"{self.library}: its process ended with {self._process.wait()}")
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{self.library}: {reply['error']}")
        return reply["value"]

    def ask(self, action: str, argument):
        if self._process.poll() is not None:  # the case before crashed it
            self._start()
        self._process.send_signal(signal.SIGCONT)
        print(json.dumps([action, argument]), file=self._process.stdin, flush=True)
        try:
            return self._receive()
        finally:
            self._process.send_signal(signal.SIGSTOP)

    def fresh(self) -> "Worker":
        return Worker(self.library, self.python, self.threads, self.folder, self.patience)

    def close(self) -> None:
        atexit.unregister(self.close)
        self._process.kill()
        self._process.wait()


def check_agreement(summaries: list[dict], rtol: float) -> None:
    """Raises unless what the workers computed is close; one summary agrees with itself."""
    ours, theirs = summaries[0], summaries[-1]
    for key in ("shape", "dtype"):
        if ours[key] != theirs[key]:
            raise WorkerError(f"the libraries differ: {key} {ours[key]} and {theirs[key]}")
    mine, other = (np.array([found["mean"], *found["elements"]]) for found in (ours, theirs))
    far = ~np.isclose(mine, other, rtol=rtol, atol=rtol / 10, equal_nan=True)
    if far.any():
        raise WorkerError(f"the libraries differ: {mine[far][0]} and {other[far][0]}, "
                          f"and {far.sum() - 1} more of {far.size}")


def time_in_turn(case: Case, workers: list[Worker], effort: Effort) -> list[list[dict]]:
    """The figures of each round, those of each worker in the order of `workers`."""
    check_agreement([worker.ask("prepare", case.name) for worker in workers], case.rtol)
    for worker in workers:
        worker.ask("calibrate", effort.batch_ns)
    rounds = []
    for number in range(effort.rounds):
        turns = workers[::-1] if number % 2 else workers
        figures = {id(worker): worker.ask("measure", effort.batches) for worker in turns}
        rounds.append([figures[id(worker)] for worker in workers])
    return rounds


def time_alone(case: Case, workers: list[Worker], effort: Effort) -> list[list[dict]]:
    """As time_in_turn, with fresh processes for each round, one at a time."""
    rounds = []
    for _ in range(min(effort.rounds, LONE_ROUNDS)):
        summaries, figures = [], []
        for worker in workers:
            fresh = worker.fresh()
            try:
                summaries.append(fresh.ask("prepare", case.name))
                figures.append(fresh.ask("measure", effort.batches))
            finally:
                fresh.close()
        check_agreement(summaries, case.rtol)
        rounds.append(figures)
    return rounds


def spread(values: list[float]) -> dict:
    low, _, high = statistics.quantiles(values, method="inclusive") if values[1:] else values * 3
    return {"median": statistics.median(values), "quartiles": [low, high]}


def rows(case: Case, rounds: list[list[dict]]) -> list[dict]:
    """One row of the report for each figure of the case."""
    found = []
    for figure in rounds[0][0]:
        ours = [figures[0][figure] for figures in rounds]
        row = {"case": case.name, "figure": figure, "group": case.group, "target": case.target,
               "no_slower_than": case.no_slower_than, OURS: spread(ours)}
        if len(rounds[0]) > 1:
            theirs = [figures[1][figure] for figures in rounds]
            row[PEER] = spread(theirs)
            row["ratio"] = spread([their / our for our, their in zip(ours, theirs)])
        found.append(row)
    return found


def start_workers(args, threads: int) -> list[Worker]:
    try:
        workers = [Worker(OURS, sys.executable, threads)]
    except WorkerError as error:
        sys.exit(f"benchmarks: {error}")
    if not args.no_peer:
        try:
            workers.append(Worker(PEER, args.peer_python, threads))
        except (WorkerError, OSError) as error:
            print(f"No peer, timing {OURS} alone: {error}\n", file=sys.stderr)
    return workers


def chosen(args) -> list[Case]:
    skipped = {"large", "huge"} if args.quick else set() if args.huge else {"huge"}
    return [case for case in in_order() if args.only in case.name and case.size not in skipped]


def run(workers: list[Worker], cases: list[Case], effort: Effort) -> tuple[list[dict], int]:
    """The rows of the report and how many cases failed."""
    results, failures = [], 0
    for case in cases:
        if sys.stderr.isatty():
            print(f"\r\033[K{case.name}", end="", file=sys.stderr, flush=True)
        taking_part = workers[:1] if case.size == "huge" else workers
        try:
            timing = time_alone if case.alone else time_in_turn
            results += rows(case, timing(case, taking_part, effort))
        except WorkerError as error:
            failures += 1
            print(f"{case.name}: {error}", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return results, failures


def positive(text: str) -> int:
    """A number of threads. Raises: ValueError, of which argparse makes an error."""
    if int(text) < 1:
        raise ValueError(f"{text} is not a positive number")
    return int(text)


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=positive, nargs="+", default=[1], metavar="N",
        help="of each library (default: 1); several numbers make several columns")


def parse_arguments(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.partition("\n")[0])
    option = parser.add_argument
    option("--peer-python", default=sys.executable, metavar="PATH",
           help="the interpreter that has PyTorch (default: this one)")
    option("--no-peer", action="store_true", help="time tensorlib alone")
    add_threads(parser)
    option("--only", default="", metavar="TEXT", help="cases with this in their names")
    option("--quick", action="store_true", help="one short round, without the large cases")
    option("--huge", action="store_true", help="also a graph of 10,000,000 operations")
    option("--json", type=Path, metavar="PATH", help="write all figures there")
    option("--write", action="store_true",
           help="renew README.md, ratios.png and results.json in benchmarks/")
    args = parser.parse_args(argv)
    if args.write and (args.quick or args.only or args.no_peer):
        parser.error("--write needs a full run with the peer")
    if args.write and not find_spec("matplotlib"):
        parser.error("--write draws a picture with matplotlib, which is not installed")
    if args.json and not args.json.parent.is_dir():
        parser.error(f"--json: {args.json.parent} is not a directory")
    return args


def main(argv=None) -> None:
    args = parse_arguments(argv)
    cases = chosen(args)
    if not cases:
        sys.exit(f"benchmarks: no case has {args.only!r} in its name")
    results, failures = [], 0
    for threads in args.threads:
        workers = start_workers(args, threads)
        if args.write and len(workers) == 1:
            sys.exit("benchmarks: --write needs the peer")
        found, failed = run(workers, cases, QUICK if args.quick else FULL)
        results += [{"threads": threads, **row} for row in found]
        failures += failed
        for worker in workers:
            worker.close()
    document = {
        "machine": report.machine(),
        "commit": report.commit(HERE),
        "threads": args.threads,
        "versions": {worker.library: worker.versions for worker in workers},
        "results": results,
    }
    print(report.heading(document), report.table(results), sep="\n\n")
    text = json.dumps(document, indent=1) + "\n"
    if args.json:
        args.json.write_text(text)
    if args.write:
        (HERE / "results.json").write_text(text)
        report.renew(HERE / "README.md", document)
        report.draw(HERE / "ratios.png", document)
    if failures:
        sys.exit(f"benchmarks: {failures} cases failed")
