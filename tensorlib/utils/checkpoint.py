"""`tensorlib.utils.checkpoint.checkpoint` and the like, where PyTorch has them.

And what reversible layers of libraries call, which compute again by functions of their own.
"""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.recompute import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
)

__all__ = ["CheckpointError", "check_backward_validity", "checkpoint", "checkpoint_sequential",
           "detach_variable", "get_device_states", "noop_context_fn", "set_device_states"]


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
