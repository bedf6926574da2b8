"""Initialisation of parameters. Each function writes into a tensor, and returns it.

>>> weight = tensorlib.empty(3, 5)
>>> kaiming_uniform_(weight, nonlinearity="relu").shape
tensorlib.Size([3, 5])
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib import Generator, Tensor, linalg, no_grad, randperm

from tensorlib._core.base.explained import explain

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]

GAINS = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4, "linear": 1.0, "sigmoid": 1.0,
         **{f"conv{transposed}{n}d": 1.0 for transposed in ("", "_transpose") for n in (1, 2, 3)}}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what factor weights must be larger so that values keep their size through a function.

    `param` is the negative slope of "leaky_relu". Raises: ValueError for unknown functions.

    >>> calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: negative_slope {slope!r} is not a number")
        return math.sqrt(2 / (1 + slope ** 2))
    if nonlinearity not in GAINS:
        raise ValueError(f"calculate_gain: unsupported nonlinearity {nonlinearity!r}; it takes "
                         f"'leaky_relu', {', '.join(map(repr, GAINS))}")
    return GAINS[nonlinearity]


# ---- single distributions ----------------------------------------------------------------------

def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0,
             generator: Generator | None = None) -> Tensor:
    """`tensor`, with numbers drawn evenly between a and b."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0,
            generator: Generator | None = None) -> Tensor:
    """`tensor`, with numbers from a normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0,
                  b: float = 2.0, generator: Generator | None = None) -> Tensor:
    """`tensor`, with numbers from that part of a normal distribution that lies between a and b.

    Numbers drawn evenly go through the inverse of its distribution function.
    Raises: RuntimeError for bounds the wrong way round.
    """
    if a > b:
        raise RuntimeError(f"trunc_normal_: a must not be above b, got {a} and {b}")
    if mean < a - 2 * std or mean > b + 2 * std:
        warn_of("trunc_normal_: mean is more than 2 std from [a, b]; the distribution of "
                "values may be incorrect", level=2)
    low, high = (math.erf((bound - mean) / std / math.sqrt(2)) for bound in (a, b))
    with no_grad():
        tensor.uniform_(low, high, generator=generator).erfinv_()
        return tensor.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


_no_grad_trunc_normal_ = trunc_normal_        # as libraries for PyTorch call it


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`tensor`, with one number in every place."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """`tensor`, with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """`tensor`, with zeros."""
    return constant_(tensor, 0.0)


# ---- by the number of inputs and outputs -------------------------------------------------------

def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, by these weights.

    Raises: ValueError for fewer than 2 dims.
    """
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 "
                         f"dimensions, got shape {tuple(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def fan_of(tensor: Tensor, mode: str) -> int:
    """One of both. Raises: ValueError for other modes than "fan_in" and "fan_out"."""
    modes = ("fan_in", "fan_out")
    if str(mode).lower() not in modes:
        raise ValueError(f"Mode {mode!r} not supported, please use one of {modes}")
    return fans(tensor)[modes.index(mode.lower())]


_calculate_fan_in_and_fan_out, _calculate_correct_fan = fans, fan_of


def uniform_within_(tensor: Tensor, fan: int) -> Tensor:
    """`tensor`, with numbers drawn evenly from -1/sqrt(fan) to 1/sqrt(fan): biases."""
    bound = 1 / math.sqrt(fan) if fan > 0 else 0.0
    return uniform_(tensor, -bound, bound)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0,
                    generator: Generator | None = None) -> Tensor:
    """`tensor`, with numbers drawn evenly, of variance 2 * gain**2 / (inputs + outputs).

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010.
    """
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0,
                   generator: Generator | None = None) -> Tensor:
    """`tensor`, with normal numbers of variance 2 * gain**2 / (inputs + outputs).

    Source: as `xavier_uniform_`.
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """`tensor`, with numbers drawn evenly, of variance gain**2 / fan.

    `mode` says whether the inputs or the outputs are counted, `nonlinearity` and its parameter `a`
    give the gain (`calculate_gain`).

    Source: He et al., "Delving Deep into Rectifiers", ICCV 2015.
    """
    if is_empty("kaiming_uniform_", tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan_of(tensor, mode))
    return uniform_(tensor, -math.sqrt(3) * std, math.sqrt(3) * std, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """`tensor`, with normal numbers of variance gain**2 / fan: see `kaiming_uniform_`."""
    if is_empty("kaiming_normal_", tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan_of(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def is_empty(name: str, tensor: Tensor) -> bool:
    """Whether there is nothing to draw, of which the user is warned."""
    if tensor.numel() == 0:
        warn_of(f"{name}: initializing zero-element tensors is a no-op", level=3)
        return True
    return False


# ---- with a structure --------------------------------------------------------------------------

def eye_(tensor: Tensor) -> Tensor:
    """A matrix, with ones on its diagonal and zeros elsewhere. Raises: ValueError."""
    if tensor.ndim != 2:
        raise ValueError(f"eye_: only tensors with 2 dimensions are supported, got {tensor.ndim}")
    with no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that gives its input, channel by channel, in each group.

    Shapes: (out, in / groups, *), with 1 to 3 windows. Raises: ValueError.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("dirac_: only tensors with 3, 4, or 5 dimensions are supported, got "
                         f"{tensor.ndim}")
    if tensor.shape[0] % groups:
        raise ValueError(f"dirac_: dim 0 ({tensor.shape[0]}) must be divisible by groups "
                         f"({groups})")
    outputs, inputs, *window = tensor.shape
    per_group = outputs // groups
    middle = tuple(size // 2 for size in window)
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, inputs)):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """`tensor` as a matrix of orthonormal rows or columns, whichever are fewer, times `gain`.

    All dims but the first count as one. Raises: ValueError for fewer than 2 dims.

    Source: Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in
    deep linear neural networks", ICLR 2014.
    """
    if tensor.ndim < 2:
        raise ValueError("orthogonal_: only tensors with 2 or more dimensions are supported, got "
                         f"{tensor.ndim}")
    if tensor.numel() == 0:
        return tensor
    with no_grad():
        drawn = tensor.new_empty((tensor.shape[0], tensor.numel() // tensor.shape[0]))
        drawn.normal_(0, 1, generator=generator)
        wide = drawn.shape[0] < drawn.shape[1]
        q, r = linalg.qr(drawn.mT if wide else drawn)
        q = q * r.diagonal().sign()      # without which the distribution is not even
        return tensor.copy_((q.mT if wide else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01,
            generator: Generator | None = None) -> Tensor:
    """A matrix of normal numbers, a share `sparsity` of which is zero in each column.

    Raises: ValueError for what is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: only tensors with 2 dimensions are supported, got "
                         f"{tensor.ndim}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


# ---- older names ---------------------------------------------------------------------------------

def older(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function under its older name, which warns."""
    name = function.__name__

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        warn_of(f"nn.init.{name[:-1]} is now deprecated in favor of nn.init.{name}.",
                FutureWarning, level=2)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name[:-1]
    return call


uniform, normal, constant, eye, dirac = map(older, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = older(xavier_uniform_), older(xavier_normal_)
kaiming_uniform, kaiming_normal = older(kaiming_uniform_), older(kaiming_normal_)
orthogonal, sparse = older(orthogonal_), older(sparse_)

explain(vars(), __all__)
