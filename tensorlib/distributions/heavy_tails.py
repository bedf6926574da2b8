"""Distributions of positive numbers whose tails may be heavy: Weibull, Pareto, generalised Pareto,
inverse gamma.

Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions (1994).
"""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import broadcast_all
from tensorlib.distributions.distribution import Distribution
from tensorlib.distributions.gamma_variates import standard_gamma
from tensorlib.distributions.location import EULER


class Weibull(Distribution):
    """The Weibull distribution: scale * e**(1 / concentration) for exponential e."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, n):
        return (1 + n / self.concentration).lgamma()

    @property
    def mean(self):
        return self.scale * self._moment(1).exp()

    @property
    def mode(self):
        k = self.concentration
        return (self.scale * ((k - 1) / k).pow(1 / k)).where(k > 1, 0.0)

    @property
    def variance(self):
        return self.scale.square() * (self._moment(2).exp() - (2 * self._moment(1)).exp())

    def rsample(self, sample_shape=()):
        drawn = tl.empty(self._extended_shape(sample_shape), dtype=self.scale.dtype).exponential_()
        return self.scale * drawn.pow(1 / self.concentration)

    def log_prob(self, value):
        self._validate_sample(value)
        k, z = self.concentration, value / self.scale
        return (k / self.scale).log() + (k - 1) * z.log() - z.pow(k)

    def cdf(self, value):
        self._validate_sample(value)
        return -(-(value / self.scale).pow(self.concentration)).expm1()

    def icdf(self, value):
        return self.scale * (-(-value).log1p()).pow(1 / self.concentration)

    def entropy(self):
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1


class Pareto(Distribution):
    """The Pareto distribution: scale * exp(e / alpha) for exponential e."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def rsample(self, sample_shape=()):
        drawn = tl.empty(self._extended_shape(sample_shape), dtype=self.scale.dtype).exponential_()
        return self.scale * (drawn / self.alpha).exp()

    def log_prob(self, value):
        self._validate_sample(value)
        return self.alpha.log() + tl.xlogy(self.alpha, self.scale) - (self.alpha + 1) * value.log()

    def cdf(self, value):
        self._validate_sample(value)
        return 1 - (self.scale / value).pow(self.alpha)

    def icdf(self, value):
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class GeneralizedPareto(Distribution):
    """The distribution of what exceeds a high threshold: loc + scale * (exp(c e) - 1) / c for
    exponential e and the concentration c, and loc + scale * e where that is 0.

    Source: Pickands, "Statistical Inference Using Extreme Order Statistics", Annals of Statistics
    3, 1975.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, end.where(self.concentration < 0, math.inf))

    def _by_tail(self, exponential, power):
        """The first where the concentration is 0, the second, a function of it, elsewhere."""
        c = self.concentration
        light = c.isclose(tl.zeros_like(c))
        return tl.where(light, exponential, power(c.where(light.logical_not(), 1.0)))

    @property
    def mean(self):
        c = self.concentration
        return (self.loc + self.scale / (1 - c)).where(c < 1, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        c = self.concentration
        return (self.scale.square() / ((1 - c).square() * (1 - 2 * c))).where(c < 0.5, math.nan)

    def rsample(self, sample_shape=()):
        return self.icdf(tl.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value):
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -self.scale.log() - self._by_tail(
            z, lambda c: tl.special.xlog1py(1 + 1 / c, c * z))

    def log_survival_function(self, value):
        """The logarithm of the probability of values above `value`."""
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -self._by_tail(z, lambda c: (c * z).log1p() / c)

    def log_cdf(self, value):
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return -self.log_survival_function(value).expm1()

    def icdf(self, value):
        drawn = -(-value).log1p()
        return self.loc + self.scale * self._by_tail(drawn, lambda c: (c * drawn).expm1() / c)

    def entropy(self):
        return self.scale.log() + self.concentration + 1


class InverseGamma(Distribution):
    """The distribution of 1 / x for gamma numbers x."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self):
        return (self.rate / (self.concentration - 1)).where(self.concentration > 1, math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        return (self.rate.square() / ((a - 1).square() * (a - 2))).where(a > 2, math.inf)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.rate / standard_gamma(self.concentration.expand(shape))

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return tl.xlogy(a, self.rate) - (a + 1) * value.log() - self.rate / value - a.lgamma()

    def cdf(self, value):
        self._validate_sample(value)
        return tl.igammac(self.concentration, self.rate / value)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
