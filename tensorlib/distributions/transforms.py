"""Functions between sets of values, with the logarithm of how they stretch volumes.

>>> from tensorlib.distributions.transforms import ExpTransform
>>> ExpTransform().log_abs_det_jacobian(tensorlib.tensor(2.), None)      # log(exp(2))
tensor(2.)
"""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import softplus, sum_rightmost
from tensorlib.distributions.cat_and_stack import CatTransform, StackTransform
from tensorlib.distributions.transform import (
    ComposeTransform, IndependentTransform, ReshapeTransform, Transform, _InverseTransform,
    identity_transform)
from tensorlib.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "_InverseTransform",
    "identity_transform",
]


class ParameterFree(Transform):
    """A transform without parameters, which equals all others of its class."""

    def __eq__(self, other):
        return isinstance(other, type(self)) or (
            isinstance(other, ParameterFree) and isinstance(self, type(other)))

    __hash__ = object.__hash__


class ExpTransform(ParameterFree):
    """y = exp(x)"""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


def broadcast_with(shape, *parameters):
    """The shape of values together with that of parameters, which may be numbers."""
    return tl.broadcast_shapes(shape, *(getattr(x, "shape", ()) for x in parameters))


class PowerTransform(Transform):
    """y = x**exponent"""

    domain, codomain, bijective = constraints.positive, constraints.positive, True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self):
        return self.exponent.sign() if isinstance(self.exponent, tl.Tensor) else (
            math.copysign(1, self.exponent))

    def with_cache(self, cache_size=1):
        return PowerTransform(self.exponent, cache_size)

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(
            (tl.as_tensor(self.exponent) == tl.as_tensor(other.exponent)).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return broadcast_with(shape, self.exponent)

    inverse_shape = forward_shape


class SigmoidTransform(ParameterFree):
    """y = 1 / (1 + exp(-x))"""

    domain, codomain, bijective, sign = constraints.real, constraints.unit_interval, True, 1

    def _call(self, x):
        info = tl.finfo(x.dtype)
        return x.sigmoid().clamp(min=info.tiny, max=1 - info.eps)

    def _inverse(self, y):
        info = tl.finfo(y.dtype)
        return y.clamp(min=info.tiny, max=1 - info.eps).logit()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(ParameterFree):
    """y = log(1 + exp(x))"""

    domain, codomain, bijective, sign = constraints.real, constraints.positive, True, 1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(ParameterFree):
    """y = tanh(x)"""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        """log(1 - tanh(x)**2), without cancellation"""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(ParameterFree):
    """y = |x|; the inverse is y itself"""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x, for values of `event_dim` dims"""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @property
    def domain(self):
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    @property
    def sign(self):
        if isinstance(self.scale, tl.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def with_cache(self, cache_size=1):
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and all(
            bool((tl.as_tensor(a) == tl.as_tensor(b)).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale)))

    __hash__ = object.__hash__

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale = self.scale
        size = scale.abs().log() if isinstance(scale, tl.Tensor) else math.log(abs(scale))
        return sum_rightmost(size + tl.zeros_like(x), self._event_dim)

    def forward_shape(self, shape):
        return broadcast_with(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class SoftmaxTransform(ParameterFree):
    """y = softmax(x) along the last dim; the inverse is log(y)"""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        return longer(shape, 0)

    inverse_shape = forward_shape


class StickBreakingTransform(ParameterFree):
    """n numbers as n + 1 shares: each takes a part of what those before it left.

    Source: Sethuraman, "A Constructive Definition of Dirichlet Priors", Statistica Sinica 4, 1994.
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x):
        n = x.shape[-1]
        return x - tl.arange(n, 0, -1, dtype=x.dtype).log()

    def _call(self, x):
        moved = self._offset(x)
        left = (-softplus(moved)).cumsum(-1).exp()        # the products of 1 - sigmoid
        first = tl.ones_like(left[..., :1])
        return tl.cat([moved.sigmoid(), first], -1) * tl.cat([first, left], -1)

    def _inverse(self, y):
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=tl.finfo(y.dtype).tiny)
        return head.log() - left.log() + tl.arange(head.shape[-1], 0, -1, dtype=y.dtype).log()

    def log_abs_det_jacobian(self, x, y):
        moved = self._offset(x)
        return (y[..., :-1].log() - softplus(moved)).sum(-1)

    def forward_shape(self, shape):
        return longer(shape, 1)

    def inverse_shape(self, shape):
        return longer(shape, -1)


def longer(shape, more):
    """A shape whose vectors have some more elements. Raises: ValueError where it has none."""
    if not shape:
        raise ValueError("Too few dimensions on input")
    return tl.Size((*shape[:-1], shape[-1] + more))


class LowerCholeskyTransform(ParameterFree):
    """Square matrices as lower triangles with a positive diagonal: exp of what stands there."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        eye = tl.eye(x.shape[-1], dtype=x.dtype)
        return x.tril(-1) + (x.diagonal(0, -2, -1).exp().unsqueeze(-1) * eye)

    def _inverse(self, y):
        eye = tl.eye(y.shape[-1], dtype=y.dtype)
        return y.tril(-1) + (y.diagonal(0, -2, -1).log().unsqueeze(-1) * eye)


class PositiveDefiniteTransform(ParameterFree):
    """Square matrices as positive definite ones, through their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(tl.linalg.cholesky(y))


class CorrCholeskyTransform(ParameterFree):
    """N (N - 1) / 2 numbers as the Cholesky factor of the correlations of N variables.

    Each row is made like sticks are broken: the square of an element is the part tanh(x)**2 of
    what those before it left of the row's length, which is 1. The Jacobian is that of the elements
    below the diagonal.

    Source: Stan Reference Manual, "Cholesky factors of correlation matrices".
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x):
        edge = 1 - tl.finfo(x.dtype).eps
        part = vec_to_tril_matrix(x.tanh().clamp(min=-edge, max=edge), -1)
        left = (1 - part.square()).sqrt().cumprod(-1)
        return (part + tl.eye(part.shape[-1], dtype=x.dtype)) * moved_on(left)

    def _inverse(self, y):
        left = moved_on(1 - y.square().cumsum(-1))
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x, y):
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), -2)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)
        return 0.5 * left.log().sum(-1) + of_tanh

    def forward_shape(self, shape):
        if not shape:
            raise ValueError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1])**0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return tl.Size((*shape[:-1], n, n))

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return tl.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def moved_on(x):
    """Each row moved by one element, after a 1."""
    return tl.cat([tl.ones_like(x[..., :1]), x[..., :-1]], -1)


class CumulativeDistributionTransform(Transform):
    """Values of a distribution as the probabilities of values up to them.

    >>> from tensorlib.distributions import Normal, transforms
    >>> transforms.CumulativeDistributionTransform(Normal(0., 1.))(tensorlib.zeros(2))
    tensor([0.5000, 0.5000])
    """

    codomain, bijective, sign = constraints.unit_interval, True, 1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def with_cache(self, cache_size=1):
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
