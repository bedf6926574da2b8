"""The Tensor, under the name of the module where PyTorch has its class."""

from tensorlib import Tensor

__all__ = ["Tensor"]
