"""`parse`: the program that a text (text.py) describes, without executing anything."""

import os
import re
from ast import literal_eval
from collections.abc import Mapping
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME, has_gradients
from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.ir.call_types import UnknownType, form_of
from tensorlib.program.ir.errors import ProgramError
from tensorlib.program.ir.files import read
from tensorlib.program.ir.model import Block, OpCall, Variable
from tensorlib.program.ir.text import KEYS, value_text
from tensorlib.program.program import Program

# Possessive quantifiers, so that a text without a match is rejected in one pass.
TOKEN = re.compile(r"""\s*+(?:(?P<number>-?(?:inf|nan|\d++(?:\.\d*+)?(?:e[+-]?\d++)?)(?![\w.@]))
    |(?P<name>[^\W\d][\w.@]*+)|(?P<string>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")
    |(?P<sign>->|\.\.\.|[()\[\]{}:,=_<>]))""", re.VERBOSE)
HEAD = re.compile(r"(?P<name>\w+) (?P<index>\d+)(?: backward of (?P<forward>\d+))?")
WORDS = {"None": None, "True": True, "False": False}
MADE: dict[str, Any] = {"slice": slice, "complex": complex}
DEEPEST = 50                 # how deep blocks and containers may be nested


def parse(text: str, values: Mapping[str, Any] | None = None) -> Program:
    """The program that `text`, made by `str(program)`, describes. `values` are those of persistable
    variables by name, if the text does not have them: `program.values()` returns all.

    Nothing is executed. Raises: ProgramError, with the line, for an invalid text.

    >>> from tensorlib import program
    >>> p = program.trace(lambda x: x * 2, tensorlib.ones(2))
    >>> q = program.parse(str(p))
    >>> q(tensorlib.tensor([1., 2.])), str(q) == str(p)
    (tensor([2., 4.]), True)
    """
    if not isinstance(text, str):
        raise TypeError(f"parse: takes a str, got {type(text).__name__}")
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"parse: values must be by name, in a dict, not {type(values).__name__}")
    return Reader(text, values or {}).program()


def load(path: str | os.PathLike[str]) -> Program:
    """The program in a file that `save` wrote. Nothing is executed.

    Raises: ProgramError for a file without a program.

    >>> import os, tempfile
    >>> from tensorlib import program
    >>> path = os.path.join(tempfile.mkdtemp(), "doubled.safetensors")
    >>> program.trace(lambda x: x * 2, tensorlib.ones(2)).save(path)
    >>> program.load(path)(tensorlib.tensor([1., 2.]))
    tensor([2., 4.])
    """
    return parse(*read(path))


class Reader:
    """Reads a text line by line."""

    def __init__(self, text: str, values: Mapping[str, Any]):
        self.lines = [(number, " ".join(parts)) for number, parts in joined(text.splitlines())]
        self.values, self.place = values, 0
        self.made = Program()
        self.names: dict[str, Variable] = {}
        self.blocks: dict[int, Block] = {0: self.made.block}
        self.forwards: list[tuple[Block, int]] = []

    def error(self, text: str) -> ProgramError:
        """An error about the present line."""
        number, line = self.lines[min(self.place, len(self.lines) - 1)] if self.lines else (1, "")
        return ProgramError(f"parse: line {number}: {text}: {line.strip():.80}")

    def program(self) -> Program:
        """The program of the whole text."""
        if not self.lines or not self.lines[0][1].startswith("program("):
            raise self.error("a program begins with `program(`")
        head = self.lines[0][1]
        self.place = 1
        while self.place < len(self.lines) and self.declared():
            self.place += 1
        self.calls(self.made.block, 1)
        if self.place < len(self.lines):
            raise self.error("is not indented as a call")
        self.place = 0
        tokens = Tokens(head, self)
        tokens.expect("program")
        arguments = tokens.sequence("(", ")")
        tokens.expect("->")
        self.made.outputs = tokens.value()
        tokens.expect(":")
        tokens.end()
        leaves, structure = flatten(tuple(arguments))
        self.made.input_structure, self.made.input_leaves = structure, leaves
        fed = [x for x in leaves if type(x) is Variable]
        if {id(x) for x in fed} != {id(x) for x in self.made.inputs}:
            raise self.error("the arguments must be the inputs")
        for block, index in self.forwards:
            if index not in self.blocks:
                raise self.error(f"there is no block {index}")
            block.forward = self.blocks[index]
        self.made.blocks = [self.blocks[i] for i in sorted(self.blocks)]
        if sorted(self.blocks) != list(range(len(self.blocks))):
            raise self.error("the numbers of blocks have gaps")
        return self.made

    # ---- lines

    def line(self) -> tuple[int, str, str]:
        """The depth, the text and the comment of the present line."""
        text, comment = without_comment(self.lines[self.place][1])
        bare = text.lstrip(" ")
        depth, rest = divmod(len(text) - len(bare), 4)
        if rest:
            raise self.error("is not indented by a multiple of four")
        if depth > DEEPEST:
            raise self.error("is nested too deep")
        return depth, bare, comment

    def declared(self) -> bool:
        """Reads an input, a parameter or a constant; whether the line is one."""
        depth, text, _ = self.line()
        kind, _, rest = text.partition(" ")
        if depth != 1 or kind not in ("input", "parameter", "constant") or "(" in rest.split(
                ":")[0] or ":" not in rest or "=" in rest.split(":")[0]:
            return False
        tokens = Tokens(rest, self)
        lasting = kind != "input"
        x = tokens.definition(self.made.block, kind == "constant")
        if lasting:
            x.persistable, x.trainable = True, kind == "parameter"
            data = tokens.value() if tokens.found("=") else None
            x.value = self.value_of(x, data)
        else:
            self.made.inputs.append(x)
        tokens.end()
        return True

    def value_of(self, x: Variable, data: Any) -> Tensor | None:
        """The value of a persistable variable."""
        value = self.values.get(x.name)
        if value is None and data is None:
            return None
        try:
            tensor = value if isinstance(value, Tensor) else FUNCTIONS["tensor"](
                data if value is None else value, dtype=x.dtype)
            if 0 in x.shape and value is None:
                tensor = tensor.reshape(x.shape)
        except Exception as error:
            raise self.error(f"the value of {x.name} is none: {error}") from None
        if tuple(tensor.shape) != x.shape or tensor.dtype != x.dtype:
            raise self.error(f"{x.name} has a value of {tensor.dtype.name}{list(tensor.shape)}")
        if x.trainable and not tensor.requires_grad:
            if not has_gradients(tensor.dtype):
                raise self.error(f"{x.name}: a parameter has a floating dtype")
            tensor = tensor.detach().requires_grad_()
        return tensor

    def calls(self, block: Block, depth: int) -> None:
        """Reads the calls of a block."""
        while self.place < len(self.lines):
            found, text, comment = self.line()
            if found != depth or text.startswith("->"):
                return
            self.call(block, depth, text, comment)

    def call(self, block: Block, depth: int, text: str, comment: str) -> None:
        """Reads one call, with its blocks."""
        tokens = Tokens(text, self)
        type, outputs, inputs, attributes = tokens.call(block)
        nested = tokens.found(":")
        tokens.end()
        self.place += 1
        while nested and self.place < len(self.lines) and self.line()[0] == depth + 1:
            name, inner = self.inner(block, depth + 1)
            attributes[name] = inner
        for x in outputs:
            if x is not None and x.name not in self.names:
                self.names[x.name] = x
        block.ops.append(OpCall(type, inputs, tuple(outputs), attributes, comment))

    def inner(self, parent: Block, depth: int) -> tuple[str, Block]:
        """Reads a block of a call."""
        text = self.line()[1]
        head = HEAD.match(text)
        if head is None or not text.endswith(":"):
            raise self.error("is no block")
        index = int(head["index"][:9])
        if index in self.blocks:
            raise self.error(f"there are two blocks {index}")
        block = Block(self.made, index, parent)
        self.blocks[index] = block
        if head["forward"]:
            self.forwards.append((block, int(head["forward"][:9])))
        tokens = Tokens(text[head.end():-1], self)
        tokens.expect("(")
        while not tokens.found(")"):
            block.inputs.append(tokens.definition(block, False))
            tokens.found(",")
        tokens.end()
        self.place += 1
        self.calls(block, depth + 1)
        if self.place >= len(self.lines) or self.line()[0] != depth + 1:
            raise self.error(f"block {index} does not say what it gives")
        tokens = Tokens(self.line()[1], self)
        tokens.expect("->")
        while not tokens.at_end():
            block.outputs.append(tokens.variable())
            tokens.found(",")
        self.place += 1
        return head["name"], block


def joined(lines: list[str]) -> list[tuple[int, list[str]]]:
    """The lines that say something, by number, each in the parts that commas end."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if found and found[-1][1][-1].endswith(","):
            found[-1][1].append(line.strip())
        else:
            found.append((number, [line.rstrip()]))
    return found


def without_comment(line: str) -> tuple[str, str]:
    """A line without its comment, and the comment."""
    line = line.rstrip()
    text, sign, comment = line.rpartition("#")
    if not (sign and comment.startswith(" ") and text[-1:].isspace()) or (
            "'" in comment or '"' in comment):
        return line, ""
    return text.rstrip(), comment[1:]


class Tokens:
    """The tokens of a line, from the left to the right."""

    def __init__(self, text: str, reader: Reader):
        self.reader, self.place = reader, 0
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                raise reader.error(f"cannot read {text[at:].lstrip()[:20]!r}")
            at = found.end()
            self.tokens.append((found.lastgroup or "", found.group(found.lastgroup or 0)))

    def at_end(self) -> bool:
        return self.place >= len(self.tokens)

    def next(self) -> tuple[str, str]:
        if self.at_end():
            raise self.reader.error("ends too early")
        self.place += 1
        return self.tokens[self.place - 1]

    def peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def found(self, text: str) -> bool:
        """Consumes a token if it is the next one; returns whether it was."""
        if self.peek() != text or self.at_end():
            return False
        self.place += 1
        return True

    def expect(self, text: str) -> None:
        if not self.found(text):
            raise self.reader.error(f"expected {text!r}, got {self.peek() or 'the end'!r}")

    def end(self) -> None:
        if not self.at_end():
            raise self.reader.error(f"cannot read {self.peek()!r}")

    def name(self) -> str:
        kind, text = self.next()
        if kind != "name":
            raise self.reader.error(f"expected a name, got {text!r}")
        return text

    def variable(self) -> Variable:
        """A variable that is defined already."""
        name = self.name()
        if name not in self.reader.names:
            raise self.reader.error(f"{name} is not defined before it is read")
        return self.reader.names[name]

    def definition(self, block: Block, stops: bool, later: bool = False) -> Variable:
        """A new variable with its type. later: it becomes defined when its call has been read."""
        name = self.name()
        if name in self.reader.names:
            raise self.reader.error(f"{name} is defined twice")
        self.expect(":")
        dtype = BY_NAME.get(self.name())
        if dtype is None:
            raise self.reader.error("expected a dtype")
        shape = self.sequence("[", "]")
        if not all(size is None or type(size) is int and 0 <= size < 2**62 for size in shape):
            raise self.reader.error("sizes are numbers or None")
        x = block.new_variable(name, tuple(shape), dtype, stop_gradient=stops)
        if x.name != name:
            raise self.reader.error(f"{name} is no name for a variable")
        while self.peek() == "(" and self.peek(1) in ("stack", "no", "gradient"):
            self.place += 1
            words = []
            while not self.found(")"):
                words.append(self.name())
            if words == ["stack"]:
                x.stack = True
            elif words in (["no", "gradient"], ["gradient"]):
                x.stop_gradient = words[0] == "no"
            else:
                raise self.reader.error(f"cannot read {' '.join(words)!r}")
        if not later:
            self.reader.names[name] = x
        return x

    def call(self, block: Block) -> tuple[str, list[Variable | None], dict[str, Any],
                                          dict[str, Any]]:
        """The type, the outputs, the inputs and the attributes of a call."""
        outputs: list[Variable | None] = []
        if self.peek(1) != "(":
            while True:
                if self.found("_"):
                    outputs.append(None)
                elif self.peek(1) == ":":
                    outputs.append(self.definition(block, False, later=True))
                else:
                    outputs.append(self.variable())
                if not self.found(","):
                    break
            self.expect("=")
        type = self.name()
        self.expect("(")
        names = known_arguments(type)
        inputs: dict[str, Any] = {}
        attributes: dict[str, Any] = {}
        while not self.found(")"):
            if self.peek(1) == "=":
                key = self.name()
                self.expect("=")
                home = inputs if is_input(type, key) else attributes
                if key in inputs or key in attributes:
                    raise self.reader.error(f"{key} is given twice")
                home[key] = self.value()
            elif len(inputs) < len(names):
                inputs[names[len(inputs)]] = self.value()
            else:
                raise self.reader.error(f"{type} takes {len(names)} inputs" if names else
                                        f"there is no operation {type!r} with inputs in order")
            if not self.found(",") and self.peek() != ")":
                raise self.reader.error(f"expected ',', got {self.peek() or 'the end'!r}")
        return type, outputs, inputs, attributes

    def sequence(self, opening: str, closing: str, depth: int = 0) -> list[Any]:
        """The values between two brackets."""
        self.expect(opening)
        found = []
        while not self.found(closing):
            found.append(self.value(depth + 1))
            if not self.found(",") and self.peek() != closing:
                raise self.reader.error(f"expected ',', got {self.peek() or 'the end'!r}")
        return found

    def value(self, depth: int = 0) -> Any:
        """A number, string, dtype, variable, or a container of such."""
        if depth > DEEPEST:
            raise self.reader.error("is nested too deep")
        if self.peek() == "(":
            return tuple(self.sequence("(", ")", depth))
        if self.peek() == "[":
            return self.sequence("[", "]", depth)
        if self.peek() == "{":
            return self.mapping(depth)
        kind, text = self.next()
        if kind == "number":
            return number_of(text)
        if kind == "string":
            return self.string(text)
        if text == "...":
            return ...
        if kind != "name":
            raise self.reader.error(f"cannot read {text!r}")
        if text in WORDS:
            return WORDS[text]
        if text in MADE and self.peek() == "(":          # else a variable of that name
            parts = self.sequence("(", ")", depth)
            try:
                return MADE[text](*parts)
            except TypeError:
                raise self.reader.error(f"{text} has other parts") from None
        if text in self.reader.names:
            return self.reader.names[text]
        if text in BY_NAME:
            found: DType = BY_NAME[text]
            return found
        raise self.reader.error(f"{text} is not defined before it is read")

    def string(self, text: str) -> str:
        """The value of a string literal."""
        try:
            found: str = literal_eval(text)
        except (SyntaxError, ValueError):
            raise self.reader.error(f"cannot read {text!r}") from None
        return found

    def mapping(self, depth: int) -> dict[Any, Any]:
        """A dict."""
        self.expect("{")
        found = {}
        while not self.found("}"):
            key = self.value(depth + 1)
            if type(key) not in KEYS:
                raise self.reader.error(f"cannot read the key {value_text(key)!r}")
            self.expect(":")
            found[key] = self.value(depth + 1)
            self.found(",")
        return found


def number_of(text: str) -> Any:
    """The int or float in a text."""
    digits = text.lstrip("-")
    if digits.isdigit() and len(digits) < 400:
        return int(text)
    return float(text)


def known_arguments(type: str) -> tuple[str, ...]:
    """The names of the arguments of a call; none for an unknown operation."""
    try:
        return form_of(type).arguments
    except UnknownType:
        return ()


def is_input(type: str, key: str) -> bool:
    """Whether an argument that is given by name is an input, and not an attribute."""
    try:
        form = form_of(type)
    except UnknownType:
        return key not in ("sub_block",)
    return key in form.arguments or key == "parts"
