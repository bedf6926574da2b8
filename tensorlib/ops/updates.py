"""Tracing an optimiser's formula into a fused update: loops that make one pass over memory."""

from tensorlib._core.tiles.update import Update
from tensorlib.ops.formulas import Symbol


class Numbers:
    """Stands for the numbers of a formula: any attribute is the symbol of a number."""

    def __init__(self, steps):
        self._steps = steps

    def __getattr__(self, name):
        return Symbol(self._steps, ("number", name))


def fused_update(name, loop, states, numbers, **how):
    """The `Update` that one loop does, which takes `numbers` in this order."""
    n = len(states) + 2
    return Update(name, states, numbers, (), [0, *[n] * (n - 1)], fused=loop, **how)


def trace_update(name, formula, states, **how):
    """The `Update` of a formula, `formula(numbers, p, g, *states)`, of one element.

    It gives the new parameter and the new states, in this order. It is written for tensors, with
    operators and such methods as have a loop; here it runs once on symbols. `numbers` has as
    attributes the numbers that it asks for; `how` is passed on to the `Update`.
    """
    steps = []
    operands = [Symbol(steps, ("operand", i)) for i in range(len(states) + 2)]
    g, *old, p = operands
    new_p, *new = formula(Numbers(steps), p, g, *old)
    results = [g, *new, new_p]
    if len(results) != len(operands):
        raise ValueError(f"{name}: the formula of {len(states)} states gave {len(new)}")
    seen = set()
    for i, (result, own) in enumerate(zip(results, operands)):
        # each operand that is written has a step of its own which does that
        if result is not own and (result.ref[0] != "step" or result.ref in seen):
            results[i] = result * 1.0
        seen.add(results[i].ref)
    refs = [ref for _, inputs in steps for ref in inputs]
    # names come first, then the constants
    numbers = [*dict.fromkeys(value for kind, value in refs if kind == "number"),
               *dict.fromkeys(value for kind, value in refs if kind == "constant")]
    first = {"operand": 0, "number": len(operands), "constant": len(operands),
             "step": len(operands) + len(numbers)}

    def place(ref):
        kind, value = ref
        return first[kind] + (numbers.index(value) if kind in ("number", "constant") else value)

    numbered = [(loop, tuple(place(ref) for ref in inputs)) for loop, inputs in steps]
    return Update(name, states, numbers, numbered, [place(result.ref) for result in results], **how)
