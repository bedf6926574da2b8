"""Distributions of transformed values."""

from collections.abc import Iterable

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import require, sum_rightmost
from tensorlib.ops.foreign import members
from tensorlib.distributions.distribution import Distribution, Independent, text_of
from tensorlib.distributions.location import Normal
from tensorlib.distributions.transforms import (
    ComposeTransform, ExpTransform, StickBreakingTransform, Transform)


class TransformedDistribution(Distribution):
    """The distribution of transform(x) for x of another distribution.

    >>> from tensorlib.distributions import Normal, TransformedDistribution, transforms
    >>> squashed = TransformedDistribution(Normal(0., 1.), [transforms.TanhTransform()])
    >>> squashed.log_prob(tensorlib.tensor(0.5))
    tensor(-0.7821)
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = list(members("TransformedDistribution", transforms)) if isinstance(
            transforms, Iterable) else [transforms]
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, got "
                             f"{transforms!r}")
        require("TransformedDistribution", Distribution, base_distribution=base_distribution)
        whole = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError("base_distribution needs to have shape with size at least "
                             f"{whole.domain.event_dim}, but got {shape}.")
        own, shape = shape, whole.inverse_shape(whole.forward_shape(tl.Size(shape)))
        base = base_distribution if shape == own else base_distribution.expand(
            shape[:len(shape) - len(base_distribution.event_shape)])
        more = whole.domain.event_dim - len(base.event_shape)
        self.base_dist = Independent(base, more) if more > 0 else base
        out = whole.forward_shape(tl.Size(shape))
        event_dim = whole.codomain.event_dim + max(
            len(self.base_dist.event_shape) - whole.domain.event_dim, 0)
        cut = len(out) - event_dim
        super().__init__(out[:cut], out[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape(
            tl.Size((*batch_shape, *self.event_shape)))
        new.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        constraint, more = self.transforms[-1].codomain, len(self.event_shape)
        more -= constraint.event_dim
        return constraints.independent(constraint, more) if more > 0 else constraint

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()):
        with tl.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        self._validate_sample(value)
        event_dim, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                          event_dim - transform.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y),
                                     event_dim - len(self.base_dist.event_shape))

    def _sign(self):
        """Whether the transforms keep the order of values (1) or turn it round (-1)."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _turned(self, value):
        """A probability, or one minus it where the order is turned round."""
        sign = self._sign()
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:          # not this support: exp(-inf) = 0 bounds that of LogNormal
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._turned(value)))

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for normal x of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self):
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc

    def __repr__(self):
        return f"LogNormal(loc: {text_of(self.loc)}, scale: {text_of(self.scale)})"


class LogisticNormal(TransformedDistribution):
    """The distribution of n + 1 shares that are made of n normal numbers by breaking a stick.

    Source: Aitchison and Shen, "Logistic-Normal Distributions", Biometrika 67, 1980.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)),
                         StickBreakingTransform(), validate_args)

    @property
    def loc(self):
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """Their standard deviations."""
        return self.base_dist.base_dist.scale

    def __repr__(self):
        return f"LogisticNormal(loc: {text_of(self.loc)}, scale: {text_of(self.scale)})"
