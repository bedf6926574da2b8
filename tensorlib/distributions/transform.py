"""What all transforms have in common, and transforms made of others."""

import math

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import require, sum_rightmost
from tensorlib.ops.foreign import members


class Transform:
    """A function with an inverse (or one that chooses), and the log of its Jacobian's determinant.

    domain, codomain: the constraints that its arguments and its results meet. bijective: whether
    the inverse of a result is the only argument that gives it.
    cache_size: 1 keeps the last value with its result, so that the inverse of that costs nothing.
    """

    bijective = False

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._cached_x_y = cache_size, (None, None)
        self._inv = None
        super().__init__()              # of a module, where a subclass is one as well

    @property
    def event_dim(self):
        """How many dims one value has, where both sides agree. Raises: ValueError."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def sign(self):
        """1 where larger numbers give larger ones, -1 where they give smaller ones.

        Raises: NotImplementedError where neither is so.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sign: it keeps no order")

    @property
    def inv(self):
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def with_cache(self, cache_size=1):
        """This transform, or one like it, with such a cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|"""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of the result for one of this shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of the argument for a result of this shape."""
        return shape

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __repr__(self):
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    """The inverse of another transform."""

    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    bijective = property(lambda self: self.inv.bijective)
    sign = property(lambda self: self.inv.sign)
    domain = property(lambda self: self.inv.codomain)
    codomain = property(lambda self: self.inv.domain)

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self.inv == other.inv

    __hash__ = object.__hash__

    def __call__(self, x):
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self.inv.forward_shape(shape)

    def __repr__(self):
        return f"_InverseTransform({self.inv!r})"


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts, cache_size=0):
        self.parts = list(members("ComposeTransform", parts))
        for i, part in enumerate(self.parts):
            require("ComposeTransform", Transform, **{f"part {i}": part})
        if cache_size:
            self.parts = [part.with_cache(cache_size) for part in self.parts]
        super().__init__(cache_size)

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    @property
    def domain(self):
        if not self.parts:
            return constraints.real
        return widened(self.parts[0].domain, [(p.codomain, p.domain) for p in self.parts[::-1]])

    @property
    def codomain(self):
        if not self.parts:
            return constraints.real
        return widened(self.parts[-1].codomain, [(p.domain, p.codomain) for p in self.parts])

    def with_cache(self, cache_size=1):
        return ComposeTransform(self.parts, cache_size)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        total, event_dim = 0, self.domain.event_dim
        for i, part in enumerate(self.parts):
            then = part(x) if i < len(self.parts) - 1 else y
            stretch = part.log_abs_det_jacobian(x, then)
            total = total + sum_rightmost(stretch, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = then
        return total if self.parts else tl.zeros_like(x)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        parts = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {parts}\n)"


def widened(constraint, sides):
    """A constraint with the dims that the whole of a composition needs, going through `sides`."""
    event_dim = sides[0][0].event_dim
    for before, after in sides:
        event_dim = max(event_dim, before.event_dim) + after.event_dim - before.event_dim
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dims belong to the event."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        require("IndependentTransform", Transform, base_transform=base_transform)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)
    domain = property(lambda self: constraints.independent(
        self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(
        self.base_transform.codomain, self.reinterpreted_batch_ndims))

    def with_cache(self, cache_size=1):
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y),
                             self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Another shape of each value."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape = tl.Size(members("ReshapeTransform", in_shape))
        self.out_shape = tl.Size(members("ReshapeTransform", out_shape))
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def with_cache(self, cache_size=1):
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])

    def forward_shape(self, shape):
        return replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return replaced(shape, self.out_shape, self.in_shape)


def replaced(shape, old, new):
    """A shape whose last sizes, `old`, are `new` now. Raises: ValueError."""
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {tuple(shape)} to end with {tuple(old)}")
    return tl.Size((*shape[:cut], *new))
