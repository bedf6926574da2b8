"""The catalogue of speeds: what it times, what it keeps, what it prints."""

import os
import subprocess
import sys
from pathlib import Path

import tensorlib as tl
from process import run_forked

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks import catalogue, limits, settings  # noqa: E402  no part of the package


IN_A_PROCESS_WITHOUT_OTHER_TESTS_OPERATIONS = """
import sys
sys.path.insert(0, sys.argv[1])
from benchmarks.rows import broadcast_rows, has_row, rows
from tensorlib.ops import registry
print(*[name for name, op in registry.items() if has_row(op)], sep=",")
for name, code in [*rows(), *broadcast_rows()]:
    print(name, code)
"""


def test_every_operation_has_rows_that_follow_from_its_samples_or_are_given():
    public, *lines = run_forked(
        IN_A_PROCESS_WITHOUT_OTHER_TESTS_OPERATIONS, str(ROOT)).splitlines()
    rows = [line.split(" ", 1) for line in lines]
    assert set(public.split(",")) <= {name for name, _ in rows}
    assert ["tanh", "lib.tanh(x)"] in rows and ["addmm", "lib.addmm(x, y, z)"] in rows
    assert ["where", "lib.where(p, x, 0)"] in rows and ["add", "x + c"] in rows
    assert ["cumprod", "lib.cumprod(x, 0)"] in rows and ["cumprod", "lib.cumprod(x, 1)"] in rows
    assert ["hypot", "lib.hypot(c, a)"] in rows and ["lerp", "lib.lerp(x, a, y)"] in rows


def made(*name):
    return settings.case_named(settings.name_of(*name)).prepare(tl)


def test_a_worker_makes_a_case_from_its_name():
    assert made("add", "x + c", 1024, "int64", "plain", "forward").result().shape == (32, 32)
    linear = made("nn.Linear", "nn.Linear(8, 3)", "4x8", "float32", "module", "backward")
    assert linear.result().shape == (4, 8)


def test_what_takes_part_is_laid_out_as_it_says():
    whole = settings.matrix(tl, 6, "float32", "plain", 0)
    assert whole.is_contiguous()
    assert settings.matrix(tl, 6, "float32", "transposed", 0).tolist() == whole.t().tolist()
    assert settings.matrix(tl, 6, "int64", "sliced", 0).stride() == (14, 1)
    assert settings.matrix(tl, 6, "uint8", "strided", 0).stride() == (12, 2)


def test_the_work_of_a_case_is_its_operands_results_and_products():
    product = made("mm", "x @ y", 1024, "float32", "plain", "forward")
    assert product.work() == (3 * 4096, 2 * 32 ** 3)
    back = made("exp", "x.exp()", 1024, "float32", "plain", "backward")
    assert back.work() == (4 * 4096, 0)       # the operand, its gradient; what arrives, the result


def test_no_call_is_faster_than_its_bytes_and_its_products():
    machine = {"rates": [(100, 10.0), (1000, 2.0)], "peak": 4.0, "call": 7.0}
    assert limits.least(machine, 200, 0, 1) == 7 + 20
    assert limits.least(machine, 5000, 0, 2) == 7 + 1250
    assert limits.least(machine, 100, 8000, 1) == 7 + 2000


def test_the_table_is_read_as_it_was_written(tmp_path):
    table = {("add: x + y; 16 bool plain forward", 1): (120.0, 250.0),
             ("add: x + y; 16 bool plain forward", 2): (1.5, 0.25),
             ("exp: x.exp(); 16 bool plain forward", 2): (3.0, 4.0)}
    catalogue.write_table(table, tmp_path / "table.tsv")
    assert catalogue.read_table(tmp_path / "table.tsv") == table
    assert catalogue.read_table(tmp_path / "none.tsv") == {}


MACHINE = {"rates": [(1 << 40, 1.0)], "peak": 1.0, "call": 0.0}


def test_rows_behind_beyond_the_limit_and_slower_than_before_are_printed():
    near, far = "add: x + y; 16 bool plain forward", "sum: x.sum(); 16 bool plain forward"
    figures = {near: {"times": [100.0, 50.0], "bytes": 90, "operations": 0},
               far: {"times": [100.0, 200.0], "bytes": 9, "operations": 0},
               "exp: x.exp(); 16 bool plain forward": {"refused": "why"}}
    page = catalogue.report(figures, 1, MACHINE, {(near, 1): (100.0, 90.0)}, below=1)
    families, behind, beyond, slower, count, means = [
        part.splitlines() for part in page.split("\n\n")]
    assert [line.split(" | ")[1:] for line in families[2:]] == [
        ["1", "0.50", "0.50", "1 |"], ["1", "2.00", "2.00", "0 |"]]
    assert behind[2:] == [f"| {near} | 0.50 | 100 ns | 50 ns |"]
    assert beyond[2:] == [f"| {far} | 0.09 | 100 ns | 9 ns |"]
    assert slower[2:] == [f"| {near} | 0.56 | 100 ns | 55.6 ns |"]
    assert count == ["2 rows timed with 1 thread, 1 refused by a library."]
    assert means == ["1 of 2 behind PyTorch; geometric mean 1.00."]


def command(*words):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", "benchmarks.catalogue", *words], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
                          timeout=120)


def test_a_run_goes_on_where_it_ended(tmp_path):
    lines = tmp_path / "run.jsonl"
    options = ("--quick", "--no-peer", "--only", "hypot 1,024 float32", "--lines", str(lines))
    first = command(*options)
    assert first.returncode == 0, first.stdout + first.stderr
    kept = lines.read_text().splitlines()
    lines.write_text("\n".join(kept[:2]) + "\n")
    assert command(*options).returncode == 0
    again = lines.read_text().splitlines()
    assert again[:2] == kept[:2] and len(again) == len(kept) == 6
