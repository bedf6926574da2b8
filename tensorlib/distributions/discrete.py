"""Discrete distributions: of integers, of classes, and of counts of classes.

Source: Johnson, Kemp and Kotz, Univariate Discrete Distributions (2005).
"""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import (
    broadcast_all, derived, logits_to_probs, one_of, probs_to_logits, require, softplus)
from tensorlib.distributions.distribution import Distribution, ExponentialFamily

nan = math.nan
SEARCHED = 1 << 22      # from so many comparisons on, classes are searched for


class WithProbability:
    """A distribution with probabilities, `probs`, or `logits`: one is given, and the other is
    computed.

    is_binary: they are the probability of a success and its log odds, and not the probabilities of
    classes along the last dim and their logarithms.
    """

    is_binary = True

    @derived
    def probs(self):
        """The probabilities of a success, or of the classes."""
        return logits_to_probs(self.logits, self.is_binary)

    @derived
    def logits(self):
        """The log odds of a success, or the logarithms of the probabilities of the classes."""
        return probs_to_logits(self.probs, self.is_binary)

    @property
    def _param(self):
        return vars(self)["probs"] if "probs" in vars(self) else self.logits

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.shape


def along_batch(values, batch_shape, expand):
    """Values along a first dim, for every place of the batch: see `enumerate_support`."""
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values


class OneTrial(WithProbability, ExponentialFamily):
    """A distribution of nothing but the probability of a success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, value = one_of(type(self).__name__, probs, logits)
        value, = broadcast_all(value)
        vars(self)[name] = value
        super().__init__(value.shape, validate_args=validate_args)


class Bernoulli(OneTrial):
    """1 with probability `probs`, else 0.

    >>> from tensorlib.distributions import Bernoulli
    >>> Bernoulli(logits=tensorlib.tensor([0., 2.])).mean
    tensor([0.5000, 0.8808])
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return (self.probs >= 0.5).to(self.probs.dtype).where(self.probs != 0.5, nan)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with tl.no_grad():
            return tl.bernoulli(self.probs.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        return value * self.logits - softplus(self.logits)

    def entropy(self):
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand=True):
        return along_batch(tl.arange(2, dtype=self.probs.dtype), self._batch_shape, expand)


class Geometric(OneTrial):
    """How many trials fail before the first success, each of probability `probs`."""

    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError("Expected parameter probs of distribution Geometric to be positive, "
                             f"but found invalid values:\n{self.probs}")

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return tl.zeros_like(self.probs)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        with tl.no_grad():
            p = self.probs.detach()
            u = tl.rand(self._extended_shape(sample_shape), dtype=p.dtype)
            return ((-u).log1p() / (-p).log1p()).floor()

    def log_prob(self, value):
        self._validate_sample(value)
        log_failure = (-self.probs).log1p()
        failures = (value * log_failure).where((value != 0).logical_or(self.probs < 1), 0.0)
        return failures + self.probs.log()

    def entropy(self):
        return (softplus(self.logits) - self.probs * self.logits) / self.probs


class Counted(WithProbability, Distribution):
    """A distribution with a count of trials and the probability of a success in each."""

    def __init__(self, total_count: tl.Tensor | int = 1, probs=None, logits=None,
                 validate_args=None):
        name, value = one_of(type(self).__name__, probs, logits)
        self.total_count, vars(self)[name] = broadcast_all(total_count, value)
        self.total_count = self.total_count.type_as(vars(self)[name])
        super().__init__(self.total_count.shape, validate_args=validate_args)


class Binomial(Counted):
    """How many of `total_count` trials succeed, each of probability `probs`."""

    arg_constraints = {"total_count": constraints.nonnegative_integer,
                       "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with tl.no_grad():
            return tl.binomial(self.total_count.expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * self.logits - n * softplus(self.logits) + ways

    def _same_count(self, name):
        """The number of trials. Raises: NotImplementedError where it differs in the batch."""
        n = int(self.total_count.max())
        if not (self.total_count == n).all():
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return n

    def entropy(self):
        self._same_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        n = self._same_count("enumerate_support")
        values = tl.arange(n + 1, dtype=self.total_count.dtype)
        return along_batch(values, self._batch_shape, expand)


class NegativeBinomial(Counted):
    """How many trials of probability `probs` succeed before `total_count` fail."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=()):
        with tl.no_grad():
            from_rate = tl.distributions.Gamma(
                self.total_count, (-self.logits.detach()).exp(), validate_args=False)
            return tl.poisson(from_rate.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        n = self.total_count
        kept = -n * softplus(self.logits) - value * softplus(-self.logits)
        ways = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        return kept + ways.where(n + value != 0, 0.0)


class Poisson(ExponentialFamily):
    """The Poisson distribution of this `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        with tl.no_grad():
            return tl.poisson(self.rate.detach().expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        value, rate = broadcast_all(value, self.rate)
        return tl.xlogy(value, rate) - rate - (value + 1).lgamma()


class Categorical(WithProbability, Distribution):
    """One of n classes, with probabilities (or log probabilities) along the last dim.

    >>> from tensorlib.distributions import Categorical
    >>> Categorical(tensorlib.tensor([1., 1., 2.])).log_prob(tensorlib.tensor(2)).exp()
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    is_binary = False
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, value = one_of("Categorical", probs, logits)
        require("Categorical", tl.Tensor, **{name: value})
        if value.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        vars(self)[name] = (value / value.sum(-1, True) if name == "probs"
                            else value - value.logsumexp(-1, True))
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self):
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return self.probs.new_full(self._batch_shape, nan)

    @property
    def mode(self):
        return self.probs.argmax(-1)

    @property
    def variance(self):
        return self.probs.new_full(self._batch_shape, nan)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with tl.no_grad():
            edges = self.probs.detach().double().cumsum(-1)
            if shape.numel() * self._num_events > SEARCHED:
                return self._searched(tl.Size(sample_shape))
            total = edges[..., -1:]
            marks = tl.rand((*shape, 1), dtype=tl.float64).clamp(max=1 - 2.0**-52) * total
            return (edges <= marks).sum(-1)

    def _searched(self, sample_shape):
        """As `sample`, of many classes."""
        chances = self.probs.detach().reshape(-1, self._num_events)
        drawn = tl.multinomial(chances, sample_shape.numel(), True)
        return drawn.mT.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        classes, logits = tl.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, classes[..., :1]).squeeze(-1)

    def entropy(self):
        least = tl.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return along_batch(tl.arange(self._num_events), self._batch_shape, expand)


class OfClasses(Distribution):
    """A distribution of vectors with a number for each class of a `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self):
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self):
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    def _hot(self, classes):
        """Vectors with a 1 at the place of each class."""
        classes = classes.unsqueeze(-1)
        return (classes == tl.arange(self._event_shape[0])).to(self._categorical._param.dtype)


class OneHotCategorical(OfClasses):
    """One of n classes, as a vector with a 1 at its place and 0 elsewhere."""

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return self._hot(self.probs.argmax(-1))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = tl.eye(n, dtype=self._categorical._param.dtype)
        values = values.view((n, *(1,) * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As `OneHotCategorical`; the gradient of its values is that of the probabilities.

    Source: Bengio, Leonard and Courville, "Estimating or Propagating Gradients Through Stochastic
    Neurons for Conditional Computation" (2013).
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfClasses):
    """How often each of n classes comes up in `total_count` draws."""

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        if self._validate_args and total_count < 0:
            raise ValueError("Multinomial: Expected parameter total_count to be at least 0, got "
                             f"{total_count}")

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        classes = self._categorical.sample((self.total_count, *sample_shape))
        return self._hot(classes).sum(0)

    def log_prob(self, value):
        self._validate_sample(value)
        logits = self.logits.where((value != 0).logical_or(self.logits != -math.inf), 0.0)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self):
        n = tl.tensor(float(self.total_count), dtype=self.probs.dtype)
        cat = self._categorical.entropy()
        each = Binomial(self.total_count, probs=self.probs, validate_args=False)
        counts = each.enumerate_support(expand=False)[1:]
        weights = each.log_prob(counts).exp()
        return n * cat - (n + 1).lgamma() + (weights * (counts + 1).lgamma()).sum((0, -1))
