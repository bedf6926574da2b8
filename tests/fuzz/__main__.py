"""`python -m tests.fuzz --calls N --seed S --kind KIND`: runs fuzzers and prints what they find."""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from . import failing, kinds
from .supervisor import fuzz


def show(finding):
    """Prints a finding, with its call and how to run that again."""
    call = kinds.text(kinds.made(finding.kind, finding.seed, finding.number))
    print(f"\n{finding.command}\n  {call}\n  " + finding.what.strip().replace("\n", "\n  "),
          flush=True)


def again(given):
    """Runs one call in this process and shows what is wrong with it."""
    if given.kind == "failing" and "LD_PRELOAD" not in os.environ:
        with tempfile.TemporaryDirectory() as folder:      # again, where allocations can fail
            env = {**os.environ, **failing.environment(folder)}
            return subprocess.call([sys.executable, *sys.orig_argv[1:]], env=env)
    call = kinds.made(given.kind, given.seed, given.call)
    print(kinds.text(call), flush=True)
    print(kinds.run(given.kind, call) or "nothing wrong")
    return 0


def parts(given):
    """The kinds to run, each cut into as many ranges of calls as there are workers."""
    for kind in kinds.KINDS if given.kind == "all" else [given.kind]:
        bounds = [given.first + given.calls * i // given.workers for i in range(given.workers + 1)]
        yield from ((kind, first, end - first) for first, end in zip(bounds, bounds[1:])
                    if end > first)


def main(argv=None):
    """Runs the kinds asked for; the exit status is 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="calls of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="all", choices=["all", *kinds.KINDS])
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--seconds", type=float, default=20, help="what one call may take")
    parser.add_argument("--total", type=float, default=float("inf"), metavar="SECONDS",
                        help="what all may take, the kinds alike; calls left over are not run")
    parser.add_argument("--workers", type=int, default=1, help="processes that run side by side")
    parser.add_argument("--call", type=int, help="run this one in this process and show it")
    given = parser.parse_args(argv)
    if given.call is not None:
        return again(given)
    n_kinds = len(kinds.KINDS) if given.kind == "all" else 1
    calls, found = {}, {}

    def run(part):
        kind, first, n = part
        return kind, *fuzz(kind, given.seed, n, first=first, seconds=given.seconds,
                           total=given.total / n_kinds, report=show)

    with ThreadPoolExecutor(given.workers) as pool:
        for kind, findings, n in pool.map(run, parts(given)):
            calls[kind] = calls.get(kind, 0) + n
            found[kind] = found.get(kind, 0) + len(findings)
    for kind, n in calls.items():
        print(f"{kind}: {n:,} calls, {found[kind]} findings", flush=True)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
