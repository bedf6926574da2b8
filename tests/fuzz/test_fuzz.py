"""Each kind of fuzzer, briefly; and that they find what is wrong."""

import re

import pytest
from cases import each

from . import kinds
from .__main__ import main
from .supervisor import fuzz

CALLS = {"odd": 200, "reentrant": 200, "edges": 200, "collecting": 200, "threads": 3, "replaced": 8,
         "failing": 8, "pickles": 100}


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_nothing_is_found(kind):
    findings, n = fuzz(kind, 20, CALLS[kind], seconds=60)
    assert n == CALLS[kind]
    assert not findings, "\n".join(f"{x.command}: {x.what}" for x in findings)


def test_faults_are_found():
    findings, n = fuzz("faults", 0, len(kinds.FAULTS), seconds=3)
    assert n == len(kinds.FAULTS)
    told = {finding.number: finding.what for finding in findings}
    assert "SIGSEGV" in told[1] and "seconds" in told[2] and "SystemError" in told[3]
    assert "changed its arguments" in told[4] and "AttributeError" in told[5]
    assert sorted(told) == [1, 2, 3, 4, 5]


def test_the_command_runs_workers_within_a_time(capfd):
    def said(*options):
        assert main(["--kind", "odd", "--seed", "3", *options]) == 0
        return capfd.readouterr().out

    assert said("--workers", "2", "--calls", "41") == "odd: 41 calls, 0 findings\n"
    assert re.fullmatch(r"odd: \d{1,6} calls, 0 findings\n",
                        said("--calls", "1000000", "--total", "0.5"))


@each("kind", kinds.KINDS)
def test_a_call_follows_from_its_number(kind):
    calls = [kinds.made(kind, 3, n) for n in range(50)]
    assert calls == [kinds.made(kind, 3, n) for n in range(50)]
