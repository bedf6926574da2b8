"""States of sharded models and optimisers, in which each tensor knows its place in the whole."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorlib import Tensor
from tensorlib.distributed.fsdp.fully_shard import ShardedParameter
from tensorlib.nn.modules.module import Module
from tensorlib.optim.optimizer import Optimizer

__all__ = ["Stretch", "get_state_dict", "set_state_dict"]


class Stretch(NamedTuple):
    """Some elements of a whole tensor: `tensor` has those from `start` on, perhaps with padding."""

    tensor: Tensor
    full_shape: tuple[int, ...]
    start: int

    def count(self) -> int:
        """The number of its elements that the whole tensor has."""
        whole = 1
        for size in self.full_shape:
            whole *= size
        return max(0, min(self.tensor.numel(), whole - self.start))


def stretch_of(parameter: Tensor, x: Any) -> Any:
    """A state that lies as its parameter does, with its place."""
    if isinstance(parameter, ShardedParameter) and isinstance(x, Tensor) and (
            x.shape == parameter.shape):
        return Stretch(x.detach(), tuple(parameter.full_shape), parameter.start())
    return x.detach() if isinstance(x, Tensor) else x


def get_state_dict(model: Module, optimizer: Optimizer | None = None
                   ) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimiser, for `save` and `load`.

    Sharded tensors come as `Stretch`, others as they are; none are copied. The states
    of an optimiser are under the names of parameters. One that has none yet gets them by a step
    that changes nothing, so that there is a place for what is loaded.
    """
    members = dict(model.named_parameters(remove_duplicate=False))
    weights = {name: stretch_of(members.get(name, x), members.get(name, x))
               for name, x in model.state_dict().items()}
    if optimizer is None:
        return weights, {}
    begin(optimizer)
    states: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        for key, x in optimizer.state.get(parameter, {}).items():
            states[f"state.{name}.{key}"] = stretch_of(parameter, x)
    for number, group in enumerate(optimizer.param_groups):
        for key, value in group.items():
            if key not in ("params", "param_names"):
                states[f"group.{number}.{key}"] = value
    return weights, states


def begin(optimizer: Optimizer) -> None:
    """Makes the states of an optimiser that has none, without a change of its parameters."""
    if optimizer.state:
        return
    kept = []
    for group in optimizer.param_groups:
        options = {key: group[key] for key in ("lr", "weight_decay") if key in group}
        kept.append((group, options))
        group.update({key: value * 0 for key, value in options.items()})
    params = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [p.grad for p in params]
    for p in params:
        p.grad = p.detach() * 0
    optimizer.step()
    for p, gradient in zip(params, gradients):
        p.grad = gradient
    for group, options in kept:
        group.update(options)


def set_state_dict(model: Module, optimizer: Optimizer | None = None, *,
                   model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any] | None = None
                   ) -> None:
    """Takes on what `load` filled: tensors are there already, options and numbers are put back.

    Raises: KeyError for a group that the optimiser does not have.
    """
    plain = {name: x.tensor if isinstance(x, Stretch) else x
             for name, x in model_state_dict.items()}
    model.load_state_dict(plain)
    if optimizer is None or optim_state_dict is None:
        return
    parameters = dict(model.named_parameters())
    for name, value in optim_state_dict.items():
        kind, _, rest = name.partition(".")
        place, _, key = rest.rpartition(".")
        if kind == "group":
            if int(place) >= len(optimizer.param_groups):
                raise KeyError(f"set_state_dict: there is no group {place}")
            optimizer.param_groups[int(place)][key] = value
        else:
            optimizer.state[parameters[place]][key] = (
                value.tensor if isinstance(value, Stretch) else value)
