"""Gradients of several parameters in one stretch of memory, which is reduced as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorlib import Tensor, no_grad, zeros

MEGABYTE = 1 << 20
FIRST_MB = 1.0           # the first bucket is small, so that communication begins early


class GradBucket:
    """Gradients that are reduced together, as a communication hook sees them."""

    def __init__(self, index: int, places: list[int], parameters: Sequence[Tensor]) -> None:
        self.places = places                     # of its parameters among all of them
        self.own = [parameters[place] for place in places]
        self.sizes = [parameter.numel() for parameter in self.own]
        self.memory = zeros(sum(self.sizes), dtype=self.own[0].dtype)
        self.views = [part.view(parameter.shape)
                      for part, parameter in zip(self.memory.split(self.sizes), self.own)]
        self._index, self._is_last = index, False
        self.waiting = set(places)               # whose gradients are not here yet
        self.future: Any = None                  # of the reduction under way

    def index(self) -> int:
        """The number of the bucket, in the order of reduction."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, one after the other, as a vector."""
        return self.memory

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        return list(self.views)

    def parameters(self) -> list[Tensor]:
        """The parameters that they are of."""
        return list(self.own)

    def is_last(self) -> bool:
        """Whether it is the last to be reduced."""
        return self._is_last

    def set_buffer(self, tensor: Tensor) -> None:
        """Writes other gradients over those in the buffer."""
        with no_grad():
            self.memory.copy_(tensor)


def in_buckets(order: Sequence[int], parameters: Sequence[Tensor], megabytes: float
               ) -> list[GradBucket]:
    """The parameters in this order, cut into buckets of at most so many MB, of one dtype each."""
    buckets: list[GradBucket] = []
    open_of: dict[Any, tuple[list[int], int]] = {}
    limit = min(FIRST_MB, megabytes) * MEGABYTE
    groups: list[list[int]] = []
    for place in order:
        x = parameters[place]
        places, total = open_of.pop(x.dtype, ([], 0))
        if places and total + x.nbytes > limit:
            groups.append(places)
            places, total, limit = [], 0, megabytes * MEGABYTE
        places.append(place)
        open_of[x.dtype] = places, total + x.nbytes
    groups += [places for places, _ in open_of.values()]
    for places in groups:
        buckets.append(GradBucket(len(buckets), places, parameters))
    if buckets:
        buckets[-1]._is_last = True
    return buckets
