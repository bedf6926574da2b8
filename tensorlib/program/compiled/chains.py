"""Chains: replays with user code between them. An `autograd.Function` runs as in the eager call,
and hooks are registered on gradients.

The calls before, between and after these are replays, each with a node of its own. A Function has
its ordinary node, so that its backward runs once, in the sweep, and reads what is there then. The
results of a Function may also depend on elements in Python code.
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
    """A chain that has already drawn random numbers can't be replayed to its end."""


def runs_code_of_users(call: OpCall) -> bool:
    """Whether a call registers a hook, or is one of a user-defined Function, or gets one as an
    argument."""
    return call.type == "hook" or call.type == "function" and (
        not is_of_library(call.attributes["function"])
        or any(isinstance(x, type) for x in call.inputs["args"]))


def has_gradient(call: OpCall) -> bool:
    """Whether some result of a call may have a gradient."""
    return not all(x.stop_gradient for x in call.writes())


class LinkValues:
    """What a capture knows of the values that pass between the links of a chain.

    likes: tensors on `meta` with the layouts of the values. places: the places in the graph of
    those that have a gradient.
    """

    def __init__(self, recorder: Any):
        self.begun, self.epoch = recorder.begun, recorder.epoch
        self.tensors: dict[Variable, Tensor] = {}
        for tensor, x in recorder.known.values():
            self.tensors.setdefault(x, tensor)
        self.likes: dict[Variable, Tensor] = {}
        self.places: dict[Variable, Any] = {}

    def note(self, x: Variable) -> Tensor | None:
        """Notes a value. Returns its tensor, or None if there is none. Raises: Unplanned."""
        tensor = self.tensors.get(x)
        if tensor is None:
            return None
        if type(tensor) is not Tensor or tensor.is_inference():
            raise Unplanned("what is given to an autograd.Function or a hook is no plain tensor")
        self.set_layout(x, tensor.stride(), tensor.requires_grad)
        if tensor.requires_grad:
            self.places[x] = gradient_place(tensor)
        return tensor

    def set_layout(self, x: Variable, strides: Any, requires_grad: bool = False) -> None:
        """Notes the layout of a value."""
        self.likes[x] = FUNCTIONS["empty_strided"](
            x.shape, strides, dtype=x.dtype, device="meta").requires_grad_(requires_grad)


class Link:
    """Consecutive calls of a chain that are one replay. gives: those of their results that are read
    later."""

    def __init__(self, calls: list[OpCall], gives: list[Variable], flow: LinkValues):
        made = {x for call in calls for x in call.writes()}
        self.calls, self.gives = calls, gives
        self.reads = [x for x in dict.fromkeys(y for call in calls for y in call.reads())
                      if x not in made]
        tensors = [flow.note(x) for x in gives]
        roots = {x: tensor for x, tensor in zip(gives, tensors)
                 if tensor is not None and tensor.requires_grad}
        ends = [flow.places[x][0] for x in self.reads if x in flow.places]
        each = [*roots.values()]
        *savers, _ = savers_above(each, flow.begun, ends)
        self.savers = Savers([*roots], *savers)
        self.ages = ages_of_leaves(each, flow.begun, ends)
        self.roots = set(roots)

    def plan(self, chain: "Chain", flow: LinkValues, layouts: Layouts,
             flags: dict[str, bool]) -> None:
        """Makes the replay. Raises: Unplanned if its results would differ from the call's."""
        lasting = [x for x in self.reads if x.persistable]
        self.given = [x for x in self.reads if not x.persistable]
        given = (chain.block, self.calls, self.given, [flow.likes[x] for x in self.given], lasting,
                 self.gives, flags)
        self.replay: Replay = Replay(*given) if not self.roots else Differentiable(
            *given, savers=self.savers, all_gone=chain.all_gone, ages=self.ages, places=flow.places)
        del self.savers, self.ages           # they keep the graph of the captured call alive
        places = self.replay.machine.places()[:len(self.gives)]
        for x, (_, _, strides) in zip(self.gives, places):
            if strides is not None and x not in flow.likes:
                flow.set_layout(x, strides)
            if strides is None or tuple(strides) != flow.likes[x].stride():
                raise Unplanned("what is given to an autograd.Function or a hook is laid out in "
                                "another way than by a replay")
        if self.roots and self.roots != set(self.replay.roots):   # type: ignore[attr-defined]
            raise Unplanned("what is given to an autograd.Function or a hook requires a gradient "
                            "in another way than a replay would give it")
        layouts.add(self.gives, places, self.replay.fed)

    def run(self, values: Values, retries: bool) -> bool:
        """Adds the results to the values; returns False if the calls have to run eagerly."""
        found = self.replay.run([values[x] for x in self.given], retries)
        if found is not None:
            values.update(zip(self.gives, found))
        return found is not None


class HookCall:
    """The registration of a hook in a chain."""

    outdone = False

    def __init__(self, call: OpCall):
        self.call = call

    def plan(self, chain: "Chain", flow: LinkValues, layouts: Layouts,
             flags: dict[str, bool]) -> None:
        """Does nothing, as there are no results."""

    def run(self, values: Values, retries: bool) -> bool:
        """Registers the hook."""
        run_call(self.call, values)
        return True


class FunctionCall:
    """The call of a Function in a chain."""

    outdone = False

    def __init__(self, call: OpCall, flow: LinkValues):
        self.call, self.args = call, variables_in(call.inputs)
        self.records = has_gradient(call)
        if any(x is None for x in call.outputs):
            raise Unplanned("an autograd.Function returns what it is given")
        made = [tensor for x in call.writes() if (tensor := flow.note(x)) is not None]
        given = [y for x in self.args if (y := flow.tensors.get(x, x.value)) is not None]
        if len(made) < len(call.outputs) or len(given) < len(self.args):
            raise Unplanned("what an autograd.Function is given, or gives, is not known")
        self.places = places_of(made, given)
        if any(root < 0 and not was_made_since(x, flow.epoch)
               for x, (root, _) in zip(made, self.places)):
            raise Unplanned("an autograd.Function returns what was there before the call")

    def plan(self, chain: "Chain", flow: LinkValues, layouts: Layouts,
             flags: dict[str, bool]) -> None:
        """Notes the layouts of its results."""
        self.likes = [flow.likes[x] for x in self.call.writes()]
        layouts.add(self.call.outputs, [(root, offset, x.stride()) for x, (root, offset) in zip(
            self.likes, self.places)], self.args)

    def run(self, values: Values, retries: bool) -> bool:
        """Adds the results to the values; returns False if they are of another kind."""
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
    """For each result the index of the argument whose memory it shares, and the distance in bytes;
    for results with memory of their own a negative number in place of the index."""
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


AnyLink = Link | HookCall | FunctionCall


def is_like(x: Any, like: Tensor) -> bool:
    """Whether two tensors have the same layout, and agree in whether they require a gradient."""
    return type(x) is Tensor and x.shape == like.shape and x.dtype is like.dtype and (
        x.stride() == like.stride() and x.requires_grad == like.requires_grad
        and not x.is_inference())


def links_of(recorder: Any, wanted: Iterable[Variable]) -> tuple[list[AnyLink], LinkValues]:
    """The links of a captured function, in order, and what is known of their values.

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
    flow = LinkValues(recorder)
    links: list[AnyLink] = []
    for part, gives in reversed(pieces):
        if isinstance(part, OpCall):
            links.append(FunctionCall(part, flow) if part.type == "function" else HookCall(part))
        elif part:
            links.append(Link(part, gives, flow))
    flow.tensors.clear()
    return links, flow


class Chain:
    """Replays, Functions and hooks in order, with the interface of a replay.

    all_gone: the nodes of the captured call have released their saved values. Raises: Unplanned.
    """

    def __init__(self, block: Block, calls: list[OpCall], given: list[Variable],
                 layouts: list[Tensor], lasting: list[Variable], wanted: list[Variable],
                 flags: dict[str, bool], *, links: tuple[list[AnyLink], LinkValues],
                 all_gone: bool):
        self.block, self.calls, self.given, self.wanted = block, calls, given, wanted
        self.lasting, self.all_gone = lasting, all_gone
        self.values: list[Any] = [x.value for x in lasting]
        self.fed = [*given, *lasting]
        self.links, flow = links
        self.changing = list(filter(changes, calls))
        flow.likes.update(zip(given, layouts))
        known = Layouts(dict(zip(self.fed, [*layouts, *self.values])))
        for link in self.links:
            link.plan(self, flow, known, flags)
        self.lies = [known.place(x, self.fed) for x in wanted]
        self.machine = self

    versions: list[tuple[int, int]] = []

    def set_versions(self, versions: list[tuple[int, int]]) -> None:
        """Raises: Unplanned if a result was written to: its nodes would have saved it before."""
        if versions:
            raise Unplanned("it returns what it wrote to, beside an autograd.Function or a hook")

    @property
    def outdone(self) -> bool:
        """Whether eager calls cost less."""
        return any(link.replay.outdone for link in self.links if type(link) is Link)

    def places(self) -> list[tuple[int, int, Any]]:
        """As that of a machine."""
        return self.lies

    @property
    def beyond(self) -> list[Any]:
        """As that of a machine, for all links."""
        return [x for link in self.links if type(link) is Link for x in link.replay.machine.beyond]

    def run(self, inputs: Iterable[Tensor], retries: bool = False) -> list[Any] | None:
        """As that of a replay."""
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
    """Whether a captured function becomes a chain.

    links: its links, or why it can't be one, or None if it calls no user code. needed: one of its
    Functions has a gradient after the call, or it registers hooks.
    """

    def __init__(self, links: Any, needed: bool):
        self.links, self.needed = links, needed
        if needed and isinstance(links, Unplanned):
            raise links

    def made(self, ready: Any, block: Block, calls: list[OpCall], given: tuple[Any, ...],
             all_gone: bool) -> Any:
        """The replay that `ready` makes of the calls of a block, or a chain. Raises: Unplanned."""
        if not self.needed:
            try:
                return ready(block, calls, *given)
            except Unplanned:
                if self.links is None or isinstance(self.links, Unplanned):
                    raise
        return Chain(block, list(block.ops), *given, links=self.links, all_gone=all_gone)


def chain_for(recorder: Any, slots: list[Any], linked: bool, own: Any) -> Choice:
    """The choice for a captured function. own: the leaves that it makes. Raises: Unplanned."""
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
