"""`export`: the ONNX file of a model or a program."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import no_grad
from tensorlib.autograd.tree import flatten, unflatten
from tensorlib.onnx import control_flow, layers, pointwise, reductions, shapes
from tensorlib.onnx.dynamic_axes import Open, from_axes, from_shapes, sizes_of, tensors_in
from tensorlib.onnx.errors import UnsupportedOperatorError, package
from tensorlib.onnx.symbolic_sizes import Compared, Dim, compared, grown
from tensorlib.onnx.writer import NEWEST, OLDEST, USUAL, Writer
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.program.capture.trace import trace
from tensorlib.program.ir.model import Variable
from tensorlib.program.program import Program

LARGEST_FILE = 2**31 - 2**20         # what protobuf can hold, with room for the graph
FAMILIES = (control_flow, layers, pointwise, reductions, shapes)    # which declare the handlers
_exporting = False


def is_in_onnx_export() -> bool:
    """Whether an export is running, of which the model's code may take account."""
    return _exporting


class ONNXProgram:
    """An exported model.

    model_proto: the `onnx.ModelProto`. Called on tensors, it is run by onnxruntime.
    """

    __module__ = "tensorlib.onnx"

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto
        self._session: Any = None

    def save(self, destination: str | os.PathLike[str] | Any) -> None:
        """Writes the model to a path, or to a file that is open for writing bytes.

        Values of more than two gigabytes, which no such file can hold, go into a second file beside
        it, `NAME.data`.
        """
        if hasattr(destination, "write"):
            destination.write(self.model_proto.SerializeToString())
            return
        path = os.fspath(destination)
        beside: dict[str, Any] = {}
        if sum(len(x.raw_data) for x in self.model_proto.graph.initializer) > LARGEST_FILE:
            beside = {"save_as_external_data": True, "location": f"{os.path.basename(path)}.data"}
        package("onnx").save_model(self.model_proto, path, **beside)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The outputs for the tensors among the arguments, computed by onnxruntime."""
        if self._session is None:
            self._session = package("onnxruntime").InferenceSession(
                self.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [x.name for x in self._session.get_inputs()]
        tensors = tensors_in((args, kwargs))
        if len(tensors) != len(names):
            raise TypeError(f"ONNXProgram: takes {len(names)} tensors ({', '.join(names)}), got "
                            f"{len(tensors)}")
        feed = {name: np.asarray(x.detach().numpy(), order="C")
                for name, x in zip(names, tensors)}
        return tuple(FUNCTIONS["tensor"](x) for x in self._session.run(None, feed))

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return (f"ONNXProgram({', '.join(x.name for x in graph.input)}) -> "
                f"{', '.join(x.name for x in graph.output)}, of {len(graph.node)} nodes")


def export(model: Any, args: Any = (), f: Any = None, *, kwargs: Mapping[str, Any] | None = None,
           verbose: bool | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None,
           dynamo: bool = True, dynamic_shapes: Any = None, dynamic_axes: Any = None,
           export_params: bool = True, do_constant_folding: bool = True) -> ONNXProgram:
    """The model as ONNX, written to `f` as well, a path or an open file, where one is given.

    model: a Module, which is exported as it is in `eval()`, a function of tensors, or a Program,
    which has its inputs and takes no `args`. args: a tuple of example arguments, or one tensor;
    with `kwargs` those by keyword. Tensors among them, also in containers, are the inputs.

    dynamic_shapes: the sizes that stay open, of the arguments in order or by name: `{"x": {0:
    "batch"}}`. dynamic_axes: the same by the names of inputs. The model is run with a few values of
    them, so it must not do other things for other sizes; the examples' sizes are tried with more,
    or, where the model refuses that, with less. All other sizes are fixed.
    opset_version: 18 to 23, 20 by default. verbose: prints the graph.
    dynamo, do_constant_folding: there is one way of exporting, and constants are always folded.

    Values that the model writes to its buffers, which in ONNX would be state, are left out.
    Raises: ModuleNotFoundError without the package onnx; UnsupportedOperatorError for a call that
    has no counterpart, with its line; OnnxExporterError for a model that does other things for
    other sizes; CaptureError as `program.trace`; ValueError, TypeError for names, sizes and
    versions that don't fit.

    For instance `export(nn.Linear(3, 2), (tensorlib.ones(5, 3),), "model.onnx",
    dynamic_shapes={"input": {0: "batch"}})`.
    """
    opset = USUAL if opset_version is None else opset_version
    if type(opset) is not int or not OLDEST <= opset <= NEWEST:
        raise ValueError(f"onnx.export: opset_version must be {OLDEST} to {NEWEST}, got {opset!r}")
    if not export_params:
        raise ValueError("onnx.export: export_params=False is not supported; the parameters are "
                         "the graph's initializers")
    package("onnx")
    args = args if isinstance(args, (tuple, list)) else (args,)
    if isinstance(model, Program):
        if args or kwargs or dynamic_axes or dynamic_shapes:
            raise ValueError("onnx.export: a Program has its inputs and their sizes, so it takes "
                             "no args, kwargs, dynamic_axes and dynamic_shapes")
        found = Compared([model], {})
        names = [x.name for x in model.inputs]
        dims: list[Open] = [
            {i: f"{x.name}_dim_{i}" for i, size in enumerate(x.shape) if size is None}
            for x in model.inputs]
    else:
        if not callable(model):
            raise TypeError("onnx.export: takes a Module, a function or a Program, got "
                            f"{type(model).__name__}")
        found, names, dims = captured(model, tuple(args), dict(kwargs or {}), input_names,
                                      output_names, dynamic_shapes, dynamic_axes)
    exported = ONNXProgram(written(found, checked("input_names", input_names, names), dims,
                                   output_names, opset, type(model).__name__))
    check(exported.model_proto)
    if verbose:
        print(package("onnx").printer.to_text(exported.model_proto))
    if f is not None:
        exported.save(f)
    return exported


def check(model: Any) -> None:
    """Raises: UnsupportedOperatorError for a node that ONNX does not have for the dtypes that it is
    given, with the lines that have such nodes."""
    onnx = package("onnx")
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        type = re.search(r"op_type:\s*(\w+)", str(error))
        lines = sorted({x.doc_string for x in model.graph.node if type and x.op_type == type[1]})
        raise UnsupportedOperatorError(
            f"onnx.export: ONNX has no such model: {str(error).strip()}"
            + f" ({', '.join(filter(None, lines))})" * any(lines)) from None


# ---- the program of a model ----------------------------------------------------------------------

class Entry:
    """A model as a function of the tensors among its arguments."""

    def __init__(self, model: Any, leaves: list[Any], structure: Any):
        self.model, self.leaves, self.structure = model, leaves, structure
        self.named_parameters = getattr(model, "named_parameters", dict)
        self.named_buffers = getattr(model, "named_buffers", dict)

    def __call__(self, *tensors: Tensor) -> Any:
        left = iter(tensors)
        args, kwargs = unflatten(self.structure, [
            next(left) if isinstance(x, Tensor) else x for x in self.leaves])
        return self.model(*args, **kwargs)


def captured(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
             input_names: Sequence[str] | None, output_names: Sequence[str] | None,
             shapes: Any, axes: Any) -> tuple[Compared, list[str], list[Open]]:
    """The program of a model, the names of its inputs, and their open dims."""
    leaves, structure = flatten((args, kwargs), "onnx.export: the arguments")
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    parameters = parameter_names(model)
    names = input_names_of(args, kwargs, parameters)
    named = checked("input_names", input_names, names)
    if shapes is not None:
        dims = from_shapes(shapes, args, kwargs, parameters, named)
    elif axes is not None:
        dims = from_axes(axes, named, tensors, output_names)
    else:
        dims = [{} for _ in tensors]
    entry = Entry(model, leaves, structure)

    def traced(sizes: dict[str, int]) -> Program:
        return trace(entry, *(grown(x, {dim: sizes[symbol] for dim, symbol in open_dims.items()})
                              for x, open_dims in zip(tensors, dims)))

    with evaluating(model), no_grad():
        return compared(traced, sizes_of(dims, tensors)), names, dims


@contextmanager
def evaluating(model: Any) -> Any:
    """A context under which a model's modules are not in training."""
    global _exporting
    modules = [(m, m.training) for m in model.modules()] if hasattr(model, "modules") else []
    before, _exporting = _exporting, True
    try:
        for m, _ in modules:
            m.training = False
        yield
    finally:
        _exporting = before
        for m, training in modules:
            m.training = training


def parameter_names(model: Any) -> list[str]:
    """The names of what a model is called with."""
    try:
        found = signature(getattr(model, "forward", model)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [x.name for x in found if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]


def input_names_of(args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]
                   ) -> list[str]:
    """A name for each tensor among the arguments: its parameter's, with a number in containers."""
    names = []
    places = [*(parameters[i] if i < len(parameters) else f"input_{i}" for i in range(len(args))),
              *kwargs]
    for name, argument in zip(places, [*args, *kwargs.values()]):
        count = len(tensors_in(argument))
        names += [name] if isinstance(argument, Tensor) else [f"{name}_{i}" for i in range(count)]
    return names


def checked(what: str, given: Sequence[str] | None, names: list[str]) -> list[str]:
    """The names that were given for the first, and for the others those they have.

    Raises: ValueError for more names than there are things, or one name for two.
    """
    given = list(given or ())
    if len(given) > len(names):
        raise ValueError(f"onnx.export: {len(given)} {what} for {len(names)}")
    found = [*map(sys.intern, given), *names[len(given):]]
    if len(set(found)) != len(found):
        raise ValueError(f"onnx.export: {what} must differ, got {', '.join(found)}")
    return found


# ---- the file ------------------------------------------------------------------------------------

def written(found: Compared, names: list[str], dims: list[Open],
            output_names: Sequence[str] | None, opset: int, title: str) -> Any:
    """The ModelProto of a program."""
    g, program = Writer(found, opset), found.program
    leaves = [x for x in flatten(program.outputs)[0] if x is not None]
    out_names = checked("output_names", output_names, ["output"] if len(leaves) == 1 else [
        f"output_{i}" for i in range(len(leaves))])
    g.taken.update(names, out_names)
    inputs = []
    for x, name, open_dims in zip(program.inputs, names, dims):
        g.names[x] = name
        for dim, symbol in open_dims.items():
            g.symbols.setdefault(symbol, (name, dim))
        inputs.append(g.info(name, x.dtype, [
            open_dims.get(i, size) for i, size in enumerate(x.shape)]))
    g.block(program.block, leaves)
    outputs = []
    g.line = ""
    for x, name in zip(leaves, out_names):
        if type(x) is not Variable:
            x = FUNCTIONS["tensor"](x)
            value, shape = g.constant(x), tuple(x.shape)
        else:
            value, shape = g.value(x), g.shape(x)
        g.nodes.append(g.onnx.helper.make_node("Identity", [value], [name]))
        outputs.append(g.info(name, x.dtype, [
            size if type(size) is int or isinstance(size, Dim) and size.symbol
            else f"{name}_dim_{i}" for i, size in enumerate(shape)]))
    return g.model(inputs, outputs, title)
