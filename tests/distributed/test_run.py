"""`python -m tensorlib.distributed.run`: starts, fails and is interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ranks import HERE, ended, environment, needs_mpi

pytestmark = needs_mpi
RUN = [sys.executable, "-m", "tensorlib.distributed.run"]


def test_a_job_shares_out_the_cores_and_ends():
    code, text = ended([*RUN, "-n", "2", "--threads", "3", "launched.py", "adds", "--lr", "1"])
    assert code == 0 and text.count("sum 2 threads 3 ['--lr', '1']") == 2, text


@pytest.mark.parametrize("case, parts", [
    ("raises", ["rank 1 ends the job", "KeyError: 'the reason of rank 1'"]),
    ("before", ["rank 1 ends the job", "KeyError: 'before the group'"]),
    ("leaves", []), ("killed", [])])
def test_a_rank_that_fails_ends_the_job_in_seconds(case, parts):
    start = time.monotonic()
    code, text = ended([*RUN, "-n", "2", "launched.py", case], seconds=40)
    assert code and all(part in text for part in parts), text
    assert time.monotonic() - start < 40                 # of the 60 that the others would wait


def test_an_interrupt_ends_the_job():
    process = subprocess.Popen([*RUN, "-n", "2", "launched.py", "waits"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=environment(), cwd=HERE / "programs", start_new_session=True)
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130


def test_wrong_numbers_are_refused():
    code, text = ended([*RUN, "-n", "0", "launched.py"])
    assert code == 2 and "1 or more" in text
