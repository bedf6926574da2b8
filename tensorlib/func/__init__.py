"""Functional transforms: derivatives of functions as functions, after `torch.func`.

They take functions of tensors and nested containers of tensors, and can be composed in any order.
"""

from tensorlib.func.forward import hessian, hvp, jacfwd, jvp, linearize, vhp
from tensorlib.func.mapping import vmap
from tensorlib.func.reverse import (
    elementwise_grad,
    grad,
    grad_and_value,
    jacrev,
    value_and_grad,
    vjp,
)

__all__ = [
    "elementwise_grad", "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacrev", "jvp",
    "linearize", "value_and_grad", "vhp", "vjp", "vmap",
]


def __dir__():
    return sorted(__all__)
