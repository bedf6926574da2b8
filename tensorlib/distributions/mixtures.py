"""Mixtures of distributions of one family."""

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.discrete import Categorical
from tensorlib.distributions.distribution import Distribution


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
