"""The `Program`: its blocks, inputs and outputs, and how it is run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import Structure, flatten, unflatten
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.building.builder import Builder
from tensorlib.program.ir.copies import copied, drop_unneeded
from tensorlib.program.ir.drawing import dot, draw
from tensorlib.program.ir.files import save
from tensorlib.program.ir.model import Block, Variable, agree, typed
from tensorlib.program.ir.text import program_text
from tensorlib.program.run.schedule import lines_of
from tensorlib.program.verify import verify

# Words of the text form, which no variable may have as its name.
RESERVED = (*BY_NAME, "None", "True", "False", "inf", "nan", "slice", "_")


class Program:
    """A computation as data: blocks of calls of the registry's operations on variables.

    Made by hand under `with Program() as p:`, or by `program.trace(f, *examples)`. It can be run
    (`p(*inputs)`, `p.run(feed, fetch)`), printed, saved, drawn, changed and differentiated.

    blocks: the first is the program's own, the others belong to operations of control flow.
    inputs: the variables that a call feeds, in order. outputs: what a call gives, a nested
    container of variables.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.new_block()
        self.outputs: Any = ()
        # of a traced function's arguments: the structure, and its leaves, variables or not
        self.input_structure: Structure | None = None
        self.input_leaves: list[Any] = []
        self._numbers: dict[str, int] = dict.fromkeys(RESERVED, 0)
        self._lines: dict[tuple[int, ...], Any] = {}      # of what was run for, by ids of variables
        self._builders: list[Builder] = []

    # ---- what it is made of

    @property
    def block(self) -> Block:
        """The program's own block, the first."""
        return self.blocks[0]

    @property
    def inputs(self) -> list[Variable]:
        """The variables that are fed."""
        return self.block.inputs

    def new_block(self, parent: Block | None = None, forward: Block | None = None) -> Block:
        """A new block in `parent`; `forward` is the one whose gradients it computes."""
        block = Block(self, len(self.blocks), parent, forward)
        self.blocks.append(block)
        return block

    def new_name(self, stem: str) -> str:
        """A name that no variable of the program has yet: `stem`, or `stem_1`, `stem_2`, ..."""
        stem = cleaned(stem)
        name, number = stem, self._numbers.get(stem, 0)
        while name in self._numbers:
            number += 1
            name = f"{stem}_{number}"
        self._numbers[stem] = number
        self._numbers.setdefault(name, 0)
        return name

    def rename(self, x: Variable, stem: str) -> None:
        """Gives a variable another name, `stem` or one that begins so."""
        assert x.block is not None
        del x.block.variables[x.name]
        self._numbers.pop(x.name, None)
        x.name = self.new_name(stem)
        x.block.variables[x.name] = x

    def variable(self, name: str) -> Variable:
        """The variable of this name, in whichever block. Raises: KeyError that names near ones."""
        for block in self.blocks:
            if name in block.variables:
                return block.variables[name]
        raise KeyError(f"program: no variable named {name!r}")

    def persistables(self) -> list[Variable]:
        """The variables that last from run to run: parameters and constants."""
        return [x for block in self.blocks for x in block.variables.values() if x.persistable]

    def parameters(self) -> list[Tensor]:
        """The Tensors of the trainable variables, as a module's `parameters()` gives them."""
        return [x.value for x in self.persistables() if x.trainable and x.value is not None]

    # ---- building it

    def __enter__(self) -> "Program":
        self._builders.append(Builder(self.block))
        self._builders[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._builders.pop().__exit__(*error)

    # ---- as text

    def __str__(self) -> str:
        return program_text(self)

    def __repr__(self) -> str:
        count = sum(len(block.ops) for block in self.blocks)
        return f"<program of {count} calls in {len(self.blocks)} blocks>"

    def _repr_svg_(self) -> str | None:
        """The picture, for notebooks; None without Graphviz."""
        return dot(self)._repr_svg_()

    def save(self, path: Any) -> None:
        """Writes the program to a file, with its values; `program.load` reads it.

        Raises: ProgramError if the program contains something that has no text form.
        """
        save(self, path)

    def draw(self, path: Any) -> str:
        """Draws a picture in the format of its ending (.svg, .png, ...) and returns the path.

        .dot is text for Graphviz, which the others need. Raises: as `tensorlib.graph.draw`.
        """
        return draw(self, path)

    def values(self) -> dict[str, Tensor]:
        """The values of the parameters and constants by name, which the text may leave out."""
        return {x.name: x.value for x in self.persistables() if x.value is not None}

    # ---- made of it

    def clone(self) -> "Program":
        """A copy that can be changed independently; parameters and constants are shared."""
        made = Program()
        copied(self, made)
        return made

    def prune(self, outputs: Any) -> "Program":
        """A copy with what `outputs`, Variables or names in a nested container, depend on.

        Everything else, such as updates of parameters, is left out.
        """
        leaves, structure = flatten(outputs)
        wanted = [self.own_variable("prune", x) for x in leaves]
        made = Program()
        twins = copied(self, made)
        made.outputs = unflatten(structure, [twins[x] for x in wanted])
        made.input_structure = None
        drop_unneeded(made, [twins[x] for x in wanted])
        return made

    # ---- running it

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for inputs with the structure of the traced function's arguments."""
        leaves, structure = flatten(inputs, "program: the inputs")
        if self.input_structure is not None and structure != self.input_structure:
            raise TypeError(f"program: takes inputs of the structure {self.input_structure}, got "
                            f"{structure}")
        if self.input_structure is not None:
            leaves = [x for x, place in zip(leaves, self.input_leaves) if type(place) is Variable]
        if len(leaves) != len(self.inputs):
            raise TypeError(f"program: takes {len(self.inputs)} inputs "
                            f"({', '.join(x.name for x in self.inputs)}), got {len(leaves)}")
        wanted, made = flatten(self.outputs)
        found = lines_of(self, wanted, verify)(fed(dict(zip(self.inputs, leaves))), wanted)
        return unflatten(made, found)

    def run(self, feed: Mapping[str, Any] | None = None,
            fetch: Sequence[Variable | str] | Variable | str = ()) -> Any:
        """The values of the variables in `fetch`, names or Variables, with the inputs in `feed`.

        Returns a list, or one value if `fetch` is one variable.
        Raises: KeyError for a name that is not there, ValueError for an input without a value,
        RuntimeError for one of another shape or dtype.
        """
        known = {x.name: x for x in self.inputs}
        given = {}
        if not (feed is None or isinstance(feed, Mapping)):
            raise TypeError(f"run: feed must be values by name, in a dict, not {type_name(feed)}")
        for name, value in (feed or {}).items():
            if name not in known:
                raise KeyError(f"run: feeds {name!r}, but the inputs are "
                               f"{', '.join(known) or 'none'}")
            given[known[name]] = value
        for x in self.inputs:
            if x not in given:
                raise ValueError(f"run: the input {x.name} has no value in feed")
        single = isinstance(fetch, str) or type(fetch) is Variable
        wanted = [self.own_variable("run", x) for x in (
            [fetch] if single else items("run", "fetch", fetch))]
        found = lines_of(self, wanted, verify)(fed(given), wanted)
        return found[0] if single else found

    def own_variable(self, name: str, x: Any) -> Variable:
        """A variable of this program, given itself or by its name.

        Raises: KeyError for a name that is not there, ValueError for a variable of another program,
        TypeError for what is neither.
        """
        if isinstance(x, str):
            return self.variable(x)
        if type(x) is not Variable:
            raise TypeError(f"{name}: takes Variables and names of them, got {type(x).__name__}")
        if x.block is None or x.block.program is not self:
            raise ValueError(f"{name}: {x.name} is a variable of another program")
        return x


def items(name: str, what: str, given: Any) -> list[Any]:
    """The items of a sequence. Raises: TypeError for other values."""
    if not isinstance(given, Iterable):
        raise TypeError(f"{name}: {what} must be a sequence, got {type_name(given)}")
    return list(given)


@cache
def cleaned(stem: str) -> str:
    """A valid name, with other characters replaced."""
    stem = re.sub(r"[^\w.@]", "_", stem)
    return stem if stem[:1].isalpha() or stem[:1] == "_" else f"_{stem}"


def fed(values: dict[Variable, Any]) -> dict[Variable, Tensor]:
    """The fed values as Tensors. Raises: RuntimeError for another shape or dtype than declared."""
    found = {}
    for x, value in values.items():
        if value is None:
            raise ValueError(f"program: the input {x.name} has no value")
        tensor = FUNCTIONS["asarray"](value)
        if not agree(x.shape, tensor.shape) or tensor.dtype != x.dtype:
            raise RuntimeError(f"program: the input {x.name} is {typed(x)}, got "
                               f"{tensor.dtype.name}{list(tensor.shape)}")
        found[x] = tensor
    return found

