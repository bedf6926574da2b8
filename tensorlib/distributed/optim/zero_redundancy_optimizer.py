"""Each rank keeps the states of its share of the parameters: ZeRO, stage 1.

Source: Rajbhandari, Rasley, Ruwase, He: ZeRO: memory optimizations toward training trillion
parameter models, SC 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tensorlib import Tensor, cat, empty, no_grad
from tensorlib.distributed.collectives import broadcast
from tensorlib.distributed.group import ProcessGroup, group_of, place_of
from tensorlib.distributed.objects import gather_object
from tensorlib.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimiser of class `optimizer_class` that updates only this rank's share of parameters.

    Whole parameters are assigned to ranks, the largest first, each to the one that has the fewest
    elements. Each rank steps with its own, and sends them to the others. Gradients have to be the
    same on all ranks, as those of DistributedDataParallel are. With `parameters_as_bucket_view`
    the parameters of a rank are views of one stretch of memory, which is sent as it lies. Options,
    such as a schedule's learning rate, are read from `param_groups` in each step.
    Raises: as the optimiser; NoGroupError without a process group.
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer],
                 process_group: ProcessGroup | None = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False,
                 **defaults: Any) -> None:
        name = "ZeroRedundancyOptimizer"
        self.process_group = group_of(process_group, name)
        self.process_group.check(name)
        if overlap_with_ddp:
            raise ValueError(f"{name}: overlap_with_ddp is not supported; leave it out")
        self.optimizer_class, self.optim_defaults = optimizer_class, defaults
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim: Optimizer | None = None
        self.consolidated: dict[str, Any] | None = None
        super().__init__(params, dict(defaults))
        self.share_out()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, which are assigned to ranks, too."""
        super().add_param_group(param_group)
        if self.optim is not None or hasattr(self, "owner"):
            state = {} if self.optim is None else dict(self.optim.state)
            self.share_out(self.owner)
            if self.optim is not None:
                self.optim.state.update(state)

    def share_out(self, before: dict[Tensor, int] | None = None) -> None:
        """Decides who updates which parameters, and makes the optimiser of this rank's."""
        size, mine = self.process_group.size(), self.process_group.rank()
        ordered = [p for group in self.param_groups for p in group["params"]]
        self.owner: dict[Tensor, int] = dict(before or {})
        loads = [sum(p.numel() for p, rank in self.owner.items() if rank == each)
                 for each in range(size)]
        for p in sorted(ordered, key=lambda p: -p.numel()):
            if p not in self.owner:
                rank = loads.index(min(loads))
                self.owner[p], loads[rank] = rank, loads[rank] + p.numel()
        self.shares = [[p for p in ordered if self.owner[p] == rank] for rank in range(size)]
        groups = []
        self.local_of: list[int | None] = []         # of each group, its number among the local
        for group in self.param_groups:
            own = [p for p in group["params"] if self.owner[p] == mine]
            self.local_of.append(len(groups) if own else None)
            if own:
                groups.append({**{key: value for key, value in group.items()
                                  if key not in ("params", "param_names")}, "params": own})
        self.optim = self.optimizer_class(groups, **self.optim_defaults) if groups else None
        if self.optim is not None:
            for group, place in zip(self.param_groups, self.local_of):
                if place is not None:                # options that the class has defaults for
                    for key, value in self.optim.param_groups[place].items():
                        group.setdefault(key, value)
        self.buckets = [[joined(part, self.parameters_as_bucket_view)
                         for part in by_dtype(share)] for share in self.shares]

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Updates this rank's parameters, and gives all ranks the new ones of all."""
        loss = self._loss_of(closure)
        self.consolidated = None
        if self.optim is not None:
            for group, place in zip(self.param_groups, self.local_of):
                if place is not None:
                    self.optim.param_groups[place].update(
                        (key, value) for key, value in group.items()
                        if key not in ("params", "param_names"))
            self.optim.step(**kwargs)
        self.send_all()
        return loss

    def send_all(self) -> None:
        """Each rank sends its parameters to all."""
        if self.process_group.size() == 1:
            return
        mine, works = self.process_group.rank(), []
        with no_grad():
            for rank, buckets in enumerate(self.buckets):
                for params, view in buckets:
                    flat = view
                    if flat is None and rank == mine:
                        flat = cat([p.detach().reshape(-1) for p in params])
                    elif flat is None:
                        flat = empty(sum(p.numel() for p in params), dtype=params[0].dtype)
                    works.append((rank, params, view, flat, broadcast(
                        flat, group=self.process_group, group_src=rank, async_op=True)))
            for rank, params, view, flat, work in works:
                work.wait()
                if view is None and rank != mine:
                    for p, part in zip(params, flat.split([p.numel() for p in params])):
                        p.copy_(part.view(p.shape))

    # ---- states ----------------------------------------------------------------------------------

    def numbers(self) -> dict[Tensor, int]:
        """The parameters with their numbers, counted through all groups."""
        found: dict[Tensor, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                found.setdefault(p, len(found))
        return found

    def local_state_dict(self) -> dict[str, Any]:
        """The states of this rank's parameters, under their numbers among all."""
        numbers = self.numbers()
        states = {} if self.optim is None else self.optim.state
        return {"state": {numbers[p]: state for p, state in states.items()},
                "param_groups": [
                    {**{key: value for key, value in group.items() if key != "params"},
                     "params": [numbers[p] for p in group["params"]]}
                    for group in self.param_groups]}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers all states on rank `to`, for `state_dict()`. All ranks make this call."""
        root = place_of(self.process_group, to, "consolidate_state_dict", "to")
        mine = self.process_group.rank() == root
        found: list[Any] | None = [None] * self.process_group.size() if mine else None
        gather_object(self.local_state_dict(), found, group=self.process_group, group_dst=root)
        if found is not None:
            states = {number: state for each in found for number, state in each["state"].items()}
            self.consolidated = {"state": dict(sorted(states.items())),
                                 "param_groups": found[0]["param_groups"]}

    def state_dict(self) -> dict[str, Any]:
        """All states, as the optimiser in one process has them.

        Raises: RuntimeError unless `consolidate_state_dict()` gathered them on this rank before.
        """
        if self.consolidated is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: state_dict() has all states on the rank that "
                "consolidate_state_dict(to=rank) was called for since the last step; all ranks "
                "have to call that first")
        return self.consolidated

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict()` gave, with any number of ranks, or one process's optimiser.
        """
        super().load_state_dict({**state_dict, "state": {}})
        numbers = self.numbers()
        if self.optim is not None:
            own = self.optim.state_dict()
            local = [p for group in self.optim.param_groups for p in group["params"]]
            own["state"] = {place: deepcopy(state_dict["state"][numbers[p]])
                            for place, p in enumerate(local) if numbers[p] in state_dict["state"]}
            for group, place in zip(self.param_groups, self.local_of):
                if place is not None:
                    own["param_groups"][place].update(
                        (key, value) for key, value in group.items()
                        if key not in ("params", "param_names"))
            self.optim.load_state_dict(own)


def by_dtype(params: list[Tensor]) -> list[list[Tensor]]:
    """Parameters in lists of one dtype each."""
    return [[p for p in params if p.dtype == dtype]
            for dtype in dict.fromkeys(p.dtype for p in params)]


def joined(params: list[Tensor], as_views: bool) -> tuple[list[Tensor], Tensor | None]:
    """Parameters, and the memory that they are made views of if they are to be."""
    if not as_views:
        return params, None
    with no_grad():
        flat = cat([p.detach().reshape(-1) for p in params])
        for p, part in zip(params, flat.split([p.numel() for p in params])):
            p.data = part.view(p.shape)
    return params, flat
