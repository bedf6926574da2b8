"""Computing again what is cheap: element-wise results that the backward part would keep.

A result that is read soon and then, much later, once more, is computed a second time there, if all
that it is computed of is kept until then anyway. So `gelu(x)` is not kept beside `x`.
"""

from collections.abc import Iterable, Iterator

from tensorlib.program.model import OpCall, Variable, variables_in
from tensorlib.program.passes.facts import (
    is_elementwise, is_pure, lasting, may_write, pinned, with_inputs, writes_its_own,
)

FAR = 6              # calls between two readers from which on a value is computed again
LARGE = 1024         # elements of a value that is worth it


def recomputed(calls: Iterable[OpCall], wanted: Iterable[Variable],
               given: Iterable[Variable]) -> list[OpCall]:
    """The calls, with some element-wise ones twice, so that less is kept for the backward part."""
    found, given = list(calls), list(given)
    if writes_its_own(found, given):
        return found
    stay, last = pinned(found, wanted), lasting(found, given)
    writes = [i for i, call in enumerate(found) if may_write(call)]
    readers: dict[Variable, list[int]] = {}
    for i, call in enumerate(found):
        for x in dict.fromkeys(values_read(call)):
            readers.setdefault(x, []).append(i)
    again: dict[int, list[OpCall]] = {}
    later: dict[int, dict[Variable, Variable]] = {}
    replaced: set[Variable] = set()
    for i, call in enumerate(found):
        y = call.outputs[0] if call.outputs else None
        if y is None or y in stay or not is_elementwise(call) or not is_pure(call):
            continue
        far = far_reader(y, i, readers)
        if far is None or not is_large(y):
            continue
        kept = all(x in last and not any(i < w <= far for w in writes)
                   or x not in last and x not in replaced and readers.get(x, [i])[-1] >= far
                   for x in call.reads())
        if kept:
            assert y.block is not None
            copy = y.block.new_variable(f"{y.name}@AGAIN", y.shape, y.dtype,
                                        stop_gradient=y.stop_gradient)
            later.setdefault(far, {})[y] = copy
            replaced.add(y)
            again.setdefault(far, []).append(
                OpCall(call.type, call.inputs, (copy,), call.attributes, call.line))
    result = []
    present: dict[Variable, Variable] = {}
    for i, call in enumerate(found):
        result += again.get(i, [])
        present.update(later.get(i, {}))
        result.append(with_inputs(call, present))
    return result


def values_read(call: OpCall) -> Iterator[Variable]:
    """The variables of which a call needs the values, not the shapes alone."""
    if "likes" not in call.attributes:
        return call.reads()
    return variables_in((call.inputs, {
        name: x for name, x in call.attributes.items() if name != "likes"}))


def far_reader(y: Variable, i: int, readers: dict[Variable, list[int]]) -> int | None:
    """The first reader of a value after a long time in which nobody reads it."""
    places = [i, *readers.get(y, [])]
    for before, place in zip(places[1:], places[2:]):
        if place - before > FAR:
            return place
    return None


def is_large(x: Variable) -> bool:
    """Whether a variable has enough elements, as far as is known."""
    count = 1
    for size in x.shape:
        count *= size or 1
    return count >= LARGE
