"""The comparison of all operations: that it has them all, and that it runs."""

import os
import subprocess
import sys
from pathlib import Path

import tensorlib as tl
from process import run_python

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks import operations  # noqa: E402  benchmarks are no part of the package


def test_every_operation_has_a_row():
    rows = {op for op, _ in operations.rows()}
    registry = run_python("from tensorlib.ops import registry\nprint(*registry)").split()
    without = operations.INTERNAL | operations.QUESTIONS
    assert not set(registry) - rows - without
    assert not without & rows


def test_what_takes_part_is_laid_out_as_it_says():
    whole = operations.matrix(tl, 6, "float32", "plain", 0)
    assert whole.is_contiguous()
    assert operations.matrix(tl, 6, "float32", "transposed", 0).tolist() == whole.t().tolist()
    assert operations.matrix(tl, 6, "int64", "sliced", 0).stride() == (14, 1)


def test_a_quick_run():
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.operations", "--quick", "--no-peer", "--only",
         "; 16 float32"], cwd=ROOT, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 250, done.stdout
