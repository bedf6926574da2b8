"""`Variable`, for old scripts from before tensors could require gradients themselves."""

from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """The elements of `data`, as a leaf that requires a gradient or not.

    Raises: TypeError for what is not a tensor, RuntimeError for integers that require a gradient.

    >>> tensorlib.autograd.Variable(tensorlib.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False,
                volatile: Any = None) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a Tensor, not {type_name(data)}")
        if volatile is not None:
            warn_of("Variable: volatile has no effect, use `with no_grad():` instead", level=2)
        return data.detach().requires_grad_(requires_grad)
