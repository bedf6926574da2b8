"""The generator of random numbers, under the names of `torch.random`, and a fork of it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorlib import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state"]


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True,
             device_type: str = "cuda") -> Iterator[None]:
    """A context that leaves the generator as it was before, whatever is drawn inside.

    There are no generators of other devices: `devices` and `device_type` make no difference.

    >>> with fork_rng():
    ...     _ = tensorlib.rand(3)
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
