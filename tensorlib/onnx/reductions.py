"""Reductions, sorting and cumulative sums in ONNX."""

from functools import partial
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.onnx.pointwise import dtype_of, first_of
from tensorlib.onnx.shapes import as_dims, rank, with_dims
from tensorlib.onnx.writer import BOOL, FLOAT32, INT64, Handler, Writer, onnx_rule
from tensorlib.ops.lazy import operations
from tensorlib.program.ir.model import OpCall

def reduced(g: Writer, call: OpCall, type: str, x: str) -> str:
    """A reduction over the dims of a call; nothing is reduced of a tensor without dims."""
    ndim = rank(call)
    if ndim == 0:
        return x
    dims = call.attributes.get("dim")
    axes = as_dims(None if dims == () else dims, ndim)
    return str(g.node(type, x, g.constant(axes), name=call.type,
                      keepdims=int(call.attributes.get("keepdim", False))))


def reduction(type: str) -> Handler:
    """The rule of a reduction that ONNX has under this name."""
    def rule(g: Writer, call: OpCall) -> Any:
        return reduced(g, call, type, g.value(first_of(call), dtype_of(call)))
    return rule


onnx_rule(operations.sum)(reduction("ReduceSum"))
onnx_rule(operations.mean)(reduction("ReduceMean"))
onnx_rule(operations.prod)(reduction("ReduceProd"))
onnx_rule(operations.logsumexp)(reduction("ReduceLogSumExp"))
onnx_rule(operations.euclidean_norm)(reduction("ReduceL2"))


@onnx_rule(operations.nansum)
def nansum(g: Writer, call: OpCall) -> Any:
    """The sum with 0 in the place of NaN."""
    dtype = dtype_of(call)
    x = g.value(first_of(call), dtype)
    if first_of(call).dtype.is_floating_point:
        x = g.node("Where", g.node("IsNaN", x), g.constant(0.0, dtype), x)
    return reduced(g, call, "ReduceSum", x)


def truth(type: str) -> Handler:
    """The rule of a reduction of bools, which ONNX reduces as numbers."""
    def rule(g: Writer, call: OpCall) -> Any:
        number = BY_NAME["int32"]
        x = g.cast(g.value(first_of(call), BOOL), BOOL, number)
        found = g.cast(reduced(g, call, type, x), number, BOOL)
        return g.cast(found, BOOL, dtype_of(call))
    return rule


def extreme_value(type: str) -> Handler:
    """The rule of the greatest or the least elements."""
    of_numbers, of_bools = reduction(type), truth(type)
    return lambda g, call: (of_bools if dtype_of(call) == BOOL else of_numbers)(g, call)


onnx_rule(operations.any)(truth("ReduceSum"))              # none of none
onnx_rule(operations.all)(truth("ReduceMin"))
onnx_rule(operations.amax)(extreme_value("ReduceMax"))
onnx_rule(operations.amin)(extreme_value("ReduceMin"))


@onnx_rule(operations.count_nonzero)
def count_nonzero(g: Writer, call: OpCall) -> Any:
    """The sum of whether each element is other than 0."""
    x = g.cast(g.value(first_of(call), BOOL), BOOL, INT64)
    return reduced(g, call, "ReduceSum", x)


def place(g: Writer, call: OpCall, type: str) -> Any:
    """Where along a dim, or among all elements, an extreme one is."""
    dim, keepdim = call.attributes.get("dim"), bool(call.attributes.get("keepdim", False))
    x, ndim = g.value(first_of(call)), rank(call)
    if dim is None or ndim == 0:
        found = g.node(type, g.node("Reshape", x, g.constant([-1])), axis=0, keepdims=0)
        return g.node("Reshape", found, g.constant([1] * ndim)) if keepdim and ndim else found
    return g.node(type, x, axis=dim, keepdims=int(keepdim))


onnx_rule(operations.argmax)(partial(place, type="ArgMax"))
onnx_rule(operations.argmin)(partial(place, type="ArgMin"))


def extreme(g: Writer, call: OpCall, type: str) -> Any:
    """The greatest or least element, and where it is."""
    x, dim = g.value(first_of(call)), call.attributes["dim"]
    if rank(call) == 0:
        return [x, g.constant(0)]
    keepdims = int(call.attributes.get("keepdim", False))
    return [g.node(f"Reduce{type}", x, g.constant([dim]), keepdims=keepdims, name=call.type),
            g.node(f"Arg{type}", x, axis=dim, keepdims=keepdims)]


onnx_rule(operations.max)(partial(extreme, type="Max"))
onnx_rule(operations.min)(partial(extreme, type="Min"))


@onnx_rule(operations.var)
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
    return g.node("Div", sums, g.cast(divisor, FLOAT32, dtype), name=call.type)


@onnx_rule(operations.std)
def deviation(g: Writer, call: OpCall) -> Any:
    """The square root of the variance."""
    return g.node("Sqrt", variance(g, call), name=call.type)


def along(g: Writer, call: OpCall, type: str) -> Any:
    """What works along a dim; ONNX takes at least one."""
    x = g.value(first_of(call), dtype_of(call))
    if rank(call) == 0:
        x = g.node("Unsqueeze", x, g.constant([0]))
        return g.node("Squeeze", g.node(type, x, axis=0), g.constant([0]))
    return g.node(type, x, name=call.type, axis=call.attributes.get("dim", -1))


onnx_rule(operations.softmax)(partial(along, type="Softmax"))
onnx_rule(operations.log_softmax)(partial(along, type="LogSoftmax"))


@onnx_rule(operations.cumsum)
def cumsum(g: Writer, call: OpCall) -> Any:
    """`CumSum`; of a tensor without dims itself."""
    x = g.value(first_of(call), dtype_of(call))
    return x if rank(call) == 0 else g.node("CumSum", x, g.constant(call.attributes["dim"]))


@onnx_rule(operations.argsort)
def argsort(g: Writer, call: OpCall) -> Any:
    """The indices of all elements along a dim, in order."""
    x = first_of(call)
    with_dims(call)
    count = g.size_of(x, g.value(x), call.attributes.get("dim", -1))
    return order(g, call, count, call.attributes.get("descending", False))


@onnx_rule(operations.top_order)
def top_order(g: Writer, call: OpCall) -> Any:
    """The indices of the first k elements along a dim, in order."""
    with_dims(call)
    return order(g, call, g.size(call.attributes["k"]), call.attributes.get("largest", True))


def order(g: Writer, call: OpCall, count: str, largest: bool) -> Any:
    """Where the greatest or least elements are. TopK takes equal ones in their order."""
    dtype = first_of(call).dtype
    name = g.value(first_of(call), BY_NAME["int32"] if dtype == BOOL else dtype)
    dim = call.attributes.get("dim", -1)
    return g.node("TopK", name, count, outputs=2, axis=dim, largest=int(largest), sorted=1)[1]
