"""`vmap` under the name that it had in PyTorch before `torch.func`."""

from collections.abc import Callable
from typing import Any

from tensorlib.func import vmap

__all__ = ["vmap"]


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """`vmap(func, in_dims, out_dims)`; results that are None are refused here, whatever is allowed.
    """
    return vmap(func, in_dims, out_dims)
