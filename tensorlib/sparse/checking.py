"""Checks of the gradients of functions of sparse tensors: by those of their values."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib.sparse.tensor import SparseTensor


def over_values(fn: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function of the values of sparse inputs, whose positions stay, to the values of what it
    returns; and its inputs."""
    def of_values(*values: Any) -> Any:
        found = fn(*(x.with_values(v) if isinstance(x, SparseTensor) else v
                     for x, v in zip(inputs, values)))
        outputs = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(y.merged().elements() if isinstance(y, SparseTensor) else y for y in outputs)

    return of_values, tuple(
        x.detach()._values_.clone().requires_grad_(x.requires_grad)
        if isinstance(x, SparseTensor) else x for x in inputs)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """`gradcheck` for functions of sparse tensors: of their values, at positions that stay.

    Elements without a position are left out, with `masked` or without.

    >>> a = tensorlib.eye(2, dtype=tensorlib.float64).to_sparse().requires_grad_()
    >>> as_sparse_gradcheck(tensorlib.autograd.gradcheck)(lambda a: (a * a).to_dense(), (a,))
    True
    """
    @wraps(gradcheck)
    def checked(fn: Callable[..., Any], inputs: Any, *, masked: Any = None,
                **options: Any) -> bool:
        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        return gradcheck(*over_values(fn, given), **options)
    return checked
