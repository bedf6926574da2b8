"""Modules that compute their values again on the way back, or keep them elsewhere meanwhile.

Names of parameters and of a `state_dict` are those without it, so that files fit either model.

>>> from tensorlib.distributed.algorithms._checkpoint.checkpoint_wrapper import (
...     apply_activation_checkpointing)
>>> model = tensorlib.nn.Sequential(tensorlib.nn.Linear(2, 2), tensorlib.nn.Tanh())
>>> apply_activation_checkpointing(model, check_fn=lambda x: isinstance(x, tensorlib.nn.Linear))
>>> model[0], list(model.state_dict())
(CheckpointWrapper(
  (_checkpoint_wrapped_module): Linear(in_features=2, out_features=2, bias=True)
), ['0.weight', '0.bias'])
"""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from tensorlib._core.base.importing import named_as_function
from tensorlib.autograd.graph import save_on_cpu
from tensorlib.nn import Module, Parameter
from tensorlib.utils.checkpoint import checkpoint

__all__ = ["ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper",
           "apply_activation_checkpointing", "checkpoint_wrapper", "offload_wrapper"]

__path__: list[str] = []
named_as_function(f"{__name__}.checkpoint_wrapper", __name__)

INNER = "_checkpoint_wrapped_module"


class CheckpointImpl(Enum):
    """How values are computed again: the argument `use_reentrant` of `checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another one, whose attributes, items and names of parameters it shows."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = module
        self._register_state_dict_hook(without_inner)
        self.register_load_state_dict_pre_hook(with_inner)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(INNER), name)

    def __getitem__(self, key: Any) -> Any:
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{INNER}.", ""), parameter


def without_inner(module: Module, state: dict[str, Any], prefix: str, local: Any) -> None:
    """Removes the wrapper from the names of a `state_dict`."""
    rename(state, f"{prefix}{INNER}.", prefix)


def with_inner(module: Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """Puts the wrapper into the names of a `state_dict` that is loaded."""
    rename(state, prefix, f"{prefix}{INNER}.")


def rename(state: dict[str, Any], before: str, after: str) -> None:
    """Gives the names that begin with `before` the other beginning, in their order."""
    for name in list(state):
        if name.startswith(before):
            state[after + name[len(before):]] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """A module whose values are computed again when gradients are; `checkpoint_wrapper` makes it.
    """

    def __init__(self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                 checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any
                 ) -> None:
        super().__init__(mod)
        if checkpoint_fn is None:
            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn = partial(checkpoint, use_reentrant=reentrant)
        self.checkpoint_impl = checkpoint_impl
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module of which what is kept for gradients lies in the memory of the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu():
            return self._checkpoint_wrapped_module(*args, **kwargs)


def offload_wrapper(module: Module) -> OffloadWrapper:
    """The module, with what is kept for gradients in the memory of the CPU, where all is here."""
    return OffloadWrapper(module)


def checkpoint_wrapper(module: Module,
                       checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
                       checkpoint_fn: Callable[..., Any] | None = None,
                       **checkpoint_fn_kwargs: Any) -> CheckpointWrapper:
    """The module, each call of which is a `checkpoint`.

    checkpoint_fn: a function to call in place of that, as `checkpoint_fn(module, *args)`, with the
    other keywords.
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
        model: Module, checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
        check_fn: Callable[[Module], bool] = lambda module: True,
        auto_wrap_policy: None = None) -> None:
    """Wraps the modules within a model that `check_fn` says yes to, those inside of others first.

    The model itself is not wrapped. Raises: NotImplementedError for a policy in place of
    `check_fn`.
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: auto_wrap_policy is for "
                                  "FullyShardedDataParallel, which is not supported; check_fn says "
                                  "which modules to wrap")
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
