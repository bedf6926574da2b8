"""The writer: goes through a program and makes the nodes of an ONNX graph, call by call."""

from collections.abc import Callable, Iterable
from math import lcm
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.base.version import __version__
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import no_grad
from tensorlib.onnx.errors import OnnxExporterError, package, unsupported
from tensorlib.onnx.symbolic_sizes import Compared, Dim, ConstantFill, SymbolicRange, Repeated, Term
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import name_of, operations
from tensorlib.program.building.builder import inferred
from tensorlib.program.ir.call_types import WRITERS, is_draw
from tensorlib.program.ir.files import bytes_of
from tensorlib.program.ir.interpreter import results_of
from tensorlib.program.ir.model import Block, OpCall, Variable, variables_in

INT64, FLOAT32, BOOL = BY_NAME["int64"], BY_NAME["float32"], BY_NAME["bool"]
# ONNX's names of the dtypes that have another one
CODES = {"float32": "FLOAT", "float64": "DOUBLE"}
OLDEST, NEWEST, USUAL = 18, 23, 20           # opsets

Handler = Callable[["Writer", OpCall], Any]
HANDLERS: dict[str, Handler] = {}


def onnx_rule(*operations: Any) -> Callable[[Handler], Handler]:
    """Makes a function the one that writes calls of operations, of `ops.lazy.operations` or
    functions of the user's own.

    It takes the writer and the call, and returns the ONNX name of what the call gives, or a list
    of names; None stands for a result that it can't give, which must not be read then.
    """
    return program_rule(*map(name_of, operations))


def program_rule(*types: str) -> Callable[[Handler], Handler]:
    """As `onnx_rule`, for what only programs have: control flow."""
    def declare(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(types, handler))
        return handler
    return declare


class Writer:
    """Makes the graph of a program.

    nodes: those of the graph that is written now, which may be one inside of another. head: those
    that compute sizes, before all others. names: of the values of variables. known: values that do
    not depend on inputs, as tensors.
    """

    def __init__(self, compared: Compared, opset: int):
        self.onnx, self.opset = package("onnx"), opset
        self.compared = compared
        self.head: list[Any] = []
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.taken: set[str] = set()
        self.names: dict[Variable, str] = {}
        self.known: dict[Variable, Tensor] = {}
        self.cached: dict[Any, str] = {}
        self.made: list[dict[Any, Any]] = [{}]            # nodes, of this graph and those around it
        self.symbols: dict[str, tuple[str, int]] = {}     # where an open size is read
        self.makers: dict[Variable, OpCall] = {}
        self.line = ""

    # ---- nodes

    def new_name(self, stem: str) -> str:
        """A name that nothing else in the file has."""
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}.{number}"
        self.taken.add(name)
        return name

    def node(self, type: str, *inputs: str, outputs: int = 1, name: str = "",
             **attributes: Any) -> Any:
        """The name of what a new node gives, or a list of them. An input may be "" for none.

        A node that is there already is not made again.
        """
        key = type, inputs, outputs, repr(sorted(attributes.items()))
        if key in self.made[-1]:
            return self.made[-1][key]
        names = [self.new_name(name or type.lower()) for _ in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(
            type, list(inputs), names, doc_string=self.line or None, **attributes))
        found = names[0] if outputs == 1 else names
        if type != "Identity":
            self.made[-1][key] = found
        return found

    def code(self, dtype: DType) -> int:
        """ONNX's number of a dtype."""
        return int(getattr(self.onnx.TensorProto, CODES.get(dtype.name, dtype.name.upper())))

    def constant(self, value: Any, dtype: DType | None = None) -> str:
        """The name of a constant: a Tensor, a number, or a list of whole numbers."""
        if not isinstance(value, Tensor):
            value = FUNCTIONS["tensor"](value, dtype=dtype or INT64)
        data = bytes_of(value)
        key = value.dtype, tuple(value.shape), data
        if key not in self.cached:
            self.cached[key] = self.initializer("constant", value, data)
        return self.cached[key]

    def initializer(self, stem: str, value: Tensor, data: bytes | None = None) -> str:
        """The name of a new value that is stored in the file."""
        name = self.new_name(stem)
        self.initializers.append(self.onnx.TensorProto(
            name=name, data_type=self.code(value.dtype), dims=list(value.shape),
            raw_data=bytes_of(value) if data is None else data))
        return name

    def cast(self, name: str, old: DType, new: DType) -> str:
        """A value in another dtype."""
        if old == new:
            return name
        return str(self.node("Cast", name, to=self.code(new)))

    # ---- what calls take

    def value(self, x: Any, dtype: DType | None = None) -> str:
        """The name of an argument: a variable, or a number, which is taken as `dtype`."""
        if type(x) is not Variable:
            return self.scalar(x, dtype or FLOAT32)
        return self.cast(self.name_of(x), x.dtype, dtype or x.dtype)

    def scalar(self, x: Any, dtype: DType) -> str:
        """The name of a number, which may be an open size."""
        if isinstance(x, Dim):
            return self.cast(self.node("Squeeze", self.size(x)), INT64, dtype)
        return self.constant(x, dtype)

    def name_of(self, x: Variable) -> str:
        """The name of a variable; what is known is stored when it is first read."""
        if x not in self.names:
            if x in self.compared.constants:
                return self.open_constant(self.compared.constants[x])
            value = self.tensor(x)
            if value is None and x in self.makers:
                raise unsupported(self.makers[x], f"{x.name} has no counterpart in ONNX")
            if value is None:
                raise OnnxExporterError(f"onnx.export: {x.name} has no value")
            if not x.persistable and value.numel() <= 1024:
                return self.constant(value)
            self.names[x] = self.initializer(x.name, value)
        return self.names[x]

    def tensor(self, x: Any) -> Tensor | None:
        """The value of a variable that does not depend on inputs; None of another one."""
        if type(x) is not Variable or x in self.compared.constants:
            return None
        return x.value if x.persistable else self.known.get(x)

    def open_constant(self, x: ConstantFill | SymbolicRange) -> str:
        """The name of a constant that depends on open sizes."""
        if isinstance(x, ConstantFill):
            return str(self.node("Expand", self.constant(x.value), self.shape_vector(x.shape)))
        start, step = (self.scalar(part, INT64) for part in (x.start, x.step))
        length = self.scalar(x.length, INT64)
        end = self.node("Add", start, self.node("Mul", step, length))
        return str(self.node("Range", start, end, step))

    def inputs(self, call: OpCall, dtype: DType | None = None) -> list[str]:
        """The names of the arguments of a call in one dtype, by default that of its result."""
        dtype = dtype or call.outputs[0].dtype            # type: ignore[union-attr]
        return [self.value(x, dtype) for x in call.inputs.values()]

    def common(self, call: OpCall) -> DType:
        """The dtype in which a call compares its arguments."""
        pair = list(call.inputs.values())[:2]
        plain = [1 if isinstance(x, Dim) else x for x in pair]
        if len(pair) < 2 or all(type(x) is Variable and x.dtype == pair[0].dtype for x in pair):
            return next(x.dtype for x in pair if type(x) is Variable)
        product = OpCall(operations.mul.name, dict(zip(("input", "other"), plain)), ())
        found: DType = inferred(product)[1]
        return found

    def shape(self, x: Variable) -> tuple[Any, ...]:
        """The sizes of a variable: numbers, Dims, and None for what is not known."""
        return self.compared.shapes.get(x, x.shape)

    def fixed_shape(self, call: OpCall, x: Variable) -> tuple[int, ...]:
        """The sizes of a variable. Raises: UnsupportedOperatorError where one is open."""
        shape = self.shape(x)
        if not all(type(size) is int for size in shape):
            raise unsupported(call, f"takes fixed sizes, but {x.name} has open ones, {shape}")
        return shape

    def fixed(self, call: OpCall, *values: Any) -> None:
        """Raises: UnsupportedOperatorError where a number among the values is an open size."""
        for x in values:
            if isinstance(x, (tuple, list)) and not isinstance(x, Repeated):
                self.fixed(call, *x)
            elif isinstance(x, (Dim, Repeated)):
                raise unsupported(call, f"takes fixed sizes, but got an open one, {x}")

    # ---- sizes

    def size(self, x: Any) -> str:
        """The name of a vector of one whole number: a size, or a variable of one."""
        if type(x) is Variable:
            return str(self.node("Reshape", self.value(x, INT64), self.constant([1])))
        if not isinstance(x, Dim):
            return self.constant([x])
        if x.formula is None:
            raise OnnxExporterError(f"onnx.export: {self.line}: no formula is known of a size "
                                    f"that is {x.values} for dynamic sizes {self.compared.sizes}")
        key = ("size", x.formula)
        if key not in self.cached:
            nodes, self.nodes, line = self.nodes, self.head, self.line
            self.line = ""
            self.made.append({})
            self.cached[key] = self.computed(x.formula)
            self.made.pop()
            self.nodes, self.line = nodes, line
        return self.cached[key]

    def computed(self, formula: tuple[Term, ...]) -> str:
        """The name of the sum of terms. Fractions are brought to whole numbers, and divided last.
        """
        below = lcm(*(term.factor.denominator for term in formula))
        total = ""
        for factor, symbols in formula:
            number, found = int(factor * below), ""
            for symbol in symbols:
                name, dim = self.symbols[symbol]
                one = self.node("Shape", name, start=dim, end=dim + 1)
                found = self.node("Mul", found, one) if found else one
            if not found:
                found = self.constant([number])
            elif number != 1:
                found = self.node("Mul", found, self.constant([number]))
            total = self.node("Add", total, found) if total else found
        return self.node("Div", total, self.constant([below])) if below > 1 else total

    def shape_vector(self, sizes: Iterable[Any]) -> str:
        """The name of a shape, as a vector."""
        sizes = list(sizes)
        if all(type(size) is int for size in sizes):
            return self.constant(sizes)
        if len(sizes) == 1:
            return self.size(sizes[0])
        return str(self.node("Concat", *map(self.size, sizes), axis=0))

    def size_of(self, x: Variable, name: str, dim: int) -> str:
        """The name of a vector of one size of a variable, as a formula or as the model runs."""
        size = self.shape(x)[dim]
        if type(size) is int or isinstance(size, Dim) and size.formula is not None:
            return self.size(size)
        dim %= len(x.shape)
        return str(self.node("Shape", name, start=dim, end=dim + 1))

    # ---- calls

    def block(self, block: Block, outputs: Iterable[Any]) -> None:
        """Writes the calls of a block that its outputs need."""
        needed = {x for x in outputs if type(x) is Variable}
        calls = []
        for call in reversed(block.ops):
            if any(x in needed for x in call.writes()):
                needed.update(call.reads())
                calls.append(call)
        for call in reversed(calls):
            self.call(call)

    def call(self, call: OpCall) -> None:
        """Writes one call. Raises: UnsupportedOperatorError."""
        if call.in_place or call.type in WRITERS:
            raise unsupported(call, "writes in place into what outlasts a run; a model in ONNX "
                                    "has no state, so return the new value instead")
        if is_draw(call.type):
            raise unsupported(call, "draws random numbers")
        for x in (*variables_in(call.reads()), *call.outputs):
            if x is not None and x.dtype.is_complex:
                raise unsupported(call, f"computes with {x.dtype}, and ONNX's operations take no "
                                        "complex numbers")
        self.line = call.line
        if self.folded(call):
            return
        handler = HANDLERS.get(call.type)
        if handler is None and "sub_block" in call.attributes:
            handler = HANDLERS["sub_block"]
        if handler is None:
            raise unsupported(call, "has no counterpart in ONNX")
        found = handler(self, call)
        for x, name in zip(call.outputs, [found] if isinstance(found, str) else found):
            if x is not None:
                self.makers[x] = call
                if name is not None:
                    self.names[x] = name

    def folded(self, call: OpCall) -> bool:
        """Whether a call depends on no input and was run now, unless its result is larger."""
        reads = [x for x in variables_in((call.inputs, call.attributes))]
        tensors = [self.tensor(x) for x in reads]
        open_ones = [x for x in nested((call.inputs, call.attributes))
                     if isinstance(x, (Dim, Repeated))]
        if (not reads or call.blocks() or any(x is None for x in tensors) or open_ones
                or any(x in self.compared.shapes for x in call.writes())):
            return False
        with no_grad():
            found = results_of(call, {x: value for x, value in zip(reads, tensors)})
        if sum(x.numel() for x in found) > max(sum(x.numel() for x in tensors if x is not None),
                                               64):
            return False
        for x, value in zip(call.outputs, found):
            if x is not None:
                self.known[x] = value
                self.names.pop(x, None)
        return True

    # ---- graphs

    def inner(self, name: str, write: Callable[[], tuple[list[Any], list[Any]]]) -> Any:
        """A graph inside of this one: `write` writes its nodes and gives its inputs and outputs."""
        nodes, self.nodes = self.nodes, []
        self.made.append({})
        inputs, outputs = write()
        graph = self.onnx.helper.make_graph(self.nodes, name, inputs, outputs)
        self.made.pop()
        self.nodes = nodes
        return graph

    def own(self, name: str) -> str:
        """A name that a node of the present graph gives, as its outputs must."""
        return str(self.node("Identity", name))

    def info(self, name: str, dtype: DType, shape: Any = None) -> Any:
        """What a graph says of an input or output. Sizes may be open, or without a name, None."""
        sizes = None if shape is None else [
            size.symbol if isinstance(size, Dim) else size for size in shape]
        return self.onnx.helper.make_tensor_value_info(name, self.code(dtype), sizes)

    def model(self, inputs: list[Any], outputs: list[Any], name: str) -> Any:
        """The whole file."""
        helper = self.onnx.helper
        nodes = live([*self.head, *self.nodes], {x.name for x in outputs})
        read = {name for node in nodes for name in names_read(node)}
        graph = helper.make_graph(nodes, name, inputs, outputs,
                                  [x for x in self.initializers if x.name in read])
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(
            graph, opset_imports=opsets, producer_name="tensorlib", producer_version=__version__,
            ir_version=helper.find_min_ir_version_for(opsets))


def nested(value: Any) -> Iterable[Any]:
    """The leaves of nested dicts, tuples, lists and slices; a Repeated is one."""
    if isinstance(value, Repeated):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from nested(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from nested(part)
    elif isinstance(value, slice):
        yield from nested((value.start, value.stop, value.step))
    else:
        yield value


def names_read(node: Any) -> Iterable[str]:
    """The names that a node reads, also in the graphs that it has."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from (x.name for x in attribute.g.output)
            for inner in attribute.g.node:
                yield from names_read(inner)


def live(nodes: list[Any], wanted: set[str]) -> list[Any]:
    """The nodes that these names need, without those that only pass on what another gives."""
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    return joined(kept[::-1])


def joined(nodes: list[Any]) -> list[Any]:
    """The nodes, with an output of the graph in the place of a name that only it reads."""
    readers: dict[str, int] = {}
    for node in nodes:
        for name in names_read(node):
            readers[name] = readers.get(name, 0) + 1
    makers = {name: node for node in nodes for name in node.output}
    kept = []
    for node in nodes:
        maker = makers.get(node.input[0]) if node.op_type == "Identity" else None
        if maker is None or readers[node.input[0]] > 1:
            kept.append(node)
            continue
        place = list(maker.output).index(node.input[0])
        maker.output[place] = node.output[0]
    return kept
