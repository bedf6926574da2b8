"""NumPy's element-wise functions on Tensors: `np.tanh(x)`, `array + x`, `np.add.reduce(x)`."""

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.io.arrays import on_arrays
from tensorlib.io.operands import alike, dtype_of, missing, name_of, operand, refuse, tensor_of
from tensorlib.io.table import COUNTERPARTS, counterpart, counterpart_of
from tensorlib.ops.declare import FUNCTIONS

for _ufunc, _name in {
    np.fabs: "abs", np.reciprocal: "reciprocal", np.rint: "round", np.sign: "sign",
    np.square: "square", np.logaddexp: "logaddexp",
    np.deg2rad: "deg2rad", np.radians: "deg2rad", np.rad2deg: "rad2deg", np.degrees: "rad2deg",
}.items():
    counterpart(_ufunc)(FUNCTIONS[_name])

REDUCTIONS = {
    np.add: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin",
    np.logical_and: "all", np.logical_or: "any",
}

# what the keyword arguments of a ufunc may be, as they then change nothing
NEUTRAL = {"where": True, "casting": "same_kind", "order": "K", "subok": True}

# ---- those that are made of several --------------------------------------------------------------

@counterpart(np.matmul)
def matmul(a, b, out=None):
    """The matrix product over the last two dims."""
    return FUNCTIONS["matmul"](*alike((a, b)), out=out)


@counterpart(np.vecdot)
def vecdot(a, b):
    """The products summed over the last axis, those of `a` conjugated."""
    return (tensor_of(a).conj() * tensor_of(b)).sum(-1)


@counterpart(np.positive)
def positive(x):
    """A copy of `x`."""
    return x.clone()


@counterpart(np.conjugate)
def conjugate(x):
    """The conjugate of each element; of a real tensor a copy."""
    return x.conj() if x.is_complex() else x.clone()


@counterpart(np.divmod)
def divmod_(x, y):
    """The floor of x / y and what remains."""
    return FUNCTIONS["floor_divide"](x, y), FUNCTIONS["remainder"](x, y)


# ---- the protocol --------------------------------------------------------------------------------

def array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """What NumPy calls for a ufunc with a Tensor among its operands, as `array_function`.

    Raises: TypeError for a ufunc, method or argument without a counterpart and RuntimeError for an
    `out` array, where a gradient would be lost.
    """
    # what operators between arrays and Tensors come to: the functions take these types themselves
    if method == "__call__" and out is None and not options and PLAIN.issuperset(map(type, inputs)):
        function = counterpart_of(ufunc)
        if function is not None:
            try:
                return function(*inputs)
            except TypeError as error:
                refusal = error
            return on_arrays(ufunc, inputs, {}, refusal)
    if not all(known(x) for x in inputs):
        return NotImplemented
    run, numpys = METHODS.get(method), ufunc if method == "__call__" else getattr(ufunc, method)
    name = name_of(ufunc) if run else f"{name_of(ufunc)}.{method}"
    given = options if out is None else {**options, "out": out}
    if run is None or counterpart_of(ufunc) is None:
        return on_arrays(numpys, inputs, given, missing(name))
    if out is not None:
        if len(out) > 1 or any(isinstance(x, np.ndarray) for x in out):
            return on_arrays(numpys, inputs, given, would_leave_graph(name))
        options = {**options, "out": out[0]}
    try:
        return run(name, ufunc, inputs, dict(options))
    except TypeError as error:
        refusal = error
    return on_arrays(numpys, inputs, given, refusal)


PLAIN = {Tensor, np.ndarray, float, int, bool}


def known(x):
    """Whether no other library's array is to decide what the operation gives."""
    return isinstance(x, (Tensor, np.ndarray, np.generic)) or not hasattr(x, "__array_ufunc__")


def would_leave_graph(name):
    """The error of `array += tensor` and `out=array`, whose result would not be in the graph."""
    return RuntimeError(
        f"{name}: the result would be put into an array and leave the graph; write "
        "`array = array + tensor` instead of `array += tensor`, or use tensor.detach()")


def call(name, ufunc, inputs, options):
    """`ufunc(*inputs)`."""
    out, dtype = options.pop("out", None), dtype_of(options.pop("dtype", None))
    refuse(name, options, NEUTRAL)
    operands = [operand(x) for x in inputs]
    if not any(isinstance(x, Tensor) for x in operands):        # only `out` is a Tensor
        operands = [tensor_of(x) for x in operands]
    if dtype is not None and dtype != np.bool_:     # bools say nothing of what is compared
        operands = [tensor_of(x).to(dtype) for x in operands]
    result = COUNTERPARTS[ufunc](*operands)
    return stored(name, result if dtype is None else result.to(dtype), out)


def stored(name, result, out):
    """The result, or `out` after it was written there."""
    if out is None:
        return result
    if is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(f"{name}: out= does not support automatic differentiation, but one of "
                           "the arguments requires grad")
    if out.shape != result.shape:
        raise RuntimeError(f"{name}: out has shape {tuple(out.shape)}, "
                           f"but the result has {tuple(result.shape)}")
    return out.copy_(result)


def reduce(name, ufunc, inputs, options):
    """`ufunc.reduce(x, axis=0)`: the elements along an axis taken together."""
    if ufunc not in REDUCTIONS:
        raise missing(f"{name}.reduce")
    axis, keepdims = options.pop("axis", 0), options.pop("keepdims", False)
    out, dtype = options.pop("out", None), dtype_of(options.pop("dtype", None))
    refuse(f"{name}.reduce", options, NEUTRAL)
    x = tensor_of(inputs[0])
    result = reduced(x if dtype is None else x.to(dtype), REDUCTIONS[ufunc], axis, keepdims)
    return stored(f"{name}.reduce", result, out)


def reduced(x, reduction, axis, keepdims):
    """A reduction over one axis, several, or all (None); `prod` takes one at a time."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not axes:
        return x.clone()
    if reduction != "prod":
        return getattr(x, reduction)(dim=axes, keepdim=bool(keepdims))
    for dim in sorted({wrap("prod", d, x.ndim) for d in axes}, reverse=True):
        x = x.prod(dim, bool(keepdims))
    return x


def accumulate(name, ufunc, inputs, options):
    """`np.add.accumulate(x, axis=0)`: running sums."""
    if ufunc is not np.add:
        raise missing(f"{name}.accumulate")
    axis, out = options.pop("axis", 0), options.pop("out", None)
    dtype = dtype_of(options.pop("dtype", None))
    refuse(f"{name}.accumulate", options, NEUTRAL)
    return stored(f"{name}.accumulate", tensor_of(inputs[0]).cumsum(axis, dtype=dtype), out)


def outer(name, ufunc, inputs, options):
    """`ufunc.outer(x, y)`: the ufunc of every element of `x` with every element of `y`."""
    x, y = (tensor_of(value) for value in inputs)
    return call(name, ufunc, (x.reshape((*x.shape, *(1,) * y.ndim)), y), options)


METHODS = {"__call__": call, "reduce": reduce, "accumulate": accumulate, "outer": outer}
