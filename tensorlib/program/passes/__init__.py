"""Passes: functions from calls to calls, which change what a program costs and not what it gives.

Each takes the calls of a block in order, the variables that are wanted, and those that are given,
and returns new calls. What is wanted keeps its bits.
"""

from collections.abc import Iterable

from tensorlib.program.model import OpCall, Variable
from tensorlib.program.passes.dead import without_dead

PASSES = {"dead": without_dead}
# Which passes run. "fusion" joins the steps of a machine (fusion.pyx), not calls.
enabled = {"dead": True, "fusion": True, "reuse": True}


def optimized(calls: Iterable[OpCall], wanted: Iterable[Variable],
              given: Iterable[Variable]) -> list[OpCall]:
    """The calls after every pass that is enabled."""
    found, wanted, given = list(calls), list(wanted), list(given)
    for name, function in PASSES.items():
        if enabled[name]:
            found = function(found, wanted, given)
    return found
