"""A sampler for one of several processes, of which each trains on its share of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from itertools import islice

from tensorlib import Generator, distributed
from tensorlib.utils.data.permutation import permuted
from tensorlib.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The share of process `rank` of `num_replicas` in the positions of a dataset.

    The processes take turns. All shares have the same length: with drop_last the last few positions
    are left out, else the first few come again. The order is a permutation drawn from `seed` and
    the epoch, which `set_epoch` sets before each epoch; the processes agree on it without a word.

    num_replicas and rank are those of the process group, unless they are given. Raises:
    RuntimeError where there is none, ValueError for a rank outside [0, num_replicas).

    >>> from tensorlib.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None,
        shuffle: bool = True, seed: int = 0, drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            if not distributed.is_initialized():
                raise RuntimeError("DistributedSampler: there is no process group to ask; call "
                                   "init_process_group(), or give num_replicas and rank")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank {rank} is not in [0, {num_replicas})")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        size = len(dataset)
        self.num_samples = size // num_replicas if drop_last else math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        return islice(self._padded(), self.rank, self.total_size, self.num_replicas)

    def _padded(self) -> Iterator[int]:
        """The order of all processes together, again and again."""
        size = len(self.dataset)
        while size:
            generator = Generator().manual_seed(self.seed + self.epoch)
            yield from permuted(size, generator) if self.shuffle else range(size)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration take the order of that epoch."""
        self.epoch = epoch
