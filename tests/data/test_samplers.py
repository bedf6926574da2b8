"""Samplers: each position as often as it should come, the same for the same seed, and no sooner."""

import itertools
from collections import Counter

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    permutation,
)


def seeded(seed=0):
    return tl.Generator().manual_seed(seed)


class Sized:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size


SHUFFLED = {
    "random": lambda generator: RandomSampler(range(40), generator=generator),
    "subset": lambda generator: SubsetRandomSampler(range(100, 140), generator=generator),
    "weighted": lambda generator: WeightedRandomSampler([1.0] * 40, 40, False, generator=generator),
    "with replacement": lambda generator: RandomSampler(range(40), True, generator=generator),
    "weighted, with": lambda generator: WeightedRandomSampler([1.0] * 40, 40, generator=generator),
}


@each("name", SHUFFLED)
def test_a_seed_gives_the_order(name):
    make = SHUFFLED[name]
    generator = seeded(3)
    first, second = list(make(generator)), list(make(generator))
    assert first == list(make(seeded(3))) and first != second != list(make(seeded(4)))
    assert len(make(None)) == len(list(make(None))) == 40
    tl.manual_seed(5)
    default = list(make(None))
    tl.manual_seed(5)
    assert default == list(make(None))
    if "with" not in name.replace("weighted", ""):
        assert sorted(first) == sorted(second) and len(set(first)) == 40


@pytest.mark.parametrize("size, count, replacement", [
    (10, 25, False), (10, 3, False), (1, 5, True), (10, 5000, True), (7, None, False)])
def test_how_often_positions_come(size, count, replacement):
    sampler = RandomSampler(range(size), replacement, count, generator=seeded())
    found = Counter(sampler)
    assert found.total() == len(sampler) == (count or size) and set(found) <= set(range(size))
    if not replacement:
        assert max(found.values()) - min(found[i] for i in range(size)) <= 1


@pytest.mark.parametrize("size, count, replacement", [
    (3, 10**10, True), (3, 10**10, False), (10**10, None, False), (10**15, 10**18, True)])
def test_nothing_is_drawn_before_it_is_needed(size, count, replacement):
    sampler = RandomSampler(Sized(size), replacement, count)
    found = list(itertools.islice(sampler, 10_000))
    assert len(sampler) == (count or size) and all(0 <= i < size for i in found)
    if size > 10**9 and not replacement:
        assert len(set(found)) == 10_000 and max(found) > size // 2


@given(st.integers(1, 3000), st.integers(0, 2**32))
def test_permutations_beyond_memory_are_permutations(size, seed):
    before, permutation.IN_MEMORY = permutation.IN_MEMORY, 0
    try:
        found = list(permutation.permuted(size, seeded(seed)))
    finally:
        permutation.IN_MEMORY = before
    assert sorted(found) == list(range(size))


def test_weights():
    sampler = WeightedRandomSampler([0.0, 3.0, 1.0, 0.0], 4000, generator=seeded())
    found = Counter(sampler)
    assert set(found) == {1, 2} and 2.5 < found[1] / found[2] < 3.6
    once = WeightedRandomSampler([0.0, 3.0, 1.0, 2.0], 3, replacement=False, generator=seeded())
    assert sorted(once) == [1, 2, 3]


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_keys(drop_last):
    sampler = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
    assert list(sampler) == [[0, 1, 2], [3, 4, 5]] + [[6]] * (not drop_last)
    assert len(sampler) == len(list(sampler))
    assert list(BatchSampler(["b", "a"], 2, drop_last)) == [["b", "a"]]


@given(st.integers(1, 40), st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 3))
def test_shares_of_processes(size, replicas, shuffle, drop_last, epoch):
    shares = [DistributedSampler(Sized(size), replicas, rank, shuffle, 5, drop_last)
              for rank in range(replicas)]
    for share in shares:
        share.set_epoch(epoch)
    lists = [list(share) for share in shares]
    assert {len(found) for found in lists} == {len(share) for share in shares}
    together = list(itertools.chain.from_iterable(zip(*lists)))
    count = size // replicas * replicas if drop_last else -(-size // replicas) * replicas
    assert len(together) == count
    assert all(number in (count // size, -(-count // size))
               for number in Counter(together).values())
    if not shuffle:
        assert together == [i % size for i in range(count)]


def test_epochs_differ():
    share = DistributedSampler(range(50), 2, 0)
    first = list(share)
    assert first == list(share)
    share.set_epoch(1)
    assert first != list(share)


@each("call, error, words", [
    (lambda: RandomSampler([1], num_samples=0), ValueError, "num_samples should be a positive"),
    (lambda: RandomSampler([1], num_samples=2.0), ValueError, "num_samples should be a positive"),
    (lambda: RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean"),
    (lambda: list(RandomSampler([], num_samples=2)), ValueError, "2 examples of an empty dataset"),
    (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive"),
    (lambda: BatchSampler([1], True, False), ValueError, "batch_size should be a positive"),
    (lambda: BatchSampler([1], 1, 0), ValueError, "drop_last must be a bool"),
    (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive"),
    (lambda: RandomSampler([]), ValueError, "num_samples should be a positive .*, got 0"),
    (lambda: WeightedRandomSampler([1.0], 1, 2), ValueError, "replacement should be a boolean"),
    (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"one dimension, got shape \(1, 1\)"),
    (lambda: DistributedSampler([1]), RuntimeError, "give num_replicas and rank"),
    (lambda: DistributedSampler([1], 2, 2), ValueError, r"rank 2 is not in \[0, 2\)"),
    (lambda: iter(Sampler()), NotImplementedError, "defines __iter__"),
])
def test_bad_arguments_of_samplers(call, error, words):
    with pytest.raises(error, match=words):
        call()
