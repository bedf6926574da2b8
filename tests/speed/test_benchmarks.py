"""The measurements of loops and of programs run."""

from pathlib import Path

from process import run_python

ROOT = Path(__file__).parents[2]


IN_A_PROCESS_WITH_ONE_THREAD = """
import sys
sys.path.insert(0, sys.argv[1])
from benchmarks import loops, programs
loops.main(["2", "4"])
programs.CASES["GPT, 2 layers of 32"] = lambda lib: programs.letters(lib, 8, 2, 4, 8)
programs.main(["GPT, 2 layers of 32", "logistic regression", "--repeats", "1"])
"""


def test_loops_and_programs_are_measured():
    *loops, letters, logistic = run_python(
        IN_A_PROCESS_WITH_ONE_THREAD, str(ROOT)).splitlines()
    assert [line.split(",")[0].strip() for line in loops] == ["2 steps"] * 2 + ["4 steps"] * 2
    assert "capture" in letters and "replay" in letters and "times" in logistic
