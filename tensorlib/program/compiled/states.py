"""The state that a call changes, saved so that the call can be undone and run again."""

from collections.abc import Iterable
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.create.generator import Generator, default_generator
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import no_grad
from tensorlib.autograd.tree import flatten
from tensorlib.program.guards.signatures import gradient_of
from tensorlib.program.ir.model import OpCall, inner_calls
from tensorlib.program.run.dispatch import set_versions


class State:
    """The elements and versions of tensors, the `.grad` of leaves, optimisers with their
    parameters, and generators, as they are."""

    def __init__(self, tensors: Iterable[Tensor], leaves: Iterable[Tensor],
                 optimizers: Iterable[Any], generators: Iterable[Generator]):
        optimizers = list(optimizers)
        params = params_of(optimizers)
        self.optimizers = [vars(x)["state"] for x in optimizers]
        self.grads = [(x, gradient_of(x))
                      for x in {id(x): x for x in (*leaves, *params)}.values()]
        inside = [x for state in self.optimizers for each in state.values()
                  for x in flatten(dict(each))[0] if isinstance(x, Tensor)]
        each = {id(x): x for x in (*tensors, *params, *inside)}
        self.copies = [(x, elements(x)) for x in each.values()]
        self.versions = [*enumerate(map(version_of, each.values()))]
        self.states = [{p: dict(each) for p, each in state.items()} for state in self.optimizers]
        self.generators = [(g, g.get_state()) for g in generators]

    def put_back(self) -> None:
        """Restores everything."""
        for x, grad in self.grads:
            if gradient_of(x) is not grad:
                x.grad = grad
        with no_grad():
            for x, copy in self.copies:
                if bits_of(x) != bits_of(copy):
                    x.data.copy_(copy)
        set_versions(self.versions, [x for x, _ in self.copies])
        for state, before in zip(self.optimizers, self.states):
            for p in list(state):
                if p in before:
                    state[p].clear()
                    state[p].update(before[p])
                else:
                    del state[p]
        for generator, numbers in self.generators:
            generator.set_state(numbers)


class Undo:
    """The state that some calls change, before they run.

    calls: those with effects. written: the indices, among the inputs followed by `values`, of the
    tensors that they write to. values: captured tensors.
    """

    def __init__(self, calls: list[OpCall], written: Iterable[int], values: Iterable[Tensor]):
        every = [*calls, *(x for call in calls for block in call.blocks()
                           for x in inner_calls(block))]
        self.written, self.values = sorted(written), tuple(values)
        self.leaves = list({x: x.value for call in every if call.type == "set_grad"
                            for x in [call.inputs["param"]]}.values())
        self.optimizers = list({id(x): x for call in every if call.type == "optimizer_step"
                                for x in [call.attributes["optimizer"]]}.values())
        self.generators = generators_of(every)

    def __call__(self, tensors: tuple[Tensor, ...]) -> State:
        """The state before a call with these inputs."""
        given = tensors + self.values
        return State([given[i] for i in self.written], self.leaves, self.optimizers,
                     self.generators)


def params_of(optimizers: Iterable[Any]) -> list[Tensor]:
    """The parameters of optimisers."""
    return [x for optimizer in optimizers for group in vars(optimizer)["param_groups"]
            for x in group["params"]]


def generators_of(calls: Iterable[OpCall]) -> list[Generator]:
    """The generators that calls may draw from."""
    given = [x for call in calls for x in call.attributes.values() if isinstance(x, Generator)]
    return list({id(x): x for x in (default_generator, *given)}.values())


def version_of(x: Tensor) -> int:
    """How often a tensor was written to; 0 for one of inference mode, which has no version."""
    return 0 if x.is_inference() else x._version


def elements(x: Tensor) -> Tensor:
    """A copy of a tensor outside the graph."""
    return x.detach().clone()


def bits_of(x: Tensor) -> bytes:
    """The bits of the elements of a tensor, row by row."""
    packed = elements(x).contiguous()
    return packed.view(-1).view(BY_NAME["uint8"]).numpy().tobytes() if packed.numel() else b""
