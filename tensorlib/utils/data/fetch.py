"""Fetching a batch by its keys, in the loader's process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from tensorlib.utils.data.collate import default_collate
from tensorlib.utils.data.dataset import examples_of, many_method

__all__ = ["fetcher_of"]


def fetcher_of(
    dataset: Any, iterable: bool, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool,
) -> Callable[[Any], Any]:
    """A function from what the sampler gave to a batch, or to one example if not `batched`.

    It raises StopIteration where an iterable dataset has no more.
    """
    if iterable:
        return iterating(dataset, batched, collate_fn, drop_last)
    if not batched:
        return guarded(lambda key: collate_fn(dataset[key]))
    whole = many_method(dataset, "__getbatch__") if collate_fn is default_collate else None
    return guarded(whole or (lambda keys: collate_fn(examples_of(dataset, keys))))


def guarded(fetch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`fetch`, whose StopIteration can't be taken for the end of the epoch."""
    def call(keys: Any) -> Any:
        try:
            return fetch(keys)
        except StopIteration as error:
            raise RuntimeError(
                f"DataLoader: the dataset raised StopIteration for {keys}") from error
    return call


def iterating(
    dataset: Any, batched: bool, collate_fn: Callable[[Any], Any], drop_last: bool,
) -> Callable[[Any], Any]:
    """A function that takes the next examples of an IterableDataset, one for each key."""
    examples = iter(dataset)

    def fetch(keys: Any) -> Any:
        if not batched:
            return collate_fn(next(examples))
        batch = list(islice(examples, len(keys)))
        if not batch or (drop_last and len(batch) < len(keys)):
            raise StopIteration
        return collate_fn(batch)
    return fetch
