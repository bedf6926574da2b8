"""Reductions, sorting and cumulative sums in ONNX."""

from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.onnx.pointwise import dtype_of, first_of
from tensorlib.onnx.shaping import as_dims, rank, with_dims
from tensorlib.onnx.writing import BOOL, FLOAT32, INT64, Writer, exports
from tensorlib.program.model import OpCall

REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin",
              "prod": "ReduceProd", "logsumexp": "ReduceLogSumExp"}


def reduced(g: Writer, call: OpCall, type: str, x: str) -> str:
    """A reduction over the dims of a call; nothing is reduced of a tensor without dims."""
    ndim = rank(call)
    if ndim == 0:
        return x
    dims = call.attributes.get("dim")
    axes = as_dims(None if dims == () else dims, ndim)
    return str(g.node(type, x, g.constant(axes), name=call.type,
                      keepdims=int(call.attributes.get("keepdim", False))))


@exports(*REDUCTIONS)
def reduction(g: Writer, call: OpCall) -> Any:
    dtype = dtype_of(call)
    if call.type in ("amax", "amin") and dtype == BOOL:
        return truth(g, call)
    return reduced(g, call, REDUCTIONS[call.type], g.value(first_of(call), dtype))


@exports("any", "all")
def truth(g: Writer, call: OpCall) -> Any:
    number = BY_NAME["int32"]
    x = g.cast(g.value(first_of(call), BOOL), BOOL, number)
    type = "ReduceMax" if call.type in ("any", "amax") else "ReduceMin"
    return g.cast(reduced(g, call, type, x), number, BOOL)


@exports("count_nonzero")
def count_nonzero(g: Writer, call: OpCall) -> Any:
    x = g.cast(g.value(first_of(call), BOOL), BOOL, INT64)
    return reduced(g, call, "ReduceSum", x)


@exports("argmax", "argmin")
def place(g: Writer, call: OpCall) -> Any:
    dim, keepdim = call.attributes.get("dim"), bool(call.attributes.get("keepdim", False))
    x, ndim = g.value(first_of(call)), rank(call)
    type = "ArgMax" if call.type == "argmax" else "ArgMin"
    if dim is None or ndim == 0:
        found = g.node(type, g.node("Reshape", x, g.constant([-1])), axis=0, keepdims=0)
        return g.node("Reshape", found, g.constant([1] * ndim)) if keepdim and ndim else found
    return g.node(type, x, axis=dim, keepdims=int(keepdim))


@exports("max", "min")
def extreme(g: Writer, call: OpCall) -> Any:
    """The greatest element, and where it is."""
    type = "Max" if call.type == "max" else "Min"
    x, dim = g.value(first_of(call)), call.attributes["dim"]
    if rank(call) == 0:
        return [x, g.constant(0)]
    keepdims = int(call.attributes.get("keepdim", False))
    return [g.node(f"Reduce{type}", x, g.constant([dim]), keepdims=keepdims, name=call.type),
            g.node(f"Arg{type}", x, axis=dim, keepdims=keepdims)]


@exports("euclidean_norm")
def euclidean_norm(g: Writer, call: OpCall) -> Any:
    return reduced(g, call, "ReduceL2", g.value(first_of(call), dtype_of(call)))


@exports("var", "std")
def variance(g: Writer, call: OpCall) -> Any:
    """Sums of squares by their number less the correction."""
    x, dtype, ndim = g.value(first_of(call), dtype_of(call)), dtype_of(call), rank(call)
    dims = call.attributes.get("dim")
    axes = as_dims(None if dims == () else dims, ndim)
    given = call.attributes.get("correction")
    correction = 1 if given is None else given
    count = g.constant(1.0, FLOAT32)
    for dim in axes if ndim else []:
        size = g.node("Squeeze", g.size_of(first_of(call), x, dim))
        count = g.node("Mul", count, g.cast(size, INT64, FLOAT32))
    divisor = g.node("Max", g.node("Sub", count, g.constant(float(correction), FLOAT32)),
                     g.constant(0.0, FLOAT32))
    moved = g.node("Sub", x, g.node("ReduceMean", x, g.constant(axes), keepdims=1)
                   if ndim else x)
    sums = reduced(g, call, "ReduceSum", g.node("Mul", moved, moved))
    found = g.node("Div", sums, g.cast(divisor, FLOAT32, dtype), name=call.type)
    return g.node("Sqrt", found, name=call.type) if call.type == "std" else found


@exports("softmax", "log_softmax")
def softmax(g: Writer, call: OpCall) -> Any:
    x = g.value(first_of(call), dtype_of(call))
    if rank(call) == 0:
        x = g.node("Unsqueeze", x, g.constant([0]))
        found = g.node("Softmax" if call.type == "softmax" else "LogSoftmax", x, axis=0)
        return g.node("Squeeze", found, g.constant([0]))
    return g.node("Softmax" if call.type == "softmax" else "LogSoftmax", x, name=call.type,
                  axis=call.attributes.get("dim", -1))


@exports("cumsum")
def cumsum(g: Writer, call: OpCall) -> Any:
    x = g.value(first_of(call), dtype_of(call))
    return x if rank(call) == 0 else g.node("CumSum", x, g.constant(call.attributes["dim"]))


@exports("top_order", "argsort")
def order(g: Writer, call: OpCall) -> Any:
    """Where the greatest or least elements are. TopK takes equal ones in their order."""
    x, dim = first_of(call), call.attributes.get("dim", -1)
    with_dims(call)
    name = g.value(x)
    if call.type == "argsort":
        count, largest = g.size_of(x, name, dim), call.attributes.get("descending", False)
    else:
        count, largest = g.size(call.attributes["k"]), call.attributes.get("largest", True)
    return g.node("TopK", name, count, outputs=2, axis=dim, largest=int(largest), sorted=1)[1]
