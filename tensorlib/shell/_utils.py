"""Gradients in one vector and back, under the names by which libraries for many processes ask.

And what pickles of PyTorch's tensors call, those that `pickle` itself wrote.
"""

from collections.abc import Iterable, Iterator, Sequence

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
