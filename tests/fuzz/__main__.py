"""`python -m tests.fuzz --calls N --seed S --kind KIND`: runs fuzzers and prints what they find."""

import argparse
import os
import subprocess
import sys
import tempfile

from . import failing, kinds
from .supervisor import fuzz


def show(finding):
    """Prints a finding, with its call and how to run that again."""
    call = kinds.text(kinds.made(finding.kind, finding.seed, finding.number))
    print(f"\n{finding.command}\n  {call}\n  " + finding.what.strip().replace("\n", "\n  "),
          flush=True)


def main():
    """Runs the kinds asked for; the exit status is 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="calls of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", default="all", choices=["all", *kinds.KINDS])
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--seconds", type=float, default=20, help="what one call may take")
    parser.add_argument("--call", type=int, help="run this one in this process and show it")
    given = parser.parse_args()
    if given.call is not None:
        if given.kind == "failing" and "LD_PRELOAD" not in os.environ:
            with tempfile.TemporaryDirectory() as folder:      # again, where allocations can fail
                env = {**os.environ, **failing.environment(folder)}
                return subprocess.call([sys.executable, *sys.orig_argv[1:]], env=env)
        call = kinds.made(given.kind, given.seed, given.call)
        print(kinds.text(call), flush=True)
        print(kinds.run(given.kind, call) or "nothing wrong")
        return 0
    found = []
    for kind in kinds.KINDS if given.kind == "all" else [given.kind]:
        findings, n = fuzz(kind, given.seed, given.calls, first=given.first,
                           seconds=given.seconds, report=show)
        found += findings
        print(f"{kind}: {n:,} calls, {len(findings)} findings", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
