"""The DataLoader in one process: batches, their structure, the epochs, and where it goes on."""

from collections import OrderedDict, namedtuple
from types import MappingProxyType

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    default_collate,
    default_convert,
)
from tensorlib.testing import assert_close

Pair = namedtuple("Pair", "a b")
NUMBERS = TensorDataset(tl.arange(10))


class Upto(IterableDataset):
    def __init__(self, n, length=None):
        self.n, self.length = n, length

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n if self.length is None else self.length


def values(loader):
    return [batch.tolist() for (batch,) in loader]


def test_batches():
    assert values(DataLoader(NUMBERS, 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert values(DataLoader(NUMBERS, 4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert values(DataLoader(NUMBERS, sampler=[3, 1], batch_size=1)) == [[3], [1]]
    assert values(DataLoader(NUMBERS, batch_sampler=[[3, 1], [2]])) == [[3, 1], [2]]
    assert [x.tolist() for x, in DataLoader(NUMBERS, batch_size=None)] == list(range(10))
    assert list(DataLoader({"a": 5, "b": 7}, sampler=["b", "a"], batch_size=None)) == [7, 5]
    assert [b.tolist() for b in DataLoader(Upto(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Upto(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Upto(3), batch_size=None)) == [0, 1, 2]
    assert list(DataLoader(NUMBERS, 5, collate_fn=len)) == [5, 5]


@pytest.mark.parametrize("size, drop_last, length", [
    (4, False, 3), (4, True, 2), (None, False, 10)])
def test_lengths(size, drop_last, length):
    for dataset in (NUMBERS, Upto(10)):
        loader = DataLoader(dataset, size, drop_last=drop_last)
        assert len(loader) == len(iter(loader)) == len(list(loader)) == length


def test_no_length_where_there_is_none():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter(int, 1)

    loader = DataLoader(Endless(), 2)
    assert next(iter(loader)).tolist() == [0, 0]
    for one in (loader, iter(loader)):
        with pytest.raises(TypeError):
            len(one)


def test_shuffles():
    def epochs(seed):
        loader = DataLoader(NUMBERS, 4, shuffle=True, generator=tl.Generator().manual_seed(seed))
        return [values(loader) for _ in range(3)]
    first = epochs(1)
    assert first == epochs(1) and first != epochs(2) and first[0] != first[1]
    assert all(sorted(sum(epoch, [])) == list(range(10)) for epoch in first)


EXAMPLES = {
    "tensors": [tl.ones(2), tl.zeros(2)],
    "arrays": [np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)],
    "NumPy's numbers": [np.float32(1.5), np.float32(2)],
    "floats": [1.5, 2.0], "ints": [1, 2**40], "bools": [True, False],
    "strings": ["a", "b"], "bytes": [b"a", b"b"],
    "tuples": [(1, "a"), (2, "b")], "lists": [[1, 2.0], [3, 4.0]],
    "named tuples": [Pair(1, (2,)), Pair(3, (4,))],
    "dicts": [{"x": tl.ones(1), "y": {"z": 1}}, {"x": tl.zeros(1), "y": {"z": 2}}],
    "ordered dicts": [OrderedDict(a=1), OrderedDict(a=2)],
    "read-only mappings": [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
    "ranges": [range(2), range(2)],
}
WANTED = {
    "tensors": tl.tensor([[1.0, 1], [0, 0]]),
    "arrays": tl.stack([tl.ones(2, 2), tl.zeros(2, 2)]),
    "NumPy's numbers": tl.tensor([1.5, 2]),
    "floats": tl.tensor([1.5, 2], dtype=tl.float64), "ints": tl.tensor([1, 2**40]),
    "bools": tl.tensor([True, False]), "strings": ["a", "b"], "bytes": [b"a", b"b"],
    "tuples": [tl.tensor([1, 2]), ("a", "b")],
    "lists": [tl.tensor([1, 3]), tl.tensor([2.0, 4], dtype=tl.float64)],
    "named tuples": Pair(tl.tensor([1, 3]), [tl.tensor([2, 4])]),
    "dicts": {"x": tl.tensor([[1.0], [0]]), "y": {"z": tl.tensor([1, 2])}},
    "ordered dicts": OrderedDict(a=tl.tensor([1, 2])),
    "read-only mappings": MappingProxyType({"a": tl.tensor([1, 2])}),
    "ranges": [tl.tensor([0, 0]), tl.tensor([1, 1])],
}


def assert_alike(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, tl.Tensor):
        assert found.dtype == wanted.dtype
        assert_close(found, wanted)
    elif hasattr(wanted, "keys"):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_alike(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)) and not all(isinstance(w, (str, bytes)) for w in wanted):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            assert_alike(one, other)
    else:
        assert found == wanted


@each("name", EXAMPLES)
def test_the_structure_of_batches(name):
    assert_alike(default_collate(EXAMPLES[name]), WANTED[name])
    (batch,) = DataLoader(EXAMPLES[name], batch_size=2)
    assert_alike(batch, WANTED[name])


def test_without_batches_arrays_become_tensors():
    found = default_convert({"a": (np.ones(2), "b", [np.int64(3)]), "n": Pair(np.zeros(1), None)})
    assert_alike(found, {"a": [tl.ones(2, dtype=tl.float64), "b", [tl.tensor(3)]],
                         "n": Pair(tl.zeros(1, dtype=tl.float64), None)})


@pytest.mark.parametrize("batch, error, words", [
    ([tl.ones(2), tl.ones(3)], RuntimeError, r"one shape, got \(2,\) and \(3,\)"),
    ([(1, 2), (1,)], RuntimeError, "equal size, got lengths 1, 2"),
    ([object()], TypeError, "found <class 'object'>"),
    ([None], TypeError, "found <class 'NoneType'>"),
    ([np.array(["a"])], TypeError, "an array of <U1"),
    ([{"a": 1}, {"b": 1}], KeyError, "a"),
])
def test_what_does_not_make_a_batch(batch, error, words):
    with pytest.raises(error, match=words):
        default_collate(batch)


@each("options, words", [
    ({"num_workers": -1}, "num_workers option should be non-negative"),
    ({"timeout": -1}, "timeout option should be non-negative"),
    ({"timeout": float("nan")}, "timeout option should be non-negative, got nan"),
    ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
    ({"prefetch_factor": 0, "num_workers": 1}, "prefetch_factor option should be positive"),
    ({"persistent_workers": True}, "persistent_workers option needs"),
    ({"sampler": [1], "shuffle": True}, "mutually exclusive with shuffle"),
    ({"batch_sampler": [[1]], "batch_size": 2}, "mutually exclusive with batch_size"),
    ({"batch_sampler": [[1]], "drop_last": True}, "mutually exclusive with batch_size"),
    ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
    ({"batch_size": 0}, "batch_size should be a positive"),
    ({"batch_size": 2.0}, "batch_size should be a positive"),
    ({"multiprocessing_context": "fork"}, "only be used with num_workers > 0"),
    ({"multiprocessing_context": "spoon", "num_workers": 1}, "should be one of"),
    ({"dataset": Upto(3), "shuffle": True}, "expected unspecified shuffle"),
    ({"dataset": Upto(3), "sampler": [1]}, "expected unspecified sampler"),
    ({"dataset": Upto(3), "batch_sampler": [[1]]}, "expected unspecified batch_sampler"),
])
def test_arguments_that_exclude_each_other(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(**{"dataset": NUMBERS, **options})


def test_what_is_fixed_once_the_loader_is_made():
    loader = DataLoader(NUMBERS, 4)
    for name in ("batch_size", "sampler", "dataset", "drop_last", "batch_sampler"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
            setattr(loader, name, None)
    loader.collate_fn = len
    assert list(loader) == [4, 4, 2]
    with pytest.raises(TypeError, match="valid context object or its name, got int"):
        DataLoader(NUMBERS, num_workers=1, multiprocessing_context=3)


def test_an_error_of_the_dataset_comes_through_and_the_epoch_goes_on():
    class Fragile(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            if index == 3:
                raise LookupError("three")
            if index == 5:
                raise StopIteration
            return index

    batches = iter(DataLoader(Fragile(), 1))
    found = []
    for _ in range(6):
        try:
            found.append(next(batches).tolist())
        except LookupError as error:
            found.append(str(error))
        except RuntimeError as error:      # it would end a `for` loop as if all were well
            assert "raised StopIteration" in str(error)
            found.append("stop")
    assert found == [[0], [1], [2], "three", [4], "stop"]
    with pytest.raises(StopIteration):
        next(batches)


def test_more_than_the_length_is_warned_about():
    with pytest.warns(UserWarning, match="reported to be 1 batches, but more have come"):
        assert len(list(DataLoader(Upto(4, length=2), 2))) == 2


# ---- going on ------------------------------------------------------------------------------------

LOADERS = {
    "in order": lambda: DataLoader(NUMBERS, 2),
    "shuffled": lambda: DataLoader(NUMBERS, 2, shuffle=True),
    "by a generator": lambda: DataLoader(NUMBERS, 2, shuffle=True, generator=tl.Generator()),
    "with replacement": lambda: DataLoader(NUMBERS, 2, sampler=RandomSampler(
        NUMBERS, True, 12, generator=tl.Generator())),
    "again and again": lambda: DataLoader(NUMBERS, 3, sampler=RandomSampler(
        NUMBERS, False, 35, generator=tl.Generator())),
    "iterable": lambda: DataLoader(Upto(10), 2, collate_fn=lambda batch: (tl.tensor(batch),)),
}


@each("name", LOADERS)
@each("taken", [0, 1, 3, "all"])
def test_a_loader_goes_on_from_its_state(name, taken):
    tl.manual_seed(7)
    loader = LOADERS[name]()
    values(loader)                                # an epoch before
    batches = iter(loader)
    for _ in range(len(loader) if taken == "all" else taken):
        next(batches)
    state, default = loader.state_dict(), tl.get_rng_state()
    wanted = [values(batches), values(loader), tl.rand(2).tolist()]

    tl.manual_seed(8)
    loader = LOADERS[name]()
    loader.load_state_dict(state)
    tl.set_rng_state(default)
    assert loader.state_dict()["batches"] == state["batches"]
    assert [values(loader), values(loader), tl.rand(2).tolist()] == wanted


def test_a_state_between_epochs():
    loader = LOADERS["by a generator"]()
    values(loader)
    state, wanted = loader.state_dict(), values(loader)
    other = LOADERS["by a generator"]()
    other.load_state_dict(state)
    assert values(other) == wanted


def test_states_that_do_not_fit():
    state = LOADERS["by a generator"]().state_dict()
    with pytest.raises(ValueError, match="of a loader with 1 generators, this one has 0"):
        LOADERS["in order"]().load_state_dict(state)
    with pytest.raises(ValueError, match="expected what state_dict"):
        LOADERS["in order"]().load_state_dict({})
