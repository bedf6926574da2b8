"""tensorlib: eager tensors with automatic differentiation on the CPU, in the manner of PyTorch."""

from tensorlib import autograd, ops
from tensorlib._core import convert, copying, indexing, printing
from tensorlib._core.tensor import Tensor
