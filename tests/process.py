"""Python processes of their own, for what may hang, crash or depend on a fresh interpreter."""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import tensorlib as tl

SECONDS = 240 if "libasan" in os.environ.get("LD_PRELOAD", "") else 40     # sanitizers take time


def started(source, *arguments, **options):
    """A new Python process that imports this same tensorlib."""
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-P", "-c", source, *arguments], stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path}, start_new_session=True, **options)


def run_python(source, *arguments, seconds=SECONDS):
    """What a Python process that imports this same tensorlib prints; it may not crash or hang."""
    process = started(source, *arguments, stderr=subprocess.PIPE, text=True)
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


def run_each(before, sources, imported=True):
    """What each source prints in a process of its own, which is forked where `before` has run.

    That is in a process in which tensorlib has been imported, or in a new one.
    """
    run = run_forked if imported else run_python
    said = run(before + FORKED, *sources, seconds=SECONDS * len(sources))
    return said.split("\0")[:-1]


IMPORTED = """
import json, os, sys
import tensorlib
for line in sys.stdin:
    source, arguments, folder = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.setsid()
for place, name in enumerate((os.devnull, "output", "errors")):
    file = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT)
    os.dup2(file, place)
    os.close(file)
sys.argv[1:] = arguments
exec(source, {"__name__": "__main__"})
"""


@cache
def imported():
    """A process that has imported tensorlib and done nothing else, for others to be forked from."""
    process = started(IMPORTED, stdin=subprocess.PIPE, bufsize=0)
    atexit.register(process.communicate)            # which it ends at
    return process


def run_forked(source, *arguments, seconds=SECONDS):
    """As `run_python`, in a process that is forked where tensorlib has been imported.

    To import it takes most of the time of a small process.
    """
    parent = imported()
    with TemporaryDirectory() as folder:
        parent.stdin.write(json.dumps([source, arguments, folder]).encode() + b"\n")
        child = int(parent.stdout.readline())
        if not select.select([parent.stdout], [], [], seconds)[0]:
            os.killpg(child, signal.SIGKILL)
            parent.stdout.readline()
            pytest.fail(f"still running after {seconds} seconds")
        status = int(parent.stdout.readline())
        output, errors = (Path(folder, name).read_text() for name in ("output", "errors"))
    assert status == 0, f"exit status {status}\n{errors}"
    return output


def resident_bytes():
    """The memory that this process holds now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
