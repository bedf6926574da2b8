"""The base classes of all distributions."""

import math
from functools import cached_property

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import require, sum_rightmost
from tensorlib.ops.foreign import members
from tensorlib.ops.value_checks import value_check


@value_check
def lies_within(valid):
    """Raises ValueError where a constraint does not hold."""
    if not valid.all():
        raise ValueError("a value is not where its constraint says")


class Distribution:
    """A distribution of values of `event_shape`, one for each element of `batch_shape`.

    A class declares `arg_constraints`, which says of each parameter, an attribute, where it lies,
    and `support`, where its values lie. Parameters that are computed from others are
    `cached_property`.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Sets whether distributions check their arguments. Raises: ValueError for no bool."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape = tl.Size(members("Distribution", batch_shape))
        self._event_shape = tl.Size(members("Distribution", event_shape))
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        """Raises ValueError for a parameter that is not where its constraint says."""
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint) or name not in vars(self):
                continue
            value = vars(self)[name]
            if not isinstance(value, tl.Tensor):
                continue
            try:
                lies_within(constraint.check(value.detach()))
            except ValueError:
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}") from None

    def _get_checked_instance(self, cls, _instance=None):
        """What `expand` of the class `cls` fills: `_instance`, or a new one of this class.

        Raises: NotImplementedError for a subclass with an `__init__` of its own and no `expand`.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that "
                                      "defines a custom __init__ method must also define a custom "
                                      ".expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape, _instance=None):
        """This distribution for a larger batch, into which its own shape broadcasts.

        _instance: what is filled, made by an `expand` of a subclass with more attributes.
        Raises: NotImplementedError for a subclass with an `__init__` of its own and no `expand`.
        """
        batch_shape = tl.Size(batch_shape)
        known = next(each for each in type(self).__mro__ if each.__module__.startswith(__package__))
        parameters = known.arg_constraints
        if parameters is Distribution.arg_constraints:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {known.__name__} must "
                                      "define an .expand() method.")
        if isinstance(parameters, property):             # that follows from the sizes
            parameters = self.arg_constraints
        new = self._get_checked_instance(known, _instance)
        kept = {name: value for name, value in vars(self).items() if name in parameters
                or not isinstance(getattr(type(self), name, None), cached_property)}
        vars(new).update({**kept, **vars(new)})
        for name, constraint in parameters.items():
            value = vars(self).get(name)
            if isinstance(value, tl.Tensor):
                own = value.shape[value.ndim - constraint.event_dim:]
                vars(new)[name] = value.expand((*batch_shape, *own))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        return self._as_checked(new)

    def _as_checked(self, new):
        """A distribution made of this one, whose parameters were checked: values are as here."""
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self):
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Where each parameter lies, by name."""
        raise NotImplementedError

    @property
    def support(self):
        """Where the values lie."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The value of the highest density."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Random values, of the shape `sample_shape` + `batch_shape` + `event_shape`."""
        with tl.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """As `sample`, with the gradient of the parameters.

        Raises: NotImplementedError where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of values up to `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along a new first dim."""
        raise NotImplementedError

    def entropy(self):
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        return tl.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value):
        """Raises ValueError for what cannot be a value, where arguments are checked."""
        if not self._validate_args:
            return
        if not isinstance(value, tl.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        n = len(self._event_shape)
        if tuple(value.shape[value.ndim - n:]) != tuple(self._event_shape):
            raise ValueError("The right-most size of value must match event_shape: "
                             f"{tuple(value.shape)} vs {tuple(self._event_shape)}.")
        shape = tuple(self._batch_shape) + tuple(self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(shape)):
            if i != 1 and j != 1 and i != j:
                raise ValueError("Value is not broadcastable with batch_shape+event_shape: "
                                 f"{tuple(value.shape)} vs {shape}.")
        support = self.support
        if constraints.is_dependent(support):
            return
        try:
            lies_within(support.check(value.detach()))
        except ValueError:
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}") from None

    def __repr__(self):
        given = [f"{name}: {text_of(vars(self)[name])}" for name in self.arg_constraints
                 if name in vars(self)]
        return f"{type(self).__name__}({', '.join(given)})"


def text_of(x):
    """A parameter as a number, or its shape where it has several."""
    if not isinstance(x, tl.Tensor):
        return x
    return x.item() if x.numel() == 1 else x.shape


class Centred(Distribution):
    """A distribution that lies evenly around `loc`."""

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc


class ExponentialFamily(Distribution):
    """A distribution whose density is exp(<t(x), theta> - F(theta) + k(x))."""


class Independent(Distribution):
    """A distribution that counts the last batch dims of another one as dims of the event.

    >>> from tensorlib.distributions import Normal, Independent
    >>> Independent(Normal(tensorlib.zeros(2, 3), 1.), 1).log_prob(tensorlib.zeros(2, 3))
    tensor([-2.7568, -2.7568])
    """

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        require("Independent", Distribution, base_distribution=base_distribution)
        shape, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= n <= len(shape):
            raise ValueError("Expected 0 <= reinterpreted_batch_ndims <= len(base_distribution."
                             f"batch_shape), actual {n} vs {len(shape)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(shape) - n
        super().__init__(shape[:cut], (*shape[cut:], *base_distribution.event_shape),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        own = self.event_shape[:self.reinterpreted_batch_ndims]
        Independent.__init__(new, self.base_dist.expand((*batch_shape, *own)),
                             self.reinterpreted_batch_ndims, validate_args=False)
        return self._as_checked(new)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
