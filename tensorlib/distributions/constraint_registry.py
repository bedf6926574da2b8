"""Transforms from unconstrained numbers to each set of values.

>>> from tensorlib.distributions import constraints, transform_to
>>> transform_to(constraints.positive)(tensorlib.zeros(2))
tensor([1., 1.])
"""

from tensorlib.distributions import constraints
from tensorlib.distributions.constraints import Constraint
from tensorlib.distributions.transform import (
    ComposeTransform, IndependentTransform, identity_transform)
from tensorlib.distributions.cat_and_stack import CatTransform, StackTransform
from tensorlib.distributions.transforms import (
    AffineTransform, CorrCholeskyTransform, ExpTransform, LowerCholeskyTransform,
    PositiveDefiniteTransform, SigmoidTransform, SoftmaxTransform, StickBreakingTransform)


class ConstraintRegistry:
    """Which transform leads to the values of a constraint, by its class."""

    def __init__(self):
        self._factories = {}

    def register(self, constraint, factory=None):
        """Makes `factory` what gives the transform to constraints of this class; a decorator
        without it. Raises: TypeError.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError("Expected constraint to be either a Constraint subclass or instance, "
                            f"but got {constraint}")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint):
        for kind in type(constraint).__mro__:
            if kind in self._factories:
                return self._factories[kind](constraint)
        raise NotImplementedError(
            f"Cannot transform {type(constraint).__name__} constraints")


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def to_interval(constraint):
    """The transform to an interval."""
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: identity_transform)
    _registry.register(constraints.independent, lambda constraint, registry=_registry:
                       IndependentTransform(registry(constraint.base_constraint),
                                            constraint.reinterpreted_batch_ndims))
    _registry.register(constraints.greater_than, lambda constraint: ExpTransform()
                       if isinstance(constraint.lower_bound, (int, float))
                       and constraint.lower_bound == 0 else ComposeTransform(
                           [ExpTransform(), AffineTransform(constraint.lower_bound, 1)]))
    _registry.register(constraints.less_than, lambda constraint: ComposeTransform(
        [ExpTransform(), AffineTransform(constraint.upper_bound, -1)]))
    _registry.register(constraints.interval, to_interval)
    _registry.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
    _registry.register(constraints.corr_cholesky, lambda constraint: CorrCholeskyTransform())
    _registry.register(constraints.cat, lambda constraint, registry=_registry: CatTransform(
        [registry(part) for part in constraint.cseq], constraint.dim, constraint.lengths))
    _registry.register(constraints.stack, lambda constraint, registry=_registry: StackTransform(
        [registry(part) for part in constraint.cseq], constraint.dim))

biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda constraint: PositiveDefiniteTransform())
