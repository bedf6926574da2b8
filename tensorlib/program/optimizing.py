"""`optimize`: a program after passes, each of which is verified."""

from collections.abc import Iterable

from tensorlib.autograd.tree import flatten
from tensorlib.program.ir.copies import copied, drop_unused
from tensorlib.program.ir.errors import ProgramError
from tensorlib.program.ir.model import Variable, check_program
from tensorlib.program.passes import PASSES
from tensorlib.program.program import Program, items
from tensorlib.program.verify import verify


def optimize(program: Program, passes: Iterable[str] | None = None) -> Program:
    """A cheaper program with bit-identical results; parameters and constants are shared.

    passes: names of those that run, in the order of `PASSES`; by default all but "recompute".

    - folding: calls on constants become constants (constant folding)
    - simplify: `x * 1`, two transposes, a reshape of a reshape
    - common: equal calls are computed once (common subexpressions)
    - recompute: element-wise results are recomputed for the backward part instead of kept
    - dead: calls that the outputs don't need are removed (dead code)

    The result is verified after each. Raises: ValueError for an unknown pass; TypeError for what is
    not a Program; ProgramError for a program that is not well formed.

    >>> from tensorlib import program
    >>> p = program.trace(lambda x: (x.exp() * 1).neg() + x.exp(), tensorlib.ones(2))
    >>> [call.type for call in program.optimize(p).block.ops]
    ['exp', 'neg', 'add']
    """
    check_program("optimize", program)
    names = [name for name in PASSES if name != "recompute"] if passes is None else items(
        "optimize", "passes", passes)
    for name in names:
        if name not in PASSES:
            raise ValueError(f"optimize: no pass {name!r}; there are {', '.join(PASSES)}")
    made = Program()
    copied(program, made)
    verify(made)
    wanted = [x for x in flatten(made.outputs)[0] if type(x) is Variable]
    for name, function in PASSES.items():
        if name not in names:
            continue
        given = [*made.inputs, *made.persistables()]
        made.block.ops = function(made.block.ops, wanted, given)
        drop_unused(made)
        try:
            verify(made)
        except ProgramError as error:
            raise ProgramError(f"optimize: after {name}: {error}") from None
    return made
