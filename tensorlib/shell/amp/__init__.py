"""Mixed precision under PyTorch's names: `autocast` changes no dtype, `GradScaler` works in full.

On CPUs without instructions for it, products of bfloat16 cost more than those of float32: they are
converted on the way. So `autocast` changes no dtype: results are as exact as those without it, and
no slower. `GradScaler` scales losses and gradients in full.

>>> with tensorlib.autocast("cpu", dtype=tensorlib.bfloat16):
...     (tensorlib.ones(2, 2) @ tensorlib.ones(2, 2)).dtype
tensorlib.float32
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import on_first_use
from .autocast_mode import autocast, is_autocast_available

if TYPE_CHECKING:
    from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__getattr__, __dir__ = on_first_use(__name__, {"GradScaler": "grad_scaler"})


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str = "cuda",
               cast_inputs: Any = None) -> Callable[..., Any]:
    """A `forward` of `autograd.Function` as it is: `autocast` changes nothing in it."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda"
               ) -> Callable[..., Any]:
    """A `backward` of `autograd.Function` as it is, as `custom_fwd`."""
    return (lambda function: function) if bwd is None else bwd

explain(vars(), __all__)
