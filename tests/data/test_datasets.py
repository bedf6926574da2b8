"""Datasets: which example stands where, and that whole batches are the same as single examples."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)
from tensorlib.utils.data.dataset import examples_of, many_method
from tensorlib.testing import assert_close

X, Y = tl.arange(24.0).reshape(12, 2), tl.arange(12)
POINTS = TensorDataset(X, Y)
INDICES = [7, 0, 7, -1, 3]


class Doubled(TensorDataset):
    """A subclass that changes the examples and nothing else."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return 2 * x, y


WHOLE = {
    "tensors": POINTS,
    "subset": Subset(POINTS, list(range(11, -1, -1))),
    "subset of a subset": Subset(Subset(POINTS, list(range(12))), list(range(0, 12))),
    "tuples": StackDataset(POINTS, TensorDataset(Y)),
    "dicts": StackDataset(points=POINTS, more=TensorDataset(Y)),
}
PARTLY = {
    "a subclass": Doubled(X, Y),
    "subset of one": Subset(Doubled(X, Y), list(range(12))),
    "beside a list": StackDataset(POINTS, list(range(12))),
    "joined": ConcatDataset([Subset(POINTS, range(5)), Doubled(X[5:], Y[5:])]),
    "numbers": Subset(range(12), range(12)),
}


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        a, b = list(a.values()), list(b.values())
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            assert_same(one, other)
    else:
        assert_close(a, b)


@each("name", [*WHOLE, *PARTLY])
def test_many_examples_are_those_one_by_one(name):
    dataset = {**WHOLE, **PARTLY}[name]
    single = [dataset[i] for i in INDICES]
    assert_same(examples_of(dataset, INDICES), single)
    whole = many_method(dataset, "__getbatch__")
    assert (whole is None) == (name in PARTLY)
    if whole:
        assert_same(whole(INDICES), default_collate(single))


def test_a_batch_of_tensors_is_one_indexing_of_each():
    class Counting(tl.Tensor):
        reads = 0

        def __getitem__(self, key):
            Counting.reads += 1
            return super().__getitem__(key)

    dataset = TensorDataset(Counting([[1.0], [2.0], [3.0]]), Counting([1, 2, 3]))
    assert len(list(tl.data.DataLoader(dataset, batch_size=3))) == 1
    assert Counting.reads == 2


def test_what_a_dataset_gives_is_counted():
    class Few(Dataset):
        def __getitem__(self, index):
            return index

        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match="Few.__getitems__: 2 indices gave 1 examples"):
        examples_of(Few(), [0, 1])


def test_concatenation():
    both = TensorDataset(Y[:4]) + TensorDataset(Y[4:]) + TensorDataset(Y[:0]) + TensorDataset(Y[:1])
    assert isinstance(both, ConcatDataset) and len(both) == 13
    assert [int(both[i][0]) for i in range(-13, 13)] == [*range(12), 0] * 2
    assert ConcatDataset(["ab", "", "c"]).cumulative_sizes == [2, 2, 3]
    for index in (13, -14):
        with pytest.raises(IndexError, match="out of range for 13 examples"):
            both[index]
        with pytest.raises(IndexError):
            both.__getitems__([0, index])


class Upto(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_chains():
    chain = Upto(2) + Upto(0) + Upto(3)
    assert list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(AssertionError, match="expected IterableDatasets, got TensorDataset"):
        list(ChainDataset([Upto(1), POINTS]))
    with pytest.raises(AssertionError, match="use ChainDataset"):
        ConcatDataset([POINTS, Upto(2)])


def test_a_subset_takes_arrays_and_tensors_of_indices():
    for indices in (np.array([3, 1]), tl.tensor([3, 1]), (3, 1)):
        part = Subset(POINTS, indices)
        assert int(part[0][1]) == 3 and len(part) == 2
        (batch,) = tl.data.DataLoader(part, batch_size=2)
        assert batch[1].tolist() == [3, 1]


@pytest.mark.parametrize("lengths, sizes", [
    ([9, 3], [9, 3]), ([12, 0], [12, 0]), ([0.5, 0.5], [6, 6]), ([0.7, 0.2, 0.1], [9, 2, 1]),
    ([1.0], [12])])
def test_random_splits(lengths, sizes):
    parts = random_split(POINTS, lengths, generator=tl.Generator().manual_seed(1))
    assert [len(part) for part in parts] == sizes
    assert sorted(int(y) for part in parts for _, y in part) == list(range(12))
    again = random_split(POINTS, lengths, generator=tl.Generator().manual_seed(1))
    assert [part.indices for part in parts] == [part.indices for part in again]


def test_an_empty_split_is_warned_about():
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(2), [0.9, 0.1])


@each("call, error, words", [
    (lambda: TensorDataset(), ValueError, "at least one tensor"),
    (lambda: TensorDataset(X, Y[:3]), AssertionError, "Size mismatch between .*12, 3 rows"),
    (lambda: TensorDataset(X, [1]), TypeError, "argument 1 must be a Tensor, not list"),
    (lambda: TensorDataset(tl.tensor(1.0)), ValueError, "argument 0 has no dimensions"),
    (lambda: StackDataset(), ValueError, "got none"),
    (lambda: StackDataset([1], a=[1]), ValueError, "got both"),
    (lambda: StackDataset([1], [1, 2]), ValueError, "size mismatch between datasets: .*1, 2"),
    (lambda: ConcatDataset([]), AssertionError, "at least one dataset"),
    (lambda: random_split(range(5), [3, 3]), ValueError, r"does not equal .*\[3, 3\] for 5"),
    (lambda: random_split(range(5), [6, -1]), ValueError, "not negative"),
    (lambda: random_split(range(5), [1.5, -0.5]), ValueError, "not between 0 and 1: 1.5"),
    (lambda: random_split(range(5), [2.5, 2.5]), ValueError, "whole and not negative"),
    (lambda: Dataset()[0], NotImplementedError, "defines __getitem__"),
    (lambda: iter(IterableDataset()), NotImplementedError, "defines __iter__"),
    (lambda: POINTS[12], IndexError, "out of range|out of bounds"),
    (lambda: POINTS.__getbatch__([12]), IndexError, "out of range|out of bounds"),
])
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_place_of_pytorch_has_the_same_names():
    import tensorlib.utils.data as there
    from tensorlib.utils.data.dataloader import DataLoader
    from tensorlib.utils.data.dataset import Dataset as found
    from tensorlib.utils.data.distributed import DistributedSampler
    from tensorlib.utils.data.sampler import RandomSampler

    assert found is Dataset and DataLoader is tl.data.DataLoader is tl.utils.data.DataLoader
    assert all(getattr(there, name) is getattr(tl.data, name) for name in tl.data.__all__)
    assert DistributedSampler is tl.data.DistributedSampler
    assert RandomSampler is tl.data.RandomSampler
