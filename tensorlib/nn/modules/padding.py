"""Layers that put margins around their input."""

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.module import Module
from tensorlib.nn.modules.sizes import Sizes, for_each_dim

__all__ = [f"{kind}Pad{n}d" for n in (1, 2, 3)
           for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")]


class Padding(Module):
    """Margins before and after each of the last `ndim` dims, the last dim first, or one for all."""

    ndim: int
    mode: str

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = for_each_dim(f"{type(self).__name__}: padding", padding, 2 * self.ndim)

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


class CircularPad1d(Circular):
    """Margins from the other end of the last dim: see `nn.functional.pad`."""

    ndim = 1


class CircularPad2d(Circular):
    """Margins from the other ends of the last 2 dims: see `nn.functional.pad`."""

    ndim = 2


class CircularPad3d(Circular):
    """Margins from the other ends of the last 3 dims: see `nn.functional.pad`."""

    ndim = 3


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


class ConstantPad1d(Constant):
    """Margins of one number around the last dim: see `nn.functional.pad`."""

    ndim = 1


class ConstantPad2d(Constant):
    """Margins of one number around the last 2 dims: see `nn.functional.pad`."""

    ndim = 2


class ConstantPad3d(Constant):
    """Margins of one number around the last 3 dims: see `nn.functional.pad`."""

    ndim = 3


class Zero(Constant):
    """Margins of zeros."""

    def __init__(self, padding: Sizes) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The margins."""
        return f"{self.padding}"


class ZeroPad1d(Zero):
    """Margins of zeros around the last dim: see `nn.functional.pad`."""

    ndim = 1


class ZeroPad2d(Zero):
    """Margins of zeros around the last 2 dims: see `nn.functional.pad`.

    >>> ZeroPad2d((1, 0, 0, 1))(tensorlib.ones(1, 1, 2))
    tensor([[[0., 1., 1.],
             [0., 0., 0.]]])
    """

    ndim = 2


class ZeroPad3d(Zero):
    """Margins of zeros around the last 3 dims: see `nn.functional.pad`."""

    ndim = 3


class Reflection(Padding):
    """Margins that mirror the input at its edges, which are not repeated."""

    mode = "reflect"


class ReflectionPad1d(Reflection):
    """Margins that mirror the last dim: see `nn.functional.pad`."""

    ndim = 1


class ReflectionPad2d(Reflection):
    """Margins that mirror the last 2 dims: see `nn.functional.pad`."""

    ndim = 2


class ReflectionPad3d(Reflection):
    """Margins that mirror the last 3 dims: see `nn.functional.pad`."""

    ndim = 3


class Replication(Padding):
    """Margins that repeat the edges of the input."""

    mode = "replicate"


class ReplicationPad1d(Replication):
    """Margins that repeat the edges of the last dim: see `nn.functional.pad`."""

    ndim = 1


class ReplicationPad2d(Replication):
    """Margins that repeat the edges of the last 2 dims: see `nn.functional.pad`."""

    ndim = 2


class ReplicationPad3d(Replication):
    """Margins that repeat the edges of the last 3 dims: see `nn.functional.pad`."""

    ndim = 3
