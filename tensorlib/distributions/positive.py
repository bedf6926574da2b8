"""Distributions of positive numbers and on the simplex: gamma, exponential, beta, Dirichlet.

Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions (1994).
"""

import math
from functools import lru_cache

import tensorlib as tl
from tensorlib import special
from tensorlib._core.base.error_names import type_name
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import broadcast_all
from tensorlib.distributions.distribution import Distribution, ExponentialFamily
from tensorlib.distributions.gamma_variates import log_gamma, standard_gamma
from tensorlib.distributions.location import Cauchy, Normal
from tensorlib.distributions.transformed import TransformedDistribution
from tensorlib.distributions.transforms import AbsTransform

HALF_LOG_TWO_OVER_PI = 0.5 * math.log(2 / math.pi)


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and inverse scale `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / (self.rate * self.rate)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate

    def log_prob(self, value):
        """The logarithm of the density at a tensor, or at a number, as PyTorch's takes it."""
        if isinstance(value, (int, float)):
            value = tl.tensor(value, dtype=self.rate.dtype)
        self._validate_sample(value)
        return (tl.xlogy(self.concentration, self.rate) + tl.xlogy(self.concentration - 1, value)
                - self.rate * value - self.concentration.lgamma())

    def cdf(self, value):
        self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The chi-square distribution of `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        self.df, = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Chi2, _instance)
        Chi2.__init__(new, self.df.expand(batch_shape), validate_args=False)
        return self._as_checked(new)


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-square numbers, each by its degrees of freedom.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self):
        df2 = self.df2.where(self.df2 > 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return found.where(self.df1 > 2, math.nan)

    @property
    def variance(self):
        df1, df2 = self.df1, self.df2.where(self.df2 > 4, math.nan)
        return 2 * df2.square() * (df1 + df2 - 2) / (df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape=()):
        shape, tiny = self._extended_shape(sample_shape), tl.finfo(self.df1.dtype).tiny
        above, below = (standard_gamma((0.5 * df).expand(shape)) / df
                        for df in (self.df1, self.df2))
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        self._validate_sample(value)
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return (norm + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())


class Exponential(ExponentialFamily):
    """The exponential distribution of this `rate`."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def mode(self):
        return tl.zeros_like(self.rate)

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return tl.empty(shape, dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value):
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1 - self.rate.log()


class Half(TransformedDistribution):
    """The distribution of |z| for numbers z of a distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(self.whole(0.0, scale, validate_args), AbsTransform(), validate_args)

    __repr__ = Distribution.__repr__

    @property
    def scale(self):
        """The scale of the distribution on both sides of 0."""
        return self.base_dist.scale

    @property
    def mode(self):
        return tl.zeros_like(self.scale)


class HalfNormal(Half):
    """The distribution of |z| for normal z of mean 0 and standard deviation `scale`."""

    whole = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return tl.randn(shape, dtype=self.scale.dtype).abs_() * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        z = value / self.scale
        inside = HALF_LOG_TWO_OVER_PI - self.scale.log() - 0.5 * z * z
        return inside.where(value >= 0, -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return (value / self.scale * math.sqrt(0.5)).erf()

    def icdf(self, value):
        return self.scale * math.sqrt(2) * value.erfinv()

    def entropy(self):
        return self.scale.log() + (0.5 - HALF_LOG_TWO_OVER_PI)


class HalfCauchy(Half):
    """The distribution of |z| for Cauchy numbers z of median 0 and this `scale`."""

    whole = Cauchy

    @property
    def mean(self):
        return self.scale * 0 + math.inf

    @property
    def variance(self):
        return self.scale * 0 + math.inf

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return tl.empty(shape, dtype=self.scale.dtype).cauchy_().abs_() * self.scale

    def log_prob(self, value):
        self._validate_sample(value)
        inside = math.log(2 / math.pi) - self.scale.log() - (value / self.scale).square().log1p()
        return inside.where(value >= 0, -math.inf)

    def cdf(self, value):
        self._validate_sample(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, value):
        return (value * (math.pi / 2)).tan() * self.scale

    def entropy(self):
        return math.log(2 * math.pi) + self.scale.log()


limits = lru_cache(16)(tl.finfo)


def inside(shares):
    """Shares without 0 and 1, which they can only round to: densities there may be infinite."""
    bounds = limits(shares.dtype)
    return shares.clamp(bounds.tiny, 1 - bounds.eps / 2)


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution: of shares that sum to 1, along the last dim.

    Its values are gamma numbers divided by their sum, of which the gradient is implicit.

    >>> from tensorlib.distributions import Dirichlet
    >>> Dirichlet(tensorlib.tensor([1., 2., 1.])).mean
    tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if not isinstance(concentration, tl.Tensor):
            raise TypeError("Dirichlet: concentration must be a Tensor, not "
                            f"{type_name(concentration)}")
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        flat = (self.concentration < 1).all(-1)
        if not flat.any():
            return mode
        corner = tl.zeros_like(mode).scatter(
            -1, mode.detach().nan_to_num().argmax(-1, True), 1.0)
        return corner.where(flat.unsqueeze(-1), mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        return inside(
            log_gamma(self.concentration.expand(self._extended_shape(sample_shape))).softmax(-1))

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        return (tl.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1))

    def entropy(self):
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma()
                - ((a - 1) * a.digamma()).sum(-1))


class Beta(ExponentialFamily):
    """The beta distribution: of shares in [0, 1]."""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration0.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        both = tl.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False).mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        one, other = (log_gamma(a.expand(shape))
                      for a in (self.concentration1, self.concentration0))
        return inside((one - other).sigmoid())

    def log_prob(self, value):
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (tl.xlogy(a - 1, value) + special.xlog1py(b - 1, -value)
                + (a + b).lgamma() - a.lgamma() - b.lgamma())

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return (a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * a.digamma()
                - (b - 1) * b.digamma() + (a + b - 2) * (a + b).digamma())
