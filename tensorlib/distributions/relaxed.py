"""Relaxed Bernoulli and categorical distributions, whose values have gradients.

Sources: Jang, Gu and Poole, "Categorical Reparameterization with Gumbel-Softmax", and Maddison,
Mnih and Teh, "The Concrete Distribution", both ICLR 2017.
"""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import (
    broadcast_all, clamp_probs, one_of, probs_to_logits, sum_rightmost)
from tensorlib.distributions.discrete import Categorical, WithProbability
from tensorlib.distributions.distribution import Distribution
from tensorlib.distributions.transformed import TransformedDistribution
from tensorlib.distributions.transforms import ExpTransform, SigmoidTransform


class LogitRelaxedBernoulli(WithProbability, Distribution):
    """The log odds of `RelaxedBernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        name, value = one_of("LogitRelaxedBernoulli", probs, logits)
        vars(self)[name], = broadcast_all(value)
        super().__init__(vars(self)[name].shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(tl.rand(shape, dtype=self.logits.dtype))
        return (u.log() - (-u).log1p() + probs_to_logits(clamp_probs(self.probs), True)) / (
            self.temperature)

    def log_prob(self, value):
        self._validate_sample(value)
        away = self.logits - value * self.temperature
        return tl.as_tensor(self.temperature).log() + away - 2 * tl.logaddexp(
            away, tl.zeros_like(away))


class Relaxed(TransformedDistribution):
    """The base of both distributions, with the parameters of the one that is transformed."""

    has_rsample = True
    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class RelaxedBernoulli(Relaxed):
    """Numbers in (0, 1) that a low temperature brings near to those of `Bernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits, validate_args),
                         SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(WithProbability, Distribution):
    """The logarithms of `RelaxedOneHotCategorical`."""

    is_binary = False
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        given = Categorical(probs, logits)
        name = "probs" if logits is None else "logits"
        vars(self)[name] = given._param
        super().__init__(given.batch_shape, given.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        gumbels = -tl.empty(shape, dtype=self.logits.dtype).exponential_().log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.event_shape[0]
        scores = self.logits - value * self.temperature
        scores = sum_rightmost(scores - scores.logsumexp(-1, True), 1)
        return scores + math.lgamma(n) + (n - 1) * tl.as_tensor(self.temperature).log()


class RelaxedOneHotCategorical(Relaxed):
    """Shares that a low temperature brings near to the vectors of `OneHotCategorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args),
                         ExpTransform(), validate_args=validate_args)
