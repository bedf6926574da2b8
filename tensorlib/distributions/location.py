"""Distributions of a location and a scale: normal, Cauchy, Laplace, Student's t, Gumbel, uniform,
and, on the circle, von Mises.

Source: Devroye, Non-Uniform Random Variate Generation (1986), for the transforms of uniform and
normal numbers that values are drawn by.
"""

import math

import tensorlib as tl
from tensorlib import special
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import broadcast_all
from tensorlib.distributions.distribution import (
    HALF_LOG_TWO_PI, Centred, Distribution, ExponentialFamily)
from tensorlib.distributions.gamma_variates import standard_gamma

EULER = 0.5772156649015329
nan, inf = math.nan, math.inf


def uniform_inside(shape, like):
    """Uniform numbers in (0, 1)."""
    info = tl.finfo(like.dtype)
    return tl.rand(shape, dtype=like.dtype).clamp(min=info.tiny, max=1 - info.eps / 2)


class LocationScale(Centred):
    """A distribution of the numbers loc + scale * z, for z of a fixed distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        return self.loc + self._standard(self._extended_shape(sample_shape)) * self.scale

    def _standard(self, shape):
        """Values for loc 0 and scale 1."""
        raise NotImplementedError

    def _distance(self, value):
        """How many scales a value is from the location."""
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    >>> from tensorlib.distributions import Normal
    >>> Normal(0., 1.).log_prob(tensorlib.tensor([0., 1.]))
    tensor([-0.9189, -1.4189])
    """

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale * self.scale

    def _standard(self, shape):
        return tl.randn(shape, dtype=self.loc.dtype)

    def log_prob(self, value):
        z = self._distance(value)
        return z * z * -0.5 - (self.scale.log() + HALF_LOG_TWO_PI)

    def cdf(self, value):
        return 0.5 * ((self._distance(value) * -math.sqrt(0.5)).erfc())

    def icdf(self, value):
        return self.loc + self.scale * special.ndtri(value)

    def entropy(self):
        return self.scale.log() + (0.5 + HALF_LOG_TWO_PI)


class Cauchy(LocationScale):
    """The Cauchy distribution of median `loc` and half width at half maximum `scale`."""

    @property
    def mean(self):
        return self.loc * nan

    @property
    def variance(self):
        return self.loc * 0 + inf

    def _standard(self, shape):
        return tl.empty(shape, dtype=self.loc.dtype).cauchy_()

    def log_prob(self, value):
        z = self._distance(value)
        return -math.log(math.pi) - self.scale.log() - (z * z).log1p()

    def cdf(self, value):
        return self._distance(value).atan() / math.pi + 0.5

    def icdf(self, value):
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Laplace(LocationScale):
    """The Laplace distribution of mean `loc` and scale `scale`."""

    @property
    def variance(self):
        return 2 * self.scale * self.scale

    def _standard(self, shape):
        u = uniform_inside(shape, self.loc) * 2 - 1
        return -u.sign() * (-u.abs()).clamp(min=-1 + tl.finfo(u.dtype).eps / 2).log1p()

    def log_prob(self, value):
        return -self._distance(value).abs() - (2 * self.scale).log()

    def cdf(self, value):
        z = self._distance(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Gumbel(LocationScale):
    """The Gumbel distribution of largest values."""

    @property
    def mean(self):
        return self.loc + self.scale * EULER

    @property
    def variance(self):
        return math.pi**2 / 6 * self.scale * self.scale

    def _standard(self, shape):
        return -tl.empty(shape, dtype=self.loc.dtype).exponential_().log()

    def log_prob(self, value):
        z = -self._distance(value)
        return z - z.exp() - self.scale.log()

    def cdf(self, value):
        return (-(-self._distance(value)).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self):
        return self.scale.log() + (1 + EULER)


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, moved to `loc` and scaled."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real,
                       "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc: tl.Tensor | float = 0.0, scale: tl.Tensor | float = 1.0,
                 validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.loc.where(self.df > 1, nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        wide = self.df > 2
        of_wide = self.scale * self.scale * self.df / (self.df - 2).where(wide, 1.0)
        return of_wide.where(wide, tl.where(self.df > 1, inf, nan).to(self.df.dtype))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * standard_gamma((0.5 * self.df).expand(shape))
        z = tl.randn(shape, dtype=self.df.dtype) * (self.df / chi2).sqrt()
        return self.loc + self.scale * z

    def log_prob(self, value):
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        half = 0.5 * (self.df + 1)
        norm = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
                + (0.5 * self.df).lgamma() - half.lgamma())
        return -half * (z * z / self.df).log1p() - norm

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        return (self.scale.log() + more * (more.digamma() - half.digamma())
                + 0.5 * self.df.log() + log_beta)


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    arg_constraints = dict.fromkeys(
        ("low", "high"), constraints.dependent(is_discrete=False, event_dim=0))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return nan * self.high

    @property
    def stddev(self):
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape=()):
        u = tl.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        self._validate_sample(value)
        inside = (self.low <= value).logical_and(self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value):
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class VonMises(Centred):
    """The von Mises distribution of angles about `loc`; `concentration` is like 1 / variance.

    Units: radians, from -pi to pi.
    Source: Best and Fisher, "Efficient Simulation of the von Mises Distribution", Applied
    Statistics 28, 1979.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self):
        """The circular variance, 1 - E[cos(x - loc)]."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    def _envelope(self):
        """The parameter of the wrapped Cauchy distribution that values are drawn from."""
        k = self.concentration.detach().double()
        tau = 1 + (1 + 4 * k * k).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return ((1 + rho * rho) / (2 * rho)).where(k >= 1e-5, 1 / k + k)    # where rho cancels

    def sample(self, sample_shape=()):
        with tl.no_grad():
            k, r, shape = self.concentration.double(), self._envelope(), self._extended_shape(
                sample_shape)
            angle, found = tl.zeros(shape, dtype=k.dtype), tl.zeros(shape, dtype=tl.bool)
            while not found.all():
                u, chance, side = tl.rand((3, *shape), dtype=k.dtype)
                z = (math.pi * u).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                taken = (c * (2 - c) > chance).logical_or((c / chance).log() + 1 - c >= 0)
                angle = angle.where(found, f.clamp(-1, 1).acos() * (side - 0.5).sign())
                found = found.logical_or(taken)
            turned = (angle + math.pi + self.loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def log_prob(self, value):
        self._validate_sample(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - special.i0e(k).log() - math.log(2 * math.pi)
