"""Samplers: in which order the examples of a dataset come, and which of them make a batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import tensorlib as tl
from tensorlib import Generator, Tensor
from tensorlib.utils.data.permutation import CHUNK, permuted

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler"]

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base class of samplers, which define `__iter__`, over keys of examples, and `__len__`."""

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: a Sampler defines __iter__()")


class SequentialSampler(Sampler[int]):
    """All positions of a dataset in their order.

    >>> list(tensorlib.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Positions of a dataset in a random order, or drawn with `replacement`.

    `num_samples` says how many there are, by default as many as examples. Without replacement, each
    example comes once before any comes again. Nothing is drawn before it is needed, and memory does
    not grow with the dataset beyond some 4 million examples. Without a `generator`, one is seeded
    from the default generator when the iteration begins.

    Raises: TypeError for a replacement that is not a bool, ValueError for a num_samples below 1 and
    for an empty dataset.

    >>> sorted(tensorlib.utils.data.RandomSampler("abc"))
    [0, 1, 2]
    >>> endless = tensorlib.utils.data.RandomSampler("abc", num_samples=10**10)
    >>> len(endless), next(iter(endless)) in (0, 1, 2)
    (10000000000, True)
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        if not isinstance(replacement, bool):
            raise TypeError("RandomSampler: replacement should be a boolean value, got "
                            f"{replacement!r}")
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        checked_count("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many positions an iteration gives; of the dataset as it is now, if not said."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        generator = self.generator or seeded_from_default()
        if size == 0:
            raise ValueError(f"RandomSampler: {count} examples of an empty dataset")
        return itertools.islice(self._endless(size, generator), count)

    def _endless(self, size: int, generator: Generator) -> Iterator[int]:
        while size:
            if self.replacement:
                yield from tl.randint(0, size, (CHUNK,), generator=generator).tolist()
            else:
                yield from permuted(size, generator)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given positions in a random order.

    >>> sorted(tensorlib.utils.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in permuted(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Positions drawn with probabilities in proportion to their weights.

    Without replacement, no position comes twice. Raises: ValueError for a num_samples below 1, for
    weights that are not a 1-d sequence, and for a replacement that is not a bool.

    >>> set(tensorlib.utils.data.WeightedRandomSampler([0.0, 3.0, 1.0], 20)) <= {1, 2}
    True
    """

    weights: Tensor

    def __init__(
        self, weights: Sequence[float] | Tensor, num_samples: int, replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.num_samples = checked_count("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError("WeightedRandomSampler: replacement should be a boolean value, got "
                             f"{replacement!r}")
        self.replacement = replacement
        self.weights = tl.as_tensor(weights, dtype=tl.float64)
        self.generator = generator
        if self.weights.ndim != 1:
            raise ValueError("WeightedRandomSampler: weights must have one dimension, got shape "
                             f"{tuple(self.weights.shape)}")

    def __iter__(self) -> Iterator[int]:
        chunk = CHUNK if self.replacement else self.num_samples
        for start in range(0, self.num_samples, chunk):
            count = min(chunk, self.num_samples - start)
            yield from tl.multinomial(
                self.weights, count, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` keys that a sampler gives; the last is shorter, or is dropped.

    Raises: ValueError for a batch_size below 1 and a drop_last that is not a bool.

    >>> list(tensorlib.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = checked_count("BatchSampler", "batch_size", batch_size)
        self.drop_last = drop_last
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last must be a bool, got {drop_last!r}")

    def __iter__(self) -> Iterator[list[int]]:
        keys = iter(self.sampler)
        while batch := list(itertools.islice(keys, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


def seeded_from_default() -> Generator:
    """A new generator, with a seed that is drawn from the default generator."""
    return Generator().manual_seed(draw_seed(None))


def draw_seed(generator: Generator | None) -> int:
    """A seed from a generator, by default the default one."""
    return int(tl.randint(0, 2**62, (), generator=generator))


def checked_count(name: str, argument: str, value: Any) -> int:
    """A whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name}: {argument} should be a positive integer value, got {value!r}")
    return value
