"""Runs a program under `mpiexec`, with a bound on its time."""

import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class Ended(NamedTuple):
    """How a job ended."""

    code: int
    text: str


def mpiexec():
    """The launcher of this environment, or None."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or mpiexec() is None,
    reason="needs mpi4py and mpiexec: pip install 'tensorlib[mpi]'")


def environment(**more):
    """Ranks of tests have one thread, compare their calls, and yield where they wait."""
    return {**os.environ, "TENSORLIB_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "TENSORLIB_DISTRIBUTED_CHECK": "1",
            **({"PYTHONPATH": str(ROOT)} if (ROOT / "tensorlib").is_dir() else {}),
            "MPIR_CVAR_POLLS_BEFORE_YIELD": "10", **more}


def ended(command, seconds=60, **more):
    """Runs a command in a session of its own, all of which is ended with it."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env=environment(**more),
                               start_new_session=True, cwd=HERE / "programs")
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        pytest.fail(f"not ended after {seconds} s: {command}\n{text}")
    return Ended(process.returncode, text)


def run_ranks(count, program, *arguments, seconds=60, **more):
    """What `mpiexec -n count` gives for a program of `programs/`."""
    return ended([mpiexec(), "-n", str(count), sys.executable, f"{program}.py", *arguments],
                 seconds, **more)


def passes(count, program, *arguments, seconds=60, **more):
    """Fails unless all ranks come to the end of the program."""
    code, text = run_ranks(count, program, *arguments, seconds=seconds, **more)
    assert code == 0 and text.count("passed") == count, f"exit status {code}\n{text}"
    return text
