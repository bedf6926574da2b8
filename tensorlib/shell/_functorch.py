"""What libraries ask of the batches that `vmap` maps over, by names of PyTorch's inner parts.

>>> from tensorlib._C._functorch import is_batchedtensor
>>> def inner(x):
...     print(is_batchedtensor(x))
...     return x
>>> _ = tensorlib.vmap(inner)(tensorlib.ones(3))
True
"""

from collections.abc import Callable
from typing import Any

from tensorlib import Tensor
from tensorlib._core.base.importing import named_as_function, parts_of
from tensorlib._core.interpreters.levels import running_levels
from tensorlib.autograd.batch import Batched, batch_of
from tensorlib.func import grad, grad_and_value, vmap
from tensorlib.utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from tensorlib.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["get_unwrapped", "grad", "grad_and_value", "is_batchedtensor",
           "is_functorch_wrapped_tensor", "is_gradtrackingtensor", "is_legacy_batchedtensor",
           "maybe_current_level", "maybe_get_level", "tree_flatten", "tree_unflatten", "vmap"]

parts_of(__name__, "apis")
named_as_function(f"{__name__}.vmap", __name__)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether it stands for the examples of a batch, inside of a function that is mapped."""
    return type(tensor) is Batched


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Any) -> bool:
    """False: gradients of functions are recorded with the tensors themselves."""
    return False


is_legacy_batchedtensor = is_gradtrackingtensor


def maybe_current_level() -> int | None:
    """How many batches are mapped over, one within the other; None for none."""
    return len(running_levels()) or None


def maybe_get_level(tensor: Any) -> int:
    """Which of the batches that are mapped over it is an example of, from 1; -1 for none."""
    return running_levels().index(tensor.level) + 1 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Any) -> Any:
    """The examples at once, with the batch as the first dim."""
    if not is_batchedtensor(tensor):
        raise RuntimeError("get_unwrapped: the tensor is no example of a batch")
    return tensor.value


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Any:
    """The examples that lie along a dim, as one of them, in the batch of that level."""
    return Batched(tensor.movedim(in_dim, 0), running_levels()[level - 1])


def _remove_batch_dim(tensor: Any, level: int, batch_size: int, out_dim: int) -> Any:
    """The examples of the batch of that level, along a dim."""
    return batch_of(tensor, running_levels()[level - 1]).movedim(0, out_dim)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int,
                            out_dim: int | None) -> Any:
    """As `_remove_batch_dim`; for None what is the same for all examples, as it is."""
    if out_dim is None:
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _get_name(func: Callable[..., Any]) -> str:
    """What messages call a function."""
    return getattr(func, "__name__", None) or repr(func)
