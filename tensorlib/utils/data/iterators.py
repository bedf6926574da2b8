"""One epoch of a `DataLoader`: its keys, its batches in order, and how far it has come."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import tensorlib as tl
from tensorlib._core.base.warned import warn_of
from tensorlib import Generator
from tensorlib.utils.data.fetch import fetcher_of
from tensorlib.utils.data.pool import Pool, error_of
from tensorlib.utils.data.sampler import draw_seed
from tensorlib.utils.data.worker import Plan

__all__ = ["LocalEpoch", "Position", "WorkerEpoch"]

END = object()         # where there are no more keys


class Position:
    """How far an epoch has come, and the states of the generators when it began."""

    def __init__(self, loader: Any) -> None:
        self.delivered = 0
        self.under_way = False
        self.default = tl.default_generator.get_state()
        self.own = [generator.get_state() for generator in own_generators(loader)]

    def state(self, loader: Any) -> dict[str, Any]:
        at = self if self.under_way else Position(loader)
        return {"batches": at.delivered, "under_way": at.under_way, "default": at.default,
                "generators": list(at.own)}

    @staticmethod
    def check(state: Any, loader: Any) -> None:
        if not isinstance(state, dict) or not {
                "batches", "under_way", "default", "generators"} <= set(state):
            raise ValueError("DataLoader.load_state_dict: expected what state_dict() returns")
        count = len(own_generators(loader))
        if len(state["generators"]) != count:
            raise ValueError(
                f"DataLoader.load_state_dict: the state is of a loader with "
                f"{len(state['generators'])} generators, this one has {count}")


def own_generators(loader: Any) -> list[Generator]:
    """The generators of a loader and its samplers, each once."""
    places = [loader, loader.sampler, loader.batch_sampler,
              getattr(loader.batch_sampler, "sampler", None)]
    found = [getattr(place, "generator", None) for place in places]
    return list({id(one): one for one in found if isinstance(one, Generator)}.values())


class Epoch(Iterator[Any]):
    """What both kinds of iterators share: the keys, and the count of batches.

    Several threads may take batches from one: each batch is given to one of them.
    """

    lock: threading.RLock                     # held while a batch is fetched

    def __new__(cls, loader: Any) -> Epoch:
        made = super().__new__(cls)
        made.lock = threading.RLock()
        return made

    def begin(self, loader: Any) -> None:
        """Starts an epoch, or goes on with one whose state the loader was given."""
        resumed, loader._resumed = loader._resumed, None
        now = tl.default_generator.get_state()
        skipped = 0
        if resumed is not None:
            for generator, state in zip(own_generators(loader), resumed["generators"]):
                generator.set_state(state)
            if resumed["under_way"]:
                skipped = resumed["batches"]
                tl.default_generator.set_state(resumed["default"])
        self.position = loader._position = Position(loader)
        self.position.under_way = True
        self.length = length_or_none(loader)
        self.limit = self.length if loader._iterable else None
        self.name = type(loader.dataset).__name__
        self.base_seed = draw_seed(loader.generator)
        self.keys = iter(loader._keys)
        self.skipped = 0 if loader._iterable else skipped
        deque(itertools.islice(self.keys, self.skipped), maxlen=0)
        self.position.delivered = self.skipped
        self.prepare(loader)
        if loader._iterable:                  # it has no positions: what came before is fetched
            deque(itertools.islice(self, skipped), maxlen=0)
        if resumed is not None and resumed["under_way"]:
            tl.default_generator.set_state(now)

    def prepare(self, loader: Any) -> None:
        """Makes ready for the first batch."""
        raise NotImplementedError

    def fetch(self) -> Any:
        """The next batch. Raises: StopIteration after the last."""
        raise NotImplementedError

    def __next__(self) -> Any:
        with self.lock:
            try:
                batch = self.fetch()
            except StopIteration:
                self.position.under_way = False
                raise
            self.position.delivered += 1
        if self.limit is not None and self.position.delivered > self.limit:
            warn_of(f"Length of IterableDataset {self.name} was reported to be {self.limit} "
                    "batches, but more have come. With workers, each gives all examples of its own "
                    "copy, unless __iter__ asks get_worker_info() for its part.", level=2)
            self.limit = None
        return batch

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError(f"DataLoader: {self.name} or its sampler has no length")
        return self.length


def length_or_none(loader: Any) -> int | None:
    """The number of batches, or None for a data set without a length."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


class LocalEpoch(Epoch):
    """The batches of an epoch, made in this process."""

    def __init__(self, loader: Any) -> None:
        self.begin(loader)

    def prepare(self, loader: Any) -> None:
        self.make = fetcher_of(loader.dataset, loader._iterable, loader._batched,
                               loader.collate_fn, loader.drop_last)

    def fetch(self) -> Any:
        return self.make(next(self.keys))


class WorkerEpoch(Epoch):
    """The batches of an epoch, made by worker processes.

    Each task gets one reply, and each worker answers in the order of its tasks. So it is enough to
    know the workers that owe a reply: `owing` has them in the order of the tasks.
    """

    def __init__(self, loader: Any) -> None:
        self.pool: Pool | None = None
        try:
            self.begin(loader)
        except BaseException:
            self.close()
            raise

    def restart(self, loader: Any) -> None:
        """A new epoch of the same processes."""
        self.begin(loader)

    @property
    def alive(self) -> bool:
        return self.pool is not None and self.pool.close.alive

    def close(self) -> None:
        """Ends the processes."""
        if self.pool is not None:
            self.pool.close()

    def prepare(self, loader: Any) -> None:
        if self.pool is None:
            self.pool = Pool(loader._workers_context, Plan(
                loader.dataset, loader._iterable, loader._batched, loader.collate_fn,
                loader.drop_last, loader.num_workers, self.base_seed, loader.worker_init_fn))
        self.pool.new_epoch()
        self.count, self.timeout = loader.num_workers, loader.timeout
        self.in_order, self.ahead = loader.in_order, loader.prefetch_factor or 2
        self.persistent = loader.persistent_workers
        self.owing: deque[int] = deque()
        self.turn = self.skipped % self.count         # whose turn it is to get a task
        self.done: set[int] = set()                   # whose iterable dataset has ended
        for _ in range(self.ahead * self.count):
            self.give()

    def give(self, worker: int | None = None) -> None:
        """Sends the next keys to a worker, by default to the one whose turn it is."""
        if len(self.done) == self.count:
            return
        while worker is None or worker in self.done:
            worker, self.turn = self.turn, (self.turn + 1) % self.count
        keys = next(self.keys, END)
        if keys is not END:
            self.pool.send(worker, keys)  # type: ignore[union-attr]
            self.owing.append(worker)

    def fetch(self) -> Any:
        if not self.alive:
            raise StopIteration
        try:
            return self.next_batch()
        except BaseException as error:
            ended = isinstance(error, StopIteration) and not self.persistent
            if ended or not isinstance(error, Exception):     # such as Ctrl-C
                self.close()
            raise

    def next_batch(self) -> Any:
        pool: Any = self.pool
        while self.owing:
            among = [self.owing[0]] if self.in_order else self.owing
            worker = pool.wait(among, self.timeout)
            self.owing.remove(worker)
            reply = pool.replies[worker].popleft()
            if reply.ended:
                self.done.add(worker)
            self.give(None if self.in_order else worker)
            if reply.error:
                raise error_of(reply) from None
            if not reply.ended:
                return reply.batch
        raise StopIteration
