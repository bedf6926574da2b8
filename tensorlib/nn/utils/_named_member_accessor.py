"""Exchanges the tensor of a module's attribute, whatever kind of attribute it is."""

from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.modules.module import Module

__all__ = ["set_tensor", "swap_tensor"]

MISSING = object()


def checked(module: Module, name: str, tensor: Any) -> None:
    """Raises TypeError for what is no module or no tensor, and KeyError for a path."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not (tensor is None or tensor is MISSING or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if not name or "." in name:
        raise KeyError(f"expected the name of a tensor of the module itself, got {name!r}")


def home_of(module: Module, name: str) -> dict[str, Any] | None:
    """The parameters or the buffers, where the name is one of theirs."""
    homes: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    return next((home for home in homes if name in home), None)


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Has a parameter, a buffer or another attribute be that tensor."""
    checked(module, name, tensor)
    home = home_of(module, name)
    if home is None:
        setattr(module, name, tensor)
    else:
        home[name] = tensor


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """As `set_tensor`, and gives what it was before.

    allow_missing: where there was nothing it gives a mark of that, with which a second call
    removes the attribute. Raises: AttributeError without it.
    """
    checked(module, name, tensor)
    home = home_of(module, name)
    before = getattr(module, name, MISSING) if home is None else home[name]
    if home is None and before is MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not (before is None or before is MISSING or isinstance(before, Tensor)):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not MISSING:
        set_tensor(module, name, tensor)
    elif home is not None:
        del home[name]
    elif before is not MISSING:
        delattr(module, name)
    return before
