"""Replays with code of the user's between them: an `autograd.Function` runs as in the eager call,
and hooks are put on gradients.

The calls before, between and after such are replays of their own, each with a node of its own, and
the Function has the node that it always has: its backward runs in the sweep that comes by there,
once, and reads what is there then. What a Function gives may depend on elements in Python, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tensorlib._core.sweep.graph_reader import (
    ages_of_leaves, gradient_place, savers_above, was_made_since,
)
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.modes import set_grad_enabled
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.compiled.replaying import Differentiable, Replay, Savers
from tensorlib.program.guards.signatures import place_in_memory, storage_of
from tensorlib.program.ir.call_types import is_draw
from tensorlib.program.ir.interpreter import Values, run_call, value_of
from tensorlib.program.ir.model import Block, OpCall, Variable, variables_in
from tensorlib.program.ir.nested import mapped
from tensorlib.program.passes.facts import changes, traits_of
from tensorlib.program.reads.known import is_of_library
from tensorlib.program.run.plan import Unplanned
from tensorlib.program.run.segments import Layouts


class ReplayStopped(RuntimeError):
    """A chain that has drawn numbers can't be replayed to its end."""


def runs_code_of_users(call: OpCall) -> bool:
    """Whether a call puts a hook, or is of a Function that is not the library's, or is given
    another one."""
    return call.type == "hook" or call.type == "function" and (
        not is_of_library(call.attributes["function"])
        or any(isinstance(x, type) for x in call.inputs["args"]))


def has_gradient(call: OpCall) -> bool:
    """Whether something that a call gives may have a gradient."""
    return not all(x.stop_gradient for x in call.writes())


class Met:
    """What a capture knows of the values that one link of a chain gives and others take.

    likes: tensors without memory that are laid out as they are. places: of those that have a
    gradient, in the graph.
    """

    def __init__(self, recorder: Any):
        self.begun, self.epoch = recorder.begun, recorder.epoch
        self.tensors: dict[Variable, Tensor] = {}
        for tensor, x in recorder.known.values():
            self.tensors.setdefault(x, tensor)
        self.likes: dict[Variable, Tensor] = {}
        self.places: dict[Variable, Any] = {}

    def meet(self, x: Variable) -> Tensor | None:
        """Takes up a value; its tensor, or None where no tensor stands for it. Raises: Unplanned.
        """
        tensor = self.tensors.get(x)
        if tensor is None:
            return None
        if type(tensor) is not Tensor or tensor.is_inference():
            raise Unplanned("what is given to an autograd.Function or a hook is no plain tensor")
        self.lay(x, tensor.stride(), tensor.requires_grad)
        if tensor.requires_grad:
            self.places[x] = gradient_place(tensor)
        return tensor

    def lay(self, x: Variable, strides: Any, requires_grad: bool = False) -> None:
        """Notes how a value lies."""
        self.likes[x] = FUNCTIONS["empty_strided"](
            x.shape, strides, dtype=x.dtype, device="meta").requires_grad_(requires_grad)


class Link:
    """Calls of a chain in a row that are replayed as one. gives: what of theirs is read later."""

    def __init__(self, calls: list[OpCall], gives: list[Variable], met: Met):
        made = {x for call in calls for x in call.writes()}
        self.calls, self.gives = calls, gives
        self.reads = [x for x in dict.fromkeys(y for call in calls for y in call.reads())
                      if x not in made]
        tensors = [met.meet(x) for x in gives]
        roots = {x: tensor for x, tensor in zip(gives, tensors)
                 if tensor is not None and tensor.requires_grad}
        ends = [met.places[x][0] for x in self.reads if x in met.places]
        each = [*roots.values()]
        *savers, _ = savers_above(each, met.begun, ends)
        self.savers = Savers([*roots], *savers)
        self.ages = ages_of_leaves(each, met.begun, ends)
        self.roots = set(roots)

    def plan(self, chain: "Chain", met: Met, layouts: Layouts, flags: dict[str, bool]) -> None:
        """Makes the replay. Raises: Unplanned where it would give something else than the call."""
        lasting = [x for x in self.reads if x.persistable]
        self.given = [x for x in self.reads if not x.persistable]
        given = (chain.block, self.calls, self.given, [met.likes[x] for x in self.given], lasting,
                 self.gives, flags)
        self.replay: Replay = Replay(*given) if not self.roots else Differentiable(
            *given, savers=self.savers, all_gone=chain.all_gone, ages=self.ages, places=met.places)
        del self.savers, self.ages           # which hold the graph of the captured call
        places = self.replay.machine.places()[:len(self.gives)]
        for x, (_, _, strides) in zip(self.gives, places):
            if strides is not None and x not in met.likes:
                met.lay(x, strides)
            if strides is None or tuple(strides) != met.likes[x].stride():
                raise Unplanned("what is given to an autograd.Function or a hook is laid out in "
                                "another way than by a replay")
        if self.roots and self.roots != set(self.replay.roots):   # type: ignore[attr-defined]
            raise Unplanned("what is given to an autograd.Function or a hook requires a gradient "
                            "in another way than a replay would give it")
        layouts.add(self.gives, places, self.replay.fed)

    def run(self, values: Values, retries: bool) -> bool:
        """Puts among the values what the calls give; False where they have to run eagerly."""
        found = self.replay.run([values[x] for x in self.given], retries)
        if found is not None:
            values.update(zip(self.gives, found))
        return found is not None


class Hooked:
    """A hook that is put on a gradient in a chain."""

    outdone = False

    def __init__(self, call: OpCall):
        self.call = call

    def plan(self, chain: "Chain", met: Met, layouts: Layouts, flags: dict[str, bool]) -> None:
        """Nothing: it makes nothing."""

    def run(self, values: Values, retries: bool) -> bool:
        """Puts the hook."""
        run_call(self.call, values)
        return True


class Called:
    """A call of a Function in a chain."""

    outdone = False

    def __init__(self, call: OpCall, met: Met):
        self.call, self.args = call, variables_in(call.inputs)
        self.records = has_gradient(call)
        if any(x is None for x in call.outputs):
            raise Unplanned("an autograd.Function returns what it is given")
        made = [tensor for x in call.writes() if (tensor := met.meet(x)) is not None]
        given = [y for x in self.args if (y := met.tensors.get(x, x.value)) is not None]
        if len(made) < len(call.outputs) or len(given) < len(self.args):
            raise Unplanned("what an autograd.Function is given, or gives, is not known")
        self.places = places_of(made, given)
        if any(root < 0 and not was_made_since(x, met.epoch)
               for x, (root, _) in zip(made, self.places)):
            raise Unplanned("an autograd.Function returns what was there before the call")

    def plan(self, chain: "Chain", met: Met, layouts: Layouts, flags: dict[str, bool]) -> None:
        """Takes up what it gives."""
        self.likes = [met.likes[x] for x in self.call.writes()]
        layouts.add(self.call.outputs, [(root, offset, x.stride()) for x, (root, offset) in zip(
            self.likes, self.places)], self.args)

    def run(self, values: Values, retries: bool) -> bool:
        """Puts among the values what it gives; False where that is of another kind."""
        args = mapped(self.call.inputs["args"], lambda x: value_of(x, values))
        with set_grad_enabled(self.records):
            found = self.call.attributes["function"].apply(*args)
        made = found if isinstance(found, (tuple, list)) else (found,)
        if len(made) != len(self.likes) or not all(map(is_like, made, self.likes)) or (
                places_of(made, [value_of(x, values) for x in self.args]) != self.places):
            return False
        values.update(zip(self.call.writes(), made))
        return True


def places_of(made: Sequence[Tensor], given: list[Tensor]) -> list[tuple[int, int]]:
    """In the memory of which of the given tensors each one lies that was made, and how many bytes
    after it; a number below zero for each memory of its own."""
    lies = [place_in_memory(x) for x in given]
    own: dict[int, int] = {}
    found = []
    for x in made:
        start, address = place_in_memory(x)
        root = next((i for i, (other, _) in enumerate(lies) if other == start and x.numel()), -1)
        if root >= 0:
            found.append((root, address - lies[root][1]))
        elif start in own and x.numel():
            raise Unplanned("an autograd.Function returns several views of one tensor")
        else:
            own[start] = root = -1 - len(found)
            found.append((root, 0))
    return found


AnyLink = Link | Hooked | Called


def is_like(x: Any, like: Tensor) -> bool:
    """Whether a tensor is laid out as another one, and requires a gradient as that."""
    return type(x) is Tensor and x.shape == like.shape and x.dtype is like.dtype and (
        x.stride() == like.stride() and x.requires_grad == like.requires_grad
        and not x.is_inference())


def links_of(recorder: Any, wanted: Iterable[Variable]) -> tuple[list[AnyLink], Met]:
    """The links of what was captured, from the first on, and what is known of their values.

    Raises: Unplanned.
    """
    why_not = recorder.put_hooks.why_not()
    if why_not:
        raise Unplanned(why_not)
    for x, version in recorder.shown:
        if x._version != version or storage_of(x) in recorder.writes.by_data:
            raise Unplanned("it writes into what an autograd.Function was given, or gave, before "
                            "its gradient is asked for")
    found: list[list[OpCall] | OpCall] = [[]]
    for call in recorder.block.ops:
        if runs_code_of_users(call):
            found += [call, []]
            continue
        if (call.blocks() or changes(call) or traits_of(call.type).writes
                or call.attributes.get("statistics")) and (call.in_place or not is_draw(call.type)):
            raise Unplanned("it writes, or sets gradients, beside an autograd.Function or a hook: "
                            f"{call.type}, {call.line}")
        found[-1].append(call)                      # type: ignore[union-attr]
    later, pieces = {*wanted}, []
    for part in reversed(found):
        calls = part if isinstance(part, list) else [part]
        pieces.append((part, [x for call in calls for x in call.writes() if x in later]))
        later.update(x for call in calls for x in call.reads())
    met = Met(recorder)
    links: list[AnyLink] = []
    for part, gives in reversed(pieces):
        if isinstance(part, OpCall):
            links.append(Called(part, met) if part.type == "function" else Hooked(part))
        elif part:
            links.append(Link(part, gives, met))
    met.tensors.clear()
    return links, met


class Chain:
    """Replays one after the other, and Functions between them. It is used as a replay is.

    all_gone: the nodes of the captured call have let go of what they saved. Raises: Unplanned.
    """

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable],
                 flags: dict[str, bool], *, links: tuple[list[AnyLink], Met],
                 all_gone: bool):
        self.block, self.calls, self.given, self.wanted = block, calls, given, wanted
        self.lasting, self.all_gone = lasting, all_gone
        self.values: list[Any] = [x.value for x in lasting]
        self.fed = [*given, *lasting]
        self.links, met = links
        self.changing = list(filter(changes, calls))
        met.likes.update(zip(given, layouts))
        known = Layouts(dict(zip(self.fed, [*layouts, *self.values])))
        for link in self.links:
            link.plan(self, met, known, flags)
        self.lies = [known.place(x, self.fed) for x in wanted]
        self.machine = self

    @property
    def outdone(self) -> bool:
        """Whether eager calls do less."""
        return any(link.replay.outdone for link in self.links if type(link) is Link)

    def places(self) -> list[tuple[int, int, Any]]:
        """As of a machine."""
        return self.lies

    @property
    def beyond(self) -> list[Any]:
        """As of a machine: of all links."""
        return [x for link in self.links if type(link) is Link for x in link.replay.machine.beyond]

    def run(self, inputs: Iterable[Tensor], retries: bool = False) -> list[Any] | None:
        """As of a replay."""
        if retries and self.outdone:
            return None
        values: Values = dict(zip(self.fed, (*inputs, *self.values)))
        for link in self.links:
            try:
                if link.run(values, retries and not self.changing):
                    continue
            except Exception:
                if not retries or self.changing:
                    raise
            if self.changing:
                raise ReplayStopped("compile: a replay can't go on")
            return None
        return [values[x] for x in self.wanted]


class Choice:
    """Whether what was captured becomes a chain. links: those of it, or why it can't be one; None
    where it calls no code of the user's. needed: a Function in it has a gradient after the call, or
    it puts hooks."""

    def __init__(self, links: Any, needed: bool):
        self.links, self.needed = links, needed
        if needed and isinstance(links, Unplanned):
            raise links

    def made(self, ready: Any, block: Block, calls: list[OpCall], given: tuple[Any, ...],
             all_gone: bool) -> Any:
        """What `ready` makes of calls of a block, else a chain. Raises: Unplanned."""
        if not self.needed:
            try:
                return ready(block, calls, *given)
            except Unplanned:
                if self.links is None or isinstance(self.links, Unplanned):
                    raise
        return Chain(block, list(block.ops), *given, links=self.links, all_gone=all_gone)


def chain_for(recorder: Any, slots: list[Any], linked: bool, own: Any) -> Choice:
    """The choice for what was captured. own: leaves that it makes. Raises: Unplanned."""
    calls = [call for call in recorder.block.ops if runs_code_of_users(call)]
    if not calls:
        return Choice(None, False)
    try:
        if own:
            raise Unplanned("a transform beside an autograd.Function, whose gradient is asked for "
                            "after the call, can't be replayed")
        links: Any = links_of(recorder, [x for x in slots if type(x) is Variable])
    except Unplanned as error:
        links = error
    return Choice(links, linked and any(map(has_gradient, calls))
                  or any(not call.outputs for call in calls))
