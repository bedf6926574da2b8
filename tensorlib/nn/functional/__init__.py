"""The functions that networks are made of, after `torch.nn.functional`.

They are operations like those of `tensorlib.ops`, declared in the same way; they stand apart, and
are imported when first used, since many programs do without them.
"""

from tensorlib.nn.functional.activations import (
    gelu,
    glu,
    hardsigmoid,
    hardswish,
    log_softmax,
    logsigmoid,
    mish,
    relu,
    relu_,
    selu,
    selu_,
    silu,
    softmax,
    softmin,
    softsign,
    tanhshrink,
)
from tensorlib.nn.functional.norms import batch_norm, layer_norm, rms_norm
from tensorlib.nn.functional.bent import (
    celu,
    celu_,
    elu,
    elu_,
    hardshrink,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    prelu,
    relu6,
    softplus,
    softshrink,
    threshold,
    threshold_,
)
from tensorlib.ops.declare import FUNCTIONS as _FUNCTIONS
from tensorlib.ops.late import declared as _declared
from tensorlib.ops.pointwise import sigmoid, tanh

_declared(__name__)

__all__ = sorted(name for name, value in globals().items()
                 if not name.startswith("_") and callable(value))
for _name in __all__:
    if _name not in _FUNCTIONS:          # which say that they are functions of tensorlib
        globals()[_name].__module__ = __name__


def __dir__():
    return __all__
