"""`autocast`, which changes no dtype."""

import warnings
from _thread import _local as local   # of `threading`, which an import is not worth
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib._core.base.device import device
from tensorlib._core.base.dtypes import BY_NAME


class _State(local):
    """What the innermost `autocast` of this thread asked for on the CPU."""

    enabled = False
    dtype = BY_NAME["bfloat16"]


_state = _State()


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` of a device, named by its type, is not switched off with a warning."""
    return device(device_type).type == "cpu"


class autocast:
    """A context, or a decorator, that asks for mixed precision. Here it changes no dtype.

    dtype: bfloat16, the default, or float16. enabled: whether it asks at all.
    Raises: RuntimeError for a device that nobody knows, ValueError for what is no string.

    >>> with tensorlib.autocast("cpu"):
    ...     tensorlib.is_autocast_enabled("cpu")
    True
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"autocast: device_type must be a string, got {device_type!r}")
        self.device = device(device_type).type
        if dtype is None:
            dtype = BY_NAME["bfloat16" if self.device == "cpu" else "float16"]
        if enabled and self.device != "cpu":
            warnings.warn(f"autocast: {self.device!r} is not available. Disabling.", stacklevel=2)
            enabled = False
        elif enabled and dtype not in (BY_NAME["bfloat16"], BY_NAME["float16"]):
            warnings.warn(f"autocast: takes bfloat16 and float16, got {dtype}. Disabling.",
                          stacklevel=2)
            enabled = False
        self.fast_dtype = dtype
        self._enabled = enabled
        self._before: list[tuple[bool, Any]] = []

    def __enter__(self) -> "autocast":
        self._before.append((_state.enabled, _state.dtype))
        if self.device == "cpu":
            _state.enabled, _state.dtype = self._enabled, self.fast_dtype
        return self

    def __exit__(self, *error: object) -> None:
        _state.enabled, _state.dtype = self._before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def under(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return under


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread is under an `autocast` for a device, named by its type."""
    return device(device_type).type == "cpu" and _state.enabled


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype that the innermost `autocast` for a device asked for, or its default."""
    return _state.dtype if device(device_type).type == "cpu" else BY_NAME["float16"]
