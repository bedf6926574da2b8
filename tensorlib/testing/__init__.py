"""Tools for testing code that uses tensorlib: closeness, gradients and hypothesis strategies.

The strategies need hypothesis, which is imported when the first of them is asked for.
"""

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import on_first_use as _on_first_use
from tensorlib.autograd.checking import GradcheckError, gradcheck, gradgradcheck
from tensorlib.testing.checks import check_op
from tensorlib.testing.closeness import assert_allclose, assert_close
from tensorlib.testing.creation import make_tensor
from tensorlib.testing.tolerances import tolerance

_STRATEGIES = ("broadcastable_shapes", "dtypes", "shapes", "tensors")

__all__ = [
    "GradcheckError",
    "assert_allclose",
    "assert_close",
    "check_op",
    "gradcheck",
    "gradgradcheck",
    "make_tensor",
    "tolerance",
    *_STRATEGIES,
]

__getattr__, __dir__ = _on_first_use(__name__, dict.fromkeys(_STRATEGIES, "strategies"))

explain(vars(), __all__)
