"""Mixed precision under PyTorch's names: `autocast` and `GradScaler`.

Which dtype an operation has under `autocast` follows from its record: products and convolutions
are those that count multiplications, and what adds up belongs to the families of reductions, of
losses and of `linalg`. On CPUs without instructions for it, products of half types are no faster
than those of float32, as they are converted on the way; they take half of the memory.

>>> with tensorlib.autocast("cpu", dtype=tensorlib.bfloat16):
...     (tensorlib.ones(2, 2) @ tensorlib.ones(2, 2)).dtype
tensorlib.bfloat16
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
    """A `forward` of `autograd.Function` as it is: `autocast` holds in it as it does around it."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda"
               ) -> Callable[..., Any]:
    """A `backward` of `autograd.Function` as it is: no `autocast` holds in a sweep."""
    return (lambda function: function) if bwd is None else bwd

explain(vars(), __all__)
