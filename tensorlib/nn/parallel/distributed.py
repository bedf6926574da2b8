"""One model in several processes, each of which trains it on its share of the batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from tensorlib import Tensor, cat, is_grad_enabled, no_grad
from tensorlib._core.interpreters.stack import tell
from tensorlib.distributed.checking import compare, told
from tensorlib.distributed.collectives import broadcast
from tensorlib.distributed.group import ProcessGroup, group_of
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parallel.data_parallel import refuse_devices
from tensorlib.nn.parallel.reducer import Reducer
from tensorlib.utils._pytree import tree_leaves

__all__ = ["DistributedDataParallel"]

DEFAULT_BUCKET_MB = 25.0


class DistributedDataParallel(Module):
    """A module around another, `module`, whose gradients are the means over all ranks.

    Each rank calls it with its share of the batch. The first rank's parameters and buffers are
    copied to all when it is made, the buffers before each forward pass too. Gradients are reduced
    in buckets of `bucket_cap_mb` while the backward sweep goes on. With `gradient_as_bucket_view`
    `.grad` is a part of a bucket, and no second copy. With `find_unused_parameters` the graph is
    searched for parameters that a forward pass did not use; with `static_graph` it is searched
    once, as every pass uses the same.

    deterministic: the gradient is a sum over `micro_batches` pieces of the whole batch, in an order
    that depends on their number alone, so that training has the same bits for any number of ranks
    that divides it. `micro_batches()` cuts a rank's share into its pieces.

    Raises: RuntimeError without a process group, for devices, a module without parameters that
    require a gradient, and models that differ between ranks; ValueError for micro-batches that the
    ranks can't share.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None,
                 dim: int = 0, broadcast_buffers: bool = True, init_sync: bool = True,
                 process_group: ProcessGroup | None = None, bucket_cap_mb: float | None = None,
                 find_unused_parameters: bool = False, check_reduction: bool = False,
                 gradient_as_bucket_view: bool = False, static_graph: bool = False, *,
                 deterministic: bool = False, micro_batches: int | None = None) -> None:
        super().__init__()
        name = "DistributedDataParallel"
        refuse_devices(name, device_ids)
        group = group_of(process_group, name)
        group.check(name)
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        self._named = [(each, x) for each, x in module.named_parameters()
                       if each not in ignored]
        trained = [(each, x) for each, x in self._named if x.requires_grad]
        if not trained:
            raise RuntimeError(f"{name}: no parameter of the module requires a gradient; call it "
                               "by itself")
        if bucket_cap_mb is not None and not bucket_cap_mb > 0:
            raise ValueError(f"{name}: bucket_cap_mb is more than 0, got {bucket_cap_mb}")
        self.module, self.process_group, self.dim = module, group, dim
        self.device_ids, self.output_device = None, None
        self.broadcast_buffers, self.static_graph = broadcast_buffers, static_graph
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.deterministic = deterministic
        self.require_backward_grad_sync = True
        self.count = pieces(micro_batches, group) if deterministic else None
        self._ignored = set(ignored)
        if init_sync:
            self.refuse_differences(trained)
            copy_from_first([x for _, x in self._named], group)
            copy_from_first(self._buffers_to_send(), group)
        self._reducer = Reducer(
            [each for each, _ in trained], [x for _, x in trained], group,
            DEFAULT_BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb,
            gradient_as_bucket_view, find_unused_parameters or static_graph, static_graph,
            self.count)

    def refuse_differences(self, trained: list[tuple[str, Tensor]]) -> None:
        """Raises DistError unless all ranks have the same parameters, in the same order."""
        facts = [f"{name}:{told(x)}" for name, x in trained]
        for start in range(0, len(facts), 4):        # a few at a time, so that errors show them
            compare(self.process_group, "DistributedDataParallel",
                    [len(facts), *facts[start:start + 4]])

    def _buffers_to_send(self) -> list[Tensor]:
        return [x for name, x in self.module.named_buffers() if name not in self._ignored]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives for this rank's share."""
        trains = is_grad_enabled()
        syncs = self.require_backward_grad_sync
        if self.broadcast_buffers and syncs and trains:
            copy_from_first(self._buffers_to_send(), self.process_group)
        found = self.module(*inputs, **kwargs)
        if trains:
            # a replay would announce no gradients, so the call around this one runs eagerly
            tell("effect", "DistributedDataParallel", self._named[0][1])
            self._reducer.prepare([x for x in tree_leaves(found) if isinstance(x, Tensor)], syncs)
        return found

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which sweeps accumulate gradients on each rank, and reduce none.

        The first sweep of a forward pass outside of it reduces all that was accumulated.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def micro_batches(self, *tensors: Tensor) -> Generator[Any, None, None]:
        """This rank's share of the batch in its pieces, for a loop of forward and backward.

        All but the last are under `no_sync()`. Of one tensor the pieces are tensors, of several
        they are tuples. Raises: ValueError for sizes that the pieces do not divide.
        """
        count = 1 if self.count is None else self.count // self.process_group.size()
        for x in tensors:
            if x.shape[0] % count:
                raise ValueError(f"micro_batches: {x.shape[0]} examples are not shared equally by "
                                 f"the {count} micro-batches of a rank")
        parts = [x.split(x.shape[0] // count) for x in tensors]
        for i, piece in enumerate(zip(*parts)):
            given = piece[0] if len(tensors) == 1 else piece
            if i < count - 1:
                with self.no_sync():
                    yield given
            else:
                yield given

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Reduces gradients by `hook(state, bucket)`, which returns a future of the result.

        `tensorlib.distributed.algorithms.ddp_comm_hooks` has some.
        Raises: TypeError for what can't be called; RuntimeError for a second hook, and beside
        deterministic=True.
        """
        if not callable(hook):
            raise TypeError(f"register_comm_hook: hook is called, got {type(hook).__name__}")
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is a hook already")
        if self.deterministic:
            raise RuntimeError("register_comm_hook: with deterministic=True the order of the sum "
                               "is fixed, and no hook can do it")
        self._reducer.hook = state, hook

    def __getstate__(self) -> Any:
        raise TypeError("DistributedDataParallel: it belongs to its process and can't be pickled "
                        "or copied; do that with its `module`")


def pieces(micro_batches: int | None, group: ProcessGroup) -> int:
    """The number of micro-batches of the whole batch. Raises: ValueError."""
    count = group.size() if micro_batches is None else micro_batches
    if isinstance(count, bool) or not isinstance(count, int) or count < 1 or count % group.size():
        raise ValueError(f"DistributedDataParallel: micro_batches={count!r} of the whole batch are "
                         f"not shared equally by {group.size()} ranks")
    return count


def copy_from_first(tensors: list[Tensor], group: ProcessGroup) -> None:
    """Writes the tensors of the group's first rank over those of all, one message a dtype."""
    if group.size() == 1:
        return
    with no_grad():
        for dtype in dict.fromkeys(x.dtype for x in tensors):
            own = [x for x in tensors if x.dtype == dtype and x.numel()]
            if not own:
                continue
            flat = cat([x.detach().reshape(-1) for x in own])
            broadcast(flat, group=group, group_src=0)
            if group.rank():
                for x, part in zip(own, flat.split([x.numel() for x in own])):
                    x.copy_(part.view(x.shape))
