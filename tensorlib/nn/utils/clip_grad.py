"""Gradient clipping, by norm and by value."""

from collections.abc import Iterable
from typing import Any

from tensorlib import Tensor, distributed, inf, linalg, maximum, no_grad, stack, tensor
from tensorlib._core.base.warned import warn_of
from tensorlib._core.interpreters.capture import capture

Given = Tensor | Iterable[Any]


def get_total_norm(tensors: Given, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The norm of all elements of all tensors together, of power `norm_type`; inf for the largest.

    The tensors may be pairs with names, as `named_parameters` gives them.

    Raises: RuntimeError for NaN or infinity if `error_if_nonfinite`, which names where it is.

    >>> get_total_norm([tensorlib.tensor([3., 0.]), tensorlib.tensor([4.])])
    tensor(5.)
    """
    with no_grad():
        named = with_names(tensors)
        if not named:
            return tensor(0.0)
        norm_of, norm_type = linalg.vector_norm, float(norm_type)      # "inf" is infinity
        norms = [norm_of(each, norm_type) for _, each in named]
        first = norms[0].dtype
        total = norm_of(stack([norm if norm.dtype is first else norm.to(first)
                               for norm in norms]), norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            where = [name_of(*each) for each, norm in zip(named, norms)
                     if not bool(norm.isfinite())]
            raise RuntimeError(
                f"The total norm of order {float(norm_type)} for gradients is non-finite ("
                f"{total.item()}), so it cannot be clipped; non-finite: "
                f"{', '.join(where) or 'only the sum of all'}")
        return total


def clip_grads_with_norm_(parameters: Given, max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Makes gradients of a known total norm so small that it is at most `max_norm`."""
    with no_grad():
        factor = float(max_norm) / (total_norm + 1e-6)
        captured = capture() is not None
        if captured:                                     # no branch: by one they keep their bits
            factor = factor.clamp(max=1.0)
        if captured or not bool(factor >= 1):            # for NaN, too
            factors = {factor.dtype: factor}
            for _, parameter in with_names(parameters):
                grad = parameter.grad
                if grad is not None:
                    if grad.dtype not in factors:
                        factors[grad.dtype] = factor.to(grad.dtype)
                    grad.mul_(factors[grad.dtype])


def clip_grad_norm_(parameters: Given, max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Makes the gradients of parameters so small that their total norm is at most `max_norm`.

    The norm that they had is returned. The parameters may be pairs with names.

    Raises: RuntimeError for NaN or infinity if `error_if_nonfinite`, which names where it is.

    >>> w = tensorlib.tensor([1., 1.], requires_grad=True)
    >>> (w * tensorlib.tensor([3., 4.])).sum().backward()
    >>> clip_grad_norm_(w, 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    named = [(name, parameter) for name, parameter in with_names(parameters)
             if parameter.grad is not None]
    if any(group_of(parameter) is not None for _, parameter in named):
        total = norm_over_ranks(named, norm_type, error_if_nonfinite)
    else:
        total = get_total_norm([(name, parameter.grad) for name, parameter in named], norm_type,
                               error_if_nonfinite, foreach)
    clip_grads_with_norm_(named, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters: Given, max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """`clip_grad_norm_` under its older name, with a FutureWarning."""
    warn_of("nn.utils.clip_grad_norm is deprecated, call nn.utils.clip_grad_norm_",
            FutureWarning, level=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def group_of(parameter: Tensor) -> Any:
    """The ranks that a parameter is sharded among, or None."""
    return getattr(parameter, "shard_group", None)


def norm_over_ranks(named: list[tuple[str, Tensor]], norm_type: float,
                    error_if_nonfinite: bool) -> Tensor:
    """The norm of all gradients, where each rank has its stretches of some; the same on all."""
    power = float(norm_type)
    with no_grad():
        total = tensor(0.0)
        for group in dict.fromkeys(group_of(parameter) for _, parameter in named):
            own = get_total_norm([parameter.grad for _, parameter in named
                                  if group_of(parameter) is group], norm_type)
            part = own if power == inf else own ** power
            if group is not None:
                distributed.all_reduce(part, "max" if power == inf else "sum", group)
            total = maximum(total.to(part.dtype), part) if power == inf else total + part
        total = total if power == inf else total ** (1 / power)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(f"The total norm of order {power} for gradients is non-finite ("
                               f"{total.item()}), so it cannot be clipped")
        return total


def clip_grad_value_(parameters: Given, clip_value: float, foreach: bool | None = None) -> None:
    """Makes each element of the gradients at most `clip_value` in size."""
    bound = float(clip_value)
    with no_grad():
        for _, parameter in with_names(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)


def with_names(tensors: Given) -> list[tuple[str | int, Tensor]]:
    """Tensors with their names, or with their numbers. Raises: TypeError."""
    named = []
    for i, each in enumerate([tensors] if isinstance(tensors, Tensor) else tensors):
        if isinstance(each, Tensor):
            named.append((each.name or i, each))
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], Tensor):
            named.append(each)
        else:
            raise TypeError(f"expected tensors, or pairs of a name and a tensor, got "
                            f"{type(each).__name__}")
    return named


def name_of(name: str | int, each: Tensor) -> str:
    """The name that a tensor has, or what can be said of it."""
    return name if isinstance(name, str) else f"number {name}, of shape {tuple(each.shape)}"
