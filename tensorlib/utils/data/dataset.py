"""Datasets: what a `DataLoader` takes its examples from.

A dataset is an object with `__getitem__`, or an `IterableDataset` with `__iter__`. Two more methods
make many examples cheap, and are used where a dataset has them:

- `__getitems__(indices)` gives a list of examples, in one call;
- `__getbatch__(indices)` gives them collated, as `default_collate` would. A `TensorDataset` indexes
  each of its tensors once for it, whatever the size of the batch.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

import tensorlib as tl
from tensorlib._core.base.warned import warn_of
from tensorlib import Generator, Tensor
from tensorlib._core.base.error_names import type_name

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SupportsGetItem(Protocol[T_co]):
    """What gives an example for a key, such as a dataset, a list or a text."""

    def __getitem__(self, index: Any, /) -> T_co: ...


class Dataset(Generic[T_co]):
    """What maps a key, most often a position, to an example. Subclasses define `__getitem__`.

    They should define `__len__` too, which samplers ask for. `a + b` is a `ConcatDataset`.

    >>> class Squares(tensorlib.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index ** 2
    ...     def __len__(self):
    ...         return 5
    >>> [batch.tolist() for batch in tensorlib.utils.data.DataLoader(Squares(), batch_size=3)]
    [[0, 1, 4], [9, 16]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(
            f"{type(self).__name__}: a Dataset defines __getitem__(index), which returns an "
            "example")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """What gives its examples in an order of its own. Subclasses define `__iter__`.

    In a `DataLoader` with workers each worker iterates over a copy of the dataset. For each example
    to come once, `__iter__` asks `get_worker_info()` which part is its own.

    >>> class Count(tensorlib.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         info = tensorlib.utils.data.get_worker_info()
    ...         first, step = (info.id, info.num_workers) if info else (0, 1)
    ...         return iter(range(first, 5, step))
    >>> [batch.tolist() for batch in tensorlib.utils.data.DataLoader(Count(), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: an IterableDataset defines __iter__(), which returns an "
            "iterator over examples")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


def many_method(dataset: Any, name: str) -> Callable[[Any], Any] | None:
    """The method `__getitems__` or `__getbatch__` of a dataset, or None where it does not hold.

    It does not where a subclass defines `__getitem__` anew, to transform examples for instance,
    and leaves the method as its base class has it.
    """
    method = getattr(dataset, name, None)
    if not callable(method):
        return None
    for kind in type(dataset).__mro__:
        if name in vars(kind):
            break
        if "__getitem__" in vars(kind):
            return None
    return cast("Callable[[Any], Any]", method)


def examples_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The examples at `indices`, by one call where the dataset has `__getitems__`."""
    many = many_method(dataset, "__getitems__")
    if many is None:
        return [dataset[index] for index in indices]
    found = many(indices)
    if len(found) != len(indices):
        raise ValueError(
            f"{type(dataset).__name__}.__getitems__: {len(indices)} indices gave {len(found)} "
            "examples")
    return cast("list[Any]", found)


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of some tensors: example i is the tuple of each tensor's row i.

    A batch is one indexing of each tensor. Raises: ValueError for no tensors and for tensors that
    differ in length, TypeError for what is not a tensor.

    >>> places, values = tensorlib.arange(6).view(3, 2), tensorlib.ones(3)
    >>> points = tensorlib.utils.data.TensorDataset(places, values)
    >>> points[1]
    (tensor([2, 3]), tensor(1.))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"TensorDataset: argument {i} must be a Tensor, not {type_name(tensor)}")
            if tensor.ndim == 0:
                raise ValueError(f"TensorDataset: argument {i} has no dimensions, so no rows")
        if not tensors:
            raise ValueError("TensorDataset: expected at least one tensor")
        if len({len(tensor) for tensor in tensors}) > 1:
            raise AssertionError("TensorDataset: Size mismatch between tensors: they have "
                                 f"{', '.join(str(len(tensor)) for tensor in tensors)} rows")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, ...]]:
        at = positions(indices)
        return list(zip(*(tensor[at].unbind(0) for tensor in self.tensors)))

    def __getbatch__(self, indices: Sequence[int]) -> list[Tensor]:
        at = positions(indices)
        return [tensor[at] for tensor in self.tensors]

    def __len__(self) -> int:
        return len(self.tensors[0])


def positions(indices: Sequence[int]) -> Tensor:
    """A tensor of positions, which is made once however many tensors are indexed by it."""
    return tl.tensor(indices, dtype=tl.int64)


class StackDataset(Dataset[Any]):
    """Datasets side by side: example i is a tuple, or a dict, of each dataset's example i.

    Raises: ValueError for datasets that differ in length, for none, and for both kinds of argument.

    >>> images, labels = ["cat.png", "dog.png"], [0, 1]
    >>> tensorlib.utils.data.StackDataset(images, labels)[1]
    ('dog.png', 1)
    >>> tensorlib.utils.data.StackDataset(image=images, label=labels)[0]
    {'image': 'cat.png', 'label': 0}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: expected datasets either as positional arguments, for tuples, or as "
                f"keywords, for dicts; got {'both' if args else 'none'}")
        found: Any = args or kwargs
        lengths = [len(dataset) for dataset in (args or kwargs.values())]
        if len(set(lengths)) > 1:
            raise ValueError("StackDataset: size mismatch between datasets: they have "
                             f"{', '.join(map(str, lengths))} examples")
        self._length = lengths[0]
        self.datasets = found

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [examples_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(examples_of(dataset, indices) for dataset in self.datasets)))

    @property
    def __getbatch__(self) -> Callable[[Sequence[Any]], Any] | None:
        """None unless each of the datasets has a batch."""
        if isinstance(self.datasets, dict):
            by_key = {key: many_method(dataset, "__getbatch__")
                      for key, dataset in self.datasets.items()}
            if None in by_key.values():
                return None
            return lambda indices: {key: cast(Any, get)(indices) for key, get in by_key.items()}
        found = [many_method(dataset, "__getbatch__") for dataset in self.datasets]
        if None in found:
            return None
        return lambda indices: [cast(Any, get)(indices) for get in found]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other. Raises: AssertionError for none and for an iterable one.

    >>> both = tensorlib.utils.data.ConcatDataset(["ab", "cde"])
    >>> len(both), both[1], both[-1]
    (5, 'b', 'e')
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: expected at least one dataset")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError("ConcatDataset: an IterableDataset has no positions; use "
                                     "ChainDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """How many examples there are up to the end of each dataset."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def _place(self, index: int) -> tuple[int, int]:
        """Which dataset has the example, and at which position."""
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"ConcatDataset: index {index} is out of range for {len(self)} "
                             "examples")
        which = bisect.bisect_right(self.cumulative_sizes, at)
        return which, at - (self.cumulative_sizes[which - 1] if which else 0)

    def __getitem__(self, index: int) -> T_co:
        which, at = self._place(index)
        return cast("T_co", self.datasets[which][at])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        places = [self._place(index) for index in indices]
        examples: list[Any] = [None] * len(places)
        for which in {which for which, _ in places}:
            mine = [i for i, (owner, _) in enumerate(places) if owner == which]
            found = examples_of(self.datasets[which], [places[i][1] for i in mine])
            for i, example in zip(mine, found):
                examples[i] = example
        return examples

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes`, as PyTorch once spelt it."""
        warn_of("cummulative_sizes attribute is renamed to cumulative_sizes",
                DeprecationWarning, level=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other, each begun when the one before has ended.

    Raises: AssertionError, when it is iterated over or asked for its length, for another kind.

    >>> class Letters(tensorlib.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> list(Letters() + Letters())
    ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset: expected IterableDatasets, got "
                                     f"{type(dataset).__name__}")
            yield dataset


class Subset(Dataset[T_co]):
    """The examples of a dataset at some positions.

    >>> list(tensorlib.utils.data.Subset("abcdef", [4, 0]))
    ['e', 'a']
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: SupportsGetItem[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return cast("T_co", self.dataset[[self.indices[i] for i in index]])
        return cast("T_co", self.dataset[self.indices[index]])

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        return examples_of(self.dataset, [self.indices[i] for i in indices])

    @property
    def __getbatch__(self) -> Callable[[Sequence[int]], Any] | None:
        """None unless the dataset has a batch."""
        get = many_method(self.dataset, "__getbatch__")
        return get and (lambda indices: get([self.indices[i] for i in indices]))

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None,
) -> list[Subset[T]]:
    """The examples of a dataset dealt out at random into subsets of the given lengths.

    Lengths that are fractions, with a sum of 1, are rounded down; what is left over goes to the
    subsets one each, from the first on. Raises: ValueError for lengths that do not add up to the
    dataset's, and for fractions outside [0, 1].

    >>> parts = tensorlib.utils.data.random_split(range(10), [0.75, 0.25])
    >>> [len(part) for part in parts], sorted(x for part in parts for x in part)
    ([8, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    size = len(cast(Any, dataset))
    counts = fractions_of(size, lengths) if math.isclose(sum(lengths), 1) else list(lengths)
    if any(not isinstance(count, int) or count < 0 for count in counts) or sum(counts) != size:
        raise ValueError(
            f"random_split: sum of input lengths does not equal the length of the input dataset: "
            f"{list(lengths)} for {size} examples; lengths are whole and not negative, or are "
            "fractions with a sum of 1")
    order = tl.randperm(size, generator=generator).tolist()
    ends = list(itertools.accumulate(cast("list[int]", counts)))
    return [Subset(dataset, order[start:end]) for start, end in zip([0, *ends], ends)]


def fractions_of(size: int, fractions: Sequence[float]) -> list[int]:
    """Whole lengths in the given proportions."""
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"random_split: fraction at index {i} is not between 0 and 1: "
                             f"{fraction}")
    counts = [math.floor(size * fraction) for fraction in fractions]
    for i in range(size - sum(counts)):
        counts[i % len(counts)] += 1
    for i, count in enumerate(counts):
        if count == 0:
            warn_of(f"Length of split at index {i} is 0. This might result in an empty "
                    "dataset.", level=3)
    return counts
