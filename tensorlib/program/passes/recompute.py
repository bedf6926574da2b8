"""Rematerialisation: element-wise results are recomputed, and not kept for the backward part.

A result that is read soon, and much later once more, is computed a second time there, if its
operands are available then or can be recomputed as well. So only `x` is kept for `gelu(x)`, and for
ten lines of arithmetic on `x`, too.
"""

from collections.abc import Iterable

from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.facts import (
    is_elementwise, is_pure, lasting, may_write, pinned, values_read, with_inputs, writes_its_own,
)

FAR = 6              # calls between two reads from which on a value is recomputed
LARGE = 1024         # elements from which on a value is worth it
MOST = 16            # values that may be recomputed for one


def recomputed(calls: Iterable[OpCall], wanted: Iterable[Variable],
               given: Iterable[Variable]) -> list[OpCall]:
    """The calls, with some element-wise ones done twice, so that fewer values are kept."""
    return recomputed_parts((), calls, wanted, given)[1]


def recomputed_parts(forward: Iterable[OpCall], backward: Iterable[OpCall],
                     wanted: Iterable[Variable],
                     given: Iterable[Variable]) -> tuple[list[OpCall], list[OpCall],
                                                         dict[Variable, Variable]]:
    """`recomputed` for two consecutive lists of calls; and the recomputed variables, each with its
    second variable."""
    first, given = list(forward), list(given)
    found = [*first, *backward]
    if writes_its_own(found, given):
        return first, found[len(first):], {}
    again = Again(found, pinned(found, wanted), lasting(found, given))
    for y in again.makers:
        if is_large(y):
            again.consider(y)
    return (again.rewritten(0, len(first)), again.rewritten(len(first), len(found)),
            again.copies)


class Again:
    """The values that are recomputed, and before which calls."""

    def __init__(self, calls: list[OpCall], stay: set[Variable], last: set[Variable]):
        self.calls, self.lasting = calls, last
        self.writes = [i for i, call in enumerate(calls) if may_write(call)]
        self.readers: dict[Variable, list[int]] = {}
        self.makers: dict[Variable, int] = {}       # the calls that can be repeated
        for i, call in enumerate(calls):
            for x in dict.fromkeys(values_read(call)):
                self.readers.setdefault(x, []).append(i)
            if is_elementwise(call) and is_pure(call) and call.outputs[0] not in stay:
                self.makers[call.outputs[0]] = i
        self.places: dict[Variable, int] = {}       # where values are recomputed
        self.at: dict[int, dict[Variable, None]] = {}       # those before each call, in order
        self.copies: dict[Variable, Variable] = {}

    def consider(self, y: Variable) -> None:
        """Recomputes a value, if it is read long after it was made and can be recomputed there."""
        far = self.far_reader(y)
        if far is None:
            return
        needed = self.needed(y, far)
        if needed is None or len(needed) > MOST:
            return
        for x in needed:
            if x in self.places:                    # there later so far
                del self.at[self.places[x]][x]
            self.places[x] = far
            self.at.setdefault(far, {})[x] = None

    def far_reader(self, y: Variable) -> int | None:
        """The first call that reads a value after a long time without a read."""
        places = self.readers.get(y, [])
        for before, place in zip(places, places[1:]):
            if place - before > FAR:
                return place
        return None

    def needed(self, y: Variable, far: int) -> dict[Variable, None] | None:
        """What must be recomputed, in order, for `y` to be available at a call; None if it can't
        be.
        """
        found: dict[Variable, None] = {}

        def visit(x: Variable, top: bool) -> bool:
            if x in found or not top and self.is_at_hand(x, far):
                return True
            if x not in self.makers or len(found) > MOST:
                return False
            if not all(visit(u, False) for u in self.calls[self.makers[x]].reads()):
                return False
            found[x] = None
            return True

        return found if visit(y, True) else None

    def is_at_hand(self, x: Variable, far: int) -> bool:
        """Whether a value still exists at a call, unchanged since its first read."""
        readers, place = self.readers[x], self.places.get(x, len(self.calls))
        if place <= far:
            return True
        if x in self.lasting:
            return not any(readers[0] < w <= far for w in self.writes)
        return any(far <= reader < place for reader in readers)

    def rewritten(self, begin: int, end: int) -> list[OpCall]:
        """The calls [begin, end), with the repeated ones inserted, whose results later calls read.
        Ranges must be asked for in order."""
        result = []
        for i in range(begin, end):
            for y in self.at.get(i, ()):
                made = with_inputs(self.calls[self.makers[y]], self.copies)
                assert y.block is not None
                copy = self.copies[y] = y.block.new_variable(
                    f"{y.name}@AGAIN", y.shape, y.dtype, stop_gradient=y.stop_gradient)
                result.append(OpCall(made.type, made.inputs, (copy,), made.attributes, made.line))
            result.append(with_inputs(self.calls[i], self.copies))
        return result


def is_large(x: Variable) -> bool:
    """Whether a variable has enough elements, as far as is known."""
    count = 1
    for size in x.shape:
        count *= size or 1
    return count >= LARGE
