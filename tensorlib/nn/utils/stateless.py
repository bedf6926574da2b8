"""`functional_call`, under its older path."""

from tensorlib.func import functional_call
from tensorlib.func.modules import replaced

__all__ = ["functional_call"]


def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False,
                          stack_weights=False):
    """A context in which a module has these tensors: what `functional_call` enters for a call.

    stack_weights is taken for PyTorch's sake and changes nothing: the tensors are given by name.
    """
    return replaced(module, parameters_and_buffers, tie_weights, strict)
