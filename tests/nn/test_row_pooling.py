"""Pools of rows with few windows, and with more than are looked at together; NaN, infinities."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.nn.functional import pooling
from tensorlib.testing import assert_close


def rows(dtype):
    """Rows of 600 elements, of which some are NaN or infinite, and some rows are all -inf."""
    x = np.random.default_rng(0).standard_normal((2, 3, 600)).round(1).astype(dtype)
    x[0, 0, ::37] = np.nan
    x[0, 1] = -np.inf
    x[1, 2, 100:300] = -np.inf
    return x


@each("dtype", ["float32", "float64"])
@each("kernel, stride, padding", [(2, 2, 0), (3, 1, 1), (5, 3, 2), (40, 2, 20)], ids=str)
def test_maxima_and_their_places(kernel, stride, padding, dtype):
    x = rows(dtype)
    values, places = F.max_pool1d(tl.from_numpy(x), kernel, stride, padding, return_indices=True)
    for k in range(values.shape[-1]):
        first = max(0, k * stride - padding)
        part = x[..., first:k * stride - padding + kernel]
        bad = np.isnan(part)
        last = part.shape[-1] - 1 - bad[..., ::-1].argmax(-1)
        place = first + np.where(bad.any(-1), last, part.argmax(-1))
        assert np.array_equal(places.numpy()[..., k], place)
        assert np.array_equal(values.numpy()[..., k], np.take_along_axis(
            x, place[..., None], -1)[..., 0], equal_nan=True)


@each("dtype", ["float32", "float64"])
@each("kernel, stride, padding", [(2, 2, 0), (3, 1, 1), (5, 3, 2), (40, 2, 20)], ids=str)
def test_means_and_their_gradients(kernel, stride, padding, dtype):
    x = tl.from_numpy(np.random.default_rng(0).random((2, 3, 600)).astype(dtype))
    x.requires_grad_()
    out = F.avg_pool1d(x, kernel, stride, padding, count_include_pad=False)
    matrix = np.zeros((out.shape[-1], 600))
    for k in range(len(matrix)):
        part = matrix[k, max(0, k * stride - padding):k * stride - padding + kernel]
        part[:] = 1 / part.size
    near = {"float32": 1e-5, "float64": 1e-12}[dtype]
    assert_close(out.detach().numpy(), (x.detach().numpy() @ matrix.T).astype(dtype), rtol=near,
                 atol=near)
    out.sum().backward()
    assert_close(x.grad.numpy()[0, 0], matrix.sum(0).astype(dtype), rtol=near, atol=near)


def test_adaptive_maxima_take_the_last_nan_or_the_first_of_equals():
    x = tl.tensor([[[1.0, 3.0, 3.0, 2.0, float("nan"), float("nan"), 0.0, float("-inf")]]])
    values, places = F.adaptive_max_pool1d(x, 2, return_indices=True)
    assert values[0, 0, 0] == 3 and values[0, 0, 1].isnan()
    assert places.tolist() == [[[1, 5]]]
    values, places = F.adaptive_max_pool1d(x, 8, return_indices=True)
    assert places.tolist() == [[list(range(8))]] and values[0, 0, 7] == float("-inf")


@each("dtype", ["float32", "float64"])
@each("kernel, stride, dilation", [(2, 2, 1), (3, 4, 1), (2, 4, 3), (4, 4, 1), (5, 4, 1)], ids=str)
def test_many_short_rows_as_one_long_row(kernel, stride, dilation, dtype):
    x = np.random.default_rng(1).random((70, 90, 12)).astype(dtype)
    x[3, 4, 5] = np.nan
    starts = range(0, 12 - (kernel - 1) * dilation, stride)
    parts = np.stack([x[..., k:k + (kernel - 1) * dilation + 1:dilation] for k in starts], -2)
    for threads in (1, 2):
        before, _ = tl.get_num_threads(), tl.set_num_threads(threads)
        given = tl.from_numpy(x).requires_grad_()
        values = F.max_pool1d(tl.from_numpy(x), kernel, stride, 0, dilation)
        means = F.avg_pool1d(given, kernel, stride) if dilation == 1 else None
        tl.set_num_threads(before)
        np.testing.assert_array_equal(values.numpy(), parts.max(-1))
        if dilation == 1:
            np.testing.assert_allclose(means.detach().numpy(), parts.mean(-1), rtol=1e-6)
            means.sum().backward()
            counts = np.zeros(12, dtype)
            for k in starts:
                counts[k:k + kernel] += 1
            np.testing.assert_allclose(given.grad.numpy()[0, 0], counts / kernel, rtol=1e-6)


@each("dtype", ["float16", "float32", "float64"])
@each("n, count", [(1, 1), (1, 4), (1, 5), (2, 1), (2, 2), (2, (4, 1)), (3, 1), (3, 2)], ids=str)
def test_adaptive_maxima_are_the_same_without_their_places(n, count, dtype):
    x = np.random.default_rng(2).standard_normal((2, 3, 8, 4, 20)[:2 + n]).astype(dtype)
    x.reshape(-1)[::17] = np.nan
    pool, given = getattr(F, f"adaptive_max_pool{n}d"), tl.from_numpy(x)
    wanted = pool(given, count, return_indices=True)[0]
    recorded = pool(given.clone().requires_grad_(), count)
    for found in (pool(given, count), recorded.detach()):
        assert found.dtype is wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert recorded.requires_grad


@each("dtype", ["float32", "float64"])
@each("wide", [2, 3, 5, 7, 8, 9, 14, 15, 16, 17, 28, 33])
def test_planes_of_rows_of_any_length(wide, dtype):
    rng = np.random.default_rng(wide)
    x = rng.integers(-3, 4, (3, 2, 6, wide)).astype(dtype)       # with equal elements
    x[rng.random(x.shape) < 0.1] = np.nan
    kinds = ((2, 2, 0), (2, 1, 0), (2, 3, 1), (1, 2, 0), (4, 4, 0), (4, 5, 1))
    for kernel, stride, padding in [kind for kind in kinds if kind[0] <= wide]:
        values, places = F.max_pool2d(tl.from_numpy(x), kernel, stride, padding,
                                      return_indices=True)
        alone = F.max_pool2d(tl.from_numpy(x), kernel, stride, padding)
        means = F.avg_pool2d(tl.from_numpy(x), kernel, stride, padding)
        for i, j in np.ndindex(*values.shape[2:]):
            low, left = i * stride - padding, j * stride - padding
            rows = range(max(low, 0), min(low + kernel, 6))
            columns = range(max(left, 0), min(left + kernel, wide))
            part = np.stack([x[..., r, c] for r in rows for c in columns], -1)
            bad = np.isnan(part)
            best = np.where(bad.any(-1), part.shape[-1] - 1 - bad[..., ::-1].argmax(-1),
                            part.argmax(-1))
            place = np.array([r * wide + c for r in rows for c in columns])[best]
            assert np.array_equal(places.numpy()[..., i, j], place)
            expected = np.take_along_axis(part, best[..., None], -1)[..., 0]
            assert np.array_equal(values.numpy()[..., i, j], expected, equal_nan=True)
            assert np.array_equal(alone.numpy()[..., i, j], expected, equal_nan=True)
            np.testing.assert_allclose(means.numpy()[..., i, j], part.sum(-1) / kernel**2, 1e-6)


@each("pool", [F.avg_pool2d, F.max_pool2d])
def test_planes_without_elements_are_refused(pool):
    for shape in ((1, 3, 0, 4), (1, 3, 4, 0), (2, 3, 0, 0)):
        for padding in ((1, 0), (0, 1), 1):
            with pytest.raises(RuntimeError):
                pool(tl.ones(shape), 2, 1, padding)
    assert pool(tl.ones(2, 0, 4, 4), 2).shape == (2, 0, 2, 2)
    assert pool(tl.ones(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)


@pytest.mark.parametrize("ndim", [2, 3])
def test_fractional_pools_of_no_images(ndim):
    pool = getattr(F, f"fractional_max_pool{ndim}d")
    sizes = (4,) * ndim
    assert pool(tl.ones(0, 1, *sizes), 2, output_size=2).shape == (0, 1, *(2,) * ndim)
    assert pool(tl.ones(0, *sizes), 2, output_size=2).shape == (0, *(2,) * ndim)
    with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
        pool(tl.ones(1, 0, *sizes), 2, output_size=2)


@pytest.mark.parametrize("kept, pool", [
    ("plain_maxima_sizes", lambda x, at: F.max_pool2d(x, (2, 2), (2, 1), (1, 0))),
    ("plain_means_sizes", lambda x, at: F.avg_pool2d(x, (2, 2), divisor_override=3)),
    ("plain_unpooled_sizes", lambda x, at: F.max_unpool2d(x, at, 2, output_size=[9, 8])),
])
def test_sizes_of_windows_are_found_once_for_each_shape(kept, pool):
    sizes = getattr(pooling, kept)
    sizes.cache_clear()
    for _ in range(3):
        pool(tl.ones(1, 2, 4, 4), tl.arange(16).reshape(1, 1, 4, 4).expand(1, 2, 4, 4))
    assert sizes.cache_info()[:2] == (2, 1)
