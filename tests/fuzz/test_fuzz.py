"""Each kind of fuzzer, briefly; and that they find what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest
from cases import each

from . import kinds
from .supervisor import environment, fuzz

ROOT = Path(__file__).parents[2]

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


def test_the_command_runs_workers_within_a_time():
    def run(*options):
        command = [sys.executable, "-m", "tests.fuzz", "--kind", "odd", "--seed", "3", *options]
        return subprocess.run(command, cwd=ROOT, env=environment("odd", ROOT), capture_output=True,
                              text=True, check=False)

    done = run("--workers", "2", "--calls", "41")
    assert (done.returncode, done.stdout) == (0, "odd: 41 calls, 0 findings\n"), done
    done = run("--calls", "1000000", "--total", "1")
    assert done.stdout.startswith("odd: ") and "1,000,000" not in done.stdout


@each("kind", kinds.KINDS)
def test_a_call_follows_from_its_number(kind):
    calls = [kinds.made(kind, 3, n) for n in range(50)]
    assert calls == [kinds.made(kind, 3, n) for n in range(50)]
