"""Functional transforms: derivatives of functions as functions, after `torch.func`.

They take functions of tensors and nested containers of tensors, and can be composed in any order.
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use
from tensorlib.func.mapping import vmap

if TYPE_CHECKING:
    from tensorlib.func.forward import hessian, hvp, jacfwd, jvp, linearize, vhp
    from tensorlib.func.modules import (
        functional_call,
        replace_all_batch_norm_modules_,
        stack_module_state,
    )
    from tensorlib.func.reverse import (
        elementwise_grad,
        grad,
        grad_and_value,
        jacrev,
        value_and_grad,
        vjp,
    )

__all__ = [
    "elementwise_grad", "functional_call", "grad", "grad_and_value", "hessian", "hvp", "jacfwd",
    "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state",
    "value_and_grad", "vhp", "vjp", "vmap",
]

__getattr__, __dir__ = on_first_use(__name__, {
    **dict.fromkeys(("hessian", "hvp", "jacfwd", "jvp", "linearize", "vhp"), "forward"),
    **dict.fromkeys(("functional_call", "replace_all_batch_norm_modules_", "stack_module_state"),
                    "modules"),
    **dict.fromkeys(("elementwise_grad", "grad", "grad_and_value", "jacrev", "value_and_grad",
                     "vjp"), "reverse")})
