"""Shapes, slices and indexing in ONNX."""

from functools import partial
from typing import Any

import numpy as np

from tensorlib._core.index.keys import Index
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import no_grad
from tensorlib.onnx.errors import unsupported
from tensorlib.onnx.pointwise import dtype_of, first_of
from tensorlib.onnx.symbolic_sizes import Dim
from tensorlib.onnx.writer import BOOL, INT64, Writer, onnx_rule
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations
from tensorlib.ops.shape.padding import margins as shown
from tensorlib.program.ir.interpreter import results_of
from tensorlib.program.ir.model import OpCall, Variable, variables_in

LARGEST, SMALLEST = 2**63 - 1, -2**63


def rank(call: OpCall) -> int:
    """The number of dims of the first argument."""
    return len(first_of(call).shape)


def with_dims(call: OpCall) -> None:
    """Raises: UnsupportedOperatorError for a tensor without dims, which ONNX does not index."""
    if rank(call) == 0:
        raise unsupported(call, "takes at least one dim")


def as_dims(dims: Any, ndim: int) -> list[int]:
    """Dims of a tensor, counted from the first; all of them for None."""
    if dims is None:
        return list(range(ndim))
    return [dim % max(ndim, 1) for dim in (dims if isinstance(dims, (tuple, list)) else (dims,))]


# ---- shapes --------------------------------------------------------------------------------------

@onnx_rule(operations.reshape, operations.view, operations.flatten)
def reshape(g: Writer, call: OpCall) -> Any:
    """One size that is open is written as -1, which any runtime works out by itself."""
    shape = call.attributes["shape"]
    shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    open_ones = [i for i, size in enumerate(shape) if isinstance(size, Dim) or size == -1]
    if len(open_ones) > 1:
        found = g.shape(call.outputs[0])                  # type: ignore[arg-type]
        shape = [found[i] if size == -1 else size for i, size in enumerate(shape)]
    elif open_ones and 0 not in shape:
        shape[open_ones[0]] = -1
    elif open_ones:
        shape = list(g.shape(call.outputs[0]))            # type: ignore[arg-type]
    return g.node("Reshape", g.value(first_of(call)), g.shape_vector(shape),
                  allowzero=int(0 in shape), name="reshape")


@onnx_rule(operations.expand)
def expand(g: Writer, call: OpCall) -> Any:
    """`Expand`, where -1 keeps a size."""
    shape = [1 if type(size) is int and size == -1 else size for size in call.attributes["shape"]]
    return g.node("Expand", g.value(first_of(call)), g.shape_vector(shape))


@onnx_rule(operations.squeeze)
def squeeze(g: Writer, call: OpCall) -> Any:
    """`Squeeze` of those dims that have size 1."""
    shape, dims = g.shape(first_of(call)), call.attributes.get("dim")
    axes = [dim for dim in as_dims(dims, len(shape)) if shape and shape[dim] == 1]
    x = g.value(first_of(call))
    return g.node("Squeeze", x, g.constant(axes)) if axes else x


@onnx_rule(operations.unsqueeze)
def unsqueeze(g: Writer, call: OpCall) -> Any:
    """`Unsqueeze` of one dim."""
    return g.node("Unsqueeze", g.value(first_of(call)), g.constant([call.attributes["dim"]]))


@onnx_rule(operations.permute)
def permute(g: Writer, call: OpCall) -> Any:
    """`Transpose` with all dims given."""
    return permuted(g, call, as_dims(call.attributes["dims"], rank(call)))


@onnx_rule(operations.transpose, operations.t, operations.adjoint)
def transpose(g: Writer, call: OpCall) -> Any:
    """`Transpose` of two dims."""
    order = list(range(rank(call)))
    if order:
        a, b = (call.attributes.get(name, place) % len(order)
                for name, place in (("dim0", 0), ("dim1", -1)))
        order[a], order[b] = order[b], order[a]
    return permuted(g, call, order)


def permuted(g: Writer, call: OpCall, order: list[int]) -> Any:
    """The dims of the first argument in this order."""
    x = g.value(first_of(call))
    return g.node("Transpose", x, perm=order) if order != sorted(order) else x


# ---- several in one, and one in several ----------------------------------------------------------

@onnx_rule(operations.cat)
def cat(g: Writer, call: OpCall) -> Any:
    """`Concat` in the dtype of the result."""
    parts = [x for x in first_of(call) if tuple(x.shape) != (0,)]     # an empty one fits anything
    return g.node("Concat", *(g.value(x, dtype_of(call)) for x in parts),
                  axis=call.attributes.get("dim", 0), name="cat")


@onnx_rule(operations.stack)
def stack(g: Writer, call: OpCall) -> Any:
    """`Concat` along a dim that each part gets first."""
    axis = g.constant([call.attributes.get("dim", 0)])
    parts = [g.node("Unsqueeze", g.value(x, dtype_of(call)), axis) for x in first_of(call)]
    return g.node("Concat", *parts, axis=call.attributes.get("dim", 0), name="stack")


@onnx_rule(operations.repeat)
def repeat(g: Writer, call: OpCall) -> Any:
    """`Tile` by the sizes in `repeats`."""
    return repeated(g, call, list(call.attributes["repeats"]))


@onnx_rule(operations.tile)
def tile(g: Writer, call: OpCall) -> Any:
    """`Tile` by the sizes in `dims`."""
    return repeated(g, call, list(call.attributes["dims"]))


def repeated(g: Writer, call: OpCall, counts: list[Any]) -> Any:
    """The first argument as often along its last dims as counts say."""
    x, ndim = g.value(first_of(call)), rank(call)
    if len(counts) > ndim:
        x = g.node("Unsqueeze", x, g.constant(list(range(len(counts) - ndim))))
    return g.node("Tile", x, g.shape_vector([1] * (ndim - len(counts)) + counts))


@onnx_rule(operations.flip)
def flip(g: Writer, call: OpCall) -> Any:
    """`Slice` with step -1 over whole dims."""
    if rank(call) == 0:
        return g.value(first_of(call))
    axes = as_dims(call.attributes["dims"], rank(call))
    count = len(axes)
    return g.node("Slice", g.value(first_of(call)), g.constant([-1] * count),
                  g.constant([SMALLEST] * count), g.constant(axes), g.constant([-1] * count))


@onnx_rule(operations.roll)
def roll(g: Writer, call: OpCall) -> Any:
    """Along one dim after the other: what comes first, then what stood before it."""
    shifts, dims = (call.attributes.get(name) for name in ("shifts", "dims"))
    shifts = shifts if isinstance(shifts, tuple) else (shifts,)
    x = found = g.value(first_of(call))
    flat = dims is None or dims == ()
    if flat:
        found = g.node("Reshape", x, g.constant([-1]))
    for shift, dim in zip(shifts, [0] if flat else as_dims(dims, rank(call))):
        size = g.node("Shape", found, start=dim, end=dim + 1)
        size = g.node("Max", size, g.constant([1]))       # of an empty dim, to divide by
        start, axis = g.node("Mod", g.node("Neg", g.size(shift)), size), g.constant([dim])
        parts = [g.node("Slice", found, start, g.constant([LARGEST]), axis),
                 g.node("Slice", found, g.constant([0]), start, axis)]
        found = g.node("Concat", *parts, axis=dim, name="roll")
    return g.node("Reshape", found, g.node("Shape", x)) if flat else found


@onnx_rule(operations.framed)
def framed(g: Writer, call: OpCall) -> Any:
    """`Pad` with a constant; the pairs of `pad` begin with the last dim."""
    pad, ndim = call.attributes["pad"], rank(call)
    rest = [0] * (ndim - len(pad) // 2)
    before, after = [*rest, *pad[-2::-2]], [*rest, *pad[::-2]]
    return g.node("Pad", g.value(first_of(call)), g.shape_vector([*before, *after]),
                  g.constant(call.attributes["value"] or 0, dtype_of(call)), name="pad")


@onnx_rule(operations.bordered)
def bordered(g: Writer, call: OpCall) -> Any:
    """Elements of one dim after the other: the modes of Pad are not those of all opsets."""
    spatial, margins, mode, back = call.attributes.values()
    g.fixed(call, *spatial)
    if back:
        raise unsupported(call, "has no counterpart in ONNX")
    found = g.value(first_of(call))
    for d, size in enumerate(reversed(spatial)):
        before, after = margins[2 * d:2 * d + 2]
        places = shown(np.arange(size), (before, after), mode)
        found = g.node("Gather", found, g.constant(places.tolist()), axis=rank(call) - 1 - d)
    return found


def triangle(g: Writer, call: OpCall, upper: int) -> Any:
    """A matrix with zeros beyond a diagonal."""
    return g.node("Trilu", g.value(first_of(call)), g.constant(call.attributes.get("diagonal", 0)),
                  upper=upper)


onnx_rule(operations.tril)(partial(triangle, upper=0))
onnx_rule(operations.triu)(partial(triangle, upper=1))


# ---- parts ---------------------------------------------------------------------------------------

@onnx_rule(operations.narrow)
def narrow(g: Writer, call: OpCall) -> Any:
    """`Slice` with a start and an end, either of which may follow from sizes."""
    start, length = call.attributes["start"], call.attributes["length"]
    if type(start) is int and type(length) is int:
        end = g.constant([LARGEST if start < 0 and start + length == 0 else start + length])
    else:
        end = g.node("Add", g.size(start), g.size(length)) if start != 0 else g.size(length)
    return g.node("Slice", g.value(first_of(call)), g.size(start), end,
                  g.constant([call.attributes["dim"]]), name="narrow")


@onnx_rule(operations.slices_taken)
def slices_taken(g: Writer, call: OpCall) -> Any:
    """`Gather` along a dim."""
    return g.node("Gather", g.value(first_of(call)), g.value(call.attributes["index"], INT64),
                  axis=call.attributes["dim"])


@onnx_rule(operations.gather)
def gather(g: Writer, call: OpCall) -> Any:
    """`GatherElements` along a dim."""
    with_dims(call)
    return g.node("GatherElements", g.value(first_of(call)),
                  g.value(call.attributes["index"], INT64), axis=call.attributes["dim"])


@onnx_rule(operations.scattered)
def scattered(g: Writer, call: OpCall) -> Any:
    """Of an index of the shape of what is scattered."""
    with_dims(call)
    x, src = call.inputs.values()
    index = call.attributes["index"]
    if type(src) is not Variable or g.shape(src) != g.shape(index):
        raise unsupported(call, "takes a source of the shape of the index")
    return g.node("ScatterElements", g.value(x), g.value(index, INT64),
                  g.value(src, dtype_of(call)), axis=call.attributes["dim"],
                  reduction="add" if call.attributes.get("adds") else "none")


@onnx_rule(operations.one_hot)
def one_hot(g: Writer, call: OpCall) -> Any:
    """Whether each class equals the element, along a new last dim."""
    count = call.attributes.get("num_classes", -1)
    if type(count) is not int or count < 0:
        raise unsupported(call, "takes a number of classes that is given")
    classes = g.constant(list(range(count)))          # what is compared with has a dim of its own
    x = g.node("Unsqueeze", g.value(first_of(call), INT64), g.constant([-1]))
    return g.cast(g.node("Equal", x, classes), BOOL, INT64)


# ---- index expressions ---------------------------------------------------------------------------

@onnx_rule(operations.getitem)
def getitem(g: Writer, call: OpCall) -> Any:
    """New dims come first, then slices, then numbers; several tensors pick in the end."""
    key = call.attributes["index"]
    if isinstance(key, Index):
        return moved(g, call)
    parts = [part.tolist() if isinstance(part, np.ndarray) else part
             for part in (key if isinstance(key, tuple) else (key,))]
    for part in parts:
        if isinstance(part, bool) or type(part) is Variable and part.dtype == BOOL or (
                isinstance(part, list) and part and np.asarray(part).dtype == bool):
            raise unsupported(call, "with a mask gives a size that depends on elements; use "
                                    "tensorlib.where")
    parts = spelled_out(parts, rank(call))
    x = g.value(first_of(call))
    new = [i for i, part in enumerate(parts) if part is None]
    if new:
        x = g.node("Unsqueeze", x, g.constant(new))
    x = sliced(g, x, parts)
    places = [i for i, part in enumerate(parts) if part is not None and type(part) is not slice]
    several = [i for i in places if type(parts[i]) is list or type(parts[i]) is Variable
               and parts[i].shape]
    together = several if len(several) > 1 else []
    for i in reversed(places):
        if i not in together:
            x = g.node("Gather", x, index_of(g, parts[i]), axis=i, name="getitem")
    if not together:
        return x
    parts = [part for i, part in enumerate(parts) if i in together or i not in places]
    return picked(g, x, parts, [i for i, part in enumerate(parts)
                                if part is not None and type(part) is not slice])


def spelled_out(parts: list[Any], ndim: int) -> list[Any]:
    """An index expression with a part for each dim."""
    count = sum(part is not None and part is not ... for part in parts)
    rest = [slice(None)] * (ndim - count)
    for place, part in enumerate(parts):
        if part is ...:
            return [*parts[:place], *rest, *parts[place + 1:]]
    return [*parts, *rest]


def sliced(g: Writer, x: str, parts: list[Any]) -> str:
    """What the slices of an index expression leave."""
    found = [(i, part) for i, part in enumerate(parts)
             if type(part) is slice and part != slice(None)]
    if not found:
        return x
    starts = [0 if part.start is None else part.start for _, part in found]
    ends = [LARGEST if part.stop is None else part.stop for _, part in found]
    steps = [1 if part.step is None else part.step for _, part in found]
    return str(g.node("Slice", x, g.shape_vector(starts), g.shape_vector(ends),
                      g.constant([i for i, _ in found]), g.constant(steps), name="slice"))


def index_of(g: Writer, part: Any) -> str:
    """The name of positions: a number, a list of them or a tensor."""
    return g.constant(part) if type(part) is list else g.value(part, INT64) if (
        type(part) is Variable) else g.scalar(part, INT64)


def picked(g: Writer, x: str, parts: list[Any], places: list[int]) -> str:
    """What several tensors of positions pick together.

    Their dims come where the first of them stands, if they stand side by side, else first.
    """
    ndim = len(parts)
    together = places == list(range(places[0], places[0] + len(places)))
    rest = [i for i in range(ndim) if i not in places]
    if [*places, *rest] != list(range(ndim)):
        x = g.node("Transpose", x, perm=[*places, *rest])
    names = [index_of(g, parts[i]) for i in places]
    ranks = [FUNCTIONS["tensor"](part).ndim if type(part) is list else len(part.shape)
             for part in (parts[i] for i in places)]
    total = names[0]
    for name in names[1:]:                    # zeros of the shape of all indices together
        total = g.node("Add", total, name)
    shape = g.node("Shape", total)
    spread = [g.node("Unsqueeze", g.node("Expand", name, shape), g.constant([-1]))
              for name in names]
    x = g.node("GatherND", x, g.node("Concat", *spread, axis=-1), name="getitem")
    width = max(ranks)
    if together and places[0] > 0:
        before = list(range(width, width + places[0]))
        after = list(range(width + places[0], width + len(rest)))
        x = g.node("Transpose", x, perm=[*before, *range(width), *after])
    return x


# ---- by positions --------------------------------------------------------------------------------

def positions(g: Writer, call: OpCall, x: Variable) -> Tensor:
    """Where in `x` each element of the result comes from, found by moving numbers."""
    numbers = FUNCTIONS["arange"](x_count(g.fixed_shape(call, x))).reshape(x.shape)
    values = {x: numbers}
    for index in variables_in(call.attributes):
        known = g.tensor(index)
        if known is None:
            raise unsupported(call, "takes positions that are known when the model is exported")
        values[index] = known
    first, *_ = call.inputs
    with no_grad():
        found: Tensor = results_of(
            OpCall(call.type, {first: x}, call.outputs, call.attributes), values)[0]
    return found


def x_count(shape: tuple[int, ...]) -> int:
    """The number of elements."""
    count = 1
    for size in shape:
        count *= size
    return count


@onnx_rule(operations.diagonal, operations.strided_part, operations.strided_view, operations.unfold)
def moved(g: Writer, call: OpCall) -> Any:
    """What only moves elements is read from the flat tensor, where its shape is fixed."""
    places = positions(g, call, first_of(call))
    flat = g.node("Reshape", g.value(first_of(call)), g.constant([-1]))
    return g.node("Gather", flat, g.constant(places), name=call.type)


def put(g: Writer, call: OpCall, read: Any, **attributes: Any) -> Any:
    """A tensor with values written at the places that an operation reads from, where its shape is
    fixed; or added there, as the attributes say."""
    x, values = call.inputs.values()
    part = OpCall(read.name, {"input": x}, call.outputs, call.attributes, call.line)
    places = positions(g, part, x)
    flat = g.node("Reshape", g.value(x), g.constant([-1]))
    spread = g.node("Expand", g.value(values, dtype_of(call)), g.constant(list(places.shape)))
    found = g.node("ScatterElements", flat, g.constant(places.reshape(-1)),
                   g.node("Reshape", spread, g.constant([-1])), **attributes)
    return g.node("Reshape", found, g.constant(list(x.shape)), name=call.type)


onnx_rule(operations.put_index)(partial(put, read=operations.getitem))
onnx_rule(operations.add_index)(partial(put, read=operations.getitem, reduction="add"))
onnx_rule(operations.view_scatter)(partial(put, read=operations.strided_part))
