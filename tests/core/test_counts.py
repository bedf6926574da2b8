"""Elements counted in bins."""

import numpy as np
import pytest
from cases import each

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


@each("dtype", ["float32", "float64"])
@each("weighted", [False, True])
def test_a_histogram_counts_what_lies_between_its_edges(dtype, weighted):
    x = np.random.default_rng(3).integers(-6, 6, 500).astype(dtype) / 2
    x[::50], x[7::50], x[9::50] = np.nan, np.inf, -np.inf
    weight = np.arange(500, dtype=dtype) if weighted else None
    for edges in ([-1, 0, 0.25, 2], [0, 1], [-9, 9], [5, 6, 7], [1, 1, 2, 2]):
        edges, known = np.array(edges, dtype), ~np.isnan(x)
        wanted, _ = np.histogram(x[known], edges, weights=weight[known] if weighted else None)
        given = {"weight": tl.from_numpy(weight)} if weighted else {}
        found = tl.from_numpy(x).histogram(tl.from_numpy(edges), **given)
        np.testing.assert_array_equal(found.hist.numpy(), wanted)
        np.testing.assert_array_equal(found.bin_edges.numpy(), edges)


def test_what_lies_outside_the_first_and_the_last_edge_counts_nowhere():
    x, edges = tl.tensor([0.0, 1.0, 2.0, 3.0, 9.0]), tl.tensor([1.0, 5.0, 0.5, 2.0])
    assert x.histogram(edges).hist.sum() <= 2
    assert x.histogram(edges.flip(0)).hist.sum() == 0
