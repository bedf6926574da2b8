"""Python processes of their own, for what may hang, crash or depend on a fresh interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlib as tl

SECONDS = 40


def run_python(source, *arguments):
    """What a Python process that imports this same tensorlib prints; it may not crash or hang."""
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", source, *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the children that it forked
        process.communicate()
        pytest.fail(f"still running after {SECONDS} seconds")
    assert process.returncode == 0, f"exit status {process.returncode}\n{errors}"
    return output


def resident_bytes():
    """The memory that this process holds now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
