"""Each rank keeps its share of the parameters, their gradients and states: ZeRO, stage 3.

Source: Rajbhandari, Rasley, Ruwase, He: ZeRO: memory optimizations toward training trillion
parameter models, SC 2020.

A parameter lies on the ranks as equal stretches of its elements. Before its module runs, a
differentiable all-gather makes it whole, so that the sweep gives each rank its stretch of the
gradient by a reduce-scatter. What the graph saves of a whole parameter is kept as a note where it
came from, and gathered once more when the sweep asks for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tensorlib import Tensor, as_strided, cat, no_grad, zeros
from tensorlib.autograd.graph import saved_tensors_hooks
from tensorlib.distributed import operations
from tensorlib.distributed.checking import compare, told
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter

__all__ = ["ShardedParameter", "fully_shard", "unsharded"]


class ShardedParameter(Parameter):
    """This rank's stretch of a parameter, as a vector; padded with zeros to the same size on all.
    """

    full_shape: Any
    shard_group: ProcessGroup

    def full_size(self) -> int:
        """The number of elements of the whole parameter."""
        return int(self.full_shape.numel())

    def start(self) -> int:
        """The place of its first element in the whole parameter."""
        return self.shard_group.rank() * self.numel()

    def gathered(self) -> Tensor:
        """The whole parameter; its gradient is the mean over the ranks."""
        flat = operations.all_gather(self, self.shard_group.group_name)
        if flat.requires_grad:
            size = self.shard_group.size()
            flat.register_hook(lambda g: g / size)
        return flat[:self.full_size()].view(self.full_shape)


class Saved(NamedTuple):
    """What is kept of a whole parameter, or a view of it, that the graph saved."""

    unit: Any
    place: int
    shape: Any
    stride: Any
    offset: int


class Unit:
    """The parameters of one module that are gathered and let go together."""

    def __init__(self, owners: list[tuple[Module, str]], shards: list[ShardedParameter],
                 reshards: bool) -> None:
        self.owners, self.shards, self.reshards = owners, shards, reshards
        self.again: dict[int, Tensor] = {}           # gathered a second time, for the sweep
        own = weakref.ref(self)

        def let_go(place: int) -> Any:
            def hook(parameter: Tensor) -> None:
                unit = own()
                if unit is not None:
                    unit.again.pop(place, None)

            return hook

        for place, shard in enumerate(shards):
            if shard.requires_grad:
                shard.register_post_accumulate_grad_hook(let_go(place))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A context in which the modules have their whole parameters."""
        self.again.clear()
        made: list[Tensor] = []
        try:
            for (module, name), shard in zip(self.owners, self.shards):
                full = shard.gathered()
                made.append(full)
                vars(module)[name] = full
                addresses[storage_of(full)] = self, len(made) - 1
            yield
        finally:
            for (module, name), full in zip(self.owners, made):
                vars(module).pop(name, None)
                addresses.pop(storage_of(full), None)

    def gathered_again(self, place: int) -> Tensor:
        """A whole parameter for the sweep, kept until its gradient is there."""
        if place not in self.again:
            with no_grad():
                shard = self.shards[place]
                self.again[place] = operations.all_gather(
                    shard.detach(), shard.shard_group.group_name)
        return self.again[place]


# Where whole parameters lie now: the address of the storage, with its unit and place there.
addresses: dict[int, tuple[Unit, int]] = {}


def storage_of(x: Tensor) -> int:
    """The address of the storage of a tensor."""
    return int(x.untyped_storage().data_ptr())


def packed(x: Tensor) -> Any:
    """What the graph keeps of a saved value."""
    home = addresses.get(storage_of(x)) if x.device.type == "cpu" and x.numel() else None
    if home is None or not home[0].reshards:
        return x
    return Saved(*home, x.shape, x.stride(), x.storage_offset())


def unpacked(kept: Any) -> Tensor:
    """The saved value."""
    if not isinstance(kept, Saved):
        return kept
    return as_strided(kept.unit.gathered_again(kept.place), kept.shape, kept.stride, kept.offset)


def fully_shard(module: Module, *, mesh: ProcessGroup | None = None,
                reshard_after_forward: bool | None = None, **options: Any) -> Module:
    """The module, whose parameters are sharded among the ranks of a group.

    It is called for the parts of a model, such as its blocks, then for the model: each call takes
    the parameters that no part has taken, which are gathered when that module runs and let go
    after it. The parameters that an optimiser is then made of are this rank's stretches. With
    `reshard_after_forward=False` whole parameters are kept until the sweep has used them.
    All ranks have to call the module and sweep alike.
    Raises: NoGroupError without a process group; DistError for models that differ between ranks;
    TypeError for options that there are not; RuntimeError for a module that is sharded already.
    """
    name = "fully_shard"
    group = group_of(mesh, name)
    group.check(name)
    if options:
        raise TypeError(f"{name}: takes mesh and reshard_after_forward, got {', '.join(options)}")
    if hasattr(module, "_sharded_unit"):
        raise RuntimeError(f"{name}: the module is sharded already")
    owners, wholes = [], []
    seen: dict[int, ShardedParameter] = {}
    for part in module.modules():
        for key, x in part._parameters.items():
            if x is not None and not isinstance(x, ShardedParameter):
                owners.append((part, key))
                wholes.append(x)
    compare(group, name, [len(wholes), *map(told, wholes[:8])])
    shards = []
    for (part, key), x in zip(owners, wholes):
        if id(x) not in seen:
            seen[id(x)] = sharded(x, group)
        shards.append(seen[id(x)])
        part._parameters[key] = shards[-1]
    unit = Unit(owners, shards, reshard_after_forward is not False)
    forward = module.forward

    def run(*args: Any, **kwargs: Any) -> Any:
        with saved_tensors_hooks(packed, unpacked), unit.whole():
            return forward(*args, **kwargs)

    vars(module).update(_sharded_unit=unit, forward=run)
    return module


def sharded(x: Tensor, group: ProcessGroup) -> ShardedParameter:
    """This rank's stretch of a parameter."""
    each = -(-x.numel() // group.size())
    with no_grad():
        flat = x.detach().reshape(-1)
        own = flat[group.rank() * each:(group.rank() + 1) * each].clone()
        if own.numel() < each:
            own = cat([own, zeros(each - own.numel(), dtype=own.dtype)])
    shard = ShardedParameter(own, requires_grad=x.requires_grad)
    shard.full_shape, shard.shard_group = x.shape, group
    return shard


@contextmanager
def unsharded(module: Module) -> Iterator[Module]:
    """A context in which a module has whole parameters, to be read: for inspection and saving.

    All ranks have to enter it.
    """
    units = [vars(part)["_sharded_unit"] for part in module.modules()
             if "_sharded_unit" in vars(part)]
    with no_grad():
        entered = [unit.whole() for unit in units]
        for each in entered:
            each.__enter__()
    try:
        yield module
    finally:
        for each in reversed(entered):
            each.__exit__(None, None, None)
