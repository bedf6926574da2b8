"""Neural networks: modules, and in `nn.functional` the functions that they are made of.

>>> from tensorlib import nn
>>> model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
>>> model(tensorlib.ones(5, 2)).shape
tensorlib.Size([5, 1])
"""

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import later
from tensorlib.nn import attention, functional, init, modules, parallel, parameter, utils
from tensorlib.nn.modules import *  # noqa: F403
from tensorlib.nn.parallel import DataParallel
from tensorlib.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    *modules.__all__, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer",
    "UninitializedParameter", "attention", "functional", "grad", "init", "modules",
    "parallel", "parameter", "utils", "zoo",
]
grad = later("tensorlib.nn.grad")
zoo = later("tensorlib.nn.zoo")
explain(vars(), ["DataParallel"])


def __dir__():
    return sorted(__all__)
