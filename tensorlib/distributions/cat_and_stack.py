"""`CatTransform` and `StackTransform`: a transform for each part of a tensor."""

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import require, sum_rightmost
from tensorlib.distributions.transform import Transform
from tensorlib.ops.foreign import members


class SideBySide(Transform):
    """Several transforms, each of a part of the values along a dim."""

    def __init__(self, tseq, dim=0, cache_size=0):
        name = type(self).__name__
        self.transforms = list(members(name, tseq))
        for i, part in enumerate(self.transforms):
            require(name, Transform, **{f"part {i}": part})
        if cache_size:
            self.transforms = [part.with_cache(cache_size) for part in self.transforms]
        super().__init__(cache_size)
        self.dim = dim

    bijective = property(lambda self: all(part.bijective for part in self.transforms))

    def _size(self):
        """The size along the dim."""
        return len(self.transforms)

    def _split(self, x):
        """The parts of values, or of results."""
        raise NotImplementedError

    def _joined(self, parts):
        """What `_split` takes apart."""
        raise NotImplementedError

    def _parts(self, x):
        """The parts of a tensor. Raises: ValueError where its size is another one."""
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != self._size():
            raise ValueError(f"{type(self).__name__}: expected size {self._size()} along dim "
                             f"{self.dim}, got shape {tuple(x.shape)}")
        return self._split(x)

    def _call(self, x):
        return self._joined([one(part) for one, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y):
        return self._joined([one.inv(part) for one, part in zip(self.transforms, self._parts(y))])

    def _stretches(self, x, y):
        """The transforms, each with the logarithm of how it stretches its part."""
        return [(one, one.log_abs_det_jacobian(part, image)) for one, part, image in zip(
            self.transforms, self._parts(x), self._parts(y))]


class CatTransform(SideBySide):
    """Transforms of parts of the sizes `lengths` along a dim.

    >>> from tensorlib.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], 0, [1, 2])(tensorlib.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"CatTransform: got {len(self.lengths)} lengths for "
                             f"{len(self.transforms)} transforms")

    length = property(lambda self: sum(self.lengths), doc="The size along the dim.")
    event_dim = property(lambda self: max(part.event_dim for part in self.transforms))
    domain = property(lambda self: constraints.cat(
        [part.domain for part in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat(
        [part.codomain for part in self.transforms], self.dim, self.lengths))

    def with_cache(self, cache_size=1):
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _size(self):
        return self.length

    def _split(self, x):
        return x.split(self.lengths, self.dim)

    def _joined(self, parts):
        return tl.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        each = [sum_rightmost(stretch, self.event_dim - one.event_dim)
                for one, stretch in self._stretches(x, y)]
        dim = self.dim - (x.ndim if self.dim >= 0 else 0) + self.event_dim
        return tl.cat(each, dim) if dim < 0 else sum(each)     # sum: the dim is in the event


class StackTransform(SideBySide):
    """A transform of each slice along a dim."""

    domain = property(lambda self: constraints.stack(
        [part.domain for part in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack(
        [part.codomain for part in self.transforms], self.dim))

    def with_cache(self, cache_size=1):
        return StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, x):
        return x.unbind(self.dim)

    def _joined(self, parts):
        return tl.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return tl.stack([stretch for _, stretch in self._stretches(x, y)], self.dim)
