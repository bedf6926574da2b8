"""Calls with blocks: each function of control flow is traced once, on variables, into a block."""

from collections.abc import Callable
from typing import Any

from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.op import Op
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import Structure, flatten, unflatten
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.building.builder import Builder
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Block, OpCall, Variable, agree, typed


class BranchMismatch(TypeError, ValueError, RuntimeError):
    """The results of two functions, or of two steps, differ in nesting, shapes or dtypes."""

    __module__ = "tensorlib.program"


def cond_call(home: Builder, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
              operands: tuple[Any, ...]) -> Any:
    """The variables of a branch's results."""
    check_predicate("cond", pred, user_line())
    given = home.value(pred)
    operands = variables_of(home, operands)
    true_block, found, structure = block_of(home, true_fn, operands)
    false_block, others, other_structure = block_of(home, false_fn, operands)
    if structure != other_structure:
        raise BranchMismatch(f"cond: true_fn returns {structure}, but false_fn {other_structure}")
    check_pairs("cond", "true_fn returns", found, "false_fn", others)
    outputs = tuple(new_output(home, "cond", x, y) for x, y in zip(found, others))
    home.block.ops.append(OpCall("cond", {"pred": given}, outputs, {
        "true_block": true_block, "false_block": false_block}, user_line()))
    return unflatten(structure, list(outputs))


def while_call(home: Builder, cond_fn: Callable[..., Any], body_fn: Callable[..., Any],
               loop_vars: tuple[Any, ...]) -> Any:
    """The variables of the final values of the loop variables."""
    loop_vars = variables_of(home, loop_vars)
    leaves, structure = flatten(loop_vars)
    cond_block, (going, *_), _ = block_of(home, cond_fn, loop_vars, bound=True)
    check_predicate("while_loop", going, user_line())
    body_block, found, made = block_of(home, body_fn, loop_vars, bound=True)
    if made != structure and made != Structure(tuple, (), (structure,)) and not (
            len(loop_vars) == 1 and Structure(tuple, (), (made,)) == structure):
        raise BranchMismatch(f"while_loop: loop_vars are {structure}, but the body returns {made}")
    check_pairs("while_loop", "loop_vars has", leaves, "the body returns", found)
    outputs = tuple(new_output(home, "while_loop", x, x) for x in leaves)
    home.block.ops.append(OpCall("while_loop", {"init": tuple(leaves)}, outputs, {
        "cond_block": cond_block, "body_block": body_block}, user_line()))
    return unflatten(structure, list(outputs))


def scan_call(home: Builder, f: Callable[..., Any], init: Any, xs: Any) -> Any:
    """The variables of the last carry and of the stacked ys."""
    init, xs = variables_of(home, init), variables_of(home, xs)
    carried, structure = flatten(init)
    sequences, xs_structure = flatten(xs)
    block = home.program.new_block(home.block)
    inner = [bound_variable(block, x.name, x.shape, x) for x in carried]
    items = [bound_variable(block, x.name, x.shape[1:], x) for x in sequences]
    with Builder(block, home) as inside:
        made = f(unflatten(structure, list(inner)), unflatten(xs_structure, list(items)))
        if not isinstance(made, tuple) or len(made) != 2:
            raise BranchMismatch(f"scan: f must return (carry, y), got {flatten(made)[1]}")
        last, ys = (variables_of(inside, part) for part in made)
    found, made_structure = flatten(last)
    if made_structure != structure:
        raise BranchMismatch(f"scan: init is {structure}, but the carry that f returned "
                             f"{made_structure}")
    check_pairs("scan", "init has", carried, "the carry that f returned", found)
    each, ys_structure = flatten(ys)
    block.outputs = [*found, *each]
    steps = sequences[0].shape[0]
    outputs = [new_output(home, "scan", x, x) for x in carried]
    stacks = [home.block.new_variable(x.name, (steps, *x.shape), x.dtype) for x in each]
    home.block.ops.append(OpCall(
        "scan", {"init": tuple(carried), "xs": tuple(sequences)}, (*outputs, *stacks),
        {"sub_block": block}, user_line()))
    return unflatten(structure, list(outputs)), unflatten(ys_structure, list(stacks))


def composed_call(home: Builder, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The variables of a composed operation's results: its call has a block with its parts."""
    given = {**dict(zip((*op.arguments, *op.attributes), args)), **kwargs}
    if op.variadic:
        given = {op.arguments[0]: args, **kwargs}
    tensors = {key: variables_of(home, x) for key, x in given.items() if key in op.arguments}
    rest = {key: x for key, x in given.items() if key not in op.arguments}
    leaves, structure = flatten(tensors)
    block = home.program.new_block(home.block)
    bound = unflatten(structure, [bound_variable(block, x.name, x.shape, x) for x in leaves])
    with Builder(block, home) as inside:
        parts = [y for x in bound.values() for y in (x if op.variadic else (x,))]
        found, structure = flatten(variables_of(inside, op.forward(*parts, **rest)))
    block.outputs = list(found)
    outputs = tuple(new_output(home, op.name.rpartition(".")[2], x, x) for x in found)
    home.block.ops.append(OpCall(op.name, tensors, outputs, {"sub_block": block}, user_line()))
    return unflatten(structure, list(outputs))


# ---- blocks --------------------------------------------------------------------------------------

def block_of(home: Builder, function: Callable[..., Any], given: tuple[Any, ...],
             bound: bool = False) -> tuple[Block, list[Variable], Structure]:
    """The block of a function's calls, its results as a flat list, and their nesting.

    bound: the function runs on the block's own inputs, which the call sets.
    """
    block = home.program.new_block(home.block)
    if bound:
        leaves, structure = flatten(given)
        block_inputs = [bound_variable(block, x.name, x.shape, x) for x in leaves]
        given = unflatten(structure, list(block_inputs))
    with Builder(block, home) as inside:
        found, structure = flatten(variables_of(inside, function(*given)))
    block.outputs = list(found)
    return block, found, structure


def variables_of(home: Builder, container: Any) -> Any:
    """A container with its tensors and numbers replaced by variables."""
    leaves, structure = flatten(container)
    return unflatten(structure, [home.value(
        x if isinstance(x, Tensor) else FUNCTIONS["tensor"](x)) for x in leaves])


def bound_variable(block: Block, name: str, shape: tuple[int | None, ...],
                   like: Variable) -> Variable:
    """A new input of a block."""
    x = block.new_variable(name, shape, like.dtype)
    x.recorded = is_grad_enabled()           # in a later step its value may have a gradient
    block.inputs.append(x)
    return x


def new_output(home: Builder, stem: str, x: Variable, y: Variable) -> Variable:
    """A variable for the value of one of two variables; sizes in which they differ are unknown."""
    shape = tuple(a if a == b else None for a, b in zip(x.shape, y.shape))
    made = home.block.new_variable(stem, shape, x.dtype)
    made.recorded = x.recorded or y.recorded
    return made


# ---- checks --------------------------------------------------------------------------------------

def check_predicate(name: str, pred: Any, line: str) -> None:
    """Raises: TypeError, RuntimeError unless a predicate is one bool."""
    at = f", {line}" if line else ""
    if pred.dtype.name != "bool":
        raise TypeError(f"{name}: the predicate must be a bool, got {pred.dtype}{at}")
    if any(size not in (1, None) for size in pred.shape):
        raise RuntimeError(f"{name}: the predicate must be one bool, got shape "
                           f"{tuple(pred.shape)}{at}")


def check_pairs(name: str, what: str, found: list[Any], other: str, others: list[Any]) -> None:
    """Raises: BranchMismatch for different shapes or dtypes. Unknown sizes match any."""
    for x, y in zip(found, others):
        if x.dtype != y.dtype or not agree(x.shape, y.shape):
            raise BranchMismatch(f"{name}: {what} {typed_like(x)}, but {other} {typed_like(y)}, "
                                 f"{user_line()}")


def check_alike(name: str, what: str, before: Any, other: str, after: Any) -> None:
    """Raises: BranchMismatch if the loop variables change their nesting, shapes or dtypes."""
    leaves, structure = flatten(before)
    found, made = flatten(after)
    if structure != made:
        raise BranchMismatch(f"{name}: {what} is {structure}, but {other} {made}")
    check_pairs(name, f"{what} has", leaves, f"{other} has", found)


def typed_like(x: Any) -> str:
    """The dtype and shape of a tensor or variable, as text."""
    return typed(x) if type(x) is Variable else f"{x.dtype.name}{list(x.shape)}"
