"""The pages of the benchmarks have columns for each number of threads."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks import report, run, thresholds  # noqa: E402  no part of the package


def row(threads, ours, peer, case="a + b"):
    return {"threads": threads, "case": case, "figure": "time", "group": "kernels",
            "target": 2, "no_slower_than": None, "tensorlib": {"median": ours},
            "torch": {"median": peer},
            "ratio": {"median": peer / ours, "quartiles": [peer / ours] * 2}}


def test_the_table_has_the_times_and_the_ratio_of_each_number_of_threads():
    head, _, line = report.table([row(1, 100.0, 300.0), row(2, 50.0, 75.0)]).splitlines()
    assert [cell.strip() for cell in head.split("|")][8:11] == [
        "tensorlib, 2 threads", "PyTorch, 2 threads", "ratio, 2 threads"]
    assert [cell.strip() for cell in line.split("|")][1:11] == [
        "a + b", "100 ns", "300 ns", "3.00", "3.00 to 3.00", "2", "yes", "50 ns", "75 ns", "1.50"]


def test_one_number_of_threads_has_the_columns_that_it_had():
    head, _, line = report.table([row(1, 100.0, 300.0)]).splitlines()
    assert len(head.split("|")) == len(line.split("|")) == 9


@pytest.mark.parametrize("peer, bound, expected", [
    (300.0, 200.0, "yes"), (150.0, 200.0, "**no**"), (300.0, 50.0, "**no**")])
def test_a_row_with_a_target_and_a_bound_meets_both_or_none(peer, bound, expected):
    bounded = row(1, 100.0, peer) | {"no_slower_than": "bound"}
    page = report.table([bounded, row(1, bound, 900.0, "bound")])
    cells = [cell.strip() for cell in page.splitlines()[2].split("|")]
    assert cells[6:8] == ["2, no slower than bound", expected]


def test_numbers_of_threads_are_positive(capsys):
    assert run.parse_arguments(["--threads", "1", "2"]).threads == [1, 2]
    with pytest.raises(SystemExit):
        run.parse_arguments(["--threads", "0"])
    assert "--threads" in capsys.readouterr().err


def test_a_row_of_thresholds_says_where_work_is_shared():
    printed = thresholds.line("sum", "x.sum()", (4096, 8192), thresholds.vectors)
    assert printed.startswith("| sum | never |  |") and printed.endswith("at 8,192 |")
