"""Reduces gradients bucket by bucket, while the sweep that computes them goes on.

A hook of each parameter is called when the sweep has accumulated its gradient, and copies that into
its bucket. A bucket that is full is reduced by a non-blocking call of MPI. Buckets begin in the
same order on all ranks. MPI has no thread of its own here: what is under way moves on when it is
tested, which every hook does, so communication proceeds for as long as gradients keep coming. The
last hook waits for what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorlib
from tensorlib import Tensor, no_grad
from tensorlib.distributed.collectives import all_reduce
from tensorlib.distributed.group import ProcessGroup
from tensorlib.distributed.objects import broadcast_object_list
from tensorlib.nn.parallel.buckets import GradBucket, in_buckets
from tensorlib.nn.parallel.tree_sum import TreeSum


class Reducer:
    """The state of the reductions of one model."""

    def __init__(self, names: Sequence[str], parameters: Sequence[Tensor], group: ProcessGroup,
                 megabytes: float, as_views: bool, find_unused: bool, static: bool,
                 micro_batches: int | None) -> None:
        self.names, self.parameters, self.group = list(names), list(parameters), group
        self.megabytes, self.as_views = megabytes, as_views
        self.find_unused, self.static = find_unused, static
        # of the reverse of the order in which they were made, the sweep takes most of them
        self.buckets = self.cut(range(len(parameters) - 1, -1, -1))
        self.hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.micro_batches = micro_batches
        self.sums: dict[int, TreeSum] = {}       # of each bucket, over micro-batches
        self.expecting = False       # a forward pass announced gradients that are to be reduced
        self.syncs = True
        self.swept = self.rebuilt = False
        self.arrivals: list[int] = []
        self.begun = 0               # buckets whose reduction was begun
        self.unused: set[int] | None = None
        self.used_by_any: Any = None
        self.handles = [x.register_post_accumulate_grad_hook(self.hook_of(place))
                        for place, x in enumerate(self.parameters)]

    def cut(self, order: Iterable[int]) -> list[GradBucket]:
        buckets = in_buckets(list(order), self.parameters, self.megabytes)
        self.home = {place: (bucket, i) for bucket in buckets
                     for i, place in enumerate(bucket.places)}
        return buckets

    # ---- a pass ----------------------------------------------------------------------------------

    def prepare(self, outputs: Iterable[Tensor], syncs: bool) -> None:
        """Before a sweep: what it will give, and whether that is to be reduced."""
        self.refuse_unfinished()
        self.expecting = syncs or self.micro_batches is not None
        self.syncs = syncs
        if not self.expecting:
            return
        if self.micro_batches is not None:
            self.refuse_older_gradients()
        self.rebuild()
        self.begun = 0
        for bucket in self.buckets:
            bucket.waiting, bucket.future = set(bucket.places), None
        if self.find_unused and (self.unused is None or not self.static):
            reached = leaves_of(outputs)
            self.unused = {place for place, x in enumerate(self.parameters)
                           if id(x) not in reached}
        for place in self.unused or ():
            bucket, i = self.home[place]
            grad = self.parameters[place].grad
            with no_grad():
                if grad is None or self.micro_batches is not None:
                    bucket.views[i].zero_()
                elif not same_memory(grad, bucket.views[i]):
                    bucket.views[i].copy_(grad)
            bucket.waiting.discard(place)

    def refuse_unfinished(self) -> None:
        """Raises RuntimeError where the last sweep did not give all that was announced."""
        if not self.expecting or self.begun == 0 and all(
                len(bucket.waiting) == len(bucket.places) - len(
                    (self.unused or set()) & set(bucket.places)) for bucket in self.buckets):
            return                           # nothing came: a forward pass without a sweep
        missing = [self.names[place] for bucket in self.buckets for place in sorted(bucket.waiting)]
        if missing:
            self.expecting = False
            raise RuntimeError(
                "DistributedDataParallel: the last sweep gave no gradient to "
                f"{', '.join(missing)}, so that the reduction never ended. If these are not used "
                "in every forward pass, find_unused_parameters=True finds out which are; all "
                "outputs that the loss is made of have to be returned by forward()")

    def refuse_older_gradients(self) -> None:
        """Raises RuntimeError where a gradient would become part of a micro-batch's."""
        for name, x in zip(self.names, self.parameters):
            if x.grad is not None:
                raise RuntimeError(
                    f"DistributedDataParallel: {name} has a gradient already; with "
                    "deterministic=True gradients are set to None before the first micro-batch")

    def hook_of(self, place: int) -> Callable[[Tensor], None]:
        """The hook of one parameter."""
        def arrived(parameter: Tensor) -> None:
            if self.expecting:
                self.take(place, parameter)

        return arrived

    def take(self, place: int, parameter: Tensor) -> None:
        """Puts a gradient into its bucket, and begins and moves on what can be."""
        bucket, i = self.home[place]
        if place not in bucket.waiting:
            if self.unused and place in self.unused:
                reason = "the graph of the outputs did not lead to it, but a later part does"
            else:
                reason = ("it was given one twice in a sweep, by checkpoints inside each other or "
                          "a second backward() after one forward()")
            raise RuntimeError(f"DistributedDataParallel: {self.names[place]}: {reason}")
        grad, view = parameter.grad, bucket.views[i]
        with no_grad():
            if grad.layout is not tensorlib.strided:
                raise RuntimeError(f"DistributedDataParallel: {self.names[place]} has a gradient "
                                   f"of layout {grad.layout}; only dense ones are reduced")
            if not same_memory(grad, view):
                view.copy_(grad)
            if self.micro_batches is not None:
                parameter.grad = None
            elif self.as_views:
                parameter.grad = view
        bucket.waiting.discard(place)
        if not self.rebuilt:
            self.arrivals.append(place)
        while self.begun < len(self.buckets) and not self.buckets[self.begun].waiting:
            self.begin(self.buckets[self.begun])
            self.begun += 1
        for earlier in self.buckets[:self.begun]:
            if earlier.future is not None:
                earlier.future.is_completed()
        if self.begun == len(self.buckets):
            self.end()

    # ---- reductions ------------------------------------------------------------------------------

    def begin(self, bucket: GradBucket) -> None:
        """Begins to reduce one bucket."""
        if self.find_unused and self.used_by_any is None and self.syncs:
            used = [place not in (self.unused or ()) for place in range(len(self.parameters))]
            flags = tensorlib.tensor(used, dtype=tensorlib.uint8)
            self.used_by_any = flags, all_reduce(flags, "max", self.group, async_op=True)
        if self.micro_batches is not None:
            sums = self.sums.setdefault(bucket.index(), TreeSum(self.group, self.micro_batches))
            sums.add(bucket.memory)
            bucket.future = sums.begin() if self.syncs else None
        elif self.hook is not None:
            bucket.future = self.hook[1](self.hook[0], bucket)
        else:
            with no_grad():
                bucket.memory.div_(self.group.size())
            bucket.future = all_reduce(bucket.memory, "sum", self.group,
                                       async_op=True).get_future()

    def end(self) -> None:
        """Waits for what is under way, and gives the parameters their gradients."""
        self.expecting = False
        if not self.syncs:
            return
        used: list[bool] | None = None
        if self.used_by_any is not None:
            flags, work = self.used_by_any
            work.wait()
            used, self.used_by_any = flags.tolist(), None
        for bucket in self.buckets:
            found = bucket.future.wait()
            bucket.future = None
            found = found[0] if isinstance(found, (list, tuple)) else found
            with no_grad():
                if not same_memory(found, bucket.memory):
                    bucket.memory.copy_(found)
                for place, view in zip(bucket.places, bucket.views):
                    if used is None or used[place]:
                        self.give(self.parameters[place], view)
        self.sums, self.swept = {}, True

    def give(self, parameter: Tensor, view: Tensor) -> None:
        """A reduced gradient for a parameter."""
        if self.as_views:
            parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)

    def rebuild(self) -> None:
        """After the first sweep, cuts buckets in the order in which its gradients came.

        All ranks take that of the first.
        """
        if self.rebuilt or not self.swept:
            return
        self.rebuilt = True
        if self.find_unused and not self.static:
            return                       # what comes differs from sweep to sweep, and among ranks
        told = [list(dict.fromkeys([*self.arrivals, *range(len(self.parameters))]))]
        broadcast_object_list(told, group=self.group, group_src=0)
        self.buckets, self.arrivals = self.cut(told[0]), []


def same_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of a shape are the same elements."""
    return a is b or (a.data_ptr() == b.data_ptr() and a.dtype == b.dtype
                      and a.stride() == b.stride())


def leaves_of(outputs: Iterable[Tensor]) -> set[int]:
    """The identities of the leaves that the graph of some tensors leads to."""
    nodes = [x.grad_fn for x in outputs if x.grad_fn is not None]
    found = {id(x) for x in outputs if x.grad_fn is None}
    seen = set(map(id, nodes))
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        for further, _ in node.next_functions:
            if further is not None and id(further) not in seen:
                seen.add(id(further))
                nodes.append(further)
    return found
