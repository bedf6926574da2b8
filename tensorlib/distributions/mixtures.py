"""Mixtures, relaxed categorical distributions, and transforms of exponential variates.

Sources: Jang, Gu and Poole, "Categorical Reparameterization with Gumbel-Softmax", and Maddison,
Mnih and Teh, "The Concrete Distribution", both ICLR 2017, for the relaxed ones.
"""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import (
    broadcast_all,
    clamp_probs,
    derived,
    logits_to_probs,
    one_of,
    probs_to_logits,
    sum_rightmost,
)
from tensorlib.distributions.discrete import Categorical, WithProbability
from tensorlib.distributions.distribution import Distribution
from tensorlib.distributions.gamma_numbers import standard_gamma
from tensorlib.distributions.location import EULER
from tensorlib.distributions.transformed import TransformedDistribution
from tensorlib.distributions.transforms import ExpTransform, SigmoidTransform


class MixtureSameFamily(Distribution):
    """One of the distributions along a last batch dim, by the probabilities of a `Categorical`.

    >>> from tensorlib.distributions import Categorical, MixtureSameFamily, Normal
    >>> halves = Categorical(tensorlib.ones(2))
    >>> MixtureSameFamily(halves, Normal(tensorlib.tensor([-1., 1.]), 1.)).mean
    tensor(0.)
    """

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        shape, n = component_distribution.batch_shape, mixture_distribution._num_events
        for one, other in zip(reversed(mixture_distribution.batch_shape), reversed(shape[:-1])):
            if one != 1 and other != 1 and one != other:
                raise ValueError(f"`mixture_distribution.batch_shape` "
                                 f"({tuple(mixture_distribution.batch_shape)}) is not compatible "
                                 f"with `component_distribution.batch_shape` ({tuple(shape)})")
        if not shape or shape[-1] != n:
            raise ValueError(f"`mixture_distribution` has {n} components, but "
                             f"`component_distribution` has batch_shape {tuple(shape)}")
        super().__init__(shape[:-1], component_distribution.event_shape,
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        n = self._mixture_distribution._num_events
        MixtureSameFamily.__init__(
            new, self._mixture_distribution.expand(batch_shape),
            self._component_distribution.expand((*batch_shape, n)), validate_args=False)
        return self._as_checked(new)

    @property
    def mixture_distribution(self):
        """The distribution of the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components, along the last batch dim."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _shares(self):
        """The probabilities of the components, with the dims of an event."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * len(self.event_shape)))

    def _along(self):
        return -1 - len(self.event_shape)

    @property
    def mean(self):
        return (self._shares() * self._component_distribution.mean).sum(self._along())

    @property
    def variance(self):
        away = self._component_distribution.mean - self.mean.unsqueeze(self._along())
        return (self._shares() * (self._component_distribution.variance + away.square())).sum(
            self._along())

    def log_prob(self, value):
        self._validate_sample(value)
        each = self._component_distribution.log_prob(value.unsqueeze(self._along()))
        return (each + self._mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value):
        each = self._component_distribution.cdf(value.unsqueeze(self._along()))
        return (each * self._mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape=()):
        with tl.no_grad():
            each = self._component_distribution.sample(sample_shape)
            place = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            place = place.reshape((*place.shape, *(1,) * (1 + len(self.event_shape))))
            along = each.ndim + self._along()
            shape = (*each.shape[:along], 1, *each.shape[along + 1:])
            return each.gather(along, place.expand(shape)).squeeze(along)

    def __repr__(self):
        return (f"MixtureSameFamily(\n  {self.mixture_distribution!r},\n  "
                f"{self.component_distribution!r})")


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

    @constraints.dependent_property
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

    @constraints.dependent_property
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


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) that a low temperature brings near to those of `Bernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits, validate_args),
                         SigmoidTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class ExpRelaxedCategorical(Distribution):
    """The logarithms of `RelaxedOneHotCategorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        given = Categorical(probs, logits)
        name = "probs" if logits is None else "logits"
        vars(self)[name] = given._param
        super().__init__(given.batch_shape, given.param_shape[-1:], validate_args=validate_args)

    @derived
    def probs(self):
        """The probabilities of the classes."""
        return logits_to_probs(self.logits)

    @derived
    def logits(self):
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

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


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares that a low temperature brings near to the vectors of `OneHotCategorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits, validate_args),
                         ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)
