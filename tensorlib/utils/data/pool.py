"""The pool of a loader's worker processes: tasks go out, replies come in."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
import weakref
from collections import deque
from typing import Any, NoReturn

from tensorlib.utils.data.transport import Channel
from tensorlib.utils.data.worker import Plan, Reply, described, run

__all__ = ["Pool", "WorkerDied"]

LOOK_FOR_DEATHS = 1.0    # seconds between looks: a child of a killed worker holds its pipes open
GRACE = 1.0        # seconds that workers have to end by themselves, and then again at a SIGTERM


class WorkerDied(RuntimeError):
    """A worker process ended though its loader still waited for batches."""


class Pool:
    """Worker processes, which end with this object at the latest."""

    def __init__(self, context: Any, plan: Plan) -> None:
        self.channels: list[Channel] = []
        self.processes: list[Any] = []
        self.selector = selectors.DefaultSelector()
        self.replies: list[deque[Reply]] = []
        self.epoch = 0
        self.close = weakref.finalize(
            self, end, os.getpid(), self.channels, self.processes, self.selector)
        try:
            for id in range(plan.num_workers):
                self._start(context, plan, id)
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, plan: Plan, id: int) -> None:
        ours, theirs = context.Pipe(duplex=True)
        channel = Channel(ours)
        self.channels.append(channel)
        process = context.Process(target=run, args=(Channel(theirs), plan, id), daemon=True)
        try:
            process.start()
        finally:
            theirs.close()
        self.processes.append(process)
        self.replies.append(deque())
        self.selector.register(channel, selectors.EVENT_READ, id)
        self.selector.register(process.sentinel, selectors.EVENT_READ, id)

    def new_epoch(self) -> None:
        """From now on, replies to earlier tasks are left out."""
        self.epoch += 1
        for replies in self.replies:
            replies.clear()

    def send(self, worker: int, keys: Any) -> None:
        try:
            self.channels[worker].send(self.epoch, keys)
        except (BrokenPipeError, ConnectionResetError):
            self._lost(worker)

    def wait(self, workers: Any, timeout: float) -> int:
        """One of the workers that has replied, the first of those that have.

        Raises: WorkerDied; RuntimeError when none has replied within `timeout` seconds, if that
        is not 0.
        """
        deadline = time.monotonic() + timeout if timeout else None
        while True:
            for worker in workers:
                if self.replies[worker]:
                    return int(worker)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            self._read(left)

    def _read(self, timeout: float | None) -> None:
        """Takes in the replies that are there, or waits for one."""
        ended = []
        events = self.selector.select(
            LOOK_FOR_DEATHS if timeout is None else min(timeout, LOOK_FOR_DEATHS))
        if not events:
            ended = [i for i, process in enumerate(self.processes) if process.exitcode is not None]
        for key, _ in events:
            if isinstance(key.fileobj, Channel):
                self._receive(key.data, key.fileobj)
            else:
                ended.append(key.data)
        if ended:
            self._lost(ended[0])

    def _receive(self, worker: int, channel: Channel) -> None:
        try:
            epoch, opened = channel.receive()
        except (EOFError, OSError):
            self._lost(worker)
        if epoch != self.epoch:
            return
        try:
            self.replies[worker].append(opened())
        except Exception as error:            # what can't be unpickled here
            place = f"while receiving from DataLoader worker process {worker}"
            self.replies[worker].append(Reply(error=described(error, place)))

    def _lost(self, worker: int) -> NoReturn:
        process = self.processes[worker]
        process.join(GRACE)
        code, pid = process.exitcode, process.pid
        self.close()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
            how = f"was killed by signal {-code} ({name})"
        else:
            how = f"ended with exit code {code}"
        raise WorkerDied(f"DataLoader worker {worker} (pid {pid}) exited unexpectedly: it {how}")


def end(owner: int, channels: list[Channel], processes: list[Any], selector: Any) -> None:
    """Ends the worker processes: they are asked to, then told to, then made to."""
    selector.close()
    if os.getpid() != owner:              # a fork of the owner has the objects, not the processes
        return
    for channel in channels:
        channel.shut()
    for step in (lambda process: None, lambda process: process.terminate(),
                 lambda process: process.kill()):
        deadline = time.monotonic() + GRACE
        for process in processes:
            if process.is_alive():
                step(process)
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        if process.exitcode is not None:
            process.close()


def error_of(reply: Reply) -> Exception:
    """The error that a worker met, in its own type where that can be made here from a text."""
    kinds, text = reply.error or ([], "")
    for module, name in kinds:
        kind: Any = sys.modules.get("__main__" if module == "__mp_main__" else module)
        for part in name.split("."):
            kind = getattr(kind, part, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(KeyText(text) if issubclass(kind, KeyError) else text)
            except Exception:             # it takes other arguments
                return RuntimeError(text)
    return RuntimeError(text)


class KeyText(str):
    """A text that a KeyError shows as it is: it shows the `repr` of its key."""

    def __repr__(self) -> str:
        return str(self)
