"""The tests that take longest: functions with all their cases, and single cases.

    python -m tools.slowest                          # the suite, on all processors
    python -m tools.slowest --count 50 tests/nn      # more of them, of a part

Other arguments go to pytest. A time is that of set-up, call and teardown together, in seconds of
the process that ran the test. Most of the suite's tests are cases of few functions, so that what is
worth a look is in the first table: many small cases, or few large ones.
"""

import argparse
import sys
from collections import defaultdict

import pytest


class Times:
    """A plugin of pytest that adds up what each test takes."""

    def __init__(self):
        self.seconds = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def functions(self):
        """The seconds and the number of cases of each test function."""
        found = defaultdict(lambda: [0.0, 0])
        for case, seconds in self.seconds.items():
            total = found[case.partition("[")[0]]
            total[0] += seconds
            total[1] += 1
        return found


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="tools.slowest", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=30, help="rows of each table (default: 30)")
    args, others = parser.parse_known_args(argv)
    times = Times()
    status = pytest.main(["-n", "auto", "-p", "no:cacheprovider", *others], plugins=[times])
    functions = sorted(times.functions().items(), key=lambda item: -item[1][0])[:args.count]
    print("\nseconds  cases  function")
    for name, (seconds, cases) in functions:
        print(f"{seconds:7.2f}  {cases:5}  {name}")
    print("\nseconds  case")
    for name, seconds in sorted(times.seconds.items(), key=lambda item: -item[1])[:args.count]:
        print(f"{seconds:7.2f}  {name}")
    print(f"\n{sum(times.seconds.values()):.1f} seconds in {len(times.seconds):,} cases")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
