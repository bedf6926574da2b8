"""Names that libraries import from PyTorch's compiled module, `torch._C`."""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor, device
from tensorlib._core.base.importing import later
from tensorlib._core.interpreters.foreign import set_plain
from tensorlib._core.interpreters.levels import running_levels
from tensorlib._core.interpreters.stack import current_layer
from tensorlib.linalg.checks import LinAlgError as _LinAlgError
from tensorlib.nn.modules.module import target_of

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_LinAlgError", "_TensorMeta",
           "_are_functorch_transforms_active",
           "_disabled_torch_function_impl", "_get_tracing_state", "_log_api_usage_once", "_nn"]

__path__: list[str] = []
_functorch = later("tensorlib._functorch")
_TensorMeta = type(Tensor)


class Value:
    """The type of values of a script, of which there are none."""


def _are_functorch_transforms_active() -> bool:
    """Whether `vmap` runs. Gradients of functions are seen as operations that are recorded."""
    return bool(running_levels())


def _is_torch_function_mode_enabled() -> bool:
    """Whether a `TorchFunctionMode` does this thread's operations."""
    layer = current_layer()
    return layer is not None and layer.interpreter.takes_functions


def _get_tracing_state() -> None:
    """None: nothing is traced as TorchScript."""


def _is_tracing() -> bool:
    """False: nothing is traced as TorchScript."""
    return False


def _jit_set_profiling_executor(profiling_flag: bool) -> bool:
    """False: no script is run."""
    return False


_jit_set_profiling_mode = _jit_set_profiling_executor


def _log_api_usage_once(event: str) -> None:
    """Does nothing: who uses what is not counted."""


@staticmethod                      # as `__torch_function__` of a class it is given no class
def _disabled_torch_function_impl(func: Callable[..., Any], types: Any, args: Any = (),
                                  kwargs: Any = None) -> Any:
    """What `func` gives for subclasses of Tensor as plain ones."""
    before = set_plain(True)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        set_plain(before)


class DisableTorchFunctionSubclass:
    """A context in which subclasses of Tensor count as plain tensors."""

    def __enter__(self) -> None:
        self._before = set_plain(True)

    def __exit__(self, *error: Any) -> None:
        set_plain(self._before)


DisableTorchFunction = DisableTorchFunctionSubclass


class _nn:
    """What modules ask for."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """The device, the dtype, `non_blocking` and the memory format among arguments of `to`."""
        dtype, where = target_of(args, kwargs)
        return (None if where is None else device(where), dtype,
                bool(kwargs.get("non_blocking")), kwargs.get("memory_format"))
