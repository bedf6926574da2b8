"""What a model computes as TensorBoard's graph: its calls, in the boxes of its modules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorlib import Tensor, no_grad
from tensorlib.autograd.tree import flatten
from tensorlib.program.capture.trace import trace
from tensorlib.program.ir.model import Block, Variable, variables_in
from tensorlib.utils.tensorboard.protos import protos


def graph_of(model: Any, inputs: Any) -> Any:
    """The graph of one call of a model, which is captured as a program."""
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with no_grad():
        program = trace(model, *given)
    names = {id(p): name.replace(".", "/") for name, p in named(model)}
    graph, sources = protos().GraphDef(), dict[Variable, str]()
    for kind, variables in (("input", program.block.inputs), ("value", program.persistables())):
        for x in variables:
            name = names.get(id(x.value)) or f"{kind}/{x.name}"
            sources[x] = node(graph, name, "Parameter" if id(x.value) in names else kind, [], x)
    add_calls(graph, program.block, sources, names)
    for number, x in enumerate(flatten(program.outputs)[0]):
        if type(x) is Variable and x in sources:
            node(graph, f"output/{number}", "output", [sources[x]], x)
    graph.versions.CopyFrom(protos().VersionDef(producer=22))
    return graph


def graph_of_onnx(path: Any) -> Any:
    """The graph of an ONNX file: its inputs and outputs, and its nodes by what they give first."""
    try:
        onnx = import_module("onnx")
    except ImportError:
        raise ImportError("add_onnx_graph: reading the file needs the package onnx: pip install "
                          "'tensorlib[onnx]'") from None
    kinds, found = protos(), onnx.load(path).graph
    graph = kinds.GraphDef(versions=kinds.VersionDef(producer=22))
    for x in [*found.input, *found.output]:
        kind = x.type.tensor_type
        shape = kinds.TensorShapeProto(dim=[kinds.TensorShapeProto.Dim(size=dim.dim_value)
                                            for dim in kind.shape.dim])
        graph.node.append(kinds.NodeDef(name=x.name, op="Variable", attr={
            "dtype": kinds.AttrValue(type=kind.elem_type), "shape": kinds.AttrValue(shape=shape)}))
    for each in found.node:
        settings = ", ".join(f"{setting.name} = {onnx.helper.get_attribute_value(setting)}"
                             for setting in each.attribute)
        graph.node.append(kinds.NodeDef(
            name=each.output[0], op=each.op_type, input=each.input,
            attr={"parameters": kinds.AttrValue(s=settings.encode())}))
    return graph


def named(model: Any) -> list[tuple[str, Tensor]]:
    """The parameters and buffers of a module by name; none of a function."""
    if not hasattr(model, "named_parameters"):
        return []
    return [*model.named_parameters(), *model.named_buffers()]


def add_calls(graph: Any, block: Block, sources: dict[Variable, str],
              names: dict[int, str]) -> None:
    """A node for each call; those of its blocks stand before it."""
    place = ""
    for number, call in enumerate(block.ops):
        for inner in call.attributes.values():
            if type(inner) is Block:
                for x in inner.inputs:
                    sources[x] = node(graph, f"block_{inner.index}/{x.name}", "input", [], x)
                add_calls(graph, inner, sources, names)
        read = list(dict.fromkeys(variables_in((call.inputs, call.attributes))))
        owner = next((names[id(x.value)] for x in read if id(x.value) in names), None)
        place = place if owner is None else owner.rpartition("/")[0]
        prefix = f"block_{block.index}/" if block.index else f"{place}/" if owner else ""
        written = call.writes()
        name = node(graph, f"{prefix}{call.type}_{block.index}_{number}", call.type,
                    [sources[x] for x in read if x in sources], written[0] if written else None)
        for x in written:
            sources[x] = name


def node(graph: Any, name: str, op: str, inputs: list[str], x: Variable | None) -> str:
    """The name of a node that is added, with the shape of what it gives."""
    kinds = protos()
    made = kinds.NodeDef(name=name, op=op, input=inputs)
    if x is not None:
        shape = kinds.TensorShapeProto(dim=[kinds.TensorShapeProto.Dim(size=size)
                                            for size in x.shape])
        made.attr["_output_shapes"].CopyFrom(kinds.AttrValue(
            list=kinds.AttrValue.ListValue(shape=[shape])))
        made.attr["dtype"].CopyFrom(kinds.AttrValue(s=x.dtype.name.encode()))
    graph.node.append(made)
    return name
