"""Padding layers."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import PerDim, Sizes

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class Padding(PerDim):
    """Padding before and after each of the last `ndim` dims, the last dim first, or one for all."""

    mode: str

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = self.each("padding", padding, 2 * self.ndim)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class Circular(Padding):
    """Circular padding of the input."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input. Raises: ValueError for a wrong number of dims."""
        if input.ndim not in (self.ndim + 1, self.ndim + 2):
            raise ValueError(f"{type(self).__name__}: expected an input of {self.ndim + 1} or "
                             f"{self.ndim + 2} dims, got {input.ndim}D input")
        return super().forward(input)


class CircularPad1d(Circular, ndim=1):
    """Circular padding of the last dim: see `nn.functional.pad`."""


class CircularPad2d(Circular, ndim=2):
    """Circular padding of the last 2 dims: see `nn.functional.pad`."""


class CircularPad3d(Circular, ndim=3):
    """Circular padding of the last 3 dims: see `nn.functional.pad`."""


class Constant(Padding):
    """Padding with one number."""

    mode = "constant"

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


_ConstantPadNd = Constant            # what scripts for PyTorch call it


class ConstantPad1d(Constant, ndim=1):
    """Padding with one number of the last dim: see `nn.functional.pad`."""


class ConstantPad2d(Constant, ndim=2):
    """Padding with one number of the last 2 dims: see `nn.functional.pad`."""


class ConstantPad3d(Constant, ndim=3):
    """Padding with one number of the last 3 dims: see `nn.functional.pad`."""


class Zero(Constant):
    """Padding with zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(Zero, ndim=1):
    """Padding with zeros of the last dim: see `nn.functional.pad`."""


class ZeroPad2d(Zero, ndim=2):
    """Padding with zeros of the last 2 dims: see `nn.functional.pad`.

    >>> ZeroPad2d((1, 0, 0, 1))(tensorlib.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """


class ZeroPad3d(Zero, ndim=3):
    """Padding with zeros of the last 3 dims: see `nn.functional.pad`."""


class Reflection(Padding):
    """Padding that reflects the input at its edges, which are not repeated."""

    mode = "reflect"


class ReflectionPad1d(Reflection, ndim=1):
    """Reflection padding of the last dim: see `nn.functional.pad`."""


class ReflectionPad2d(Reflection, ndim=2):
    """Reflection padding of the last 2 dims: see `nn.functional.pad`."""


class ReflectionPad3d(Reflection, ndim=3):
    """Reflection padding of the last 3 dims: see `nn.functional.pad`."""


class Replication(Padding):
    """Padding that replicates the edges of the input."""

    mode = "replicate"


class ReplicationPad1d(Replication, ndim=1):
    """Replication padding of the last dim: see `nn.functional.pad`."""


class ReplicationPad2d(Replication, ndim=2):
    """Replication padding of the last 2 dims: see `nn.functional.pad`."""


class ReplicationPad3d(Replication, ndim=3):
    """Replication padding of the last 3 dims: see `nn.functional.pad`."""
