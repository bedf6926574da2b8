"""Starts workers, notes which call ended one and how, and goes on with the next call."""

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import tensorlib as tl

from . import failing

STARTING = 60        # seconds that a worker may take until its first call
# what Python itself says, whatever was called, before it ends a process in which no object of any
# kind could be made for too long
GIVES_UP = "Cannot recover from MemoryErrors while normalizing exceptions"
MOST_CALLS = 20_000  # of one worker: what calls leave behind in a process stays bounded
ROOT = Path(tl.__file__).parents[1]
MODULE = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class Finding:
    """A call that went wrong: its kind, seed and number make it again."""

    kind: str
    seed: int
    number: int
    what: str

    @property
    def command(self):
        """How to run the call again."""
        return f"python -m tests.fuzz --kind {self.kind} --seed {self.seed} --call {self.number}"


def environment(kind, folder):
    """The environment of a worker."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    more = failing.environment(folder) if kind == "failing" else {}
    return {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", "PYTHONHASHSEED": "0",
            **more}


def how_it_ended(process, errors):
    """How a worker ended, with what it wrote to its standard error: a sanitizer's or Python's
    report from its beginning, else the end."""
    code = process.returncode
    name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    places = [errors.find(mark) for mark in (
        "ERROR: AddressSanitizer", "runtime error:", "Fatal Python error:")]
    begin = min((place for place in places if place >= 0), default=len(errors) - 3000)
    begin = errors.rfind("\n", 0, max(begin, 0)) + 1
    return f"the process died: {name}\n" + errors[begin:begin + 3000]


class Worker:
    """A process that runs calls from `first` on."""

    def __init__(self, kind, seed, first, n, folder, env):
        self.progress, self.errors = Path(folder, "progress"), Path(folder, "errors")
        self.progress.write_bytes(struct.pack("qq", -1, 0))
        with open(self.progress, "r+b") as file:
            self.place = mmap.mmap(file.fileno(), 16)
        self.output = Path(folder, "output")
        with open(self.output, "w") as out, open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"{MODULE}.worker", str(self.progress), kind, str(seed),
                 str(first), str(n)],
                stdout=out, stderr=errors, stdin=subprocess.DEVNULL, cwd=folder, env=env,
                start_new_session=True)

    def number(self):
        """The number of the call under way; -1 before the first."""
        return struct.unpack("q", self.place[:8])[0]

    def wait(self, seconds, end):
        """Waits for the end; kills a worker that stays at one call. Returns what went wrong."""
        seen, since = -1, time.monotonic()
        while self.process.poll() is None:
            number, now = self.number(), time.monotonic()
            if number != seen:
                seen, since = number, now
            elif now - since > (seconds if seen >= 0 else STARTING):
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                return f"the call takes more than {seconds} seconds"
            if now > end:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                return None
            time.sleep(0.02)
        if self.process.returncode:
            return how_it_ended(self.process, self.errors.read_text(errors="replace"))
        return None


def fuzz(kind, seed, n, *, first=0, seconds=20, total=float("inf"), report=lambda finding: None):
    """The findings of calls [first, first + n) of a kind, and how many calls were run.

    seconds: what one call may take. total: what all of them may; those left over are not run.
    """
    findings, at, end = [], first, time.monotonic() + total

    def note(number, what):
        findings.append(Finding(kind, seed, number, what))
        report(findings[-1])

    with tempfile.TemporaryDirectory() as folder:
        env = environment(kind, folder)
        while at < first + n and time.monotonic() < end:
            worker = Worker(kind, seed, at, min(first + n - at, MOST_CALLS), folder, env)
            wrong = worker.wait(seconds, end)
            for line in worker.output.read_text().splitlines():
                note(**json.loads(line))
            if worker.number() < 0 and wrong:
                raise RuntimeError(f"fuzz: no call could be run: {wrong}")
            at = max(at, worker.number())
            if wrong:
                if GIVES_UP not in wrong:
                    note(at, wrong)
                at += 1
            elif time.monotonic() > end:
                break
    return findings, at - first
