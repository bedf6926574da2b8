"""The IR: programs, blocks, calls of operations and variables, as plain data.

A `Program` has a list of `Block`s, of which the first is its own; the others belong to operations
of control flow. A block has `OpCall`s in the order in which they run, and `Variable`s by name.
Names are unique in a program. An operation reads variables of its block or of enclosing blocks, and
writes those of its own block.
"""

# Annotations stay strings: Python 3.14 would find the method `int` of the class for `int`.
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import Size
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.ir.nested import gather, gather_values, has_type, look_for


class Variable:
    """A value in a program: its name, shape and dtype and, if it is persistable, its Tensor.

    shape: a tuple of ints; None for a size that is known only when the program runs.
    persistable: a parameter or a constant, whose `value`, a Tensor, is kept between runs.
    trainable: a parameter, which `append_backward` differentiates by default.
    stop_gradient: gradients are not propagated through it.
    fixed: a constant that the program made of numbers.
    recorded: during a capture, its tensor may require a gradient.
    stack: it holds one value for each step of a loop, along the first dim.
    block: where it is defined.
    """

    __slots__ = ("name", "shape", "dtype", "persistable", "trainable", "stop_gradient", "value",
                 "block", "stack", "twin", "fixed", "recorded")

    def __init__(self, name: str, shape: tuple[int | None, ...], dtype: DType, *,
                 persistable: bool = False, trainable: bool = False, stop_gradient: bool = False,
                 value: Tensor | None = None, block: Block | None = None):
        self.name, self.dtype = name, dtype
        self.shape = tuple(shape) if None in shape else Size(shape)
        self.persistable, self.trainable = persistable, trainable
        self.stop_gradient, self.value, self.block = stop_gradient, value, block
        self.stack = self.fixed = False
        self.recorded = not stop_gradient
        self.twin = None                  # a tensor on `meta` of its shape, made when needed

    # isinstance(x, Tensor) is true, since traced code tests for it (variable_methods.py). A
    # subclass of Tensor would need elements that kernels could read.
    __class__ = property(lambda self: Tensor)       # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Variable({self.name}: {typed(self)})"


class OpCall:
    """One call of an operation in a block.

    type: the operation's name: one of the registry's; `NAME_gradient` for the backward operation of
        NAME, to any order; `NAME_` for a write in place; or one that only programs have
        (call_types.py).
    inputs: by the names of the operation's arguments: a Variable; a Python number, which promotes
        as in an expression; None; or a tuple of these, if the operation takes a sequence.
    outputs: the Variables that it writes, in order; None for an unused result.
    attributes: the other arguments by name: numbers, strings, dtypes, tuples, slices, Blocks (of
        control flow) and, nested in these, Variables (positions of an index, say).
    line: "file.py:12", the line of user code that it came from, or "".
    """

    __slots__ = ("type", "inputs", "outputs", "attributes", "line")

    def __init__(self, type: str, inputs: dict[str, Any], outputs: tuple[Variable | None, ...],
                 attributes: dict[str, Any] | None = None, line: str = ""):
        self.type, self.inputs, self.outputs = type, inputs, tuple(outputs)
        self.attributes = {} if attributes is None else attributes
        self.line = line

    def reads(self) -> list[Variable]:
        """The variables that the call reads: its inputs, those in its attributes, and what its
        blocks read from outside of them."""
        found: list[Variable] = []
        gather_values(self.inputs, found)
        if self.attributes:
            gather_values(self.attributes, found)
            for block in self.blocks():
                found += block.reads()
        return found

    def writes(self) -> list[Variable]:
        """The variables that the call writes."""
        return [x for x in self.outputs if x is not None]

    def blocks(self) -> list[Block]:
        """The blocks that belong to the call."""
        if not has_type(self.attributes, Block):
            return []
        return [x for x in self.attributes.values() if type(x) is Block]

    @property
    def in_place(self) -> bool:
        """Whether it is in-place: its first input, which it overwrites, is its output as well."""
        return self.type.endswith("_")

    def __repr__(self) -> str:
        outs = ", ".join("_" if x is None else x.name for x in self.outputs)
        ins = ", ".join(x.name for x in self.reads())
        return f"OpCall({outs} = {self.type}({ins}))"


class Block:
    """A list of calls, `ops`, that run one after the other, and the `variables` they define.

    index: its index in the program's blocks. parent: the enclosing block, None for the first.
    forward: for a block of a backward part, the block whose gradients it computes, else None.
    scope: the block whose variables it has: itself, or the one that it is a copy of.
    inputs: the variables that its operation sets before it runs (for the first block: those that
    are fed). outputs: those that its operation reads after it has run.
    """

    def __init__(self, program: Any, index: int, parent: Block | None = None,
                 forward: Block | None = None):
        self.program, self.index, self.parent, self.forward = program, index, parent, forward
        self.scope: Block = self
        self.ops: list[OpCall] = []
        self.variables: dict[str, Variable] = {}
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []

    @property
    def forward_index(self) -> int | None:
        """The index of the block whose gradients this one computes, or None."""
        return None if self.forward is None else self.forward.index

    def new_variable(self, stem: str, shape: tuple[int | None, ...], dtype: DType,
                     **facts: Any) -> Variable:
        """A new variable of this block, named `stem`, or `stem_1` and so on if that is taken."""
        x = Variable(self.program.new_name(stem), shape, dtype, block=self, **facts)
        self.variables[x.name] = x
        return x

    def new_persistable(self, name: str, value: Tensor, kind: str) -> Variable:
        """A new persistable variable; by default its name is that of its value, "parameter", or its
        `kind`."""
        trainable = value.requires_grad and value.is_leaf
        name = name or getattr(value, "name", None) or ("parameter" if trainable else kind)
        return self.new_variable(
            name, tuple(value.shape), value.dtype, persistable=True, trainable=trainable,
            stop_gradient=not value.requires_grad, value=value)

    def find(self, name: str) -> Variable | None:
        """The variable of this name in this block or an enclosing one, or None."""
        block: Block | None = self
        while block is not None:
            if name in block.variables:
                return block.variables[name]
            block = block.parent
        return None

    def reads(self) -> Iterator[Variable]:
        """The variables of enclosing blocks that it reads, each once."""
        seen: set[Variable] = set()
        for x in (*(x for call in self.ops for x in call.reads()), *self.outputs):
            if x is not None and x not in seen and x.block is not None and not x.block.is_in(self):
                seen.add(x)
                yield x

    def is_in(self, other: Block) -> bool:
        """Whether this block is `other`, has its variables, or is nested in it."""
        block: Block | None = self
        while block is not None and block.scope is not other.scope:
            block = block.parent
        return block is not None

    def copy(self) -> Block:
        """A block with the same variables and calls in lists of its own."""
        made = Block(self.program, self.index, self.parent, self.forward)
        made.scope, made.variables = self.scope, self.variables
        made.ops = apart(self.ops)
        made.inputs, made.outputs = list(self.inputs), list(self.outputs)
        return made

    def __repr__(self) -> str:
        return f"<block {self.index} of {len(self.ops)} operations>"


def inner_calls(block: Block) -> Iterator[OpCall]:
    """The calls of a block and of the blocks within it."""
    for call in block.ops:
        yield call
        for inner in call.blocks():
            yield from inner_calls(inner)


def apart(calls: Iterable[OpCall]) -> list[OpCall]:
    """The calls, with copies of the blocks of those that have any."""
    found = []
    for call in calls:
        if call.blocks():
            attributes = {name: x.copy() if type(x) is Block else x
                          for name, x in call.attributes.items()}
            call = OpCall(call.type, call.inputs, call.outputs, attributes, call.line)
        found.append(call)
    return found


def check_program(name: str, program: Any) -> None:
    """Raises: TypeError for what is not a Program, recognised by its blocks."""
    blocks = getattr(program, "blocks", None)
    if not (isinstance(blocks, list) and blocks and isinstance(blocks[0], Block)):
        raise TypeError(f"{name}: takes a Program, got {type_name(program)}")


def agree(shape: Any, other: Any) -> bool:
    """Whether two shapes may be the same; None is any size."""
    return len(shape) == len(other) and all(
        a == b or a is None or b is None for a, b in zip(shape, other))


def typed(x: Variable) -> str:
    """The dtype and the shape of a variable as text: `float32[None, 3]`."""
    return f"{x.dtype.name}[{', '.join(map(str, x.shape))}]"


def variables_in(value: Any) -> list[Variable]:
    """The variables in nested dicts, tuples, lists and slices."""
    found: list[Variable] = []
    gather(value, found)
    return found


def place_of(x: Any, values: Any) -> int:
    """The index of a variable in values, or -1. (`==` is an operation, so `in` can't be used.)"""
    for place, value in enumerate(values):
        if value is x:
            return place
    return -1


look_for(Variable)
