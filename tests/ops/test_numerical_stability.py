"""Variances and norms of numbers whose squares overflow or vanish, or whose mean is large."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

SHAPES = [((7, 4096), 1), ((4096, 7), 0), ((3, 500, 5), 1), ((7,), 0), ((40, 3), 1),
          ((2, 60), (0, 1))]


def numbers(shape, dtype, times=1.0, plus=0.0):
    return (np.random.default_rng(0).normal(size=shape) * times + plus).astype(dtype)


@each("times, plus", [(1, 0), (1e18, 0), (1e-30, 0), (1, 1e3), (1, 1e6),
                      (1e-3, 1e4), (1e18, 1e22), (1e-40, 0)])
@each("shape, dim", SHAPES, ids=str)
def test_variances_and_norms_are_exact_in_float32(shape, dim, times, plus):
    x = numbers(shape, np.float32, times, plus)
    exact, given = x.astype(np.float64), tl.tensor(x)
    for found, wanted in ((given.std(dim), exact.std(dim, ddof=1)),
                          (given.norm(dim=dim), np.sqrt((exact * exact).sum(dim)))):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=4e-7, atol=3e-45)
    with np.errstate(over="ignore"):
        wanted = exact.var(dim, ddof=1).astype(np.float32)
    np.testing.assert_allclose(given.var(dim).numpy(), wanted, rtol=4e-7, atol=3e-45)


@pytest.mark.parametrize("times, plus", [(1e200, 0), (1e-200, 0), (1, 1e9)])
def test_those_of_float64_are_taken_again_too(times, plus):
    x = numbers((3, 900), np.float64, times, plus)
    exact = x.astype(np.longdouble)
    given = tl.tensor(x)
    np.testing.assert_allclose(given.std(1).numpy(), exact.std(1, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(given.norm(dim=1).numpy(), np.sqrt((exact * exact).sum(1)),
                               rtol=1e-12)


@each("dtype", [tl.float32, tl.float64, tl.float16, tl.bfloat16])
@each("shape, dim", [*SHAPES, ((3, 90_000), 1), ((5, 2, 70), (0, 2)), ((600, 500), (0, 1))],
      ids=str)
def test_a_sum_of_what_is_known_is_that_with_zeros_to_the_bit(shape, dim, dtype):
    x = tl.tensor(numbers(shape, np.float64)).to(dtype)
    known = x > -0.5
    found, wanted = (x.where(known, to).nansum(dim) for to in (float("nan"), 0.0))
    assert found.tolist() == wanted.tolist() == x.where(known, 0.0).sum(dim).tolist()
    infinite = x.masked_fill(x > 2, float("inf")).masked_fill(x < -2, -float("inf"))
    assert infinite.nansum(dim).isnan().tolist() == infinite.sum(dim).isnan().tolist()


def finite(values):
    """Pairs of a value and a floating dtype that holds it."""
    return [(value, dtype) for value in values
            for dtype in (tl.float32, tl.float64, tl.float16, tl.bfloat16)
            if abs(value) <= tl.finfo(dtype).max]


@each("value, dtype", finite([0.1, 1e8, -3.3, 0.0, 1e-30]))
@each("n", [2, 7, 1000, 100_001])
def test_equal_elements_have_no_variance(n, value, dtype):
    x = tl.full((n,), value, dtype=dtype)
    assert x.var().item() == x.std().item() == x.var(correction=0).item() == 0


def test_what_is_not_finite_shows():
    inf, nan = float("inf"), float("nan")
    assert tl.tensor([[inf, 1.0], [-inf, 1.0]]).norm(dim=1).tolist() == [inf, inf]
    for x in ([inf, 1.0, 2.0], [1.0, inf, 2.0], [1.0, nan, 2.0], [nan] * 3):
        assert tl.tensor(x).var().isnan() and tl.tensor(x).std().isnan()
    assert tl.tensor([nan, 1.0]).norm().isnan() and tl.tensor([1.0]).var().isnan()
    assert tl.full((3, 4), 1e30).var(1).tolist() == [0.0] * 3
    assert tl.tensor([1e30, -1e30]).var().item() == inf
    assert tl.tensor([1e30, -1e30]).std().item() == pytest.approx(2**0.5 * 1e30)
    rows = tl.tensor([[1.0, 2.0], [inf, 1.0], [1e8, 1e8], [0.0, 0.0]])
    assert rows.std(1).tolist()[2:] == [0, 0] and rows.std(1)[1].isnan()


@pytest.mark.parametrize("scale", [1e30, 1e-15, 1.0, 1e18])
def test_cosines_do_not_depend_on_the_scale(scale):
    x = tl.tensor([[1.0, 2.0, -3.0], [2.0, 0.0, 1.0]], requires_grad=True)
    y = tl.tensor([[2.0, 1.0, 0.5], [2.0, 0.0, 1.0]])
    found = F.cosine_similarity(x * scale, y * scale, eps=1e-30)
    np.testing.assert_allclose(found.tolist(), F.cosine_similarity(x, y).tolist(), rtol=1e-6)
    found.sum().backward()
    assert x.grad.isfinite().all()


LAYERS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "group_norm": lambda x: F.group_norm(x, 1),
    "instance_norm": lambda x: F.instance_norm(x),
    "batch_norm": lambda x: F.batch_norm(x.transpose(0, 1), None, None, training=True),
}


@each("value, dtype", finite([0.1, 1e4, -3.3, 1e8, 1e18]))
@each("shape", [(1, 3, 7), (2, 3, 1000), (3, 2, 4096), (40, 3, 1)], ids=str)
def test_layers_take_the_mean_of_equal_elements_to_be_exact(shape, value, dtype):
    x = tl.full(shape, value, dtype=dtype)
    for name, layer in LAYERS.items():
        if shape[2] > 1 or name != "instance_norm":
            assert layer(x).count_nonzero() == 0, name


@each("times, plus", [(1, 0), (1e18, 0), (1e25, 0), (1, 1e3), (1e-3, 10), (1e18, 1e20)])
@each("shape", [(1, 1, 7), (2, 3, 1000), (3, 2, 4096), (40, 3, 5)], ids=str)
def test_layers_are_near_in_float32(shape, times, plus):
    x = numbers(shape, np.float32, times, plus)
    for name, layer in LAYERS.items():
        exact = layer(tl.tensor(x.astype(np.float64)))
        np.testing.assert_allclose(layer(tl.tensor(x)).numpy(), exact.numpy(), err_msg=name,
                                   atol=2e-6 * (1 + abs(plus) / times))
