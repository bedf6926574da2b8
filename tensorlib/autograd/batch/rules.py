"""Batching rules: operations on every example of a batch by operations on the whole batch.

A rule takes the operation, the level, the operation's tensors and its attributes by name, and
returns the batch of results. It calls public functions on what the examples hold, so that it works
at any depth of nesting.
"""

import math
import sys
import warnings
from functools import reduce

import numpy as np

from tensorlib._core.base.shape import settled_dims, wrap
from tensorlib._core.create import generator
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch.values import (
    Batched,
    VmapInfo,
    aligned,
    is_at,
    batch_of,
    batched,
    batched_kind,
    tensor_argument,
)
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations

cat, matmul, stack = FUNCTIONS["cat"], FUNCTIONS["matmul"], FUNCTIONS["stack"]
ones = FUNCTIONS["ones"]


# ---- element by element --------------------------------------------------------------------------

@batched_kind("elementwise")
@batched(operations.zeta, operations.igamma, operations.igammac)
def elementwise(op, level, tensors, attributes):
    """Examples get the same number of dims, so that they broadcast as without a batch."""
    if len(tensors) == 1:
        return op.function(tensor_argument(op, 0, tensors[0]).value)
    ndim, dtypes = 0, set()
    for x in tensors:
        if type(x) is Batched:
            ndim = max(ndim, x.value.ndim - 1)
            dtypes.add(x.value.dtype)
        elif isinstance(x, Tensor):
            ndim = max(ndim, x.ndim)
            dtypes.add(x.dtype)
        elif not isinstance(x, (int, float, complex)):     # an array, or an invalid operand
            return elementwise(op, level, [
                operand(op, place, y) for place, y in enumerate(tensors)], None)
    if len(dtypes) > 1:
        tensors = of_one_dtype(op, tensors)
    return op.function(*[aligned(x, ndim) if is_at(x, level) else x for x in tensors])


def operand(op, place, x):
    """An argument as a Tensor, or as a number, which has less weight in promotion."""
    if isinstance(x, np.generic):
        return x.item()
    return x if isinstance(x, (int, float, complex)) else tensor_argument(op, place, x)


def of_one_dtype(op, tensors):
    """The tensors cast to the promoted dtype of the examples, if that of the batches differs."""
    common = common_dtype(op, tensors)
    return tensors if common is None else [
        x.to(common) if isinstance(x, Tensor) and place not in op.boolean_inputs else x
        for place, x in enumerate(tensors)]


def common_dtype(op, tensors):
    """The promoted dtype of the examples, in which 0-d tensors have less weight.

    None if the batches promote in the same way.
    """
    values = [x for place, x in enumerate(tensors)
              if isinstance(x, Tensor) and place not in op.boolean_inputs]
    if len({x.dtype for x in values}) < 2 or all(x.ndim for x in values):
        return None
    probes = [ones((1,) * min(x.ndim, 1), dtype=x.dtype) for x in values]
    dimensioned = [x for x in probes if x.ndim]
    dimensionless = [x for x in probes if not x.ndim]
    return reduce(FUNCTIONS["add"], dimensioned + dimensionless).dtype


# ---- reductions ----------------------------------------------------------------------------------

@batched(operations.sum, operations.nansum, operations.mean, operations.prod, operations.amax,
         operations.amin, operations.argmax, operations.argmin, operations.logsumexp,
         operations.var, operations.std, operations.euclidean_norm, operations.count_nonzero,
         operations.max, operations.min, operations.median, operations.nanmedian)
def reduction(op, level, tensors, attributes):
    """Over dims of each example, or over all of its elements."""
    dim = attributes["dim"]
    return reduced(op, level, tensors, attributes, dim is None or dim == ())


@batched(operations.any, operations.all)
def truth(op, level, tensors, attributes):
    """As a reduction, except that an empty list of dims means no dims."""
    return reduced(op, level, tensors, attributes, attributes["dim"] is None)


def reduced(op, level, tensors, attributes, whole):
    """A reduction over the dims of each example, or over the `whole` of it."""
    (x,), dim = tensors, attributes["dim"]
    keepdim = attributes.get("keepdim", False)
    if whole or x.ndim == 0:
        if not whole:
            check_dims(op.name, dim, 0)
        attributes = {**attributes, "dim": 1}
        if "keepdim" in attributes:
            attributes["keepdim"] = False
        out = op.function(x.value.reshape((level.size, x.numel())), **attributes)
        shape = (level.size,) + (1,) * x.ndim
        if not keepdim:
            return out
        return type(out)(*[y.reshape(shape) for y in out]) if isinstance(out, tuple) else (
            out.reshape(shape))
    return op.function(x.value, **{**attributes, "dim": check_dims(op.name, dim, x.ndim)})


def check_dims(name, dim, ndim):
    """Dims of an example, as those of the batch."""
    if isinstance(dim, (tuple, list)):
        return tuple(wrap(name, d, ndim) + 1 for d in dim)
    return wrap(name, dim, ndim) + 1


@batched(operations.softmax, operations.log_softmax, operations.cumsum)
def along(op, level, tensors, attributes):
    """Along one dim of each example."""
    x, = tensors
    dim = check_dims(op.name, attributes["dim"], x.ndim)
    out = op.function(aligned(x, max(x.ndim, 1)), **{**attributes, "dim": dim})
    if x.ndim:
        return out
    return tuple(y.squeeze(1) for y in out) if isinstance(out, tuple) else out.squeeze(1)


# ---- matrix products -----------------------------------------------------------------------------

@batched(operations.matmul)
def product(op, level, tensors, attributes):
    """One matrix product if the examples share an operand, else a batch of products."""
    a, b = tensors
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"{op.name}: both tensors need a dim, got {a.ndim} and {b.ndim}")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise sizes_differ(op, a, b)
    # a shared operand: one product, with the examples as rows of one matrix
    if a.ndim == 1 and b.ndim == 2 and not is_at(b, level):
        return matmul(a.value, b)
    if a.ndim == 2 and b.ndim == 1 and not is_at(a, level):
        return matmul(b.value, a.mT)
    left = a.unsqueeze(0) if a.ndim == 1 else a
    right = b.unsqueeze(-1) if b.ndim == 1 else b
    ndim = max(left.ndim, right.ndim)
    out = matmul(*[aligned(x, ndim) if is_at(x, level) else x for x in (left, right)])
    out = out.squeeze(-1) if b.ndim == 1 else out
    return out.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else out


def product_of(left, right):
    """The rule of a product of tensors with these numbers of dims."""
    def rule(op, level, tensors, attributes):
        a, b = tensors
        if (a.ndim, b.ndim) != (left, right):
            raise RuntimeError(f"{op.name}: expects tensors of {left} and {right} dims, got shapes "
                               f"{tuple(a.shape)} and {tuple(b.shape)}")
        if left > 2 and a.shape[0] != b.shape[0]:
            raise sizes_differ(op, a, b)
        return product(op, level, tensors, attributes)
    return rule


def sizes_differ(op, a, b):
    """The error about matrices that do not fit."""
    return RuntimeError(f"{op.name}: sizes differ: {tuple(a.shape)} @ {tuple(b.shape)}")


batched(operations.mm)(product_of(2, 2))
batched(operations.mv)(product_of(2, 1))
batched(operations.dot)(product_of(1, 1))
batched(operations.bmm)(product_of(3, 3))


# ---- shapes --------------------------------------------------------------------------------------

@batched(operations.view, operations.reshape)
def reshaped(op, level, tensors, attributes):
    """The elements of each example under other sizes."""
    x, = tensors
    shape = list(attributes["shape"])
    if shape.count(-1) == 1:
        others = -math.prod(shape)
        if others == 0 or x.numel() % others:
            raise RuntimeError(f"{op.name}: shape {tuple(shape)} is invalid for an example of "
                               f"{x.numel()} elements")
        shape[shape.index(-1)] = x.numel() // others
    return op.function(x.value, (level.size, *shape))


@batched(operations.view_dtype)
def of_other_dtype(op, level, tensors, attributes):
    """The bytes of each example, which for elements of another size must have dims."""
    x, dtype = tensors[0], attributes["dtype"]
    if x.ndim == 0 and x.dtype.itemsize != getattr(dtype, "itemsize", None):
        raise RuntimeError(f"view: an example of {x.dtype} can't be viewed as {dtype}, whose "
                           "elements have another size: it has no dims")
    return op.function(x.value, dtype)


@batched(operations.expand)
def expanded(op, level, tensors, attributes):
    """Each example repeated along its dims of size 1."""
    x, shape = tensors[0], tuple(attributes["shape"])
    return op.function(aligned(x, len(shape)), (level.size, *shape))


@batched(operations.sum_to_size)
def summed(op, level, tensors, attributes):
    """Each example summed to the sizes."""
    x, size = tensors[0], tuple(attributes["size"])
    padded = (1,) * (x.ndim - len(size)) + size
    return op.function(x.value, (level.size, *padded)).reshape((level.size, *size))


@batched(operations.transpose)
def transposed(op, level, tensors, attributes):
    """Two dims of each example exchanged."""
    x, = tensors
    dims = [check_dims(op.name, attributes[name], x.ndim) if x.ndim else None
            for name in ("dim0", "dim1")]
    return op.function(x.value, *dims) if x.ndim else x.value


@batched(operations.permute)
def permuted(op, level, tensors, attributes):
    """The dims of each example in another order."""
    x, = tensors
    return op.function(x.value, (0, *check_dims(op.name, tuple(attributes["dims"]), x.ndim)))


@batched(operations.t)
def flipped(op, level, tensors, attributes):
    """The transpose of each example."""
    x, = tensors
    if x.ndim > 2:
        raise RuntimeError(f"t: expects a tensor with at most 2 dims, got {x.ndim}")
    return x.value.transpose(1, 2) if x.ndim == 2 else x.value


@batched(operations.squeeze)
def squeezed(op, level, tensors, attributes):
    """Each example without its dims of size 1."""
    x, dim = tensors[0], attributes["dim"]
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = check_dims(op.name, tuple(dims), x.ndim)
    return op.function(x.value, dims if x.ndim else ())


@batched(operations.unsqueeze)
def unsqueezed(op, level, tensors, attributes):
    """Each example with a dim of size 1 put in."""
    x, = tensors
    return op.function(x.value, check_dims(op.name, attributes["dim"], x.ndim + 1))


@batched(operations.flip)
def turned(op, level, tensors, attributes):
    """Each example turned round along dims."""
    x, dims = tensors[0], check_dims(op.name, tuple(attributes["dims"]), tensors[0].ndim)
    return op.function(x.value, dims if x.ndim else ())


@batched(operations.roll)
def rolled(op, level, tensors, attributes):
    """Each example shifted along dims, or as a vector."""
    x, shifts, dims = tensors[0], settled_dims(attributes["shifts"]), attributes["dims"]
    if dims is None or dims == ():
        rows = x.value.reshape((level.size, x.numel()))
        return op.function(rows, shifts, 1).reshape(x.value.shape)
    return op.function(x.value, shifts, check_dims(op.name, settled_dims(dims), x.ndim))


@batched(operations.repeat)
def repeated(op, level, tensors, attributes):
    """Each example as often as its numbers say along each dim."""
    counts = tuple(attributes["repeats"])
    return op.function(aligned(tensors[0], len(counts)), (1, *counts))


@batched(operations.tile)
def tiled(op, level, tensors, attributes):
    """As `repeat`, where fewer numbers are those of the last dims."""
    x, counts = tensors[0], tuple(attributes["dims"])
    counts = (1,) * (x.ndim - len(counts)) + counts
    return op.function(aligned(x, len(counts)), (1, *counts))


@batched(operations.narrow)
def narrowed(op, level, tensors, attributes):
    """A range of one dim of each example."""
    x, = tensors
    dim = check_dims(op.name, attributes["dim"], x.ndim)
    return op.function(x.value, dim, attributes["start"], attributes["length"])


@batched(operations.diagonal)
def diagonals(op, level, tensors, attributes):
    """The diagonal of each example."""
    x, = tensors
    dims = [check_dims(op.name, attributes[name], x.ndim) for name in ("dim1", "dim2")]
    return op.function(x.value, attributes["offset"], *dims)


@batched(operations.unfold)
def windows(op, level, tensors, attributes):
    """The windows of each example."""
    x, = tensors
    if x.ndim == 0:
        return op.function(x.value.unsqueeze(1), 1, attributes["size"], attributes["step"])[:, 0]
    dim = check_dims(op.name, attributes["dimension"], x.ndim)
    return op.function(x.value, dim, attributes["size"], attributes["step"])


@batched(operations.cat)
def joined(op, level, tensors, attributes):
    """The parts of each example joined."""
    parts = tensors[0]
    dim = check_dims(op.name, attributes["dim"], parts[0].ndim)
    return cat([batch_of(x, level) for x in parts], dim)


@batched(operations.stack)
def stacked(op, level, tensors, attributes):
    """The parts of each example joined along a new dim."""
    parts = tensors[0]
    dim = check_dims(op.name, attributes["dim"], parts[0].ndim + 1)
    return stack([batch_of(x, level) for x in parts], dim)


@batched(operations.tril, operations.triu)
def triangle(op, level, tensors, attributes):
    """The triangle of each example."""
    x, = tensors
    if x.ndim < 2:
        raise RuntimeError(f"{op.name}: expects a tensor with at least 2 dims, got {x.ndim}")
    return op.function(x.value, **attributes)


@batched(operations.view_as_complex)
def of_pairs(op, level, tensors, attributes):
    """The pairs of each example as complex numbers, for which it must have a dim."""
    x, = tensors
    if x.ndim == 0:
        raise RuntimeError("view_as_complex: an example must have a last dim of 2, got shape ()")
    return op.function(x.value)


@batched(operations.complex)
def of_parts(op, level, tensors, attributes):
    """The complex numbers of each example, whose parts broadcast as they would alone."""
    ndim = max(x.ndim for x in tensors)
    return op.function(*[aligned(x, ndim) if is_at(x, level) else x for x in tensors])


@batched(operations.to, operations.clone, operations.contiguous, operations.own_positions,
         operations.real_part, operations.imag_part, operations.view_as_real, operations.framed,
         operations.polygamma_of)
def as_it_is(op, level, tensors, attributes):
    """The operation applied to the whole batch."""
    return op.function(tensors[0].value, **attributes)


# ---- without a rule ------------------------------------------------------------------------------

_warned = set()


def warn_of_loop(name, level):
    """Warns, once for each name, that something runs example by example.

    Raises: RuntimeError where there is no example to find the shape of the result by.
    """
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"vmap: {name} has no batching rule and runs example by example, which is "
                      "slow", UserWarning, stacklevel=outside())
    if level.size == 0:
        raise RuntimeError(f"{name}: vmap: has no batching rule, so that a batch of no examples is "
                           "not supported")


def outside():
    """The `stacklevel` with which a warning of the caller shows the user's line."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tensorlib."):
        frame, level = frame.f_back, level + 1
    return level


@batched_kind("others")
def looped(op, level, tensors, attributes):
    """By the rule of a primitive, else example by example, with one warning for each operation."""
    batching = getattr(op.function, "batching", None)
    if batching is not None:
        return by_rule(op, batching, level, tensors[0] if op.variadic else tensors, attributes)
    return one_by_one(op.name, op.function, level, tensors, attributes)


def by_rule(op, batching, level, tensors, attributes):
    """The result of the batching rule of a primitive. Raises: RuntimeError."""
    dims = tuple(0 if is_at(x, level) else None for x in tensors)
    values = [x.value if d == 0 else x for x, d in zip(tensors, dims)]
    with level.outside():
        result = batching(VmapInfo(level.size, level.randomness), dims, *values, **attributes)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{op.name}: its batching rule must return (output, out_dim)")
    output, place = result
    if isinstance(output, tuple):                          # of several outputs, all at one place
        return tuple(in_front(x, place, level) for x in output)
    return in_front(output, place, level)


def in_front(output, place, level):
    """The output of a rule with the batch as dim 0."""
    if place is None:
        return output.expand((level.size, *output.shape))
    return output.movedim(place, 0)


def one_by_one(name, function, level, args, options):
    """The batched results of a function that runs for each example, with a warning per name."""
    warn_of_loop(name, level)
    with level.outside():
        if level.randomness == "error":
            generator.set_plan(False)
        results = results_of(function, level, args, options)
    return in_one(results)


def results_of(function, level, args, options):
    """The results of a function for each example."""
    def example(value, i):
        if isinstance(value, tuple):
            return tuple(example(part, i) for part in value)
        return value.value[i] if is_at(value, level) else value
    return [function(*example(tuple(args), i),
                     **{key: example(x, i) for key, x in options.items()})
            for i in range(level.size)]


def in_one(results):
    """The batch of the results of examples, or a tuple of batches where each is a tuple."""
    if isinstance(results[0], Tensor):
        return stack(results)
    joined = [stack(column) for column in zip(*results)]
    kind = type(results[0])
    return kind(*joined) if hasattr(kind, "_fields") else tuple(joined)
