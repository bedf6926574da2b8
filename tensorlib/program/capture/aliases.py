"""Aliasing: the results of a replay share memory, and have layouts, as those of the eager call.

A result that is a view of an argument, or of another result, must be one in each run, since a write
to either changes both. And a result must have the layout of the eager one, since sums in another
order have other bits.
"""

from collections.abc import Callable
from typing import Any

from tensorlib._core.graph.modes import is_inference_mode_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.signatures import place_in_memory
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.ir.model import Block, OpCall, Variable, place_of
from tensorlib.program.passes.facts import sources, with_inputs
from tensorlib.program.run.plan import Unplanned


def make_constants_anew(block: Block, wanted: list[Any]) -> list[Any]:
    """The results of a block, after constants among them became calls that create them in each run,
    since the caller may write to a tensor that it gets."""
    shown = sources(block.ops, [x for x in block.variables.values() if x.fixed])
    exposed = {x for y in wanted if type(y) is Variable for x in shown.get(y, ())}
    anew = {x: block.new_variable(x.name, x.shape, x.dtype, stop_gradient=True)
            for x in list(block.variables.values()) if x in exposed}
    if anew:
        made = [OpCall("clone", {"input": x}, (y,)) for x, y in anew.items()]
        block.ops[:] = [*made, *(with_inputs(call, anew) for call in block.ops)]
    return [anew.get(x, x) if type(x) is Variable else x for x in wanted]


def check_results(slots: list[Any], found: list[Any], replay: Any,
                  tensors: tuple[Tensor, ...]) -> bool:
    """Whether a replay must run in inference mode, since the function made its results in it.

    Raises: Unplanned if the results of a replay would have other layouts, or share memory in
    another way, than those of the call.

    slots: the value of a replay for each leaf of the result, of which `found` are the eager ones.
    tensors: the arguments of the call.
    """
    given = [*tensors, *replay.values]
    eager: dict[Variable, Tensor] = {}
    for x, tensor in zip(slots, found):
        if type(x) is Variable and (eager.setdefault(x, tensor) is not tensor or (
                place_of(x, replay.fed) != place_of(tensor, given))):
            raise Unplanned("what it returns is another tensor than a replay would return")
        if type(x) is Variable and type(tensor) is not Tensor and (
                place_of(x, replay.fed) < 0):
            raise Unplanned(f"what it returns is a {type(tensor).__name__}, and no plain tensor")
    places = dict(zip(replay.wanted, replay.machine.places()))
    outside = [place_in_memory(x) for x in given]
    before: list[tuple[int, int, int, int]] = []
    untracked: list[bool] = []
    for x, tensor in eager.items():
        start, address = place_in_memory(tensor)
        root, offset, strides = places[x]
        if strides is None:
            raise Unplanned("how a gradient of control flow is laid out is known only when it runs")
        if any(a != b for a, b in zip(tensor.stride(), strides)):
            raise Unplanned("what it returns is laid out in another way than by a replay")
        if not tensor.numel():
            continue
        shared = any(begin == start for begin, _ in outside)
        agrees = shared == (root >= 0) and (
            root < 0 or outside[root] == (start, address - offset))
        untracked += [tensor.is_inference()] * (not shared)
        for other_root, other_offset, other_start, other_address in before:
            together = other_root == root
            agrees = agrees and (shared or together == (other_start == start)) and (
                not together or address - other_address == offset - other_offset)
        if not agrees:
            raise Unplanned("what it returns shares memory in another way than a replay would")
        before.append((root, offset, start, address))
    if len(set(untracked)) > 1:
        raise Unplanned("it makes some of its results in inference mode, and others not")
    return any(untracked) and not is_inference_mode_enabled()


def dims_in_memory(x: Tensor) -> list[int] | None:
    """The dims from the outermost inwards, of a tensor without gaps that is not row-major."""
    order = sorted(range(x.ndim), key=lambda d: (-x.stride(d), d))
    expected = 1
    for d in reversed(order):
        if x.shape[d] != 1 and x.stride(d) != expected:
            return None
        expected *= x.shape[d]
    return None if x.is_contiguous() else order


def laid_as(leaf: Variable, g: Variable, block: Block, note: Callable[[OpCall], None]) -> Variable:
    """The gradient of a leaf in the layout of `.grad`, since sums in another order have other bits:
    that of the leaf, if it has no gaps and is not row-major."""
    order = dims_in_memory(leaf.value)
    if order is None:
        return g
    back = sorted(range(len(order)), key=order.__getitem__)
    for name, dims in (("permute", order), ("contiguous", None), ("permute", back)):
        shape = g.shape if dims is None else tuple(g.shape[d] for d in dims)
        y = block.new_variable(f"{leaf.name}@GRAD", shape, g.dtype, stop_gradient=True)
        note(OpCall(name, {"input": g}, (y,), {} if dims is None else {"dims": dims}, user_line()))
        g = y
    return g
