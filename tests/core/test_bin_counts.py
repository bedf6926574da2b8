"""Elements counted in bins."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl


@each("dtype", [tl.float32, tl.float64])
@each("bins", [1, 2, 16, 128])            # edges are numbers of both dtypes
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


POINTS = np.random.default_rng(3).normal(size=(40, 3))


@each("options", [
    {"bins": 3}, {"bins": [2, 3, 4]}, {"bins": [2, 3, 4], "density": True},
    {"bins": 2, "range": [-1, 1, -2, 0.5, 0, 1]}, {"bins": 2, "weight": np.arange(40.0)},
    {"bins": [np.array([-1.0, 0, 3]), np.array([0.0, 1]), np.array([-2.0, -1, 0, 4])]},
], ids=lambda options: " ".join(options))
@each("dtype", [tl.float32, tl.float64])
def test_a_grid_counts_the_points_in_its_cells(dtype, options):
    names = {"range": "range", "weight": "weights", "density": "density", "bins": "bins"}
    points = POINTS.astype(dtype.name)
    given = {names[key]: np.reshape(x, (3, 2)) if key == "range" else x
             for key, x in options.items()}
    wanted, edges = np.histogramdd(points, **given)
    as_tensors = {key: tl.tensor(x, dtype=dtype) if isinstance(x, np.ndarray) else x
                  for key, x in options.items()}
    if isinstance(options["bins"], list) and not isinstance(options["bins"][0], int):
        as_tensors["bins"] = [tl.tensor(edge, dtype=dtype) for edge in options["bins"]]
    found = tl.histogramdd(tl.tensor(points), **as_tensors)
    assert found.hist.dtype == dtype and found.hist.is_contiguous()
    np.testing.assert_allclose(found.hist.numpy(), wanted, rtol=1e-6)
    for ours, theirs in zip(found.bin_edges, edges, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)


def test_points_outside_of_a_grid_and_with_nan_are_not_counted():
    points = tl.tensor([[0.5, 0.5], [2.0, 0.5], [0.5, -1.0], [float("nan"), 0.5], [1.0, 1.0]])
    assert tl.histogramdd(points, 2, range=[0, 1, 0, 1]).hist.tolist() == [[0, 0], [0, 2]]


def test_a_grid_for_no_points_is_empty():
    found = tl.histogramdd(tl.empty(0, 2), bins=[2, 1])
    assert found.hist.tolist() == [[0], [0]]
    assert [edges.tolist() for edges in found.bin_edges] == [[0, 0.5, 1], [0, 1]]


@each("shape, options, error, words", [
    ((3,), {"bins": 3}, RuntimeError, "at least 2 dims"),
    ((3, 2), {"bins": [3]}, RuntimeError, "points of 2 dims take as many bins"),
    ((3, 2), {"bins": 2, "range": [0, 1]}, RuntimeError, "got 2 and 2"),
    ((3, 2), {"bins": [2, 0]}, RuntimeError, "bins must be > 0, but got 0"),
    ((3, 2), {"bins": 2, "weight": tl.ones(2)}, RuntimeError, r"shape of the points, got \[2\]"),
    ((3, 2), {"bins": 2.5}, TypeError, "bins"),
    ((3, 2), {"bins": [tl.ones(1), 2]}, RuntimeError, "histogramdd: bins must be a vector of at"),
])
def test_grids_that_are_refused(shape, options, error, words):
    with pytest.raises(error, match="histogramdd: .*" + words.removeprefix("histogramdd: ")):
        tl.histogramdd(tl.ones(shape), **options)
