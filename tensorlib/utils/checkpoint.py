"""`tensorlib.utils.checkpoint.checkpoint` and the like, where PyTorch has them.

And what reversible layers of libraries call, which compute again by functions of their own.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from enum import IntEnum
from typing import Any

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.warned import warn_of
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.recompute import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
)

__all__ = [
    "CheckpointError", "CheckpointPolicy", "SelectiveCheckpointContext", "check_backward_validity",
    "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "get_device_states", "noop_context_fn", "set_device_states",
]


class CheckpointPolicy(IntEnum):
    """What a function says of the results of an operation: kept, or computed again.

    >>> from tensorlib.utils import checkpoint
    >>> list(checkpoint.CheckpointPolicy)[:2]
    [<CheckpointPolicy.MUST_SAVE: 0>, <CheckpointPolicy.PREFER_SAVE: 1>]
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What such a function is told: whether it is the second run, and what came out.

    >>> from tensorlib.utils import checkpoint
    >>> checkpoint.SelectiveCheckpointContext(is_recompute=True).is_recompute
    True
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(
        policy_fn_or_list: Callable[..., Any] | list[Any],
        allow_cache_entry_mutation: bool = False,
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts for the `context_fn` of `checkpoint`, in which all is computed again.

    The values are those of any policy; what a policy would keep is not kept, which takes less
    memory and more time.
    Raises: TypeError for what is neither a function nor a list of operations.

    >>> from tensorlib.utils import checkpoint
    >>> len(checkpoint.create_selective_checkpoint_contexts([tensorlib.matmul]))
    2
    """
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, list):
        raise TypeError("create_selective_checkpoint_contexts: policy_fn_or_list must be a "
                        "function or a list of operations, got "
                        f"{type_name(policy_fn_or_list)}")
    return nullcontext(), nullcontext()


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor among `inputs` requires a gradient, since then there will be none.

    >>> from tensorlib.utils import checkpoint
    >>> checkpoint.check_backward_validity([tensorlib.ones(2, requires_grad=True)])
    """
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warn_of("None of the inputs have requires_grad=True. Gradients will be None",
                level=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """`inputs` with its tensors outside of their graphs, that require gradients if those did.

    Raises: RuntimeError if it is not a tuple.

    >>> from tensorlib.utils import checkpoint
    >>> x = tensorlib.ones(2, requires_grad=True)
    >>> checkpoint.detach_variable((x * 2, 3))
    (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable: expected a tuple, got {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
                 for x in inputs)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The numbers of other devices that `args` lie on, of which there are none, and their states.

    The state of the CPU's generator is `get_rng_state()`.

    >>> from tensorlib.utils import checkpoint
    >>> checkpoint.get_device_states(tensorlib.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *,
                      device_type: str | None = None) -> None:
    """Does nothing for no devices. Raises: RuntimeError where there are some.

    >>> from tensorlib.utils import checkpoint
    >>> checkpoint.set_device_states([], [])
    """
    found = list(devices)
    if found:
        raise RuntimeError(f"set_device_states: there are no devices but the CPU, got {found}")
