"""Distributions of numbers from 0 to 1, other than beta numbers."""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import (
    broadcast_all, clamp_probs, derived, logits_to_probs, one_of, probs_to_logits, softplus)
from tensorlib.distributions.discrete import WithProbability
from tensorlib.distributions.distribution import ExponentialFamily
from tensorlib.distributions.location import EULER, Uniform
from tensorlib.distributions.transformed import TransformedDistribution
from tensorlib.distributions.transforms import AffineTransform, PowerTransform


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution: (1 - u**(1 / b))**(1 / a) for uniform u.

    Here a is `concentration1` and b is `concentration0`.

    Source: Jones, "Kumaraswamy's distribution", Statistical Methodology 6, 2009.
    """

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero = tl.zeros_like(self.concentration0.detach())
        super().__init__(
            Uniform(zero, zero + 1, validate_args),
            [PowerTransform(1 / self.concentration0), AffineTransform(1.0, -1.0),
             PowerTransform(1 / self.concentration1)], validate_args)

    def _moment(self, n):
        """b B(1 + n / a, b)"""
        more, b = 1 + n / self.concentration1, self.concentration0
        return b * (more.lgamma() + b.lgamma() - (more + b).lgamma()).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)).pow(1 / a)
        return found.where((a >= 1).logical_and(b >= 1), math.nan)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1).square()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + EULER) - a.log() - b.log()


class ContinuousBernoulli(WithProbability, ExponentialFamily):
    """The distribution on [0, 1] of density proportional to probs**x * (1 - probs)**(1 - x).

    lims: between these probabilities, series stand for formulas that have no value for the
    probability 1/2, but not in `cdf` and `icdf`, which need none.

    Source: Loaiza-Ganem and Cunningham, "The continuous Bernoulli: fixing a pervasive error in
    variational autoencoders", NeurIPS 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        name, value = one_of("ContinuousBernoulli", probs, logits)
        vars(self)[name], = broadcast_all(value)
        self._lims = lims
        super().__init__(vars(self)[name].shape, validate_args=validate_args)
        if name == "probs":
            vars(self)[name] = clamp_probs(self.probs)

    @derived
    def probs(self):
        """The probabilities of the density's weights."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _by_distance(self, formula, series):
        """The first, a function of probabilities, where they are away from 1/2, else the second."""
        far = (self.probs <= self._lims[0]).logical_or(self.probs > self._lims[1])
        return formula(self.probs.where(far, self._lims[0])).where(far, series)

    def _log_norm(self):
        """The logarithm of what the weights are multiplied by."""
        x = (self.probs - 0.5).square()
        return self._by_distance(
            lambda p: ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        x = self.probs - 0.5
        return self._by_distance(
            lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()),
            0.5 + (1 / 3 + 16 / 45 * x * x) * x)

    @property
    def variance(self):
        x = (self.probs - 0.5).square()
        return self._by_distance(
            lambda p: p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square(),
            1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    @property
    def mode(self):
        return (self.probs > 0.5).to(self.probs.dtype).where(self.probs != 0.5, math.nan)

    def rsample(self, sample_shape=()):
        return self.icdf(tl.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def _by_odds(self, formula, value):
        """A function of the log odds, or the value itself where these are 0."""
        odds = probs_to_logits(self.probs, is_binary=True)
        return formula(odds.where(odds != 0, 1.0)).where(odds != 0, value)

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits) + self._log_norm()

    def cdf(self, value):
        self._validate_sample(value)
        inside = value.clamp(min=0, max=1)
        return self._by_odds(lambda odds: (odds * inside).expm1() / odds.expm1(), inside)

    def icdf(self, value):
        return self._by_odds(lambda odds: (value * odds.expm1()).log1p() / odds, value)

    def entropy(self):
        log_zero = (-self.probs).log1p()
        return self.mean * (log_zero - self.probs.log()) - self._log_norm() - log_zero
