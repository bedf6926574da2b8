"""Python processes of their own, for what may hang, crash or depend on a fresh interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlib as tl

SECONDS = 240 if "libasan" in os.environ.get("LD_PRELOAD", "") else 40     # sanitizers take time


def run_python(source, *arguments, seconds=SECONDS):
    """What a Python process that imports this same tensorlib prints; it may not crash or hang."""
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", source, *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the children that it forked
        process.communicate()
        pytest.fail(f"still running after {seconds} seconds")
    assert process.returncode == 0, f"exit status {process.returncode}\n{errors}"
    return output


FORKED = """
import os, sys
for source in sys.argv[1:]:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            exec(source)
            sys.stdout.flush()
            status = 0
        finally:
            if status:
                sys.excepthook(*sys.exc_info())
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        sys.exit(status)
    print(end="\\0", flush=True)
"""


def run_each(before, sources):
    """What each source prints in a process of its own, which is forked where `before` has run.

    The time of a process that is started is nearly all that of its imports.
    """
    said = run_python(before + FORKED, *sources, seconds=SECONDS * len(sources))
    return said.split("\0")[:-1]


def resident_bytes():
    """The memory that this process holds now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
