"""Symbolic sizes: those of dynamic axes in an exported model.

A captured program has sizes as numbers. So a model is traced several times, with other numbers for
the sizes that are to stay open, and the programs are compared: a number that is the same in all of
them is a constant, and one that differs is a formula of the open sizes, found from its values.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any, NamedTuple

from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.onnx.errors import OnnxExporterError
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.ir.model import Block, OpCall, Variable

# What is added to the open sizes in each trace. No row is a linear function of another, so that a
# formula of one size is none of another.
STEPS = ((0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 1, 4), (0, 1, 4, 2), (0, 4, 1, 2),
         (0, 2, 5, 1), (0, 5, 2, 3))


class Term(NamedTuple):
    """A number times the product of some open sizes, of which there may be none."""

    factor: Fraction
    symbols: tuple[str, ...]


class Dim:
    """A size of which the value differs from trace to trace.

    values: in each trace. formula: terms to be added; None where no formula is known.
    """

    __slots__ = ("values", "formula")

    def __init__(self, values: tuple[int, ...], formula: "tuple[Term, ...] | None"):
        self.values, self.formula = values, formula

    @property
    def symbol(self) -> str | None:
        """The open size that it is; None where it is another one."""
        if self.formula is None or len(self.formula) != 1 or self.formula[0].factor != 1:
            return None
        return self.formula[0].symbols[0] if len(self.formula[0].symbols) == 1 else None

    def __repr__(self) -> str:
        return f"Dim({self.symbol or self.values})"


class Repeated(NamedTuple):
    """A tuple of one value, of which the length is an open size."""

    value: Any
    length: Dim


class ConstantFill(NamedTuple):
    """A constant of one value, whose shape has open sizes."""

    value: Tensor
    shape: tuple[Any, ...]


class SymbolicRange(NamedTuple):
    """The constant start, start + step, ... of an open size; both may be open sizes, too."""

    start: Any
    step: Any
    length: Any


class Compared:
    """Programs of one function for several sizes, compared.

    program: the first of them, with a Dim for each number among its arguments that differs.
    shapes: of variables that have open sizes. constants: those that depend on such sizes.
    """

    def __init__(self, programs: Sequence[Any], sizes: dict[str, tuple[int, ...]]):
        self.programs, self.sizes = programs, sizes
        self.program = programs[0]
        self.shapes: dict[Variable, tuple[Any, ...]] = {}
        self.constants: dict[Variable, ConstantFill | SymbolicRange] = {}
        if len(programs) == 1:
            return
        self.require(len({len(p.blocks) for p in programs}) == 1, "it has other blocks")
        for row in zip(*(p.blocks for p in programs)):
            self.block(row)
        for row in zip(*(p.persistables() for p in programs)):
            self.constant(row)

    def require(self, holds: bool, why: str) -> None:
        """Raises: OnnxExporterError unless something holds for all sizes."""
        if not holds:
            raise OnnxExporterError(f"onnx.export: the model does other things for other sizes: "
                                    f"{why}; leave fewer sizes dynamic, or use tensorlib.scan or "
                                    "while_loop for loops over them")

    def block(self, blocks: tuple[Block, ...]) -> None:
        """Compares the calls of a block."""
        for row in zip(*(block.ops for block in blocks)):
            first: OpCall = row[0]
            where = f"{first.type} ({first.line})"
            self.require(len({(call.type, tuple(call.inputs), tuple(call.attributes),
                               len(call.outputs)) for call in row}) == 1,
                         f"instead of {where} it calls {row[-1].type} ({row[-1].line})")
            for own in ("inputs", "attributes"):
                setattr(first, own, {key: self.merged([getattr(call, own)[key] for call in row],
                                                      f"{key} of {where}")
                                     for key in getattr(first, own)})
            for outputs in zip(*(call.outputs for call in row)):
                self.variable(outputs)
        self.require(len({len(block.ops) for block in blocks}) == 1,
                     f"it makes {min(len(b.ops) for b in blocks)} to "
                     f"{max(len(b.ops) for b in blocks)} calls")
        for inputs in zip(*(block.inputs for block in blocks)):
            self.variable(inputs)

    def variable(self, row: tuple[Any, ...]) -> None:
        """Compares the shapes of a variable."""
        first = row[0]
        if first is not None and len({x.shape for x in row}) > 1:
            self.require(len({len(x.shape) for x in row}) == 1,
                         f"{first.name} has another number of dims")
            self.shapes[first] = tuple(map(self.size, zip(*(x.shape for x in row))))

    def size(self, values: Sequence[int]) -> Any:
        """A size, as a number or a Dim."""
        values = tuple(values)
        return values[0] if len(set(values)) == 1 else Dim(values, formula_of(values, self.sizes))

    def merged(self, row: list[Any], what: str) -> Any:
        """An argument that all traces agree on, up to open sizes."""
        first = row[0]
        if type(first) is Variable:
            self.require(all(type(x) is Variable and x.name == first.name for x in row), what)
            return first
        if isinstance(first, (Block, DType)):
            return first
        if type(first) in (tuple, list) and len({type(x) for x in row}) == 1:
            if len({len(x) for x in row}) == 1:
                return type(first)(self.merged(list(parts), what) for parts in zip(*row))
            each = [x[0] for x in row if all(type(y) is int and y == x[0] for y in x)]
            self.require(len(each) == len(row), what)
            return Repeated(self.size(each), self.size([len(x) for x in row]))
        if type(first) is slice:
            return slice(*(self.merged([getattr(x, part) for x in row], what)
                           for part in ("start", "stop", "step")))
        if all(type(x) is int or type(x) is float and x.is_integer() for x in row) and (
                len(set(row)) > 1):                 # a size that is divided by is written as float
            return self.size([int(x) for x in row])
        self.require(all(type(x) is type(first) and (x is first or x == first) for x in row), what)
        return first

    def constant(self, row: tuple[Variable, ...]) -> None:
        """Compares the values of a constant."""
        first = row[0]
        values = [x.value for x in row]
        if all(x is values[0] for x in values) or first.value is None:
            return
        self.variable(row)
        if first not in self.shapes and all(FUNCTIONS["equal"](x, values[0]) for x in values):
            return
        shape = self.shapes.get(first, first.shape)
        found = self.filled(values, shape) or self.progression(values, shape)
        self.require(found is not None, f"the constant {first.name} of shape {first.shape} has "
                                        "other values")
        self.constants[first] = found                         # type: ignore[assignment]

    def filled(self, values: list[Any], shape: tuple[Any, ...]) -> ConstantFill | None:
        """A constant of one value in all traces."""
        value = values[0].detach().reshape(-1)[:1].reshape(())
        return ConstantFill(value, shape) if all(bool((x == value).all()) for x in values) else None

    def progression(self, values: list[Any], shape: tuple[Any, ...]) -> SymbolicRange | None:
        """Whole numbers at equal distances."""
        if len(shape) != 1 or values[0].dtype.is_floating_point or min(map(len, values)) < 2:
            return None
        numbers = [x.tolist() for x in values]
        steps = [x[1] - x[0] for x in numbers]
        if any(x != list(range(x[0], x[0] + step * len(x), step)) if step else True
               for x, step in zip(numbers, steps)):
            return None
        return SymbolicRange(self.size([x[0] for x in numbers]), self.size(steps), shape[0])


def formula_of(values: tuple[int, ...], sizes: dict[str, tuple[int, ...]]
               ) -> tuple[Term, ...] | None:
    """The simplest formula of open sizes that gives these values; None where there is none.

    Tried are a * x + b of one size, of two or three multiplied, of a square, and a * x + b * y + c.
    """
    names = list(sizes)
    products = [symbols for count in range(1, min(len(names), 3) + 1)
                for symbols in combinations(names, count)] + [(name, name) for name in names]
    columns = {symbols: [prod(sizes[name][i] for name in symbols) for i in range(len(values))]
               for symbols in products}
    tried = [[symbols] for symbols in products]
    tried += [[(x,), (y,)] for x, y in combinations(names, 2)]
    found = [formula for terms in tried if (formula := fitted(values, terms, columns)) is not None]
    return min(found, key=lambda f: (len(f), sum(len(term.symbols) for term in f)), default=None)


def fitted(values: tuple[int, ...], terms: list[tuple[str, ...]],
           columns: dict[tuple[str, ...], list[int]]) -> tuple[Term, ...] | None:
    """Factors of these terms, and a summand, that give all the values; None where there are none.

    Of differences of the first values, so that the summand is not looked for.
    """
    rows = [[Fraction(columns[term][i] - columns[term][0]) for term in terms]
            for i in range(1, len(terms) + 1)]
    rights = [Fraction(values[i] - values[0]) for i in range(1, len(terms) + 1)]
    if len(terms) == 1:
        scale = rows[0][0]
        factors = [rights[0] / scale] if scale else []
    else:
        (a, b), (c, d) = rows
        scale = a * d - b * c
        factors = [(rights[0] * d - rights[1] * b) / scale,
                   (rights[1] * a - rights[0] * c) / scale] if scale else []
    if not factors or 0 in factors:
        return None
    summand = values[0] - sum(f * columns[term][0] for f, term in zip(factors, terms))
    if any(sum(f * columns[term][i] for f, term in zip(factors, terms)) + summand != value
           for i, value in enumerate(values)):
        return None
    made = tuple(Term(f, term) for f, term in zip(factors, terms))
    return made if summand == 0 else (*made, Term(Fraction(summand), ()))


def compared(trace: Callable[[dict[str, int]], Any], sizes: dict[str, int]) -> Compared:
    """The programs of a function for several values of its open sizes, compared.

    trace: what gives the program for such values. sizes: those of the examples, by symbol. Sizes
    that are too large for the model, such as a sequence longer than it has positions for, are tried
    smaller. Raises: what `trace` raises, OnnxExporterError.
    """
    if not sizes:
        return Compared([trace({})], {})
    if len(sizes) > len(STEPS):
        raise OnnxExporterError(f"onnx.export: at most {len(STEPS)} different sizes can be "
                                f"dynamic, got {len(sizes)}: {', '.join(sizes)}")
    first_error: Exception | None = None
    for signs in product((1, -1), repeat=len(sizes)):
        rows = {}
        for (name, size), steps, sign in zip(sizes.items(), STEPS, signs):
            start = max(size, 2)                  # one is treated as any other size only by chance
            rows[name] = tuple(start + sign * step for step in steps)
        if any(min(row) < 2 for row in rows.values()):
            continue
        try:
            programs = [trace({name: row[i] for name, row in rows.items()})
                        for i in range(len(STEPS[0]))]
        except Exception as error:
            first_error = first_error or error
            continue
        return Compared(programs, rows)
    assert first_error is not None
    first_error.add_note("onnx.export: raised while other sizes were tried for those that are to "
                         f"stay open, {', '.join(sizes)}")
    raise first_error


def grown(example: Any, sizes: dict[int, int]) -> Any:
    """An example with other sizes in some dims, made of its own elements."""
    for dim, size in sizes.items():
        if example.shape[dim] != size:
            places = FUNCTIONS["arange"](size) % max(example.shape[dim], 1)
            example = example.index_select(dim, places)
    return example
