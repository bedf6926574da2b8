"""Kullback and Leibler's divergence of distributions of different families.

Most are the mean of the logarithm of the second density under the first distribution, which needs
a moment of that, less its entropy.
"""

import math

import tensorlib as tl
from tensorlib.distributions.discrete import Bernoulli, Binomial, Poisson
from tensorlib.distributions.kl import register_kl
from tensorlib.distributions.heavy_tails import Pareto
from tensorlib.distributions.location import EULER, Gumbel, Laplace, Normal, Uniform
from tensorlib.distributions.positive import Beta, Exponential, Gamma
from tensorlib.distributions.unit_interval import ContinuousBernoulli

inf = math.inf


def for_each(kinds, *others):
    """A decorator that makes a function the rule for each of `kinds` and each of `others`."""
    def register(rule):
        for kind in kinds:
            for other in others:
                register_kl(kind, other)(rule)
        return rule
    return register


@for_each([Exponential, Gamma], Beta, ContinuousBernoulli, Pareto, Uniform)
@for_each([Gumbel, Laplace, Normal], Beta, ContinuousBernoulli, Exponential, Gamma, Pareto,
          Uniform)
@for_each([Pareto], Beta, ContinuousBernoulli, Uniform)
@for_each([Beta, ContinuousBernoulli], Pareto)
@for_each([Poisson], Bernoulli, Binomial)
def beyond_support(p, q):
    """Some values of p are never values of q."""
    shape = tl.broadcast_shapes(p.batch_shape, q.batch_shape)
    return tl.full(shape, inf, dtype=p.mean.dtype)


@for_each([Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform], Normal)
def to_normal(p, q):
    """-E[log q(x)] - H(p), with the mean and the variance of p"""
    spread = p.variance + (p.mean - q.loc).square()
    return (q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * spread / q.scale.square()
            - p.entropy())


@for_each([Beta, ContinuousBernoulli, Gamma, Pareto], Exponential)
def to_exponential(p, q):
    """-E[log q(x)] - H(p), with log q(x) = log(rate) - rate x"""
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Uniform, Exponential)
def _(p, q):
    """That of `to_exponential`; infinite for negative values of p."""
    return to_exponential(p, q).where(p.low >= 0, inf)


# ---- to those whose density has a power of the value ---------------------------------------------

def mean_log_of_uniform(low, high):
    """The mean of the logarithm of numbers from `low` to `high`."""
    return (tl.xlogy(high, high) - tl.xlogy(low, low)) / (high - low) - 1


MEAN_LOG = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: mean_log_of_uniform(p.low, p.high),
}


def mean_log(p):
    """The mean of the logarithm of values of a distribution."""
    return next(rule(p) for kind, rule in MEAN_LOG.items() if isinstance(p, kind))


@for_each([Beta, Exponential, Pareto], Gamma)
def to_gamma(p, q):
    """-E[log q(x)] - H(p), with the means of x and of log(x)"""
    a = q.concentration
    return (a.lgamma() - a * q.rate.log() - (a - 1) * mean_log(p) + q.rate * p.mean
            - p.entropy())


@register_kl(Uniform, Gamma)
def _(p, q):
    return to_gamma(p, q).where(p.low >= 0, inf)


@register_kl(Uniform, Pareto)
def _(p, q):
    found = (q.alpha + 1) * mean_log(p) - (q.alpha.log() + q.alpha * q.scale.log()) - p.entropy()
    return found.where(p.low >= q.scale, inf)


def within_unit_interval(p):
    """Whether a uniform distribution has values from 0 to 1 alone."""
    return (p.low >= 0).logical_and(p.high <= 1)


@register_kl(Uniform, Beta)
def _(p, q):
    a, b = q.concentration1, q.concentration0
    found = (a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * mean_log(p)
             - (b - 1) * mean_log_of_uniform(1 - p.high, 1 - p.low) - p.entropy())
    return found.where(within_unit_interval(p), inf)


# ---- to and from those on the unit interval ------------------------------------------------------

@register_kl(Beta, ContinuousBernoulli)
def to_continuous_bernoulli(p, q):
    """-E[log q(x)] - H(p), where log q(x) is linear in x"""
    return -p.mean * q.logits - (-q.probs).log1p() - q._log_norm() - p.entropy()


@register_kl(Uniform, ContinuousBernoulli)
def _(p, q):
    return to_continuous_bernoulli(p, q).where(within_unit_interval(p), inf)


@for_each([Beta, ContinuousBernoulli], Uniform)
def to_uniform(p, q):
    """log of the width of q, less H(p); infinite unless q covers [0, 1]"""
    covered = (q.low <= 0).logical_and(q.high >= 1)
    return ((q.high - q.low).log() - p.entropy()).where(covered, inf)


# ---- to Gumbel's, whose density has the exponential of the value ---------------------------------

def moved_exponential(p, q):
    """The mean of exp((q.loc - x) / q.scale) for values x of p."""
    if isinstance(p, Uniform):
        low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
        return ((-low).exp() - (-high).exp()) / (high - low)
    if isinstance(p, Normal):
        return ((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).square()).exp()
    shape = p.concentration if isinstance(p, Gamma) else 1
    return (q.loc / q.scale).exp() * (1 + 1 / (p.rate * q.scale)).pow(-shape)


@for_each([Exponential, Gamma, Normal, Uniform], Gumbel)
def to_gumbel(p, q):
    """-E[log q(x)] - H(p), with the means of z = (x - loc) / scale and of e**-z"""
    return (q.scale.log() + (p.mean - q.loc) / q.scale + moved_exponential(p, q) - p.entropy())


@register_kl(Normal, Laplace)
def _(p, q):
    """log(2 t) + E|x - n| / t - H(p)"""
    z = (p.loc - q.loc) / p.scale
    away = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z * z).exp() + (p.loc - q.loc) * (
        z * math.sqrt(0.5)).erf()
    return (2 * q.scale).log() + away / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def _(p, q):
    """E[rate - x log(rate) + log(x!)] - H(p), where x! is 1"""
    return q.rate - p.probs * q.rate.log() - p.entropy()
