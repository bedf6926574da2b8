"""Passes: functions from calls to calls, which change what a program costs and not what it gives.

Each takes the calls of a block in order, the variables that are wanted, and the inputs, and returns
new calls. Wanted values keep their bits. `program.optimize` runs them on a program and
verifies it after each; `compile` runs those that are `enabled`.
"""

from collections.abc import Iterable

from tensorlib.program.ir.model import OpCall, Variable
from tensorlib.program.passes.common_subexpressions import without_common
from tensorlib.program.passes.constant_folding import folded
from tensorlib.program.passes.dead_code import without_dead
from tensorlib.program.passes.recompute import recomputed
from tensorlib.program.passes.simplify import simplified

# In the order in which they run.
PASSES = {"folding": folded, "simplify": simplified, "common": without_common,
          "recompute": recomputed, "dead": without_dead}
# Which passes run before a replay. "fusion" and "reuse" are of the steps of a machine, not of calls
# (fusion.pyx, arena.pyx). Folding assumes that constants never change, but user code that has such
# a tensor may write to it; "recompute" trades time for memory. Both are off.
enabled = {"folding": False, "simplify": True, "common": True, "recompute": False, "dead": True,
           "fusion": True, "reuse": True}


def optimized(calls: Iterable[OpCall], wanted: Iterable[Variable], given: Iterable[Variable],
              flags: dict[str, bool] | None = None) -> list[OpCall]:
    """The calls after all passes that are enabled, by `flags` or else globally."""
    found, wanted, given = list(calls), list(wanted), list(given)
    flags = enabled if flags is None else flags
    for name, function in PASSES.items():
        if flags[name]:
            found = function(found, wanted, given)
    return found
