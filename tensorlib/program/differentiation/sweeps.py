"""A backward sweep inside a captured function, which becomes an appended backward part."""

from typing import Any

from tensorlib._core.sweep.sweep import sweep
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.differentiation.gradients import extended
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import OpCall, Variable


def noted_sweep(recorder: Any, roots: tuple[Tensor, ...], grads: tuple[Tensor, ...], *,
                inputs: tuple[Tensor, ...] | None, accumulate_grads: bool, **options: Any) -> Any:
    """The result of a sweep, after its calls, and those that set `.grad`, were appended.

    Raises: CaptureError for a sweep that a program can't represent.
    """
    if options.get("no_grad"):
        raise CaptureError(f"backward: no_grad_set can't be captured, {user_line()}; use "
                           "program.append_backward")
    starts, first = [], []
    for root, g in zip(roots, grads):
        x = recorder.variable_of(root)
        if recorder.knows(g):
            start = recorder.variable_of(g)
        else:
            start = ones_like(recorder, x, g) if g.numel() == 1 and bool(g == 1) else (
                recorder.variable_of(g))
            first += [OpCall("ones_like", {"input": x}, (start,), {}, user_line())] * (
                not start.persistable)
        starts.append((x, start))
    leaves = list(inputs) if inputs is not None else [
        tensor for tensor, _ in recorder.known.values() if tensor.requires_grad and tensor.is_leaf]
    wanted = [recorder.variable_of(leaf) for leaf in leaves]
    before = [leaf.grad for leaf in leaves] if accumulate_grads else []
    result = sweep(roots, grads, inputs=inputs, accumulate_grads=accumulate_grads, no_grad=None,
                   retain_graph=options["retain_graph"], create_graph=options["create_graph"])
    found = extended(recorder.program, starts, wanted, [], [], None, first)
    if not accumulate_grads:
        for g, variable in zip(result, found):
            if g is not None and variable is not None:
                recorder.know(g, variable)
        return result
    for leaf, old, x, variable in zip(leaves, before, wanted, found):
        if leaf.grad is not None and variable is not None and (
                leaf.is_leaf or leaf.retains_grad):
            accumulated(recorder, leaf, old, x, variable)
    return result


def ones_like(recorder: Any, x: Variable, g: Tensor) -> Variable:
    """The gradient that a sweep begins with where none is given."""
    made: Variable = recorder.program.block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
    recorder.know(g, made)
    return made


def accumulated(recorder: Any, leaf: Tensor, old: Tensor | None, x: Variable,
                g: Variable) -> None:
    """Records that a gradient was added to the `.grad` of a leaf."""
    block = recorder.program.block
    if old is not None:
        if recorder.knows(old):
            known = recorder.variable_of(old)
        else:
            known = block.new_variable(f"{x.name}@GRAD@OLD", x.shape, x.dtype)
            recorder.note(OpCall("get_grad", {"param": x}, (known,), {}, user_line()))
        total = block.new_variable(f"{x.name}@GRAD", x.shape, x.dtype)
        recorder.note(OpCall("sum", {"parts": (known, g)}, (total,), {}, user_line()))
        g = total
    recorder.note(OpCall("set_grad", {"param": x, "grad": g}, (), {}, user_line()))
    recorder.know(leaf.grad, g)
