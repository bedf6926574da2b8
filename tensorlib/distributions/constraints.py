"""Sets of values: what parameters must be in, and where the values of a distribution lie.

>>> tensorlib.distributions.constraints.positive.check(tensorlib.tensor([1., -1.]))
tensor([ True, False])
"""

import tensorlib as tl
from tensorlib import linalg

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky",
           "dependent", "dependent_property", "greater_than", "greater_than_eq",
           "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
           "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
           "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer",
           "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack",
           "symmetric", "unit_interval"]


class Constraint:
    """A set of values. `event_dim` is how many of the last dims make one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each value is in the set, as a tensor of bools."""
        raise NotImplementedError

    def __repr__(self):
        given = ", ".join(f"{name}={value}" for name, value in vars(self).items()
                          if name not in ("is_discrete", "event_dim"))
        words = type(self).__name__.lstrip("_").split("_")
        return f"{''.join(word[0].upper() + word[1:] for word in words)}({given})"


class _Dependent(Constraint):
    """A set that depends on other values.

    is_discrete and event_dim are NotImplemented where they depend on these too; then asking for
    them raises NotImplementedError.
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """A set that depends on other values, of which this much is known."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    @property
    def is_discrete(self):
        return self._known("is_discrete", self._is_discrete)

    @property
    def event_dim(self):
        return self._known("event_dim", self._event_dim)

    def _known(self, name, value):
        if value is NotImplemented:
            raise NotImplementedError(f"{name} of a dependent constraint is not known of the class")
        return value

    def __repr__(self):
        return "Dependent()" if type(self) is _Dependent else "DependentProperty()"

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property that gives a constraint; of a class it is a dependent one."""

    def __init__(self, function=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, function)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, function):
        return dependent_property(
            function, is_discrete=self._is_discrete, event_dim=self._event_dim)


class independent(Constraint):
    """A set each of whose values is `reinterpreted_batch_ndims` dims of those of another."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        held = self.base_constraint.check(value)
        if held.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        for _ in range(self.reinterpreted_batch_ndims):
            held = held.all(-1)
        return held

    def __repr__(self):
        return (f"IndependentConstraint({self.base_constraint!r}, "
                f"{self.reinterpreted_batch_ndims})")


class MixtureSameFamilyConstraint(Constraint):
    """What every component of a mixture may give: the components are along the last batch dim."""

    def __init__(self, base_constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        held = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.ndim - self.event_dim
        return held.reshape((*held.shape[:kept], -1)).all(-1)

    def __repr__(self):
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Real(Constraint):
    def check(self, value):
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0).logical_or(value == 1)


class integer_interval(Constraint):
    """The whole numbers in [lower_bound, upper_bound]."""

    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (value % 1 == 0).logical_and(value >= self.lower_bound).logical_and(
            value <= self.upper_bound)


class _IntegerGreaterThan(Constraint):
    is_discrete = True

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return (value % 1 == 0).logical_and(value >= self.lower_bound)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return boolean.check(value).all(-1).logical_and(value.sum(-1) == 1)


class greater_than(Constraint):
    """All above `lower_bound`."""

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound

    def check(self, value):
        return value > self.lower_bound


class greater_than_eq(greater_than):
    """`lower_bound` and all above."""

    def check(self, value):
        return value >= self.lower_bound


class less_than(Constraint):
    """All below `upper_bound`."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return value < self.upper_bound


class interval(Constraint):
    """[lower_bound, upper_bound]"""

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        return (value >= self.lower_bound).logical_and(value <= self.upper_bound)


class half_open_interval(interval):
    """[lower_bound, upper_bound)"""

    def check(self, value):
        return (value >= self.lower_bound).logical_and(value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1).logical_and((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1).logical_and(value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        return super().check(value).logical_and((value.diagonal(0, -2, -1) > 0).all(-1))


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlations: their rows have length 1."""

    def check(self, value):
        tolerance = 10 * value.shape[-1] * tl.finfo(value.dtype).eps
        length = value.square().sum(-1).sqrt()
        return super().check(value).logical_and(((length - 1).abs() <= tolerance).all(-1))


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        square = value.shape[-1] == value.shape[-2]
        return value.new_full(value.shape[:-2], square).bool()


class _Symmetric(_Square):
    def check(self, value):
        if value.shape[-1] != value.shape[-2]:
            return super().check(value)
        return value.isclose(value.mT, atol=1e-6).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return self._takes(linalg.eigvalsh(value)).all(-1) if symmetric.all() else symmetric

    def _takes(self, values):
        return values >= 0


class _PositiveDefinite(_PositiveSemidefinite):
    def _takes(self, values):
        return values > 0


class cat(Constraint):
    """Parts of sizes `lengths` along a dim, each of which has a set of its own.

    Raises: ValueError for other lengths than there are sets.
    """

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"cat: got {len(self.lengths)} lengths for {len(self.cseq)} "
                             "constraints")

    @property
    def is_discrete(self):
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self):
        return max(part.event_dim for part in self.cseq)

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        return tl.cat([one.check(part) for one, part in zip(self.cseq, parts)], self.dim)


class stack(Constraint):
    """The slices along a dim, each of which has a set of its own."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self):
        event_dim = max(part.event_dim for part in self.cseq)
        return event_dim + (self.dim + event_dim < 0)

    def check(self, value):
        return tl.stack([one.check(part) for one, part in zip(
            self.cseq, value.unbind(self.dim))], self.dim)


dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
multinomial = _Multinomial
