"""Tools for testing code that uses tensorlib: closeness, gradients and hypothesis strategies.

The strategies need hypothesis, which is imported when the first of them is asked for.
"""

import importlib

from tensorlib.testing.checks import check_op
from tensorlib.testing.closeness import assert_close
from tensorlib.autograd.checking import GradcheckError, gradcheck, gradgradcheck
from tensorlib.testing.tolerances import tolerance

_STRATEGIES = ("broadcastable_shapes", "dtypes", "shapes", "tensors")

__all__ = [
    "GradcheckError",
    "assert_close",
    "check_op",
    "gradcheck",
    "gradgradcheck",
    "tolerance",
    *_STRATEGIES,
]


def __getattr__(name):
    if name in _STRATEGIES:
        return getattr(importlib.import_module("tensorlib.testing.strategies"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
