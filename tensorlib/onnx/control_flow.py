"""Control flow in ONNX: `If`, `Loop` and `Scan`, whose subgraphs are a program's blocks."""

from typing import Any

from tensorlib.onnx.errors import unsupported
from tensorlib.onnx.writer import BOOL, INT64, Writer, program_rule
from tensorlib.program.ir.model import Block, OpCall


@program_rule("cond")
def cond(g: Writer, call: OpCall) -> Any:
    """An `If` with a subgraph for each branch."""
    outputs = [x for x in call.outputs if x is not None]
    refuse_stacks(call)
    pred = one_bool(g, g.value(call.inputs["pred"]))
    graphs = [g.inner(name, lambda name=name: (  # type: ignore[misc]
        [], results(g, call.attributes[name], call)))
        for name in ("true_block", "false_block")]
    found = g.node("If", pred, outputs=len(outputs), name="cond", then_branch=graphs[0],
                   else_branch=graphs[1])
    return spread(call, [found] if len(outputs) == 1 else found)


@program_rule("while_loop")
def while_loop(g: Writer, call: OpCall) -> Any:
    """The condition is computed once before the loop, and after each step in it."""
    refuse_stacks(call)
    init = call.inputs["init"]
    going, body = call.attributes["cond_block"], call.attributes["body_block"]
    names = [g.value(x) for x in init]
    before = condition(g, going, names)

    def step() -> tuple[list[Any], list[Any]]:
        inputs = bound(g, body, len(init))
        g.block(body, body.outputs)
        after = [g.own(g.value(x)) for x in body.outputs]
        again = g.own(condition(g, going, after))
        counter, given = g.new_name("step"), g.new_name("going")
        return ([g.info(counter, INT64, ()), g.info(given, BOOL, ()), *inputs],
                [g.info(again, BOOL, ()), *(g.info(name, x.dtype, g.shape(x))
                                            for name, x in zip(after, body.outputs))])

    found = g.node("Loop", "", before, *names, outputs=len(names), name="while_loop",
                   body=g.inner("body", step))
    return [found] if len(names) == 1 else found


@program_rule("scan")
def scan(g: Writer, call: OpCall) -> Any:
    """A `Scan`, whose subgraph is the body."""
    refuse_stacks(call)
    init, xs = call.inputs["init"], call.inputs["xs"]
    body = call.attributes["sub_block"]

    def step() -> tuple[list[Any], list[Any]]:
        inputs = bound(g, body, len(body.inputs))
        return inputs, results(g, body, call, every=True)

    directions = {}
    if call.attributes.get("reverse"):
        directions = {"scan_input_directions": [1] * len(xs),
                      "scan_output_directions": [1] * (len(call.outputs) - len(init))}
    found = g.node("Scan", *(g.value(x) for x in (*init, *xs)), outputs=len(call.outputs),
                   num_scan_inputs=len(xs), name="scan", body=g.inner("body", step), **directions)
    return [found] if len(call.outputs) == 1 else found


@program_rule("sub_block")
def composed(g: Writer, call: OpCall) -> Any:
    """A composed operation, by its parts."""
    block = call.attributes["sub_block"]
    given = [y for x in call.inputs.values() for y in (x if type(x) is tuple else (x,))]
    for x, value in zip(block.inputs, given):
        g.names[x] = g.value(value)
        g.known.pop(x, None)
    g.block(block, block.outputs)
    return [g.value(x) for x in block.outputs]


# ---- parts ---------------------------------------------------------------------------------------

def one_bool(g: Writer, name: str) -> str:
    """A predicate without dims, as ONNX takes it."""
    return str(g.node("Reshape", name, g.constant([], INT64)))


def condition(g: Writer, block: Block, names: list[str]) -> str:
    """The condition of a loop for values of its variables."""
    for x, name in zip(block.inputs, names):
        g.names[x] = name
    g.block(block, block.outputs)
    return one_bool(g, g.value(block.outputs[0]))


def bound(g: Writer, block: Block, count: int) -> list[Any]:
    """The inputs of a graph that stand for those of a block."""
    found = []
    for x in block.inputs[:count]:
        g.names[x] = g.new_name(x.name)
        found.append(g.info(g.names[x], x.dtype, g.shape(x)))
    return found


def results(g: Writer, block: Block, call: OpCall, every: bool = False) -> list[Any]:
    """The outputs of a graph: those of a block that are read."""
    wanted = [x for x, out in zip(block.outputs, call.outputs) if every or out is not None]
    g.block(block, wanted)
    return [g.info(g.own(g.value(x)), x.dtype, g.shape(x)) for x in wanted]


def spread(call: OpCall, names: list[str]) -> list[Any]:
    """Names for the outputs of a call, None for those that are not read."""
    left = iter(names)
    return [None if x is None else next(left) for x in call.outputs]


def refuse_stacks(call: OpCall) -> None:
    """Raises: UnsupportedOperatorError for what a loop keeps for its gradient."""
    if any(x is not None and x.stack for x in call.outputs):
        raise unsupported(call, "keeps values of all steps for a gradient; export the program "
                                "before its backward part is added")
