"""A program as text that people read, and `parse` (parsing.py) reads again.

    program(x) -> mean:
        input x: float32[None, 3]
        parameter w: float32[3, 2]

        matmul: float32[None, 2] = matmul(x, w)                  # net.py:12
        tanh: float32[None, 2] = tanh(matmul)
        mean: float32[] = mean(tanh, dim=None)

A line is one call: its outputs, each with its type where it is defined, then the operation with its
inputs in order and its attributes by name. `_` is an unused result. The blocks of a call follow it,
indented, with their results after `->`. Long lines are broken after a comma.
"""

import re
from collections.abc import Iterator
from typing import Any

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.program.ir.call_types import UnknownType, form_of_call
from tensorlib.program.ir.model import Block, OpCall, Variable, typed

KEYS = (str, int, float, complex, bool, type(None))       # the types of a dict's keys
FEW = 16                     # elements of a value that are written out
INDENT = "    "
WIDTH = 96
# What a line is not cut in, strings and brackets, and what it may be cut at.
UNCUT = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[\[\]]|,[ ]""")
COLUMN = 68                  # the column of the lines of user code, if there is room


def program_text(program: Any) -> str:
    """The text of a program."""
    lines = [f"program{inputs_text(program)} -> {value_text(program.outputs)}:"]
    for x in program.inputs:
        lines.append(f"{INDENT}input {x.name}: {typed(x)}{facts(x, False)}")
    for x in program.persistables():
        kind = "parameter" if x.trainable else "constant"
        lines.append(f"{INDENT}{kind} {x.name}: {typed(x)}{facts(x, not x.trainable)}{given(x)}")
    if len(lines) > 1 and program.block.ops:
        lines.append("")
    lines += block_lines(program.block, 1)
    return "\n".join(lines) + "\n"


def inputs_text(program: Any) -> str:
    """The arguments of a program, with their nesting."""
    if program.input_structure is None:
        return "(" + ", ".join(x.name for x in program.inputs) + ")"
    arguments = unflatten(program.input_structure, program.input_leaves)
    return "(" + ", ".join(map(value_text, arguments)) + ")"


def facts(x: Variable, stops: bool) -> str:
    """The facts about a variable that differ from the default."""
    return (" (stack)" if x.stack else "") + (
        "" if x.stop_gradient == stops else " (no gradient)" if x.stop_gradient else " (gradient)")


def given(x: Variable) -> str:
    """The value of a persistable variable, if it is short."""
    if x.value is None or x.value.numel() > FEW:
        return ""
    return f" = {value_text(x.value.detach().tolist())}"


# ---- calls ---------------------------------------------------------------------------------------

def block_lines(block: Block, depth: int) -> Iterator[str]:
    """The lines of a block's calls."""
    for call in block.ops:
        *before, line = wrapped(call_text(call) + (":" if call.blocks() else ""), depth)
        yield from before
        yield f"{line:<{COLUMN}}  # {call.line}" if call.line else line
        for name, inner in call.attributes.items():
            if type(inner) is Block:
                yield from inner_lines(name, inner, depth + 1)


def inner_lines(name: str, block: Block, depth: int) -> Iterator[str]:
    """The lines of a block of a call, with its inputs and results."""
    bound = ", ".join(f"{x.name}: {typed(x)}{facts(x, False)}" for x in block.inputs)
    back = "" if block.forward is None else f" backward of {block.forward.index}"
    yield from wrapped(f"{name} {block.index}{back}({bound}):", depth)
    yield from block_lines(block, depth + 1)
    yield from wrapped(f"-> {', '.join(x.name for x in block.outputs)}".rstrip(), depth + 1)


def wrapped(text: str, depth: int) -> list[str]:
    """The lines of a text that may be too long for one: it is cut after commas."""
    lines, line = [], INDENT * depth
    for part in parts_of(text):
        gap = "" if line.isspace() else " "
        if gap and len(line) + len(gap) + len(part) > WIDTH:
            lines.append(line)
            line, gap = INDENT * depth + "  ", ""
        line += gap + part
    return [*lines, line]


def parts_of(text: str) -> Iterator[str]:
    """A text cut after its commas that are in no string and in no brackets."""
    begin = inside = 0
    for found in UNCUT.finditer(text):
        sign = found[0]
        inside += (sign == "[") - (sign == "]")
        if sign == ", " and not inside:
            yield text[begin:found.end() - 1]
            begin = found.end()
    yield text[begin:]


def call_text(call: OpCall) -> str:
    """A call without its blocks."""
    outputs = ", ".join(output_text(call, x) for x in call.outputs)
    return (f"{outputs} = " if outputs else "") + f"{call.type}({arguments_text(call)})"


def output_text(call: OpCall, x: Variable | None) -> str:
    """An output of a call, with its type unless it is written in place."""
    if x is None:
        return "_"
    return x.name if call.in_place else f"{x.name}: {typed(x)}{facts(x, False)}"


def arguments_text(call: OpCall) -> str:
    """The inputs of a call in order, and its attributes by name."""
    parts = []
    try:
        names = () if call.blocks() else form_of_call(call).arguments
    except UnknownType:
        names = ()
    if tuple(call.inputs) == names[:len(call.inputs)] and not call.inputs.get("parts"):
        parts += [value_text(x) for x in call.inputs.values()]
    else:
        parts += [f"{name}={value_text(x)}" for name, x in call.inputs.items()]
    parts += [f"{name}={value_text(x)}" for name, x in call.attributes.items()
              if type(x) is not Block]
    return ", ".join(parts)


def value_text(x: Any) -> str:
    """An argument as text."""
    if type(x) is Variable:
        return x.name
    if isinstance(x, DType):
        return x.name
    if x is ...:
        return "..."
    if isinstance(x, slice):
        parts = (x.stop,) if x.start is x.step is None else (x.start, x.stop) if (
            x.step is None) else (x.start, x.stop, x.step)
        return f"slice({', '.join(map(value_text, parts))})"
    if isinstance(x, complex):
        return f"complex({x.real!r}, {x.imag!r})"
    if isinstance(x, tuple):
        return f"({', '.join(map(value_text, x))}{',' if len(x) == 1 else ''})"
    if isinstance(x, list):
        return f"[{', '.join(map(value_text, x))}]"
    if isinstance(x, dict):
        items = (f"{value_text(key) if type(key) in KEYS else unsaid(key)}: {value_text(part)}"
                 for key, part in x.items())
        return f"{{{', '.join(items)}}}"
    if x is None or isinstance(x, (bool, int, float, str)):
        return repr(x)
    return unsaid(x)


def unsaid(x: Any) -> str:
    """A placeholder for a value that text can't represent, and that can't be parsed."""
    return f"<{type(x).__name__}>"


__all__ = ["call_text", "flatten", "program_text", "value_text"]
