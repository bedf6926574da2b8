"""Programs made from others: copies, and the part that computes some outputs."""

from collections.abc import Iterable
from typing import Any

from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.program.ir.model import Block, OpCall, Variable, inner_calls, variables_in
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
    """Removes the calls that a program's outputs do not need, and what only they use."""
    needed = set(outputs)
    kept = []
    for call in reversed(program.block.ops):
        if any(x in needed for x in call.writes()):
            drop_results(call, needed)
            needed.update(call.reads())
            kept.append(call)
    program.block.ops = kept[::-1]
    drop_unused(program)


def drop_unused(program: Any) -> None:
    """Removes the blocks and variables that no call uses any more."""
    calls = list(inner_calls(program.block))
    blocks = {program.block, *(block for call in calls for block in call.blocks())}
    used = {*program.inputs, *(x for x in flatten(program.outputs)[0] if type(x) is Variable)}
    for call in calls:
        used.update(variables_in((call.inputs, call.attributes)))
        used.update(call.writes())
    program.blocks = [block for block in program.blocks if block in blocks]
    for place, block in enumerate(program.blocks):
        block.index = place
        if block.forward not in blocks:
            block.forward = None
        used.update((*block.inputs, *block.outputs))
    for block in program.blocks:
        block.variables = {name: x for name, x in block.variables.items() if x in used}


def drop_results(call: OpCall, needed: set[Variable]) -> None:
    """Removes unneeded results of a branch, and unneeded stacks of a loop, from a call and its
    blocks."""
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
