"""`DataLoader`: the batches of a dataset, made here or by worker processes."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import multiprocessing.context
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tensorlib import Generator
from tensorlib.utils.data.collate import default_collate, default_convert
from tensorlib.utils.data.dataset import Dataset, IterableDataset
from tensorlib.utils.data.iterators import Epoch, LocalEpoch, Position, WorkerEpoch
from tensorlib.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from tensorlib.utils.data.worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
# what libraries know as the iterators of a loader
_BaseDataLoaderIter, _SingleProcessDataLoaderIter = Epoch, LocalEpoch
_MultiProcessingDataLoaderIter = WorkerEpoch
_collate_fn_t, _worker_init_fn_t = Callable[[list[Any]], Any], Callable[[int], None]
FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class InfiniteSampler(Sampler[None]):
    """The keys of an iterable dataset, which needs none."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """The batches of a dataset, epoch after epoch.

    Each `iter(loader)` is a new epoch. Keys come from `batch_sampler`, or from `sampler` in groups
    of `batch_size`; `shuffle=True` stands for a `RandomSampler` with `generator`. `collate_fn`
    makes a list of examples a batch. With batch_size=None examples come one by one.

    With `num_workers`, that many processes fetch batches ahead, `prefetch_factor` each, and the
    tensors come through shared memory. Worker i draws its random numbers from a seed drawn from
    `generator`, plus i, so that an epoch is the same for the same seed. Batches come in the order
    of the sampler, unless `in_order` is False. `timeout` is how many seconds to wait for a batch.
    `pin_memory` makes no difference on a CPU.

    `state_dict` tells where in its epoch the loader is, and `load_state_dict` goes on from there.

    Raises: ValueError for arguments that exclude each other. From the iteration: what the dataset
    raises, in its own type and with the worker's traceback; RuntimeError for a worker that was
    killed and for a timeout.

    >>> squares = tensorlib.utils.data.TensorDataset(tensorlib.arange(5) ** 2)
    >>> [batch for (batch,) in tensorlib.utils.data.DataLoader(squares, batch_size=2)]
    [tensor([0, 1]), tensor([4, 9]), tensor([16])]
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    num_workers: int
    sampler: Any
    batch_sampler: Any
    generator: Generator | None

    def __init__(
        self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0, collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: _worker_init_fn_t | None = None,
        multiprocessing_context: Any = None, generator: Generator | None = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        check_keys(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None:
            source: Any = dataset
            sampler = (InfiniteSampler() if iterable else
                       RandomSampler(source, generator=generator) if shuffle else
                       SequentialSampler(source))
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.sampler, self.batch_sampler = dataset, sampler, batch_sampler
        self.batch_size, self.drop_last = batch_size, drop_last
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        if num_workers and prefetch_factor is None:
            self.prefetch_factor = 2
        self.collate_fn: Callable[[Any], Any] = collate_fn or (
            default_convert if batch_sampler is None else default_collate)
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn, self.generator = timeout, worker_init_fn, generator
        self.in_order, self.persistent_workers = in_order, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._iterator: WorkerEpoch | None = None
        self._position: Position | None = None
        self._resumed: dict[str, Any] | None = None
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and getattr(self, "_made", False):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is "
                             "initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started: None, or a context of `multiprocessing`, which has a name too.

        Raises: ValueError for an unknown name, and without workers; TypeError for another kind.
        """
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None and not self.num_workers:
            raise ValueError("DataLoader: multiprocessing_context can only be used with "
                             f"num_workers > 0, got num_workers={self.num_workers}")
        if isinstance(value, str):
            if value not in multiprocessing.get_all_start_methods():
                raise ValueError(
                    "DataLoader: multiprocessing_context should be one of "
                    f"{multiprocessing.get_all_start_methods()}, got {value!r}")
            value = multiprocessing.get_context(value)
        if value is not None and not isinstance(value, multiprocessing.context.BaseContext):
            raise TypeError("DataLoader: multiprocessing_context should be a valid context object "
                            f"or its name, got {type(value).__name__}")
        self._context = value

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    @property
    def _keys(self) -> Any:
        """The sampler that an iteration asks for keys: those of batches, or of examples."""
        return self.batch_sampler if self._batched else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return LocalEpoch(self)
        if not self.persistent_workers:
            return WorkerEpoch(self)
        if self._iterator is None or not self._iterator.alive:
            self._iterator = WorkerEpoch(self)
        else:
            self._iterator.restart(self)
        return self._iterator

    def __len__(self) -> int:
        """How many batches an epoch has. Raises: TypeError where a part of it has no length."""
        if not self._iterable:
            return len(self._keys)
        size = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else math.ceil(size / self.batch_size)

    # ---- where it is ---------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is in the epoch of the last iterator: plain containers and tensors.

        It holds the states of the generators when the epoch began and the number of batches that
        came since. Draws made in workers are not part of it.

        >>> loader = tensorlib.utils.data.DataLoader(range(8), batch_size=2, shuffle=True)
        >>> first = next(batches := iter(loader))
        >>> state = loader.state_dict()
        >>> rest = list(batches)
        >>> loader.load_state_dict(state)
        >>> all(bool((a == b).all()) for a, b in zip(loader, rest, strict=True))
        True
        """
        if self._resumed is not None:
            return dict(self._resumed)
        return (self._position or Position(self)).state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iterator go on where `state_dict` was asked for.

        Raises: ValueError for anything else, or the state of a loader with other generators.
        """
        Position.check(state_dict, self)
        self._resumed = dict(state_dict)

    @property
    def _workers_context(self) -> Any:
        return self._context or multiprocessing.get_context()


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool,
) -> None:
    """Raises ValueError for options of workers that are invalid or exclude each other."""
    if num_workers < 0:
        raise ValueError("DataLoader: num_workers option should be non-negative; use num_workers=0 "
                         f"to disable multiprocessing, got {num_workers}")
    if not timeout >= 0:                  # also of NaN
        raise ValueError(f"DataLoader: timeout option should be non-negative, got {timeout}")
    if prefetch_factor is not None and not num_workers:
        raise ValueError("DataLoader: prefetch_factor option could only be specified with workers; "
                         "set num_workers > 0 or leave prefetch_factor out")
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError("DataLoader: prefetch_factor option should be positive, got "
                         f"{prefetch_factor}")
    if persistent_workers and not num_workers:
        raise ValueError("DataLoader: persistent_workers option needs num_workers > 0")


def check_keys(
    iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Raises ValueError for options of sampling that exclude each other."""
    if iterable:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler),
                            ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} "
                                 f"option, but got {name}={value}")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("DataLoader: batch_sampler option is mutually exclusive with batch_size, "
                         "shuffle, sampler, and drop_last")
    if batch_size is None and drop_last:
        raise ValueError("DataLoader: batch_size=None option disables auto-batching and is "
                         "mutually exclusive with drop_last")
