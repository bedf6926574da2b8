"""What a worker process does: it fetches batches until its loader has no more to ask for."""

from __future__ import annotations

import os
import queue
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib.utils.data.fetch import fetcher_of
from tensorlib.utils.data.transport import Channel

__all__ = ["WorkerInfo", "get_worker_info"]

LOOK_FOR_PARENT = 1.0      # seconds between looks whether the parent lives
LEAVE_WITHIN = 5.0         # seconds that a fetch may go on when there is no parent any more


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself; its random numbers come from `seed`, which is its own."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


current: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What the worker process that this is called in knows of itself, or None in other processes.

    >>> tensorlib.utils.data.get_worker_info() is None
    True
    """
    return current


@dataclass(frozen=True)
class Plan:
    """The settings of a loader that all its workers get."""

    dataset: Any
    iterable: bool
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    num_workers: int
    base_seed: int
    init: Callable[[int], None] | None


@dataclass(frozen=True)
class Task:
    """Keys to fetch; `epoch` tells which tasks an iteration has given up."""

    epoch: int
    keys: Any
    error: Exception | None = None          # what unpickling the keys met


@dataclass(frozen=True)
class Reply:
    """A batch, the end of an iterable dataset, or an error: the names of its types, its text."""

    batch: Any = None
    ended: bool = False
    error: tuple[list[tuple[str, str]], str] | None = None


class Inbox:
    """The tasks that have come, read by a thread of its own, so that the loader never waits."""

    def __init__(self, channel: Channel, parent: int) -> None:
        self.channel, self.parent = channel, parent
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.epoch = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                while not self.channel.connection.poll(LOOK_FOR_PARENT):
                    if os.getppid() != self.parent:
                        raise EOFError
                self.tasks.put(self._task())
        except (EOFError, OSError):       # the loader has no more to ask for, or is gone
            self.tasks.put(None)
            time.sleep(LEAVE_WITHIN)
            os._exit(1)

    def _task(self) -> Task:
        self.epoch, opened = self.channel.receive()
        try:
            return Task(self.epoch, opened())
        except Exception as error:
            return Task(self.epoch, None, error)


def run(channel: Channel, plan: Plan, id: int) -> None:
    """The life of worker number `id`."""
    global current
    # Ctrl-C reaches all processes of a terminal; the loader's process alone deals with it
    signal.signal(signal.SIGINT, lambda *_: None)
    tl.set_num_threads(1)
    seed = plan.base_seed + id
    seed_all(seed)
    current = WorkerInfo(id, plan.num_workers, seed, plan.dataset)
    inbox = Inbox(channel, os.getppid())
    work = Work(plan, id)
    while task := inbox.tasks.get():
        if task.epoch == inbox.epoch:
            try:
                answer(channel, task.epoch, work.reply_to(task), work.place)
            except OSError:               # nobody listens any more
                return


def answer(channel: Channel, epoch: int, reply: Reply, place: str) -> None:
    """Sends a reply, or the error of pickling it. Raises: OSError if nobody reads."""
    try:
        channel.send(epoch, reply)
    except OSError:
        raise
    except Exception as error:            # what can't be pickled
        channel.send(epoch, Reply(error=described(error, place)))


class Work:
    """The state of one worker: its dataset's iterator, and the error that its start met."""

    def __init__(self, plan: Plan, id: int) -> None:
        self.plan = plan
        self.place = f"in DataLoader worker process {id}"
        self.epoch: int | None = None
        self.fetch: Callable[[Any], Any] | None = None
        self.failed: tuple[list[tuple[str, str]], str] | None = None
        self.ended = False
        try:
            if plan.init is not None:
                plan.init(id)
        except Exception as error:
            self.failed = described(error, self.place)

    def reply_to(self, task: Task) -> Reply:
        if self.failed:
            return Reply(error=self.failed)
        try:
            if task.error:
                raise task.error
            if task.epoch != self.epoch:
                self.begin(task.epoch)
            if self.ended or self.fetch is None:
                return Reply(ended=True)
            return Reply(self.fetch(task.keys))
        except StopIteration:
            self.ended = True
            return Reply(ended=True)
        except Exception as error:
            return Reply(error=described(error, self.place))

    def begin(self, epoch: int) -> None:
        """A new epoch: an iterable dataset starts anew."""
        plan = self.plan
        self.epoch, self.ended = epoch, False
        if plan.iterable or self.fetch is None:
            self.fetch = None
            self.fetch = fetcher_of(
                plan.dataset, plan.iterable, plan.batched, plan.collate_fn, plan.drop_last)


def described(error: BaseException, place: str) -> tuple[list[tuple[str, str]], str]:
    """The types of an error, the nearest first, and its text with the traceback."""
    kinds = [(kind.__module__, kind.__qualname__) for kind in type(error).__mro__
             if issubclass(kind, Exception) and kind is not StopIteration]
    trace = "".join(traceback.format_exception(error))
    return kinds, f"Caught {type(error).__name__} {place}.\nOriginal {trace}"


def seed_all(seed: int) -> None:
    """Seeds the generators of tensorlib, Python and NumPy."""
    tl.manual_seed(seed)
    random.seed(seed)
    np.random.seed(np.random.SeedSequence(seed).generate_state(4))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers for seeding a generator of one worker, by the seed of all of them."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(x) for x in np.random.SeedSequence(words).generate_state(4)]
