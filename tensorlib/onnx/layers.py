"""Layers of networks in ONNX: products, convolutions, pools, norms, attention, recurrence."""

import math
from typing import Any

from tensorlib.onnx.errors import unsupported
from tensorlib.onnx.pointwise import dtype_of, first_of
from tensorlib.onnx.symbolic_sizes import Dim
from tensorlib.onnx.writer import BOOL, FLOAT32, INT64, Writer, onnx_rule
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations
from tensorlib.program.ir.model import OpCall, Variable

# The gates of ONNX's recurrent layers in the order of the library's.
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
LAYERS = operations.linear_with_bias.name, operations.linear_without_bias.name
RECURRENT = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


# ---- products ------------------------------------------------------------------------------------

@onnx_rule(operations.matmul, operations.mm, operations.bmm, operations.mv, operations.dot)
def product(g: Writer, call: OpCall) -> Any:
    """A product of matrices or vectors: `MatMul` of the same shapes."""
    return g.node("MatMul", *g.inputs(call), name=call.type)


@onnx_rule(operations.linear_with_bias, operations.linear_without_bias)
def linear(g: Writer, call: OpCall) -> Any:
    """`Gemm` for matrices with a bias, else `MatMul` by the transposed weight."""
    x, weight, *bias = g.inputs(call)
    if bias and len(first_of(call).shape) == 2:
        return g.node("Gemm", x, weight, bias[0], transB=1, name="linear")
    turned = g.node("Transpose", weight, perm=[1, 0]) if (
        len(call.inputs["weight"].shape) == 2) else weight
    found = g.node("MatMul", x, turned, name="linear")
    return g.node("Add", found, bias[0], name="linear") if bias else found


# ---- windows -------------------------------------------------------------------------------------

@onnx_rule(operations.convolve, operations.convolve_with_bias)
def convolve(g: Writer, call: OpCall) -> Any:
    """`Conv`, with the same padding on both sides."""
    stride, padding, dilation, groups = call.attributes["options"]
    g.fixed(call, stride, padding, dilation)
    return windows(g, call, "Conv", strides=stride, pads=[*padding, *padding],
                   dilations=dilation, group=groups, name="conv")


@onnx_rule(operations.convolve_input, operations.convolve_input_with_bias)
def transposed(g: Writer, call: OpCall) -> Any:
    """The transposed convolution; the margin that its size has beyond the least one is given."""
    stride, padding, dilation, groups = call.attributes["options"]
    x, weight = list(call.inputs.values())[:2]
    g.fixed(call, stride, padding, dilation, weight.shape)
    margins = []
    for i, size in enumerate(call.attributes["spatial"]):
        ins, outs = (y.values if isinstance(y, Dim) else None for y in (
            g.shape(x)[2 + i], size))
        pairs = zip(ins, outs) if ins and outs else [(x.shape[2 + i], size)]
        found = {n - ((m - 1) * stride[i] - 2 * padding[i] + dilation[i]
                      * (weight.shape[2 + i] - 1) + 1) for m, n in pairs}
        if len(found) != 1:
            raise unsupported(call, "gives sizes that differ by what they are asked to be")
        margins.append(found.pop())
    return windows(g, call, "ConvTranspose", strides=stride, pads=[*padding, *padding],
                   dilations=dilation, group=groups, output_padding=margins, name="conv_transpose")


def windows(g: Writer, call: OpCall, type: str, **attributes: Any) -> Any:
    """A node of products of windows: with a bias, which is of a half type, in float32 as here."""
    if "bias" not in call.inputs:
        return g.node(type, *g.inputs(call), **attributes)
    wide = (g.value(x, FLOAT32) for x in call.inputs.values())
    return g.cast(g.node(type, *wide, **attributes), FLOAT32, dtype_of(call))


def is_ceil(call: OpCall, size: Any, plane: Any, kernel: int, stride: int, padding: int,
            dilation: int) -> bool:
    """Whether the windows of a pool may begin where the last whole one ends."""
    if isinstance(size, Dim):
        return isinstance(plane, Dim) and any(map(
            lambda m, n: is_ceil(call, m, n, kernel, stride, padding, dilation), size.values,
            plane.values))
    if isinstance(plane, Dim) or size is None:
        return False
    return bool(plane != (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)


def pooled(g: Writer, call: OpCall, dilation: tuple[int, ...]) -> dict[str, Any]:
    """The attributes that both kinds of pools have."""
    kernel, stride, padding = (call.attributes[name] for name in ("kernel", "stride", "padding"))
    g.fixed(call, kernel, stride, padding)
    sizes = g.shape(first_of(call))[-len(kernel):]
    ceil = any(is_ceil(call, *row) for row in zip(
        sizes, call.attributes["planes"], kernel, stride, padding, dilation))
    return {"kernel_shape": kernel, "strides": stride, "pads": [*padding, *padding],
            "ceil_mode": int(ceil)}


def with_images(g: Writer, call: OpCall, x: str, count: int, pool: Any) -> str:
    """A pool of what has two dims before its planes, or fewer."""
    missing = max(0, count + 2 - len(first_of(call).shape))
    axes = g.constant(list(range(missing)))
    found = pool(g.node("Unsqueeze", x, axes) if missing else x)
    return str(g.node("Squeeze", found, axes)) if missing else str(found)


@onnx_rule(operations.max_values)
def max_values(g: Writer, call: OpCall) -> Any:
    """A `MaxPool` of the values alone."""
    dilation = call.attributes["dilation"]
    options = pooled(g, call, dilation)
    return with_images(g, call, g.value(first_of(call)), len(dilation), lambda x: g.node(
        "MaxPool", x, dilations=dilation, name="max_pool", **options))


@onnx_rule(operations.max_pool)
def max_pool(g: Writer, call: OpCall) -> Any:
    """The values; the indices have no counterpart, and must not be read."""
    return [max_values(g, call), None]


@onnx_rule(operations.avg_pool)
def avg_pool(g: Writer, call: OpCall) -> Any:
    """An `AveragePool`."""
    attributes = call.attributes
    kernel, divisor = attributes["kernel"], attributes["divisor"]
    options = pooled(g, call, (1,) * len(kernel))
    if attributes["back"] or divisor and options["ceil_mode"]:
        raise unsupported(call, "has no counterpart in ONNX in this form")
    counts = bool(attributes["counts_padding"] or divisor)
    found = with_images(g, call, g.value(first_of(call)), len(kernel), lambda x: g.node(
        "AveragePool", x, count_include_pad=int(counts), name="avg_pool", **options))
    if divisor:
        found = g.node("Mul", found, g.constant(math.prod(kernel) / divisor, dtype_of(call)))
    return found


@onnx_rule(operations.adaptive_pool)
def adaptive_pool(g: Writer, call: OpCall) -> Any:
    """Windows of sizes that differ: sums of the first elements, of the second, and so on."""
    spatial, planes, back = (call.attributes[name] for name in ("spatial", "planes", "back"))
    g.fixed(call, spatial, planes)
    if back or not all(planes):
        raise unsupported(call, "has no counterpart in ONNX in this form")
    found, n, dtype = g.value(first_of(call)), len(planes), dtype_of(call)
    for d, (size, count) in enumerate(zip(spatial, planes)):
        first = [i * size // count for i in range(count)]
        last = [-(-(i + 1) * size // count) - 1 for i in range(count)]
        shape, total = (count, *(1,) * (n - 1 - d)), ""
        for k in range(max(b - a for a, b in zip(first, last)) + 1):
            places = [min(a + k, b) for a, b in zip(first, last)]
            there = FUNCTIONS["tensor"]([a + k <= b for a, b in zip(first, last)]).reshape(shape)
            part = g.node("Gather", found, g.constant(places),
                          axis=len(first_of(call).shape) - n + d)
            part = g.node("Where", g.constant(there), part, g.constant(0.0, dtype))
            total = g.node("Add", total, part) if total else part
        lengths = FUNCTIONS["tensor"]([1.0 + b - a for a, b in zip(first, last)], dtype=dtype)
        found = g.node("Div", total, g.constant(lengths.reshape(shape)))
    return found


@onnx_rule(operations.adaptive_max_pool)
def adaptive_max_pool(g: Writer, call: OpCall) -> Any:
    """As `adaptive_pool`, where the last element of a window may be read again."""
    planes = call.attributes["planes"]
    ndim = len(first_of(call).shape)
    spatial = g.fixed_shape(call, first_of(call))[ndim - len(planes):]
    g.fixed(call, planes)
    found = g.value(first_of(call))
    for axis, (size, count) in enumerate(zip(spatial, planes), ndim - len(planes)):
        ends = [(i * size // count, -(-(i + 1) * size // count) - 1) for i in range(count)]
        longest = max(b - a for a, b in ends) + 1
        parts = [g.node("Gather", found, g.constant([min(a + k, b) for a, b in ends]), axis=axis)
                 for k in range(longest)]
        found = g.node("Max", *parts) if longest > 1 else parts[0]
    return [found, None]


@onnx_rule(operations.row_distances)
def row_distances(g: Writer, call: OpCall) -> Any:
    """Norms of the differences of all pairs of rows, of p = 1, 2 or inf."""
    x, y = g.inputs(call)
    away = g.node("Sub", g.node("Unsqueeze", x, g.constant([-2])),
                  g.node("Unsqueeze", y, g.constant([-3])))
    p = call.attributes["p"]
    if p == math.inf:
        return g.node("ReduceMax", g.node("Abs", away), g.constant([-1]), keepdims=0)
    return g.node("ReduceL1" if p == 1 else "ReduceL2", away, g.constant([-1]), keepdims=0)


@onnx_rule(operations.resample)
def resample(g: Writer, call: OpCall) -> Any:
    """Neighbours along a dim, each times its weights."""
    attributes = dict(call.attributes)
    dim, back = attributes.pop("dim"), attributes.pop("back")
    g.fixed(call, *attributes.values())
    if back:
        raise unsupported(call, "has no counterpart in ONNX in this form")
    x, total, axis = g.value(first_of(call)), "", len(first_of(call).shape) + dim
    for places, weights in operations.resample.function.taps(**attributes):
        weights = FUNCTIONS["tensor"](weights.reshape(-1, *(1,) * (-1 - dim)), dtype=dtype_of(call))
        part = g.node("Gather", x, g.constant(places.tolist()), axis=axis)
        part = g.node("Mul", part, g.constant(weights))
        total = g.node("Add", total, part) if total else part
    return total


@onnx_rule(operations.look)
def look(g: Writer, call: OpCall) -> Any:
    """`GridSample` of the nearest element or of lines between neighbours."""
    attributes = call.attributes
    modes = ("linear", "nearest") if g.opset >= 20 else ("bilinear", "nearest")
    return g.node("GridSample", *g.inputs(call), mode=modes[bool(attributes["nearest"])],
                  padding_mode=attributes["padding"], align_corners=int(attributes["align"]),
                  name="grid_sample")


@onnx_rule(operations.columns)
def columns(g: Writer, call: OpCall) -> Any:
    """A `Conv` by one kernel for each element of a window; back, a `ConvTranspose` by the same."""
    spatial, kernel, stride, padding, dilation, planes = (call.attributes[name] for name in (
        "spatial", "kernel", "stride", "padding", "dilation", "planes"))
    x, back, count = first_of(call), call.attributes["back"], math.prod(kernel)
    g.fixed(call, spatial, kernel, stride, padding, dilation, planes)
    rows = g.fixed_shape(call, x)[-2 if back else -len(kernel) - 1]
    channels = rows // count if back else rows
    one = FUNCTIONS["eye"](count, dtype=dtype_of(call)).reshape(count, 1, *kernel)
    options = {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
               "group": channels}
    weight = g.constant(one.repeat(channels, *(1,) * (one.ndim - 1)))
    batch = g.node("Slice", g.node("Shape", g.value(x)), g.constant([0]),
                   g.constant([len(x.shape) - (2 if back else len(kernel) + 1)]))
    if not back:
        images = g.node("Reshape", g.value(x), g.constant([-1, channels, *spatial]))
        found = g.node("Conv", images, weight, **options, name="unfold")
        shape = [channels * count, math.prod(planes)]
    else:
        images = g.node("Reshape", g.value(x), g.constant([-1, rows, *planes]))
        margins = [n - ((m - 1) * step - 2 * pad + gap * (k - 1) + 1) for n, m, step, pad, gap, k
                   in zip(spatial, planes, stride, padding, dilation, kernel)]
        found = g.node("ConvTranspose", images, weight, **options, output_padding=margins,
                       name="fold")
        shape = [channels, *spatial]
    return g.node("Reshape", found, g.node("Concat", batch, g.constant(shape), axis=0))


@onnx_rule(operations.gated_halves)
def gated_halves(g: Writer, call: OpCall) -> Any:
    """The first half times the sigmoid of the second."""
    x, dim = g.value(first_of(call)), call.attributes["dim"]
    size, axis = g.size_of(first_of(call), x, dim), g.constant([dim])
    half = g.node("Div", size, g.constant([2]))
    first = g.node("Slice", x, g.constant([0]), half, axis)
    second = g.node("Slice", x, half, size, axis)
    return g.node("Mul", first, g.node("Sigmoid", second), name="glu")


# ---- losses --------------------------------------------------------------------------------------

@onnx_rule(operations.nll_of_logits)
def nll_of_logits(g: Writer, call: OpCall) -> Any:
    """The loss of each row of logits."""
    if 0 in g.shape(first_of(call)):
        raise unsupported(call, "has no counterpart in ONNX without rows or classes")
    return g.node("SoftmaxCrossEntropyLoss", *g.inputs(call), g.value(call.attributes["target"]),
                  ignore_index=call.attributes["ignored"], reduction="none", name="cross_entropy")


@onnx_rule(operations.nll_of_logs)
def nll_of_logs(g: Writer, call: OpCall) -> Any:
    """The loss of rows of logarithms of probabilities: each, or their sum or weighted mean."""
    attributes, (x, weight) = call.attributes, g.inputs(call)
    target, ignored, reduction = (attributes[key] for key in ("target", "ignored", "reduction"))
    classes = g.value(target)
    if len(first_of(call).shape) != len(target.shape):
        return g.node("NegativeLogLikelihoodLoss", x, classes, weight, ignore_index=ignored,
                      reduction=reduction, name="nll_loss")
    kept = g.node("Not", g.node("Equal", classes, g.constant(ignored)))     # x has a loss a row
    counts = g.node("Gather", weight, g.node("Where", kept, classes, g.constant(0)))
    counts = g.node("Where", kept, counts, g.constant(0.0, dtype_of(call)))
    found = g.node("Mul", x, counts)
    if reduction != "none":
        found = g.node("ReduceSum", found, keepdims=0)
    if reduction == "mean":
        found = g.node("Div", found, g.node("ReduceSum", counts, keepdims=0))
    return found


@onnx_rule(operations.cross_of_logits)
def cross_of_logits(g: Writer, call: OpCall) -> Any:
    """softplus(x) - x * target."""
    x, target = g.inputs(call)
    return g.node("Sub", g.node("Softplus", x), g.node("Mul", x, target), name="bce")


# ---- norms and attention -------------------------------------------------------------------------

@onnx_rule(operations.affine_norm)
def affine_norm(g: Writer, call: OpCall) -> Any:
    """LayerNormalization, or about zero written out."""
    x, weight, bias = g.inputs(call)
    attributes, ndim = call.attributes, len(first_of(call).shape)
    own = len(call.inputs["weight"].shape)
    if attributes["centered"]:
        return g.node("LayerNormalization", x, weight, bias, axis=ndim - own,
                      epsilon=attributes["eps"], name="norm")
    found = normalised(g, x, g.constant(list(range(ndim - own, ndim))), call)
    return g.node("Add", g.node("Mul", found, weight), bias, name="norm")


def normalised(g: Writer, moved: str, axes: str, call: OpCall) -> str:
    """What was moved by its mean, over the root of its mean square."""
    squares = g.node("ReduceMean", g.node("Mul", moved, moved), axes)
    eps = g.constant(call.attributes["eps"], dtype_of(call))
    return g.node("Div", moved, g.node("Sqrt", g.node("Add", squares, eps)))


def by_channel(g: Writer, x: str, call: OpCall) -> Any:
    """x times the weight plus the bias of its channel."""
    _, *vectors = g.inputs(call)
    shape = g.constant([-1] + [1] * (len(first_of(call).shape) - 2))
    weight, bias = (g.node("Reshape", y, shape) for y in vectors)
    return g.node("Add", g.node("Mul", x, weight), bias, name="norm")


@onnx_rule(operations.channel_norm)
def channel_norm(g: Writer, call: OpCall) -> Any:
    """(x - mean) / sqrt(variance + eps) over all but the channels, with weight and bias."""
    x = g.value(first_of(call))
    axes = g.constant([0, *range(2, len(first_of(call).shape))])
    moved = g.node("Sub", x, g.node("ReduceMean", x, axes))
    return by_channel(g, normalised(g, moved, axes, call), call)


@onnx_rule(operations.channel_affine)
def channel_affine(g: Writer, call: OpCall) -> Any:
    """A scale and a shift for each channel."""
    return by_channel(g, g.value(first_of(call)), call)


@onnx_rule(operations.group_affine)
def group_affine(g: Writer, call: OpCall) -> Any:
    """Groups become the dim 1 of the elements of each, and are normalised along the next."""
    x, attributes = g.value(first_of(call)), call.attributes
    rows = g.node("Reshape", x, g.constant([0, attributes["groups"], -1]))
    moved = g.node("Sub", rows, g.node("ReduceMean", rows, g.constant([2])))
    found = g.node("Reshape", normalised(g, moved, g.constant([2]), call), g.node("Shape", x))
    return by_channel(g, found, call)


@onnx_rule(operations.attention)
def attention(g: Writer, call: OpCall) -> Any:
    """softmax(scale * q @ k.T + mask) @ v. A row that sees nothing gives zeros."""
    query, key, value = g.inputs(call)
    q, k, dtype = call.inputs["query"], call.inputs["key"], dtype_of(call)
    order = list(range(len(k.shape)))
    turned = g.node("Transpose", key, perm=[*order[:-2], order[-1], order[-2]])
    scale = g.constant(float(call.attributes["scale"]), dtype)
    scores = g.node("MatMul", g.node("Mul", query, scale), turned, name="scores")
    low = g.constant(-math.inf, dtype)
    mask = call.attributes.get("mask")
    if mask is not None:
        scores = g.node("Add", scores, g.value(mask, dtype))
    if call.attributes["causal"]:
        shape = g.node("Concat", g.size_of(q, query, -2), g.size_of(k, key, -2), axis=0)
        ones = g.node("Expand", g.constant(1, INT64), shape)
        seen = g.cast(g.node("Trilu", ones, g.constant(0), upper=0), INT64, BOOL)
        scores = g.node("Where", seen, scores, low)
    if mask is None:
        weights = g.node("Softmax", scores, axis=-1)
    else:
        last, zero, one = g.constant([-1]), g.constant(0.0, dtype), g.constant(1.0, dtype)
        top = g.node("ReduceMax", scores, last)
        top = g.node("Where", g.node("Equal", top, low), zero, top)
        parts = g.node("Exp", g.node("Sub", scores, top))
        sums = g.node("ReduceSum", parts, last)
        weights = g.node("Div", parts, g.node("Where", g.node("Equal", sums, zero), one, sums))
    return [g.node("MatMul", weights, value, name="attention"), None]


# ---- recurrence ----------------------------------------------------------------------------------

@onnx_rule(operations.recurrent)
def recurrent(g: Writer, call: OpCall) -> Any:
    """One layer in one direction: LSTM, GRU or RNN.

    What the inputs add to the gates is computed before by a linear call; ONNX's layer takes the
    inputs and the weights, so it is given those of that call.
    """
    gates, weight, bias, hidden, cell = call.inputs.values()
    kind, sizes = call.attributes["kind"], call.attributes["sizes"]
    different = {x.values if isinstance(x, Dim) else x for x in sizes} if (
        isinstance(sizes, tuple)) else ()
    if len(different) > 1 and type(sizes).__name__ != "Repeated":
        raise unsupported(call, "of a packed sequence has no counterpart in ONNX")
    order = GATES[kind]
    width = weight.shape[1]
    places = [i for gate in order for i in range(gate * width, (gate + 1) * width)]
    rows, w_ih, b_ih = layer_input(g, gates)
    hidden_name = g.value(hidden)
    batch = g.size_of(hidden, hidden_name, 0)
    steps = g.node("Concat", g.constant([-1]), batch, g.constant([row_width(rows)]), axis=0)
    x = g.node("Reshape", g.value(rows), steps)
    w = in_order(g, w_ih if w_ih is not None else FUNCTIONS["eye"](
        gates.shape[1], dtype=gates.dtype), places)
    b_ih = b_ih if b_ih is not None else FUNCTIONS["zeros"](gates.shape[1], dtype=gates.dtype)
    b = g.node("Concat", in_order(g, b_ih, places), in_order(g, bias, places), axis=1)
    first = g.constant([0])
    states = [g.node("Unsqueeze", hidden_name, first)]
    if kind == "lstm":
        states.append(g.node("Unsqueeze", g.value(cell), first))
    options: dict[str, Any] = {"linear_before_reset": 1} if kind == "gru" else {}
    if kind.startswith("rnn"):
        options["activations"] = ["Tanh" if kind == "rnn_tanh" else "Relu"]
    found = g.node(RECURRENT[kind], x, w, in_order(g, weight, places), b, "", *states,
                   outputs=3 if kind == "lstm" else 2, hidden_size=width, name=kind,
                   direction="reverse" if call.attributes["reverse"] else "forward", **options)
    out = g.node("Reshape", found[0], g.constant([-1, width]))
    ends = [g.node("Squeeze", end, first) for end in found[1:]]
    return [out, *ends, *[None] * (5 - 1 - len(ends))]


def layer_input(g: Writer, gates: Variable) -> tuple[Variable, Any, Any]:
    """What gates are computed from: rows, and weights and bias, which may be None."""
    maker = g.makers.get(gates)
    if maker is None or maker.type not in LAYERS:
        return gates, None, None
    rows, weight, *bias = maker.inputs.values()
    return rows, weight, bias[0] if bias else None


def row_width(rows: Variable) -> int:
    """The number of columns of a matrix."""
    return int(rows.shape[1] or 0)


def in_order(g: Writer, x: Any, places: list[int]) -> str:
    """Weights with their rows in ONNX's order, as those of one direction."""
    known = x if type(x) is not Variable else g.tensor(x)
    if known is not None:
        return g.constant(known.detach()[places].unsqueeze(0))
    rows = g.node("Gather", g.value(x), g.constant(places), axis=0)
    return str(g.node("Unsqueeze", rows, g.constant([0])))
