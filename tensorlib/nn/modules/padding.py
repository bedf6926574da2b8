"""Layers that put margins around their input."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import PerDim, Sizes

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class Padding(PerDim):
    """Margins before and after each of the last `ndim` dims, the last dim first, or one for all."""

    mode: str

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = self.each("padding", padding, 2 * self.ndim)

    def forward(self, input: Tensor) -> Tensor:
        """The input with margins."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The margins."""
        return f"{self.padding}"


class Circular(Padding):
    """Margins from the other end of the input."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The input with margins. Raises: ValueError for a wrong number of dims."""
        if input.ndim not in (self.ndim + 1, self.ndim + 2):
            raise ValueError(f"{type(self).__name__}: expected an input of {self.ndim + 1} or "
                             f"{self.ndim + 2} dims, got {input.ndim}D input")
        return super().forward(input)


class CircularPad1d(Circular, ndim=1):
    """Margins from the other end of the last dim: see `nn.functional.pad`."""


class CircularPad2d(Circular, ndim=2):
    """Margins from the other ends of the last 2 dims: see `nn.functional.pad`."""


class CircularPad3d(Circular, ndim=3):
    """Margins from the other ends of the last 3 dims: see `nn.functional.pad`."""


class Constant(Padding):
    """Margins of one number."""

    mode = "constant"

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with margins."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The margins and the number."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(Constant, ndim=1):
    """Margins of one number around the last dim: see `nn.functional.pad`."""


class ConstantPad2d(Constant, ndim=2):
    """Margins of one number around the last 2 dims: see `nn.functional.pad`."""


class ConstantPad3d(Constant, ndim=3):
    """Margins of one number around the last 3 dims: see `nn.functional.pad`."""


class Zero(Constant):
    """Margins of zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The margins."""
        return f"{self.padding}"


class ZeroPad1d(Zero, ndim=1):
    """Margins of zeros around the last dim: see `nn.functional.pad`."""


class ZeroPad2d(Zero, ndim=2):
    """Margins of zeros around the last 2 dims: see `nn.functional.pad`.

    >>> ZeroPad2d((1, 0, 0, 1))(tensorlib.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """


class ZeroPad3d(Zero, ndim=3):
    """Margins of zeros around the last 3 dims: see `nn.functional.pad`."""


class Reflection(Padding):
    """Margins that mirror the input at its edges, which are not repeated."""

    mode = "reflect"


class ReflectionPad1d(Reflection, ndim=1):
    """Margins that mirror the last dim: see `nn.functional.pad`."""


class ReflectionPad2d(Reflection, ndim=2):
    """Margins that mirror the last 2 dims: see `nn.functional.pad`."""


class ReflectionPad3d(Reflection, ndim=3):
    """Margins that mirror the last 3 dims: see `nn.functional.pad`."""


class Replication(Padding):
    """Margins that repeat the edges of the input."""

    mode = "replicate"


class ReplicationPad1d(Replication, ndim=1):
    """Margins that repeat the edges of the last dim: see `nn.functional.pad`."""


class ReplicationPad2d(Replication, ndim=2):
    """Margins that repeat the edges of the last 2 dims: see `nn.functional.pad`."""


class ReplicationPad3d(Replication, ndim=3):
    """Margins that repeat the edges of the last 3 dims: see `nn.functional.pad`."""
