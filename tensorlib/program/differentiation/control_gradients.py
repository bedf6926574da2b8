"""The backward calls of calls that have blocks: branches, loops, and composed operations.

The gradient of a branch is a branch with the same predicate, that of a loop is a `scan` in the
reverse direction, so that both can be differentiated in turn. Forward values that the new blocks
need become additional outputs of the forward blocks; a loop returns a stack with the value of each
step.
"""

from typing import Any

from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib.program.differentiation.backward import Backward, dependents
from tensorlib.program.ir.model import Block, OpCall, Variable, place_of, variables_in
from tensorlib.program.ir.nested import mapped


def visit_control(work: Backward, call: OpCall, grads: list[Variable | None]) -> None:
    """Adds the backward call of a call with blocks. `grads` are those of its outputs."""
    if call.type == "cond":
        visit_branches(work, call, grads, ["true_block", "false_block"])
    elif call.type in ("while_loop", "scan"):
        visit_loop(work, call, grads)
    else:
        visit_branches(work, call, grads, ["sub_block"])


# ---- blocks that run at most once ----------------------------------------------------------------

def visit_branches(work: Backward, call: OpCall, grads: list[Variable | None],
                   names: list[str]) -> None:
    """Adds a call whose blocks compute the gradients of the blocks of `call`, one for each."""
    wanted = list(dict.fromkeys(
        x for x in call.reads() if work.wants(x) and x is not call.inputs.get("pred")))
    backs: dict[str, Block] = {}
    before: dict[Variable, Variable] = {}      # what the calls of a branch add to, one by one
    if call.type == "cond":
        before = {x: g for x in wanted for g in [work.total(x)] if g is not None}
    sure, reached = set(wanted) if work.is_sure else set(), set()
    for name in names:
        block = call.attributes[name]
        bound = dict(zip(block.inputs, argument_list(call)))
        inside = [x for x, given in bound.items() if place_of(given, wanted) >= 0]
        back = new_work(work, block, [*wanted, *inside])
        back.parts.update((x, [g]) for x, g in before.items())
        for x, y, g in zip(block.outputs, call.outputs, grads):
            if g is not None:
                back.is_sure = y in work.sure
                back.add(x, g)
        back.visit(block.ops)
        for x in inside:                          # an argument's gradient is that of what was given
            g = back.total(x)
            if g is not None:
                back.add(bound[x], g)
        reached.update(back.parts)
        back.target.outputs = [back.total_or_zeros(x) for x in wanted]
        backs[name], sure = back.target, sure & back.sure
    outputs = [work.new_gradient(x) for x in wanted]
    for name in names:
        replace_inner(backs[name], call.attributes[name],
                      lambda x, name=name: exported(call, name, x), {})
    inputs = {"pred": call.inputs["pred"]} if "pred" in call.inputs else {}
    type = "cond" if call.type == "cond" else f"{call.type}_gradient"
    attributes = {**backs, "gradient": True} if type == "cond" else dict(backs)
    work.append(OpCall(type, inputs, tuple(outputs), attributes, call.line))
    work.sure |= sure
    for x, g in zip(wanted, outputs):
        if call.type == "cond" and x in reached:
            work.parts[x] = [g]
        elif x in reached:
            work.parts.setdefault(x, []).append(g)


def argument_list(call: OpCall) -> list[Any]:
    """The arguments that a call passes to its one block."""
    if call.type == "cond":
        return []
    return [y for x in call.inputs.values() for y in (x if type(x) is tuple else (x,))]


def new_work(work: Backward, block: Block, wanted: list[Variable]) -> Backward:
    """A `Backward` that adds the gradients of a block to a new block, inside the one where `work`
    adds calls."""
    target = work.program.new_block(work.target, block)
    depends = dependents(block.ops, [*work.depends, *wanted])
    back = Backward(block, target, depends, work.control, work.callbacks)
    back.must_run = work.must_run
    return back


def replace_inner(back: Block, forward: Block, outer: Any, alike: dict[Any, Variable]) -> None:
    """Has a backward block, and those in it, read `outer(x)` in the place of each `x` of the
    forward block. Of which only the shape is read is not kept for it, where there is another
    variable of that shape: `alike` has these from around the block."""
    def change(x: Variable) -> Any:
        return outer(x) if x.block is not None and x.block.is_in(forward) else x

    def change_like(x: Variable) -> Any:
        return change(alike.get(form_of(x), x))

    alike = {**alike, **{form_of(x): x for x in back.inputs}}
    for call in back.ops:
        call.inputs = mapped(call.inputs, change)
        alike.update((form_of(x), x) for x in variables_in(call.inputs))
        call.attributes = {name: mapped(x, change_like if name == "likes" else change)
                           for name, x in call.attributes.items()}
        for block in call.blocks():
            replace_inner(block, forward, outer, alike)
        alike.update((form_of(x), x) for x in call.writes())
    back.outputs = [change(x) for x in back.outputs]


def form_of(x: Variable) -> Any:
    """A key that is equal for variables of the same shape and dtype; unique if the shape is
    unknown."""
    return id(x) if x.stack or None in x.shape else (x.shape, x.dtype.name)


def exported(call: OpCall, name: str, x: Variable) -> Variable:
    """The output of a branching call that has the value of `x`, a variable of one of its blocks.

    If the other branch ran it is zeros, which nobody reads.
    """
    block = call.attributes[name]
    place = place_of(x, block.inputs)
    if place >= 0:
        given: Variable = argument_list(call)[place]
        return given
    place = place_of(x, block.outputs)
    if place >= 0 and call.outputs[place] is not None:
        return call.outputs[place]                   # type: ignore[return-value]
    home = call_block(call)
    outer = home.new_variable(f"{x.name}@OUT", x.shape, x.dtype)
    for other in call.blocks():
        if other is block:
            other.outputs.append(x)
            continue
        zeros = other.new_variable(f"{x.name}@NONE", x.shape, x.dtype)
        other.ops.append(OpCall("placeholder", {}, (zeros,), {"shape": x.shape, "dtype": x.dtype}))
        other.outputs.append(zeros)
    call.outputs = (*call.outputs, outer)
    return outer


def call_block(call: OpCall) -> Block:
    """The block that a call with blocks is in."""
    parent = call.blocks()[0].parent
    assert parent is not None
    return parent


# ---- loops ---------------------------------------------------------------------------------------

class Loop:
    """A `while_loop` or a `scan`, and which of its values have gradients.

    carried, items: the inputs of the body for the loop variables and for the sequences. outside:
    what the body reads from outside of it. depends: the values of the body that gradients go
    through. moving: the loop variables with a gradient, by number, of which `arriving` have one at
    the last step already. items_wanted: the sequences with a gradient, by number.
    """

    def __init__(self, work: Backward, call: OpCall, grads: list[Variable | None]) -> None:
        is_while = call.type == "while_loop"
        body: Block = call.attributes["body_block" if is_while else "sub_block"]
        self.call, self.body, self.grads = call, body, grads
        self.init, self.xs = call.inputs["init"], call.inputs.get("xs", ())
        count = len(self.init)
        self.carried, self.items = body.inputs[:count], body.inputs[count:]
        self.outside = list(dict.fromkeys(x for x in body.reads() if work.wants(x)))
        given = {x for x, source in zip(body.inputs, (*self.init, *self.xs))
                 if source in work.depends}
        self.depends = grown(body, self.carried, given | set(self.outside))
        moving = [i for i in range(count) if self.carried[i] in self.depends]
        self.arriving = arriving_at(body, moving, grads)
        self.moving = sorted(self.arriving)
        if is_while or any(inner.blocks() for inner in body.ops) or (
                (self.xs[0].shape or (0,))[0] or 0) <= count:
            self.arriving = {i for i in self.moving if grads[i] is not None}
        self.items_wanted = sorted(
            (i for i, x in enumerate(self.items) if x in self.depends and work.wants(self.xs[i])),
            key=lambda i: is_stack(self.xs[i]))              # stacks come last


def visit_loop(work: Backward, call: OpCall, grads: list[Variable | None]) -> None:
    """Adds the backward loop of a `while_loop` or a `scan`: a `scan` in the other direction.

    It carries the gradients of the loop variables, which each step replaces, and those of values
    that the loop reads from outside, to which each step adds.
    """
    loop = Loop(work, call, grads)
    start = [*[work.zeros(loop.init[i]) if grads[i] is None else grads[i] for i in loop.moving],
             *[work.total_or_zeros(x) for x in loop.outside]]
    back, reached, sequences = step_back(work, loop)
    read_stacks(call, loop.body, back.target, sequences)
    outputs = [*[work.new_gradient(
        loop.init[i] if type(loop.init[i]) is Variable else loop.carried[i]) for i in loop.moving],
               *[work.new_gradient(x) for x in loop.outside],
               *[work.new_gradient(loop.xs[i]) for i in loop.items_wanted]]
    kept = sum(is_stack(loop.xs[i]) for i in loop.items_wanted)
    work.append(OpCall("scan", {"init": tuple(start), "xs": tuple(sequences)}, tuple(outputs), {
        "sub_block": back.target, "reverse": not call.attributes.get("reverse", False),
        "kept": kept}, call.line))
    add_results(work, loop, back, reached, outputs)


def step_back(work: Backward, loop: Loop) -> tuple[Backward, set[Variable], list[Variable]]:
    """The backward part of one step; what it has gradients of; the sequences that it reads."""
    body = loop.body
    back = new_work(work, body, [*loop.depends])
    target = back.target
    for i in loop.moving:
        x = loop.carried[i]
        back.is_sure = i in loop.arriving
        back.add(body.outputs[i], bound_input(target, f"{x.name}@GRAD", x))
    back.is_sure = True
    sums = {x: bound_input(target, f"{x.name}@GRAD", x) for x in loop.outside}
    back.parts.update((x, [g]) for x, g in sums.items())
    sequences: list[Variable] = []
    for y, grad in [*zip(body.outputs, loop.grads)][len(loop.init):]:
        if grad is not None and has_gradients(y.dtype):
            back.add(y, bound_input(target, f"{y.name}@GRAD", y))
            sequences.append(grad)
    back.depends.update(body.outputs[i] for i in loop.moving)
    back.visit(body.ops)
    reached = {x for x, g in back.parts.items() if g[0] is not sums.get(x) or len(g) > 1}
    target.outputs = [back.total_or_zeros(x) for x in (
        *(loop.carried[i] for i in loop.moving), *loop.outside,
        *(loop.items[i] for i in loop.items_wanted))]
    return back, reached, sequences


def add_results(work: Backward, loop: Loop, back: Backward, reached: set[Variable],
                outputs: list[Variable]) -> None:
    """Adds the results of the backward loop to the gradients of what the loop was given."""
    moving, arriving, n, m = loop.moving, loop.arriving, len(loop.moving), len(loop.outside)
    if loop.call.type == "while_loop" and (
            len(arriving) < n or not work.sure.issuperset(loop.outside)):
        work.must_run.append(loop.call)
    sure = back.sure if work.is_sure else set()
    work.sure |= sure.intersection(loop.outside)
    for x, g in zip(loop.outside, outputs[n:n + m]):
        if x in reached:
            work.parts[x] = [g]
    for i, g in reversed([*zip(moving, outputs[:n])]):     # in the order of an eager sweep
        work.is_sure = loop.carried[i] in sure and back.sure.issuperset(
            loop.carried[k] for k in arriving)
        work.add(loop.init[i], g)
    for i, g in zip(loop.items_wanted, outputs[n + m:]):
        work.is_sure = loop.items[i] in sure
        g.stack = loop.xs[i].stack
        if loop.items[i] in reached:
            work.add(loop.xs[i], g)


def read_stacks(call: OpCall, body: Block, back: Block, sequences: list[Variable]) -> None:
    """Makes a step of the backward loop read the values of the same step of the forward loop.

    The forward loop returns stacks of these values, which are added to the `sequences` that the
    backward loop iterates over.
    """
    inputs: dict[Variable, Variable] = {}

    def at_step(x: Variable) -> Variable:
        if x not in inputs:
            inputs[x] = bound_input(back, f"{x.name}@STEP", x)
            sequences.append(stack_of(call, body, x))
        return inputs[x]

    replace_inner(back, body, at_step, {})
    if not sequences:                                # the number of its steps
        step = body.new_variable("step", (), BY_NAME["bool"], stop_gradient=True)
        body.ops.append(OpCall("placeholder", {}, (step,), {"shape": (), "dtype": step.dtype}))
        at_step(step)


def arriving_at(body: Block, moving: list[int], grads: list[Variable | None]) -> set[int]:
    """The loop variables that may have a gradient, maybe from a later step."""
    found = {i for i in moving if grads[i] is not None}
    outputs = {y for y, g in zip(body.outputs, grads) if g is not None}
    for _ in moving:
        for i in moving:
            if not outputs.isdisjoint(dependents(body.ops, [body.inputs[i]])):
                found.add(i)
                outputs.add(body.outputs[i])
    return found


def grown(body: Block, carried: list[Variable], depends: set[Variable]) -> set[Variable]:
    """The variables of a loop's body that depend on the given ones, also through earlier steps."""
    while True:
        found = dependents(body.ops, depends)
        more = {x for x, y in zip(carried, body.outputs) if y in found and x not in found}
        if not more:
            return found
        depends = found | more


def bound_input(target: Block, name: str, like: Variable) -> Variable:
    """A further input of a block."""
    x = target.new_variable(name, like.shape, like.dtype)
    x.stack = like.stack
    target.inputs.append(x)
    return x


def is_stack(x: Any) -> bool:
    """Whether this variable holds the values of all steps of a loop."""
    return type(x) is Variable and x.stack


def stack_of(call: OpCall, body: Block, x: Variable) -> Variable:
    """The output of a loop that is a stack with each step's value of `x`."""
    kept = call.attributes.get("kept", 0)
    for i in range(len(body.outputs) - kept, len(body.outputs)):
        if body.outputs[i] is x:
            return call.outputs[i]                   # type: ignore[return-value]
    place = place_of(x, body.inputs[len(call.inputs["init"]):])
    if place >= 0:
        sequence: Variable = call.inputs["xs"][place]
        return sequence
    stack = call_block(call).new_variable(f"{x.name}@STACK", (None, *x.shape), x.dtype)
    stack.stack = True
    body.outputs.append(x)
    call.outputs = (*call.outputs, stack)
    call.attributes["kept"] = kept + 1
    return stack
