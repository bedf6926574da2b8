"""Gradients in one vector and back, under the names by which libraries for many processes ask.

And what pickles of PyTorch's tensors call, those that `pickle` itself wrote, and errors that one
thread or process hands on to another.
"""

import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import tensorlib as tl
from tensorlib import Tensor
from tensorlib.io.files.torch_names import parameter as _rebuild_parameter
from tensorlib.io.files.torch_names import tensor as _rebuild_tensor
from tensorlib.io.files.torch_names import typed_tensor as _rebuild_typed_tensor

_rebuild_parameter_with_state = _rebuild_parameter
_rebuild_tensor_v2, _rebuild_tensor_v3 = _rebuild_tensor, _rebuild_typed_tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors, in one vector."""
    return tl.cat([x.reshape(-1) for x in tensors]) if tensors else tl.empty(0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a vector, with the shapes of `tensors`, one after the other, as views."""
    parts = flat.split([x.numel() for x in tensors]) if tensors else ()
    return tuple(part.view(x.shape) for part, x in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one dtype, in order, each of `size_limit` bytes or a tensor more."""
    waiting: dict[object, list[Tensor]] = {}
    for x in tensors:
        group = waiting.setdefault(x.dtype, [])
        group.append(x)
        if sum(each.nbytes for each in group) >= size_limit:
            yield waiting.pop(x.dtype)
    yield from waiting.values()


def _get_available_device_type() -> None:
    """None: there is no device but the CPU."""


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device, such as `tensorlib.cpu`. Raises: RuntimeError for others."""
    found = getattr(tl, device_type, None)
    if found is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module")
    return found


class KeyErrorMessage(str):
    """The message of a KeyError, which prints it as it is, with its lines."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The error that is handled, or `exc_info`, with its traceback as text: it can be pickled.

    where: where it happened, as its message says.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type, self.where = kind, where
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))

    def reraise(self) -> NoReturn:
        """Raises the error anew; a RuntimeError where its type takes more than a message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error
