"""Random tensors with parameters for each element, and further ones in place."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.create.variates import drawn

N = 20_000
inf, nan = math.inf, math.nan


@pytest.fixture(autouse=True)
def seeded():
    before = tl.get_rng_state()
    tl.manual_seed(99)
    yield
    tl.set_rng_state(before)


def agrees(counts, chances):
    """Whether counts of numbers are what these chances give, by the chi-square statistic."""
    expected = counts.sum() * np.asarray(chances)
    kept = expected > 5
    counts = np.append(counts[kept], counts[~kept].sum())
    expected = np.append(expected[kept], max(expected[~kept].sum(), 1e-9))
    if expected[-1] < 1:
        counts, expected = counts[:-1], expected[:-1]
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
    return abs(statistic - freedom) < 4.5 * math.sqrt(2 * freedom)


@each("rate", [0.05, 3.0, 11.9, 12.1, 60.0])
def test_poisson_numbers_have_their_chances(rate):
    x = tl.poisson(tl.full((N,), rate, dtype=tl.float64)).numpy().astype(int)
    k = np.arange(200)
    logs = k * math.log(rate) - rate - np.array([math.lgamma(v + 1) for v in k])
    assert agrees(np.bincount(x, minlength=200), np.exp(logs))


@each("n, p", [(1, 0.3), (7, 0.9), (40, 0.1), (40, 0.5), (150, 0.8)])
def test_binomial_numbers_have_their_chances(n, p):
    x = tl.binomial(tl.full((N,), float(n)), tl.tensor(p)).numpy().astype(int)
    chances = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    assert agrees(np.bincount(x, minlength=n + 1), chances)


@each("shape", [0.05, 0.7, 1.0, 3.5, 400.0])
def test_gamma_numbers_are_distributed_as_the_incomplete_gamma_function_says(shape):
    shapes = tl.full((N,), shape, dtype=tl.float64)
    for x in (drawn("gamma", shapes), drawn("log_gamma", shapes).exp()):
        below = np.sort(tl.igamma(shapes, x).numpy())
        assert abs(below - (np.arange(N) + 0.5) / N).max() < 2 / math.sqrt(N)


def test_numbers_in_place_have_their_distributions():
    x = tl.empty(N)
    for drawn_ones, cdf in (
            (x.exponential_(2.0), lambda v: 1 - np.exp(-2 * v)),
            (x.clone().cauchy_(1.0, 3.0), lambda v: 0.5 + np.arctan((v - 1) / 3) / np.pi),
            (x.clone().log_normal_(0.5, 2.0),
             lambda v: tl.special.ndtr((tl.tensor(v).log() - 0.5) / 2).numpy())):
        below = np.sort(cdf(drawn_ones.numpy().astype(float)))
        assert abs(below - (np.arange(N) + 0.5) / N).max() < 2 / math.sqrt(N)
    trials = tl.empty(N, dtype=tl.int64).geometric_(0.3).numpy()
    counts = np.bincount(trials)[1:]
    assert trials.min() == 1 and agrees(counts, 0.3 * 0.7 ** np.arange(len(counts)))


def test_any_number_of_threads_draws_the_same():
    threads = tl.get_num_threads()
    found = []
    rates = tl.linspace(0, 50, 3000, dtype=tl.float64)
    for count in (1, 2, 3):
        tl.set_num_threads(count)
        tl.manual_seed(5)
        found.append(tl.stack([tl.poisson(rates), tl.binomial(rates, rates / 50),
                               drawn("gamma", rates + 0.01)]))
    tl.set_num_threads(threads)
    assert found[0].equal(found[1]) and found[0].equal(found[2])


def test_dtypes_and_errors():
    for dtype in (tl.float16, tl.bfloat16, tl.float32, tl.float64):
        x = tl.full((4,), 0.5, dtype=dtype)
        assert tl.poisson(x).dtype == tl.binomial(x, x).dtype == x.exponential_().dtype == dtype
        assert (tl.empty(1000, dtype=dtype).exponential_() > 0).all()
    ones = tl.ones(3)
    for name, args in (("exponential_", (0,)), ("cauchy_", (0, -1)), ("log_normal_", (0, 0)),
                       ("geometric_", (1.0,))):
        with pytest.raises(RuntimeError, match=name):
            getattr(ones, name)(*args)
        with pytest.raises(TypeError, match=name):
            getattr(ones, name)("a")
    for name in ("exponential_", "cauchy_", "log_normal_"):
        with pytest.raises(RuntimeError, match="takes floating dtypes"):
            getattr(tl.ones(3, dtype=tl.int64), name)()
    assert ones.equal(tl.ones(3))
    with pytest.raises(ValueError, match="contiguous and of float64"):
        drawn("gamma", ones)
    with pytest.raises(ValueError, match="so many parameters"):
        drawn("gamma", ones.double(), ones.double())
    with pytest.raises(ValueError, match="parameters"):
        drawn("binomial", ones.double(), tl.ones(2, dtype=tl.float64))


def test_huge_and_odd_parameters_end():
    rates = tl.tensor([0.0, 1e-300, 1e15, 1e300], dtype=tl.float64)
    found = tl.poisson(rates)
    assert found[0] == 0 and abs(found[2] / 1e15 - 1) < 1e-6 and abs(found[3] / 1e300 - 1) < 1e-6
    assert tl.binomial(tl.full((9,), 90.0), tl.tensor(1.0)).equal(tl.full((9,), 90.0))
    counts = tl.tensor([0.0, 1e18, 1e300], dtype=tl.float64)
    found = tl.binomial(counts, tl.tensor(0.25, dtype=tl.float64))
    assert found[0] == 0 and abs(found[1] / 2.5e17 - 1) < 1e-6
    odd = tl.tensor([0.0, 1e-300, 1e300, inf, nan, -1.0, -0.0], dtype=tl.float64).repeat(1000)
    for kind in ("gamma", "log_gamma", "poisson"):
        drawn(kind, odd)
    drawn("binomial", odd, tl.full((7000,), 0.5, dtype=tl.float64))
    drawn("binomial", tl.full((7000,), 100.0, dtype=tl.float64), odd)


def test_old_elements_have_no_gradient():
    x = tl.ones(3, requires_grad=True)
    y = x * 1
    y.exponential_()
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1]
