"""The comparison of all operations: that it has them all, and that it runs."""

import os
import subprocess
import sys
from pathlib import Path

import tensorlib as tl
from process import run_python

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks import settings  # noqa: E402  benchmarks are no part of the package


IN_A_PROCESS_WITHOUT_OTHER_TESTS_OPERATIONS = """
import sys
sys.path.insert(0, sys.argv[1])
from benchmarks.rows import has_row, rows
from tensorlib.ops import registry
print(*[name for name, op in registry.items() if has_row(op)], sep=",")
for name, code in rows():
    print(name, code)
"""


def test_every_operation_has_a_row_that_follows_from_its_samples_or_is_given():
    public, *lines = run_python(
        IN_A_PROCESS_WITHOUT_OTHER_TESTS_OPERATIONS, str(ROOT)).splitlines()
    rows = [line.split(" ", 1) for line in lines]
    assert set(public.split(",")) <= {name for name, _ in rows}
    assert ["tanh", "lib.tanh(x)"] in rows and ["addmm", "lib.addmm(a, x, y)"] in rows
    assert ["where", "lib.where(p, x, 0)"] in rows and ["add", "x + c"] in rows


def test_a_worker_makes_a_case_from_its_name():
    case = settings.case_named(settings.name_of("add", "x + c", 1024, "int64", "plain", "forward"))
    assert case.prepare(tl).result().shape == (32, 32)


def test_what_takes_part_is_laid_out_as_it_says():
    whole = settings.matrix(tl, 6, "float32", "plain", 0)
    assert whole.is_contiguous()
    assert settings.matrix(tl, 6, "float32", "transposed", 0).tolist() == whole.t().tolist()
    assert settings.matrix(tl, 6, "int64", "sliced", 0).stride() == (14, 1)


def test_a_quick_run():
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.operations", "--quick", "--no-peer", "--only",
         "; 16 float32"], cwd=ROOT, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 250, done.stdout


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
