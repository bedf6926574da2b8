"""Control flow in the interpreter: how calls that have blocks are run."""

from collections.abc import Callable
from typing import Any

from tensorlib._core.base.formats import contiguous_format
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.sweep.graph_reader import begin_epoch, was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.building.blocks import check_predicate
from tensorlib.program.guards.signatures import storage_of
from tensorlib.program.ir.interpreter import value_of
from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.ir.stacks import Stack
from tensorlib.program.passes.facts import CONTROL

Lookup = Callable[[Any], Any]
Run = Callable[[Any], None]


def is_of_gradient(call: OpCall) -> bool:
    """Whether control flow is the gradient of control flow, whose results may have any layout."""
    return "gradient" in call.attributes or "reverse" in call.attributes


def run_control(call: OpCall, values: dict[Variable, Any], run: Run) -> list[Any]:
    """The results of a call with blocks, which `run` runs on the values."""
    def value(x: Any) -> Any:
        return value_of(x, values) if type(x) is Variable else x

    if call.type in CONTROL:
        began = begin_epoch()
        if call.type == "cond":
            results = run_cond(call, value, run)
        else:
            results = (run_while if call.type == "while_loop" else run_scan)(
                call, values, value, run)
        return owned(results, began, packed=not is_of_gradient(call))
    block = call.attributes["sub_block"]
    given = [y for x in call.inputs.values() for y in (x if type(x) is tuple else (x,))]
    values.update(zip(block.inputs, map(value, given)))
    run(block)
    return [value(x) for x in block.outputs]


def owned(results: list[Any], began: int, packed: bool) -> list[Any]:
    """The results of control flow, with copies of tensors from before the epoch, of those that
    share memory, and, if `packed`, of those that are not row-major.

    So the layouts of results do not depend on the branch that a run takes.
    """
    found: list[Any] = []
    seen: set[int] = set()
    for x in results:
        if isinstance(x, Tensor):
            lent = x.numel() and (not was_made_since(x, began) or storage_of(x) in seen)
            if packed and not lies_row_by_row(x):
                x = x.clone(memory_format=contiguous_format)
            elif lent:
                x = x.clone()
            seen.add(storage_of(x))
        found.append(x)
    return found


def lies_row_by_row(x: Tensor) -> bool:
    """Whether a tensor is contiguous, with the strides that a new one of its shape has."""
    expected = 1
    for size, stride in zip(reversed(x.shape), reversed(x.stride())):
        if stride != expected:
            return False
        expected *= max(size, 1)
    return True


def entered(x: Any) -> Any:
    """The value with which a loop's step begins, in place of a loop variable. The gradients of its
    uses in the step are summed separately, as in the backward part of a program."""
    return x.view_as(x) if isinstance(x, Tensor) and x.requires_grad and is_grad_enabled() else x


def truth(name: str, pred: Any) -> bool:
    """A predicate as a bool. Raises: TypeError, RuntimeError unless it is one bool."""
    if not isinstance(pred, Tensor):
        return bool(pred)
    check_predicate(name, pred, "")
    return bool(pred.item())


def run_cond(call: OpCall, value: Lookup, run: Run) -> list[Any]:
    """The results of the block that the predicate selects."""
    taken = truth("cond", value(call.inputs["pred"]))
    block = call.attributes["true_block" if taken else "false_block"]
    run(block)
    return [value(x) for x in block.outputs]


def run_while(call: OpCall, values: dict[Variable, Any], value: Lookup, run: Run) -> list[Any]:
    """The final values of the loop variables, and the stacks that are kept."""
    cond, body = call.attributes["cond_block"], call.attributes["body_block"]
    carried = [value(x) for x in call.inputs["init"]]
    count, first = len(carried), value(call.inputs["init"][0])
    stacks = [Stack() for _ in body.outputs[count:]]
    while True:
        values.update(zip(cond.inputs, carried))
        run(cond)
        if not truth("while_loop", value(cond.outputs[0])):
            if call.attributes.get("must_run") and carried[0] is first:
                raise RuntimeError("while_loop: took no step, and has no gradient")
            return [*carried, *stacks]
        values.update(zip(body.inputs, map(entered, carried)))
        run(body)
        carried = [value(x) for x in body.outputs[:count]]
        for stack, x in zip(stacks, body.outputs[count:]):
            stack.append(value(x))


def run_scan(call: OpCall, values: dict[Variable, Any], value: Lookup, run: Run) -> list[Any]:
    """The last carry, then the results of all steps, stacked or as stacks."""
    body = call.attributes["sub_block"]
    carried = [value(x) for x in call.inputs["init"]]
    sequences = [value(x) for x in call.inputs["xs"]]
    count, kept = len(carried), call.attributes.get("kept", 0)
    steps = len(sequences[0])
    for x, sequence in zip(call.inputs["xs"], sequences):
        if len(sequence) != steps:
            raise RuntimeError(f"scan: {call.inputs['xs'][0].name} has {steps} steps, {x.name} "
                               f"{len(sequence)}")
    stacks = [Stack() for _ in body.outputs[count:]]
    reverse = call.attributes.get("reverse", False)
    for i in reversed(range(steps)) if reverse else range(steps):
        values.update(zip(body.inputs, (*map(entered, carried),
                                        *(sequence[i] for sequence in sequences))))
        run(body)
        carried = [value(x) for x in body.outputs[:count]]
        for stack, x in zip(stacks, body.outputs[count:]):
            stack.append(value(x))
    if reverse:
        stacks = [Stack(reversed(stack)) for stack in stacks]
    shown = len(stacks) - kept
    return [*carried, *(joined(stack, x) for stack, x in zip(stacks[:shown], body.outputs[count:])),
            *stacks[shown:]]


def joined(stack: Stack, x: Variable) -> Tensor:
    """The values of all steps as one tensor."""
    if stack:
        return FUNCTIONS["stack"](tuple(stack))
    return FUNCTIONS["zeros"]((0, *(size or 0 for size in x.shape)), dtype=x.dtype)
