"""Layers that set part of their input to zero, in training."""

from numbers import Real

from tensorlib import Tensor
from tensorlib.nn import functional as F
from tensorlib.nn.modules.dims import PerDim
from tensorlib.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropping(Module):
    """What they have in common: the probability, and whether to write over the input."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not isinstance(p, Real):
            raise TypeError(f"{type(self).__name__}: p must be a number, not {type(p).__name__}")
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: dropout probability has to be between 0 and "
                             f"1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


_DropoutNd = Dropping                # what scripts for PyTorch call it


class Dropout(Dropping):
    """Each element is 0 with probability p, else it is divided by 1 - p: `nn.functional.dropout`.

    >>> Dropout(0.5).eval()(tensorlib.ones(3))
    tensor([1., 1., 1.])

    Source: Srivastava et al., "Dropout", JMLR 2014.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class ChannelDropout(PerDim, Dropping):
    """Each channel is 0 with probability p, as a whole."""

    _function = "dropout{}d"

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


class Dropout1d(ChannelDropout, ndim=1):
    """Each channel of (B, C, L) is dropped as a whole: `nn.functional.dropout1d`."""


class Dropout2d(ChannelDropout, ndim=2):
    """Each channel of (B, C, H, W) is dropped as a whole: `nn.functional.dropout2d`."""


class Dropout3d(ChannelDropout, ndim=3):
    """Each channel of (B, C, D, H, W) is dropped as a whole: `nn.functional.dropout3d`."""


class AlphaDropout(Dropping):
    """Dropout that keeps mean and variance of what `SELU` gives: `nn.functional.alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Dropping):
    """`AlphaDropout` of whole channels: `nn.functional.feature_alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
