"""Columns at the positions of a tensor, or of a mask: rows are gone through one after the other."""

import numpy as np
import pytest
import tensorlib as tl
from cases import each

from tensorlib._core.base import pool

LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "part of rows": lambda x: x[3:-2, 5:-1],
    "every second": lambda x: x[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1],
}

pytestmark = pytest.mark.usefixtures("restore_threads")


def arranged(layout, size, dtype):
    """An array and the tensor that shares its memory, in one layout."""
    whole = np.random.default_rng(0).integers(0, 100, (size, size + 30)).astype(dtype)
    if layout == "backwards":
        return LAYOUTS[layout](whole), tl.from_numpy(whole).flip(0, 1)
    return LAYOUTS[layout](whole), LAYOUTS[layout](tl.from_numpy(whole))


@each("layout", LAYOUTS)
@each("dtype", ["float32", "float64", "uint8", "int16", "complex128"])
@each("count", [3, 8, 50, 5000])
def test_columns_are_read_and_written(layout, dtype, count):
    for threads in [1, 3]:
        pool.set_num_threads(threads)
        x, y = arranged(layout, 90, dtype)
        rng = np.random.default_rng(count)
        at = rng.integers(-x.shape[1], x.shape[1], count)
        mask = rng.random(x.shape[1]) < 0.5
        for key in (at, at.reshape(-1, 1), mask):
            own = tl.tensor(key)
            assert np.array_equal(y[:, own].numpy(), x[:, key])
            assert np.array_equal(y[1:40:3, own].numpy(), x[1:40:3, key])
            assert np.array_equal(y[None, :, own].numpy(), x[None][:, :, key])
        once = rng.permutation(x.shape[1])[:count]
        values = rng.integers(0, 100, (x.shape[0], len(once))).astype(dtype)
        wanted, found = x.copy(), y.clone()
        wanted[:, once], found[:, tl.tensor(once)] = values, tl.tensor(values)
        assert np.array_equal(found.numpy(), wanted)
        wanted[:, mask], found[:, tl.tensor(mask)] = 7, 7
        assert np.array_equal(found.numpy(), wanted)


def test_the_last_of_several_values_for_a_column_stays():
    x = tl.zeros(100, 64)
    x[:, tl.tensor([5] * 20)] = tl.arange(20.0).expand(100, 20)
    assert (x[:, 5] == 19).all() and x.sum() == 1900
