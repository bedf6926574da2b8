"""The verifier: whether a program is well formed, before it runs."""

from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten
from tensorlib.ops.value_checks import CHECKS
from tensorlib.program.building.builder import inferred, is_several, needs_elements
from tensorlib.program.ir.call_types import UnknownType, form_of_call, registered
from tensorlib.program.ir.errors import ProgramError
from tensorlib.program.ir.model import (
    Block,
    OpCall,
    Variable,
    agree,
    check_program,
    typed,
    variables_in,
)


def verify(program: Any) -> None:
    """Checks a program: each variable is defined before it is read, in its block or an enclosing
    one, and written once except in place; operations exist and accept their arguments; shapes and
    dtypes are those of the operations' results.

    Raises: ProgramError that names the call, the variable and the line; TypeError for no Program.
    """
    check_program("verify", program)
    Verifier(program).run()


class Verifier:
    """Visits the calls of a program in the order in which it would run."""

    def __init__(self, program: Any):
        self.program = program
        self.defined: set[Variable] = set()
        self.visited: set[int] = set()

    def run(self) -> None:
        """Raises: ProgramError for the first fault."""
        names: set[str] = set()
        for block in self.program.blocks:
            for name, x in block.variables.items():
                if name != x.name or x.block is not block or name in names:
                    raise ProgramError(f"verify: {x.name} is not in the block that it says it is "
                                       "in, or shares its name")
                names.add(name)
        for x in self.program.persistables():
            self.check_value(x)
            self.defined.add(x)
        self.defined.update(self.program.inputs)
        self.block(self.program.block)
        for x in flatten(self.program.outputs)[0]:
            if type(x) is Variable and x not in self.defined:
                raise ProgramError(f"verify: the output {x.name} is not defined")

    def check_value(self, x: Variable) -> None:
        """Raises: ProgramError for a value that does not match its variable."""
        if not (x.value is None or isinstance(x.value, Tensor)):
            raise ProgramError(f"verify: the value of {x.name} is a {type(x.value).__name__}, and "
                               "no Tensor")
        if x.value is not None and (tuple(x.value.shape) != x.shape or x.value.dtype != x.dtype):
            raise ProgramError(f"verify: {x.name} is {typed(x)}, but its value is "
                               f"{x.value.dtype.name}{list(x.value.shape)}")

    def block(self, block: Block) -> None:
        """Checks the calls of a block, whose variables are undefined after it."""
        if block.index in self.visited:
            raise ProgramError(f"verify: block {block.index} belongs to several calls")
        self.visited.add(block.index)
        before = set(self.defined)
        self.defined.update(block.inputs)
        for call in block.ops:
            self.call(block, call)
        for x in block.outputs:
            if x not in self.defined:
                raise ProgramError(f"verify: block {block.index} gives {x.name}, which is not "
                                   "defined in it")
        if block.parent is not None:
            self.defined = before

    def call(self, block: Block, call: OpCall) -> None:
        """Checks one call."""
        for x in variables_in((call.inputs, call.attributes)):
            if x not in self.defined:
                raise self.error(call, f"reads {x.name}, which is not defined before it in its "
                                       "block or one around it")
        for inner in call.blocks():
            if inner.parent is not block:
                raise self.error(call, f"has block {inner.index}, which lies elsewhere")
        if call.blocks() or call.type in ("cond", "while_loop", "scan"):
            self.control(call)
        else:
            self.operation(call)
        for x in call.writes():
            if call.in_place:
                if x is not next(iter(call.inputs.values()), None):
                    raise self.error(call, f"writes in place, but {x.name} is not its first input")
            elif x in self.defined or x.block is not block:
                raise self.error(call, f"writes {x.name}, which is written elsewhere too or "
                                       "belongs to another block")
            self.defined.add(x)

    def operation(self, call: OpCall) -> None:
        """Checks the arguments and the results of an operation."""
        try:
            form = form_of_call(call)
        except UnknownType as error:
            raise self.error(call, str(error).removeprefix("program: ")) from None
        for name in call.inputs:
            if name not in form.arguments:
                raise self.error(call, f"has no argument {name!r}; it takes "
                                       f"{', '.join(form.arguments) or 'none'}")
        for name in call.attributes:
            if name not in form.attributes:
                raise self.error(call, f"has no attribute {name!r}; it has "
                                       f"{', '.join(form.attributes) or 'none'}")
        if call.type == "check":
            name = call.attributes.get("name")
            self.require(call, type(name) is str and name in CHECKS, f"knows no check {name!r}")
        if call.in_place or form.run is None or is_untried(call.type) or any(
                x.stack for x in (*call.reads(), *call.writes())):
            return
        if not form.arguments and "device" in form.attributes:      # so that nothing is allocated
            call = OpCall(call.type, {}, call.outputs, {**call.attributes, "device": "meta"},
                          call.line)
        try:
            found = inferred(call, by_example=False)
        except Exception as error:
            if needs_elements(error) or any(None in x.shape for x in call.reads()):
                return                       # those that are tried need not fit after a mask
            raise self.error(call, f"is refused: {error}") from None
        self.results(call, found if is_several(found) else [found])

    def results(self, call: OpCall, found: list[Any]) -> None:
        """Raises: ProgramError if the results of an operation differ from those of its call."""
        if len(found) != len(call.outputs):
            raise self.error(call, f"gives {len(found)} results, not {len(call.outputs)}")
        for x, result in zip(call.outputs, found):
            if x is None or result is None:
                continue
            shape, dtype = result
            if not agree(shape, x.shape) or dtype != x.dtype:
                sizes = ", ".join(map(str, shape))
                raise self.error(call, f"gives {x.name} as {dtype.name}[{sizes}], not as "
                                       f"{typed(x)}")

    def control(self, call: OpCall) -> None:
        """Checks a call with blocks."""
        for inner in call.blocks():
            self.block(inner)
        count = len(call.outputs)
        if call.type == "cond":
            self.require(call, "pred" in call.inputs and set(call.attributes) - {"gradient"} == {
                "true_block", "false_block"}, "takes pred, true_block and false_block")
            blocks = call.blocks()
            self.require(call, all(len(x.outputs) == count for x in blocks),
                         f"gives {count} results, but its blocks "
                         f"{' and '.join(str(len(x.outputs)) for x in blocks)}")
            self.agree(call, list(call.outputs), *(x.outputs for x in blocks))
        elif call.type in ("while_loop", "scan"):
            self.loop(call)
        else:
            block = call.attributes.get("sub_block")
            self.require(call, type(block) is Block and len(block.outputs) == count,
                         "takes a sub_block that gives as much as it does")
            assert type(block) is Block
            self.agree(call, list(call.outputs), block.outputs)

    def loop(self, call: OpCall) -> None:
        """Checks a loop."""
        name = "body_block" if call.type == "while_loop" else "sub_block"
        wanted = {"cond_block", "body_block"} if call.type == "while_loop" else {"sub_block"}
        self.require(call, wanted <= set(call.attributes) <= wanted | {"reverse", "kept"}
                     and len(call.blocks()) == len(wanted), f"takes {', '.join(sorted(wanted))}")
        body = call.attributes[name]
        init, xs = call.inputs.get("init", ()), call.inputs.get("xs", ())
        self.require(call, type(init) is tuple and type(xs) is tuple and all(
            type(x) is Variable for x in (*init, *xs)), "takes tuples of variables")
        self.require(call, len(body.inputs) == len(init) + len(xs),
                     f"gives {len(init) + len(xs)} values to a block of {len(body.inputs)} inputs")
        self.require(call, len(body.outputs) == len(call.outputs) >= len(init),
                     f"gives {len(call.outputs)} results, but its block {len(body.outputs)}")
        self.require(call, call.type == "while_loop" or len(xs) > 0, "needs xs")
        count = len(init)
        self.agree(call, list(init), list(call.outputs[:count]), body.inputs[:count],
                   body.outputs[:count])
        if call.type == "while_loop":
            going = call.attributes["cond_block"]
            self.require(call, len(going.inputs) == count and len(going.outputs) == 1
                         and going.outputs[0].dtype.name == "bool",
                         "needs a condition of its variables that gives one bool")

    def agree(self, call: OpCall, *columns: list[Any]) -> None:
        """Raises: ProgramError if variables for the same value differ."""
        for row in zip(*columns):
            known = [x for x in row if x is not None]
            for x in known[1:]:
                first = known[0]
                if first.dtype != x.dtype or not agree(first.shape, x.shape):
                    raise self.error(call, f"has {first.name}: {typed(first)} and {x.name}: "
                                           f"{typed(x)} for one value")

    def require(self, call: OpCall, holds: bool, text: str) -> None:
        """Raises: ProgramError unless a condition is true."""
        if not holds:
            raise self.error(call, text)

    def error(self, call: OpCall, text: str) -> ProgramError:
        """An error about a call."""
        line = f" ({call.line})" if call.line else ""
        return ProgramError(f"verify: {call.type}{line}: {text}; in {call!r}")


def is_untried(type: str) -> bool:
    """Whether calls of a type can't be tried on `meta`: random ones, and those that compute
    elements from numbers on any device."""
    op = registered(type)
    return type in UNTRIED or op is not None and (
        op.draws is not None or op.reads_values and not op.arguments)


# Calls that only programs have, with effects, or with results other than from their arguments.
UNTRIED = {"optimizer_step", "set_grad", "get_grad", "placeholder", "check"}
