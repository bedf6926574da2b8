"""Elements counted in bins."""

import numpy as np
import pytest

import tensorlib as tl


@pytest.mark.parametrize("dtype", [tl.float32, tl.float64])
@pytest.mark.parametrize("bins", [1, 2, 16, 128])            # edges are numbers of both dtypes
def test_bins_are_those_of_numpy(dtype, bins):
    array = np.random.default_rng(0).integers(-80, 81, 5000) / 64
    expected, _ = np.histogram(array, bins, range=(-1, 1))
    assert tl.tensor(array, dtype=dtype).histc(bins, -1, 1).tolist() == expected.tolist()


@pytest.mark.parametrize("values, low, high", [
    ([4294967296.0], 0, 0), ([2.0**60] * 3, 0, 0), ([-3e38, 0.0, 3e38], 0, 0),
    ([1e-45, 2e-45], 0, 0), ([3e38, -3e38], -3e38, 3e38),
])
def test_ranges_without_a_width_count_all(values, low, high):
    found = tl.tensor(values).histc(10, low, high)
    assert found.sum().item() == len(values)
