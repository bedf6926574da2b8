"""Constant folding: a result that depends on constants alone is computed once, and becomes a
constant.

A constant is made of numbers by the program itself (`Variable.fixed`). Buffers, and tensors that
the program writes to, are not constant, as they may change from run to run.
"""

from collections.abc import Iterable
from typing import Any

from tensorlib.autograd.modes import no_grad
from tensorlib.program.ir.interpreter import run_call
from tensorlib.program.ir.model import OpCall, Variable, variables_in
from tensorlib.program.passes.facts import is_pure, may_write, pinned, with_inputs

FEW = 4096         # elements: a result that is larger than this and than its operands is not folded


def folded(calls: Iterable[OpCall], wanted: Iterable[Variable],
           given: Iterable[Variable]) -> list[OpCall]:
    """The calls without those on constants alone, whose results became constants."""
    found = list(calls)
    stay = pinned(found, wanted)
    written = {x for call in found if may_write(call)
               for x in variables_in((call.inputs, call.attributes))}
    replaced: dict[Variable, Variable] = {}
    kept = []
    for call in found:
        call = with_inputs(call, replaced)
        reads, writes = list(call.reads()), list(call.writes())
        if not reads or not is_pure(call) or any(x in stay or x in written for x in writes) or (
                not all(x.fixed and x.value is not None and x not in written for x in reads)):
            kept.append(call)
            continue
        values: dict[Variable, Any] = {x: x.value for x in reads}
        with no_grad():
            run_call(call, values)
        most = max(FEW, *(x.value.numel() for x in reads if x.value is not None))
        if any(values[x].numel() > most or not values[x].is_contiguous() for x in writes):
            kept.append(call)
            continue
        for x in writes:
            assert x.block is not None
            # a view keeps the memory of its base, which may be larger
            replaced[x] = x.block.new_persistable(
                "constant", values[x].detach().clone(), "constant")
            replaced[x].fixed = True
    return kept
