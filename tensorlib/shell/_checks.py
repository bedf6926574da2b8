"""`_check` and the like: conditions that libraries around PyTorch check by functions of its own."""

from collections.abc import Callable
from typing import Any

from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.interpreters import foreign
from tensorlib._core.tensor.tensor import Tensor

USUAL = "Expected cond to be True, but got False."


def _check_with(error: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raises `error` with what `message` gives, unless a condition holds.

    Raises: TypeError for a condition that is not a bool.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond).__name__}" + (
            "; _check_tensor_all takes Tensors" if isinstance(cond, Tensor) else ""))
    if message is not None and not callable(message):
        raise TypeError("message must be a callable, got " + type(message).__name__)
    if not cond:
        raise error(USUAL if message is None else str(message()))


def _check_of(name: str, error: type[Exception]) -> Callable[..., None]:
    """The function of this name, which raises one type of error."""
    def check(cond: Any, message: Callable[[], Any] | None = None) -> None:
        _check_with(error, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises {error.__name__} unless a condition holds."
    return check


_check = _check_of("_check", RuntimeError)
_check_value = _check_of("_check_value", ValueError)
_check_type = _check_of("_check_type", TypeError)
_check_index = _check_of("_check_index", IndexError)
_check_not_implemented = _check_of("_check_not_implemented", NotImplementedError)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless a number can be a size: not negative, and at most `max`."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raises RuntimeError unless all elements of a tensor are true."""
    if not isinstance(cond, Tensor) or cond.dtype.name != "bool":
        raise TypeError("cond must be a Tensor of bools, got " + (
            str(cond.dtype) if isinstance(cond, Tensor) else type(cond).__name__))
    _check_with(RuntimeError, bool(cond.all()), message)


def _assert(condition: Any, message: str) -> None:
    """Python's `assert`; of what `fx` traces it is a call in the graph."""
    if foreign.overrides(condition) and not isinstance(condition, Tensor):
        foreign.dispatched(_assert, foreign.overriding((condition,)), (condition, message), {})
        return
    if isinstance(condition, Tensor) and type(condition) is not Tensor:
        condition = bool(condition)
    assert condition, message


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raises RuntimeError unless a tensor of one element is not zero.

    Its name is of GPUs, which would find out later.
    """
    if input.numel() != 1:
        raise RuntimeError("_assert_async: expected a Tensor of one element, got the shape "
                           f"{tuple(input.shape)}")
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor, as one of integers."""
    return tensor(list(input.shape), dtype=BY_NAME["int64"])


FUNCTIONS = {function.__name__: function for function in (
    _check, _check_value, _check_type, _check_index, _check_not_implemented, _check_is_size,
    _check_tensor_all, _check_with, _assert, _assert_async, _shape_as_tensor)}
