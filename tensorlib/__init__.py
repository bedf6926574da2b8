"""tensorlib: eager tensors with automatic differentiation on the CPU, in the manner of PyTorch."""

from tensorlib import ops
from tensorlib._core.tensor import Tensor
