"""Functions of functions, and modules as functions, where they were before `torch.func`.

>>> from tensorlib.functorch import make_functional
>>> call, parameters = make_functional(tensorlib.nn.Linear(2, 1))
>>> call(parameters, tensorlib.ones(3, 2)).shape, [tuple(x.shape) for x in parameters]
(tensorlib.Size([3, 1]), [(1, 2), (1,)])
"""

import copy
from collections.abc import Sequence
from typing import Any

from tensorlib import Tensor, nn, stack
from tensorlib.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional",
           "make_functional_with_buffers", "vjp", "vmap"]

State = Sequence[Tensor]


class FunctionalModule(nn.Module):
    """A module as a function of its parameters, and then of its arguments."""

    def __init__(self, stateless_model: nn.Module) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(name for name, _ in stateless_model.named_parameters())

    def forward(self, params: State, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module as a function of its parameters, its buffers, and then of its arguments."""

    def __init__(self, stateless_model: nn.Module) -> None:
        super().__init__(stateless_model)
        self.buffer_names = tuple(name for name, _ in stateless_model.named_buffers())

    def forward(self, params: State, buffers: State, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.param_names, params, strict=True))
        kept = dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, (given, kept), args, kwargs)


def copied(model: nn.Module, disable_autograd_tracking: bool) -> nn.Module:
    """A copy of a module, whose parameters may be such as need no gradient."""
    model = copy.deepcopy(model)
    return model.requires_grad_(False) if disable_autograd_tracking else model


def make_functional(model: nn.Module, disable_autograd_tracking: bool = False
                    ) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """The module as a function, and copies of its parameters, which that takes first."""
    model = copied(model, disable_autograd_tracking)
    return FunctionalModule(model), tuple(model.parameters())


def make_functional_with_buffers(
        model: nn.Module, disable_autograd_tracking: bool = False
        ) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The module as a function, and copies of its parameters and buffers, which that takes first.
    """
    model = copied(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(model), tuple(model.parameters()), tuple(model.buffers())


def combine_state_for_ensemble(
        models: Sequence[nn.Module]
        ) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of one of several like modules, and the stacked parameters and buffers of all.

    Raises: RuntimeError for none, and where they differ in type or in `training`.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: expected at least one model, got 0")
    if len({(type(model), model.training) for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: expected all models to be of the same "
                           "class, and all of them to train or none")
    functions, params, buffers = zip(*[make_functional_with_buffers(x) for x in models])
    return (functions[0], *[tuple(stack(part).detach() for part in zip(*states))
                            for states in (params, buffers)])
