"""Datasets, loaders and files, as type checkers see them in their strict modes."""

from collections.abc import Iterator
from typing import Any, assert_type

import tensorlib as tl
import tensorlib.utils.data as data
from tensorlib import Tensor
from tensorlib.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return tl.full((2,), float(index)), index


class Letters(IterableDataset[str]):
    def __iter__(self) -> Iterator[str]:
        return iter("abc")


train, held_out = random_split(Squares(), [0.8, 0.2], generator=tl.Generator().manual_seed(3))
loader = DataLoader(train, batch_size=4, shuffle=True, num_workers=0, drop_last=True)
for x, y in loader:
    print(x.shape, y)
letters: DataLoader[str] = DataLoader(Letters(), batch_size=None)
points = TensorDataset(tl.ones(3), tl.ones(3))
assert_type(points[0], tuple[Tensor, ...])
assert_type(len(loader), int)
assert_type(list(data.RandomSampler(points, generator=tl.Generator())), list[int])
assert_type(list(data.BatchSampler(range(5), 2, False)), list[list[int]])
assert_type(held_out[0], tuple[Tensor, int])
assert_type(loader.state_dict(), dict[str, Any])
info = data.get_worker_info()
if info is not None:
    assert_type(info.id, int)
tl.save({"w": tl.ones(2)}, "/dev/null")
try:
    state = tl.load("/dev/null", weights_only=True, map_location="cpu")
except tl.serialization.LoadError as error:
    print(error)
