"""Programs made of others: copies, and the part that gives some outputs."""

from collections.abc import Iterable
from typing import Any

from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.program.ir.model import Block, OpCall, Variable
from tensorlib.program.ir.nested import mapped


def copied(program: Any, made: Any) -> dict[Variable, Variable]:
    """Fills the new program `made` with a copy of a program; the copy of each variable.

    Values of persistable variables are shared.
    """
    twins: dict[Variable, Variable] = {}
    blocks: dict[Block, Block] = {program.block: made.block}
    for block in program.blocks[1:]:
        blocks[block] = made.new_block(blocks[block.parent])
    for block, copy in blocks.items():
        copy.forward = blocks.get(block.forward) if block.forward is not None else None
        for x in block.variables.values():
            y = copy.new_variable(
                x.name, x.shape, x.dtype, persistable=x.persistable, trainable=x.trainable,
                stop_gradient=x.stop_gradient, value=x.value)
            y.stack, y.fixed, y.recorded = x.stack, x.fixed, x.recorded
            twins[x] = y

    def twin(x: Variable) -> Variable:
        return twins[x]

    for block, copy in blocks.items():
        copy.inputs = [twins[x] for x in block.inputs]
        copy.outputs = [twins[x] for x in block.outputs]
        for call in block.ops:
            attributes = {name: blocks[x] if type(x) is Block else mapped(x, twin)
                          for name, x in call.attributes.items()}
            outputs = tuple(None if x is None else twins[x] for x in call.outputs)
            copy.ops.append(OpCall(
                call.type, mapped(call.inputs, twin), outputs, attributes, call.line))
    leaves, structure = flatten(program.outputs)
    made.outputs = unflatten(structure, [twins[x] if type(x) is Variable else x for x in leaves])
    made.input_structure = program.input_structure
    made.input_leaves = [twins[x] if type(x) is Variable else x for x in program.input_leaves]
    return twins


def drop_unneeded(program: Any, outputs: Iterable[Variable]) -> None:
    """Takes out of a program the calls that its outputs do not need, and what only they use."""
    needed = set(outputs)
    kept = []
    for call in reversed(program.block.ops):
        if any(x in needed for x in call.writes()):
            drop_results(call, needed)
            needed.update(call.reads())
            kept.append(call)
    program.block.ops = kept[::-1]
    used = {block for block in walked(program.block)}
    for place, block in enumerate(used_in_order := [b for b in program.blocks if b in used]):
        block.index = place
        if block.forward is not None and block.forward not in used:
            block.forward = None
    program.blocks = used_in_order
    for block in program.blocks:
        written = {x for call in block.ops for x in call.writes()} | {*block.inputs}
        block.variables = {name: x for name, x in block.variables.items()
                           if x in written or x.persistable and x in needed}
    written_or_fed = {*program.block.variables.values()}
    program.block.inputs = [x for x in program.block.inputs if x in written_or_fed]


def drop_results(call: OpCall, needed: set[Variable]) -> None:
    """Takes out of a branch the results that nobody needs, out of a loop the stacks, and so in the
    blocks of a call."""
    if call.type in ("cond", "while_loop", "scan"):
        stacks = call.attributes.get("kept", 0)
        first = 0 if call.type == "cond" else len(call.outputs) - stacks
        places = [i for i, x in enumerate(call.outputs) if i < first or x in needed]
        for block in call.blocks():
            if block is not call.attributes.get("cond_block"):
                block.outputs = [block.outputs[i] for i in places]
        call.outputs = tuple(call.outputs[i] for i in places)
        if stacks and len(places) > first:
            call.attributes["kept"] = len(places) - first
        elif stacks:
            del call.attributes["kept"]
    for block in call.blocks():
        inside = {*block.outputs, *needed}
        for inner in reversed(block.ops):
            drop_results(inner, inside)
            inside.update(inner.reads())
        block.ops = [x for x in block.ops if x.type != "placeholder" or x.outputs[0] in inside]


def walked(block: Block) -> list[Block]:
    """A block and all that belong to calls in it."""
    found = [block]
    for call in block.ops:
        for inner in call.blocks():
            found += walked(inner)
    return found
