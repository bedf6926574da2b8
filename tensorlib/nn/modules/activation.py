"""Activations: functions of each element, or of the elements along one dim."""

from typing import Any

from tensorlib import Tensor, full
from tensorlib.nn import functional as F
from tensorlib.nn.modules.module import Module
from tensorlib.nn.modules.repr import Shown
from tensorlib.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU",
    "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]


# ---- without options ---------------------------------------------------------------------------

class Sigmoid(Module):
    """1 / (1 + exp(-x)): see `tensorlib.sigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Tanh(Module):
    """The hyperbolic tangent: see `tensorlib.tanh`."""

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class LogSigmoid(Module):
    """The logarithm of the sigmoid: see `nn.functional.logsigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|): see `nn.functional.softsign`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x): see `nn.functional.tanhshrink`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


# ---- which may write over their input ----------------------------------------------------------

class InPlace(Shown):
    """An activation that writes over its input if `inplace` is set."""

    shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(InPlace):
    """max(x, 0): see `nn.functional.relu`.

    >>> ReLU()(tensorlib.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu_(input) if self.inplace else F.relu(input)


class SELU(InPlace):
    """The self-normalising `ELU`: see `nn.functional.selu`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(InPlace):
    """x * sigmoid(x), also known as swish: see `nn.functional.silu`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(InPlace):
    """x * tanh(softplus(x)): see `nn.functional.mish`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(InPlace):
    """x / 6 + 1 / 2 between 0 and 1: see `nn.functional.hardsigmoid`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(InPlace):
    """x * hardsigmoid(x): see `nn.functional.hardswish`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Threshold(Shown):
    """x above `threshold`, else `value`: see `nn.functional.threshold`."""

    shown = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Hardtanh(Shown):
    """x between two bounds: see `nn.functional.hardtanh`.

    Raises: ValueError for bounds that are not in order.
    """

    shown: tuple[str, ...] = ("min_val", "max_val", "inplace")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace
        if not max_val > min_val:
            raise ValueError(f"Hardtanh: max_val must be above min_val, got {max_val} and "
                             f"{min_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """x between 0 and 6: see `nn.functional.relu6`."""

    shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class ELU(Shown):
    """x above 0, and alpha * (exp(x) - 1) below: see `nn.functional.elu`."""

    shown = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """x above 0, and alpha * (exp(x / alpha) - 1) below: see `nn.functional.celu`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Shown):
    """x above 0, and negative_slope * x below: see `nn.functional.leaky_relu`."""

    shown = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(Shown):
    """`LeakyReLU` with a slope drawn for each element in training: see `nn.functional.rrelu`."""

    shown = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3,
                 inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


# ---- with other options ------------------------------------------------------------------------

class GELU(Shown):
    """x * Phi(x), where Phi is the normal distribution's: see `nn.functional.gelu`."""

    shown = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Softplus(Shown):
    """log(1 + exp(beta * x)) / beta, and x above `threshold`: see `nn.functional.softplus`."""

    shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Shrink(Module):
    """What `Hardshrink` and `Softshrink` have in common: a bound."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Shrink):
    """x where |x| > lambd, else 0: see `nn.functional.hardshrink`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(Shrink):
    """x, by lambd nearer to 0: see `nn.functional.softshrink`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class PReLU(Shown):
    """`LeakyReLU` with slopes that are learnt, one or one for each channel.

    Shapes: (B, C, *), where C is `num_parameters` unless that is 1.
    Source: He et al., "Delving Deep into Rectifiers", ICCV 2015.
    """

    shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets the slopes as they were at first."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


# ---- along one dim -----------------------------------------------------------------------------

class Along(Shown):
    """A function of the elements along one dim."""

    shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(Along):
    """exp(x) / sum(exp(x)) along `dim`: see `nn.functional.softmax`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmin(Along):
    """The softmax of -x: see `nn.functional.softmin`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class LogSoftmax(Along):
    """The logarithm of the softmax: see `nn.functional.log_softmax`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of images.

    Shapes: (B, C, H, W) or (C, H, W). Raises: ValueError for others.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Numbers that add up to 1 over the channels."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected a tensor of 3 or 4 dims, got {input.ndim}")
        return input.softmax(-3)


class GLU(Along):
    """a * sigmoid(b), where a and b are the halves of the input: see `nn.functional.glu`."""

    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        """A tensor of half the size along `dim`."""
        return F.glu(input, self.dim)
