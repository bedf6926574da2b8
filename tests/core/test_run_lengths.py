"""Runs of equal neighbours, and the longest of sorted rows, beside loops in Python."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.reduce.runs import last_of_longest, runs_of_slices

nan = float("nan")
DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")
VALUES = (3, 3, 0, 0, 0, 1, 3, 3, 3, 0)
FLOATS = (nan, nan, 0.0, -0.0, 1.0, 1.0, nan, 1.0, float("inf"), float("inf"))


def runs(rows):
    """(the first rows, the run of each row, lengths) of the runs of rows that are lists."""
    firsts = [i for i, row in enumerate(rows)
              if i == 0 or any(a != b for a, b in zip(row, rows[i - 1]))]
    lengths = np.diff([*firsts, len(rows)])
    numbers = np.repeat(np.arange(len(firsts)), lengths)
    return [rows[i] for i in firsts], numbers.tolist(), lengths.tolist()


@each("dtype", DTYPES)
def test_runs_of_elements_and_of_slices(dtype):
    wanted_dtype = getattr(tl, dtype)
    for values in (VALUES, FLOATS) if wanted_dtype.is_floating_point else (VALUES,):
        for shape in ((10,), (5, 2), (5, 1, 2), (1, 10), (0, 2)):
            x = tl.tensor(values[:int(np.prod(shape))]).to(wanted_dtype).reshape(shape)
            wanted = runs(x.reshape(x.shape[0], -1).tolist()) if x.numel() else ([], [], [])
            found, *others = runs_of_slices(x, True, True)
            assert found.shape == (len(wanted[0]), *shape[1:]) and found.dtype == x.dtype
            rows = found.reshape(found.shape[0], -1).tolist() if found.numel() else []
            assert (repr(rows), *(y.tolist() for y in others)) == (repr(wanted[0]), *wanted[1:])
            same, *others = runs_of_slices(x, False, False)
            assert repr(same.tolist()) == repr(found.tolist()) and others == [None, None]
            same, none, lengths = runs_of_slices(x, False, True)
            assert repr(same.tolist()) == repr(found.tolist()) and none is None
            assert lengths.tolist() == wanted[2]


@each("dtype", DTYPES)
def test_runs_of_words_of_marks_and_what_is_left_of_them(dtype):
    for n in (1, 7, 8, 63, 64, 65, 200):
        for step in (1, 3, 64):
            values = np.arange(n) // step % 2
            found, numbers, lengths = runs_of_slices(
                tl.tensor(values).to(getattr(tl, dtype)), True, True)
            begins = np.arange(0, n, step)
            assert (np.real(found.to(tl.complex64).numpy()) == values[begins]).all()
            assert numbers.tolist() == (np.arange(n) // step).tolist()
            assert lengths.tolist() == np.diff(begins, append=n).tolist()


def test_runs_of_what_is_not_contiguous_and_of_odd_bools():
    x = tl.tensor(VALUES).reshape(5, 2)
    assert runs_of_slices(x.t()[0], True, False)[1].tolist() == runs(x[:, :1].tolist())[1]
    odd = np.array([1, 2, 0, 0, 255], np.uint8).view(bool)
    assert runs_of_slices(tl.from_numpy(odd), False, True)[2].tolist() == [2, 2, 1]


def test_runs_of_long_vectors_and_their_order():
    array = np.random.default_rng(0).integers(0, 3, 100_000)
    found = tl.tensor(array).unique_consecutive(True, True)
    begins = np.flatnonzero(np.diff(array, prepend=-1))
    assert (found[0].numpy() == array[begins]).all()
    assert (found[1].numpy() == np.cumsum(np.diff(array, prepend=-1) != 0) - 1).all()
    assert (found[2].numpy() == np.diff(begins, append=array.size)).all()
    for x in (array * 1.5, array * 2**40):               # sorted; what has a short range is counted
        for got, wanted in zip(tl.tensor(x).unique(True, True, True),
                               np.unique(x, return_inverse=True, return_counts=True)):
            assert (got.numpy() == wanted).all()


def most_frequent(row):
    """The last place of the least of the most frequent numbers; each NaN is alone, and the first
    of what is."""
    keys = [(row.count(x) if x == x else 1, x != x, -x if x == x else -place)
            for place, x in enumerate(row)]
    best = max(keys)
    return max(place for place, key in enumerate(keys) if key == best)


@each("dtype", ("uint8", "int32", "int64", "float16", "float32", "float64"))
@each("n", (1, 2, 4, 5, 8, 9, 70))
def test_modes(dtype, n):
    rng = np.random.default_rng(n)
    array = rng.integers(0, max(n // 2, 2), (40, n)).astype(np.float64)
    if dtype[0] == "f":
        array[rng.random(array.shape) < 0.3] = nan
        array[0] = nan
    elif dtype == "int64":
        array[::2] = array[::2] * 2.0**56 - 2.0**61      # no room for positions beside them
    x = tl.tensor(array).to(getattr(tl, dtype))
    assert x.mode(1).indices.tolist() == [most_frequent(row) for row in x.tolist()]
    assert (x.mode(0).indices == x.t().mode(1).indices).all()


def test_runs_of_nothing_are_refused():
    empty, keys = tl.zeros(3, 0, dtype=tl.int64), tl.zeros(3, 2, dtype=tl.int64)
    for given, order in ((empty, None), (keys, tl.arange(5)), (keys.double(), None)):
        with pytest.raises(RuntimeError, match="^mode: expects elements along the dim"):
            last_of_longest(given, 0, order, False)
    with pytest.raises(RuntimeError, match="^unique: expects slices"):
        runs_of_slices(tl.zeros(()), False, False)
    with pytest.raises(RuntimeError, match="^unique: expects slices"):
        runs_of_slices(tl.zeros(3), True, False, tl.arange(2))
