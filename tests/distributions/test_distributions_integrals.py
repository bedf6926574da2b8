"""Distributions beside integrals of their densities: moments, modes, entropies, divergences."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributions as d
from tensorlib.testing import assert_close

nan, inf = math.nan, math.inf


def of(kind, *parameters, **more):
    """A distribution of this name, of parameters in float64."""
    wide = [tl.tensor(x, dtype=tl.float64) for x in parameters]
    return getattr(d, kind)(*wide, **{k: tl.tensor(x, dtype=tl.float64) for k, x in more.items()})


def points(breaks):
    """Points and weights of the double exponential rule between each two of some numbers.

    Source: Takahasi and Mori, "Double exponential formulas for numerical integration" (1974).
    """
    t, step = np.linspace(-4.6, 4.6, 501, retstep=True)
    far, growth = np.exp(np.pi / 2 * np.sinh(t)), step * np.pi / 2 * np.cosh(t)
    found = []
    for low, high in zip(breaks, breaks[1:]):
        if high == inf:
            found.append((low + far, growth * far))
        elif low == -inf:
            found.append((high - far, growth * far))
        else:
            found.append(((low + (high - low) * far / (1 + far)).clip(low, high),
                          (high - low) * growth * far / (1 + far)**2))
    return [np.concatenate(each) for each in zip(*found)]


def integral(p, values, breaks):
    """That of the density of `p` times `values`, a function of points and log densities."""
    x, weights = points(breaks)
    log = p.log_prob(tl.tensor(x)).numpy()
    there = log > -700
    x, log = x[there], log[there]
    return float((weights[there] * np.exp(log) * values(x, log)).sum())


# a distribution, and the numbers between which its density is smooth; all its moments are finite
SMOOTH = [
    (of("Normal", 0.5, 1.5), (-inf, 0.5, inf)), (of("LogNormal", 0.5, 0.7), (0, inf)),
    (of("Laplace", -1.0, 2.5), (-inf, -1, inf)), (of("Gumbel", 0.5, 2.0), (-inf, 0.5, inf)),
    (of("StudentT", 4.5, -1.0, 2.0), (-inf, -1, inf)), (of("HalfNormal", 2.5), (0, inf)),
    (of("Exponential", 2.5), (0, inf)), (of("Gamma", 0.7, 2.0), (0, inf)),
    (of("Gamma", 2.5, 3.0), (0, inf)), (of("Chi2", 5.0), (0, inf)),
    (of("Beta", 0.7, 2.0), (0, 1)), (of("Beta", 2.5, 3.0), (0, 1)),
    (of("Weibull", 2.5, 1.7), (0, inf)), (of("InverseGamma", 3.5, 2.0), (0, inf)),
    (of("Pareto", 1.5, 2.5), (1.5, inf)),
    (of("GeneralizedPareto", 0.5, 2.0, -0.3), (0.5, 0.5 + 2 / 0.3)),
    (of("GeneralizedPareto", 0.5, 2.0, 0.0), (0.5, inf)),
    (of("GeneralizedPareto", 0.5, 2.0, 0.2), (0.5, inf)),
    (of("Kumaraswamy", 1.7, 2.5), (0, 1)), (of("ContinuousBernoulli", 0.2), (0, 1)),
    (of("ContinuousBernoulli", 0.4999), (0, 1)),
]
# whose moments need not be finite: the mean and the variance, too
HEAVY = [
    (of("Cauchy", 1.0, 2.5), (-inf, 1, inf), nan, inf), (of("HalfCauchy", 1.5), (0, inf), inf, inf),
    (of("StudentT", 1.0, 2.0, 3.0), (-inf, 2, inf), nan, nan),
    (of("StudentT", 2.0, 2.0, 3.0), (-inf, 2, inf), 2, inf),
    (of("Pareto", 2.0, 1.0), (2, inf), inf, inf), (of("Pareto", 2.0, 1.5), (2, inf), 6, inf),
    (of("InverseGamma", 1.0, 2.0), (0, inf), inf, inf),
    (of("InverseGamma", 1.5, 2.0), (0, inf), 4, inf),
    (of("Uniform", -1.0, 5.0), (-1, 5), 2, 3),           # the mode of which is not a number
    (of("ContinuousBernoulli", 0.5), (0, 1), 0.5, 1 / 12),
]
ALL = [*SMOOTH, *(each[:2] for each in HEAVY)]
EACH = pytest.mark.parametrize("p, breaks", ALL, ids=repr)


@EACH
def test_densities_sum_to_one_and_entropies_are_their_means(p, breaks):
    assert integral(p, lambda x, log: 1, breaks) == pytest.approx(1, rel=1e-9)
    entropy = integral(p, lambda x, log: -log, breaks)
    assert p.entropy().item() == pytest.approx(entropy, rel=1e-7)
    assert p.perplexity().item() == pytest.approx(math.exp(entropy), rel=1e-7)


@each("p, breaks", SMOOTH, ids=repr)
def test_moments_and_modes(p, breaks):
    mean = integral(p, lambda x, log: x, breaks)
    variance = integral(p, lambda x, log: (x - mean)**2, breaks)
    assert p.mean.item() == pytest.approx(mean, rel=1e-7)
    assert p.variance.item() == pytest.approx(variance, rel=1e-7)
    assert p.stddev.item() == pytest.approx(variance**0.5, rel=1e-7)
    near = p.mode + tl.tensor([-1e-3, 1e-3], dtype=tl.float64)
    near = near[p.support.check(near)]
    assert len(near) and (p.log_prob(near) < p.log_prob(p.mode)).all()


@each("p, breaks, mean, variance", HEAVY, ids=repr)
def test_moments_that_are_not_finite(p, breaks, mean, variance):
    found = [x.item() for x in (p.mean, p.variance, p.stddev)]
    assert found == pytest.approx([mean, variance, variance**0.5], nan_ok=True)
    assert p.mean.dtype == p.variance.dtype == tl.float64


MODES = [
    (of("Gamma", 0.7, 2.0), 0.0), (of("Gamma", 3.0, 2.0), 1.0), (of("Chi2", 1.0), 0.0),
    (of("Weibull", 2.0, 0.7), 0.0), (of("Weibull", 2.0, 1.0), 0.0), (of("Uniform", 0.0, 1.0), nan),
    (of("Beta", 1.0, 1.0), nan), (of("Beta", 0.5, 0.7), 1.0), (of("Beta", 0.5, 2.0), 0.0),
    (of("Beta", 3.0, 2.0), 2 / 3), (of("Cauchy", 1.0, 2.0), 1.0), (of("HalfCauchy", 2.0), 0.0),
    (of("StudentT", 0.5, -3.0, 2.0), -3.0), (of("Pareto", 2.0, 1.0), 2.0),
    (of("Bernoulli", 0.5), nan), (of("Bernoulli", 0.4), 0.0), (of("Bernoulli", 0.6), 1.0),
    (of("Binomial", 7.0, 1.0), 7.0), (of("Binomial", 7.0, 0.6), 4.0), (of("Poisson", 3.5), 3.0),
    (of("NegativeBinomial", 4.0, 0.6), 4.0), (of("NegativeBinomial", 0.5, 0.6), 0.0),
    (of("Geometric", 0.3), 0.0), (of("Categorical", [0.2, 0.5, 0.3]), 1),
]


@each("p, mode", MODES, ids=repr)
def test_modes(p, mode):
    assert p.mode.item() == pytest.approx(mode, nan_ok=True)


CUMULATED = [(p, breaks) for p, breaks in ALL if type(p) not in (d.Beta, d.StudentT)]


@each("p, breaks", CUMULATED, ids=repr)
def test_chances_of_less_and_their_inverse(p, breaks):
    for chance in (0.1, 0.5, 0.8):
        if type(p) in (d.Gamma, d.Chi2, d.InverseGamma):
            with pytest.raises(NotImplementedError):
                p.icdf(tl.tensor(chance))
            value = p.mean.clamp(max=9) * (chance + 0.3)
            chance = p.cdf(value).item()
        else:
            value = p.icdf(tl.tensor(chance, dtype=tl.float64))
        below = [*(x for x in breaks if x < value), value.item()]
        assert integral(p, lambda x, log: 1, below) == pytest.approx(chance, rel=1e-9)
        assert p.cdf(value).item() == pytest.approx(chance, rel=1e-12)


# ---- whole numbers -------------------------------------------------------------------------------

COUNTS = [
    (of("Bernoulli", 0.3), 2), (of("Bernoulli", logits=0.7), 2), (of("Binomial", 7.0, 0.3), 8),
    (of("Binomial", 7.0, logits=0.7), 8), (of("Geometric", 0.3), 300),
    (of("Geometric", logits=-0.7), 300), (of("Poisson", 3.5), 100),
    (of("NegativeBinomial", 4.0, 0.6), 300), (of("Categorical", [0.2, 0.5, 0.3]), 3),
]


@each("p, n", COUNTS, ids=repr)
def test_chances_of_whole_numbers(p, n):
    values = np.arange(n)
    log = p.log_prob(tl.tensor(values, dtype=tl.float64)).numpy()
    chances = np.exp(log)
    assert chances.sum() == pytest.approx(1)
    if type(p) is d.Categorical:
        assert p.mean.isnan() and p.variance.isnan() and p.mean.dtype == tl.float64
    else:
        mean = (chances * values).sum()
        assert p.mean.item() == pytest.approx(mean)
        assert p.variance.item() == pytest.approx((chances * (values - mean)**2).sum())
    if type(p) not in (d.Poisson, d.NegativeBinomial):
        assert p.entropy().item() == pytest.approx(-(chances * log).sum())
    if p.has_enumerate_support:
        whole = p.enumerate_support()
        assert whole.tolist() == list(range(n))
        assert whole.dtype == (tl.int64 if type(p) is d.Categorical else tl.float64)
        batch = p.expand((2, 4))
        assert batch.enumerate_support().shape == (n, 2, 4)
        narrow = batch.enumerate_support(expand=False)
        assert narrow.shape == (n, 1, 1) and narrow.flatten().tolist() == whole.tolist()


def test_counts_of_classes():
    """All ways in which four draws fall on three classes."""
    p = d.Multinomial(4, tl.tensor([0.2, 0.5, 0.3], dtype=tl.float64))
    ways = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)], dtype=float)
    log = p.log_prob(tl.tensor(ways)).numpy()
    chances = np.exp(log)
    mean = chances @ ways
    assert chances.sum() == pytest.approx(1)
    assert p.mean.tolist() == pytest.approx(mean)
    assert p.variance.tolist() == pytest.approx(chances @ (ways - mean)**2)
    assert p.entropy().item() == pytest.approx(-(chances * log).sum())


def test_classes_as_vectors():
    chances = tl.tensor([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], dtype=tl.float64)
    classes, vectors = d.Categorical(chances), d.OneHotCategorical(chances)
    assert vectors.mode.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert vectors.mean.equal(chances) and vectors.param_shape == (2, 3)
    assert_close(vectors.variance, chances - chances**2)
    assert vectors.entropy().equal(classes.entropy())
    for expand, shape in ((True, (3, 2, 3)), (False, (3, 1, 3))):
        whole = vectors.enumerate_support(expand)
        assert whole.shape == shape and whole.dtype == tl.float64
        assert whole[:, 0].equal(tl.eye(3, dtype=tl.float64))
    assert vectors.log_prob(vectors.enumerate_support()).equal(
        classes.log_prob(classes.enumerate_support()))


@pytest.mark.parametrize("p, entropy", [
    (of("Categorical", [0.0, 0.5, 0.5]), math.log(2)), (of("Categorical", [0.0, 1.0]), 0.0),
    (of("Categorical", logits=[-inf, 0.0, 0.0]), math.log(2))])
def test_classes_that_never_come_up_have_no_part_in_entropies(p, entropy):
    assert p.entropy().item() == pytest.approx(entropy, abs=1e-13)


# ---- divergences ---------------------------------------------------------------------------------

REAL, POSITIVE = (-inf, -1.0, 0.5, inf), (0, inf)       # what has kinks has them there
PAIRS = [
    (of("Normal", 0.5, 1.5), of("Normal", -1.0, 2.0), REAL),
    (of("Normal", 0.5, 1.5), of("Laplace", -1.0, 2.0), REAL),
    (of("Laplace", 0.5, 1.5), of("Normal", -1.0, 2.0), REAL),
    (of("Laplace", 0.5, 1.5), of("Laplace", -1.0, 2.0), REAL),
    (of("Laplace", -1.0, 2.0), of("Laplace", 0.5, 1.5), REAL),
    (of("Cauchy", 0.5, 1.5), of("Cauchy", -1.0, 2.0), REAL),
    (of("Gumbel", 0.5, 1.5), of("Gumbel", -1.0, 2.0), REAL),
    (of("Uniform", -1.0, 0.5), of("Uniform", -1.0, 2.0), (-1.0, 0.5)),
    (of("Uniform", -1.0, 0.5), of("Uniform", -3.0, 0.5), (-1.0, 0.5)),
    (of("Uniform", -1.0, 0.5), of("Normal", 2.0, 3.0), (-1.0, 0.5)),
    (of("HalfNormal", 1.5), of("HalfNormal", 2.0), POSITIVE),
    (of("LogNormal", 0.5, 0.7), of("LogNormal", 0.2, 0.9), POSITIVE),
    (of("Exponential", 1.5), of("Exponential", 2.0), POSITIVE),
    (of("Exponential", 1.5), of("Gamma", 2.5, 3.0), POSITIVE),
    (of("Gamma", 2.5, 3.0), of("Exponential", 1.5), POSITIVE),
    (of("Gamma", 2.5, 3.0), of("Gamma", 1.7, 2.0), POSITIVE),
    (of("Chi2", 5.0), of("Gamma", 1.7, 2.0), POSITIVE),
    (of("Chi2", 5.0), of("Chi2", 3.0), POSITIVE),
    (of("InverseGamma", 2.5, 3.0), of("InverseGamma", 1.7, 2.0), POSITIVE),
    (of("Beta", 2.5, 3.0), of("Beta", 1.7, 4.0), (0, 1)),
    (of("Pareto", 2.0, 2.5), of("Pareto", 1.5, 1.7), (2, inf)),
    (of("Weibull", 2.0, 2.5), of("Weibull", 1.5, 1.7), POSITIVE),
    (of("ContinuousBernoulli", 0.2), of("ContinuousBernoulli", 0.7), (0, 1)),
    (of("Beta", 2.5, 3.0), of("ContinuousBernoulli", 0.7), (0, 1)),
    (of("Beta", 2.5, 3.0), of("Exponential", 0.7), (0, 1)),
    (of("Beta", 2.5, 3.0), of("Gamma", 1.7, 0.7), (0, 1)),
    (of("Beta", 2.5, 3.0), of("Normal", 1.7, 0.7), (0, 1)),
    (of("Beta", 2.5, 3.0), of("Uniform", 0.0, 1.5), (0, 1)),
    (of("ContinuousBernoulli", 0.2), of("Exponential", 0.7), (0, 1)),
    (of("ContinuousBernoulli", 0.2), of("Normal", 1.7, 0.7), (0, 1)),
    (of("ContinuousBernoulli", 0.2), of("Uniform", 0.0, 1.5), (0, 1)),
    (of("Exponential", 1.5), of("Gumbel", -0.5, 2.0), POSITIVE),
    (of("Exponential", 1.5), of("Normal", -0.5, 2.0), POSITIVE),
    (of("Gamma", 2.5, 3.0), of("Gumbel", -0.5, 2.0), POSITIVE),
    (of("Gamma", 2.5, 3.0), of("Normal", -0.5, 2.0), POSITIVE),
    (of("Gumbel", 0.5, 1.5), of("Normal", -0.5, 2.0), REAL),
    (of("Normal", 0.5, 1.5), of("Gumbel", -0.5, 2.0), REAL),
    (of("Pareto", 2.0, 2.5), of("Exponential", 1.5), (2, inf)),
    (of("Pareto", 2.0, 2.5), of("Gamma", 1.5, 0.7), (2, inf)),
    (of("Uniform", 0.2, 0.7), of("Beta", 2.5, 3.0), (0.2, 0.7)),
    (of("Uniform", 0.0, 1.0), of("ContinuousBernoulli", 0.2), (0, 1)),
    (of("Uniform", 0.2, 0.7), of("Exponential", 1.5), (0.2, 0.7)),
    (of("Uniform", 0.0, 0.7), of("Gamma", 1.5, 0.7), (0, 0.7)),
    (of("Uniform", -1.0, 0.7), of("Gumbel", 1.5, 0.7), (-1, 0.7)),
    (of("Uniform", 1.2, 2.7), of("Pareto", 1.2, 0.7), (1.2, 2.7)),
]


@each("p, q, breaks", PAIRS, ids=repr)
def test_divergences_are_means_of_log_ratios(p, q, breaks):
    expected = integral(p, lambda x, log: log - q.log_prob(tl.tensor(x)).numpy(), breaks)
    assert d.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-7)
    assert d.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-12)


def test_ratios():
    p = of("FisherSnedecor", 3.0, 9.5)
    assert integral(p, lambda x, log: 1, (0, inf)) == pytest.approx(1)
    assert integral(p, lambda x, log: x, (0, inf)) == pytest.approx(p.mean.item())
    assert integral(p, lambda x, log: (x - p.mean.item())**2, (0, inf)) == pytest.approx(
        p.variance.item())


def test_angles():
    for k in (0.3, 2.0, 40.0):
        p = of("VonMises", 0.5, k)
        breaks = (0.5 - np.pi, 0.5, 0.5 + np.pi)
        assert integral(p, lambda x, log: 1, breaks) == pytest.approx(1)
        assert integral(p, lambda x, log: 1 - np.cos(x - 0.5), breaks) == pytest.approx(
            p.variance.item())


@pytest.mark.parametrize("p, q, n", [
    (of("Bernoulli", 0.3), of("Bernoulli", 0.6), 2),
    (of("Bernoulli", logits=0.7), of("Bernoulli", 0.2), 2),
    (of("Binomial", 7.0, 0.3), of("Binomial", 7.0, 0.6), 8),
    (of("Geometric", 0.3), of("Geometric", 0.6), 100), (of("Poisson", 3.5), of("Poisson", 2.0), 50),
    (of("Categorical", [0.2, 0.5, 0.3]), of("Categorical", [0.3, 0.3, 0.4]), 3),
], ids=repr)
def test_divergences_of_whole_numbers(p, q, n):
    values = tl.arange(n).double()
    log_p, log_q = p.log_prob(values).numpy(), q.log_prob(values).numpy()
    expected = (np.exp(log_p) * (log_p - log_q)).sum()
    assert d.kl_divergence(p, q).item() == pytest.approx(expected)


@each("p, q, expected", [
    (of("Bernoulli", 0.0), of("Bernoulli", 0.5), math.log(2)),
    (of("Bernoulli", 1.0), of("Bernoulli", 0.5), math.log(2)),
    (of("Bernoulli", 0.5), of("Bernoulli", 0.0), inf),
    (of("Bernoulli", 0.5), of("Bernoulli", 1.0), inf),
    (of("Bernoulli", 1.0), of("Bernoulli", 0.0), inf),
    (of("Bernoulli", 0.0), of("Bernoulli", 1.0), inf),
    (of("Bernoulli", 0.0), of("Bernoulli", 0.0), 0.0),
    (of("Bernoulli", 1.0), of("Bernoulli", 1.0), 0.0),
    (of("Categorical", [0.0, 1.0]), of("Categorical", [0.5, 0.5]), math.log(2)),
    (of("Categorical", [0.5, 0.5]), of("Categorical", [0.0, 1.0]), inf),
    (of("Categorical", [0.0, 1.0]), of("Categorical", [0.0, 1.0]), 0.0),
    (of("OneHotCategorical", [0.5, 0.5]), of("OneHotCategorical", [0.25, 0.75]),
     math.log(2) / 2 + math.log(2 / 3) / 2),
    (of("Binomial", 7.0, 0.3), of("Binomial", 6.0, 0.3), inf),
    (of("Poisson", 0.0), of("Poisson", 2.0), 2.0), (of("Poisson", 2.0), of("Poisson", 0.0), inf),
    (of("Uniform", 0.0, 2.0), of("Uniform", 0.0, 1.0), inf),
    (of("Uniform", 0.0, 2.0), of("Uniform", 1.0, 3.0), inf),
    (of("Uniform", 0.0, 2.0), of("Uniform", 0.0, 2.0), 0.0),
], ids=repr)
def test_divergences_at_the_edge(p, q, expected):
    assert d.kl_divergence(p, q).item() == pytest.approx(expected, abs=1e-12)
