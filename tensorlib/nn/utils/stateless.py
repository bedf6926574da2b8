"""`functional_call`, under its older path."""

import warnings

from tensorlib.func import modules

__all__ = ["functional_call"]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):
    """`tensorlib.func.functional_call` with a warning that it has moved. Raises: as that."""
    warnings.warn("nn.utils.stateless.functional_call is deprecated; call func.functional_call",
                  FutureWarning, stacklevel=2)
    return modules.functional_call(module, parameters_and_buffers, args, kwargs,
                                   tie_weights=tie_weights, strict=strict)


def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False,
                          stack_weights=False):
    """A context in which a module has these tensors: what `functional_call` enters for a call.

    stack_weights is taken for PyTorch's sake and changes nothing: the tensors are given by name.
    """
    return modules.replaced(module, parameters_and_buffers, tie_weights, strict)
