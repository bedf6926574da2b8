"""NumPy's functions of arrays on Tensors: `np.sum(x)`, `np.concatenate([x, y])`, `np.dot(x, w)`.

One function for each of NumPy's, with the arguments of NumPy's that it takes, under their names.
"""

import inspect

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.io.arrays import CONVERSIONS, NotTaken, as_arrays, loses_gradient, on_arrays
from tensorlib.io.operands import alike, dtype_of, floating, missing, name_of, operand, tensor_of
from tensorlib.io.table import counterpart, counterpart_of
from tensorlib.io.ufuncs import reduced
from tensorlib.ops.declare import FUNCTIONS

isfinite, isnan, norm = FUNCTIONS["isfinite"], FUNCTIONS["isnan"], FUNCTIONS["norm"]
where = FUNCTIONS["where"]


# ---- reductions ----------------------------------------------------------------------------------

@counterpart(np.sum)
def sum_(a, axis=None, dtype=None, out=None, keepdims=False):
    """The sum over the axes."""
    return tensor_of(a).sum(axis, bool(keepdims), dtype=dtype_of(dtype), out=out)


@counterpart(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=False):
    """The sum over the axes of what is not NaN."""
    return tensor_of(a).nansum(axis, bool(keepdims), dtype=dtype_of(dtype), out=out)


@counterpart(np.prod)
def prod(a, axis=None, dtype=None, *, keepdims=False):
    """The product over the axes."""
    x = tensor_of(a)
    return reduced(x if dtype is None else x.to(dtype_of(dtype)), "prod", axis, keepdims)


@counterpart(np.mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=False):
    """The mean over the axes; integers are averaged in the default floating dtype."""
    return floating(a).mean(axis, bool(keepdims), dtype=dtype_of(dtype), out=out)


@counterpart(np.average)
def average(a, axis=None, weights=None, *, keepdims=False):
    """The mean over the axes, weighted by `weights`.

    Raises: TypeError for weights of another shape that are not a vector along one axis.
    """
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    x, weights = floating(a), tensor_of(weights)
    if weights.shape != x.shape:
        if not isinstance(axis, int) or weights.ndim != 1:
            raise TypeError("numpy.average: weights of another shape than a must be a vector, "
                            f"with an axis; got shapes {tuple(weights.shape)}, {tuple(x.shape)}")
        weights = weights.reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim)).expand(x.shape)
    return (x * weights).sum(axis, bool(keepdims)) / weights.sum(axis, bool(keepdims))


@counterpart(np.var)
def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
    """The variance over the axes, with n - ddof as the divisor."""
    x = floating(a).to(dtype_of(dtype)) if dtype is not None else floating(a)
    return x.var(axis, correction=ddof if correction is None else correction,
                 keepdim=bool(keepdims), out=out)


@counterpart(np.std)
def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
    """The standard deviation over the axes, with n - ddof as the divisor."""
    x = floating(a).to(dtype_of(dtype)) if dtype is not None else floating(a)
    return x.std(axis, correction=ddof if correction is None else correction,
                 keepdim=bool(keepdims), out=out)


@counterpart(np.max, np.amax)
def amax(a, axis=None, out=None, keepdims=False):
    """The greatest element over the axes; equal ones share the gradient."""
    return tensor_of(a).amax(() if axis is None else axis, bool(keepdims), out=out)


@counterpart(np.min, np.amin)
def amin(a, axis=None, out=None, keepdims=False):
    """The least element over the axes; equal ones share the gradient."""
    return tensor_of(a).amin(() if axis is None else axis, bool(keepdims), out=out)


@counterpart(np.ptp)
def ptp(a, axis=None, *, keepdims=False):
    """The greatest element less the least, over the axes."""
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


@counterpart(np.argmax)
def argmax(a, axis=None, out=None, *, keepdims=False):
    """The index of the greatest element along an axis, or in C order; it has no gradient."""
    return tensor_of(a).argmax(axis, bool(keepdims), out=out)


@counterpart(np.argmin)
def argmin(a, axis=None, out=None, *, keepdims=False):
    """The index of the least element along an axis, or in C order; it has no gradient."""
    return tensor_of(a).argmin(axis, bool(keepdims), out=out)


@counterpart(np.all)
def all_(a, axis=None, out=None, keepdims=False):
    """Whether all elements over the axes are other than 0."""
    return tensor_of(a).all(axis, bool(keepdims), out=out)


@counterpart(np.any)
def any_(a, axis=None, out=None, keepdims=False):
    """Whether any element over the axes is other than 0."""
    return tensor_of(a).any(axis, bool(keepdims), out=out)


@counterpart(np.count_nonzero)
def count_nonzero(a, axis=None):
    """The number of elements over the axes that are not 0."""
    return tensor_of(a).count_nonzero(axis)


@counterpart(np.cumsum)
def cumsum(a, axis=None, dtype=None):
    """The running sums along an axis, of `a` as a vector if it is None."""
    x = tensor_of(a)
    return (x.ravel() if axis is None else x).cumsum(axis or 0, dtype=dtype_of(dtype))


@counterpart(np.diff)
def diff(a, n=1, axis=-1):
    """The n-th differences of neighbours along an axis."""
    return FUNCTIONS["diff"](tensor_of(a), n, axis)


@counterpart(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of a diagonal of two axes."""
    return tensor_of(a).diagonal(offset, axis1, axis2).sum(-1, dtype=dtype_of(dtype), out=out)


# ---- products ------------------------------------------------------------------------------------

@counterpart(np.dot)
def dot(a, b):
    """The product of matrices or vectors; of others over the last axis and the last but one."""
    a, b = alike((a, b))
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return a @ b if b.ndim <= 2 else tensordot(a, b, ((-1,), (-2,)))


@counterpart(np.vdot)
def vdot(a, b):
    """The sum of the products of all elements, those of `a` conjugated."""
    a, b = alike((a, b))
    return FUNCTIONS["vdot"](a.ravel(), b.ravel())


@counterpart(np.inner)
def inner(a, b):
    """The products summed over the last axis of both."""
    a, b = alike((a, b))
    return a * b if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, ((-1,), (-1,)))


@counterpart(np.outer)
def outer(a, b):
    """Each element of `a` times each of `b`, both taken as vectors."""
    return tensor_of(a).reshape(-1, 1) * tensor_of(b).reshape(-1)


@counterpart(np.kron)
def kron(a, b):
    """The Kronecker product."""
    return FUNCTIONS["kron"](tensor_of(a), tensor_of(b))


@counterpart(np.tensordot)
def tensordot(a, b, axes=2):
    """The products summed over some axes of each, or over a number of axes between both."""
    return FUNCTIONS["tensordot"](*alike((a, b)), axes)


@counterpart(np.linalg.norm)
def linalg_norm(x, ord=None, axis=None, keepdims=False):
    """Any norm of vectors, but of matrices the Frobenius norm alone."""
    x = floating(x)
    over = x.ndim if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if isinstance(ord, str) and ord != "fro" or over > 1 and ord not in (None, "fro"):
        raise NotTaken(f"numpy.linalg.norm: ord={ord!r} is not supported for matrices in a graph; "
                       "leave it out, or call it on x.detach().numpy()")
    return norm(x, 2 if ord in (None, "fro") else ord, axis, bool(keepdims))


# ---- choosing ------------------------------------------------------------------------------------

@counterpart(np.where)
def where_(condition, x=None, y=None):
    """With the condition alone, where it holds: an array of positions for each dim."""
    condition = tensor_of(condition).bool()
    if x is None and y is None:
        return condition.nonzero(as_tuple=True)
    x, y = operand(x), operand(y)
    if not (isinstance(x, Tensor) or isinstance(y, Tensor)):
        x = tensor_of(x)
    return where(condition, x, y)


@counterpart(np.select)
def select(condlist, choicelist, default=0):
    """For each element the choice whose condition is the first to hold, else `default`."""
    result = operand(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where_(condition, choice, result)
    return result


@counterpart(np.clip)
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    """`a` with its elements between two bounds, either of which may be None."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if low is None and high is None:
        return tensor_of(a).clone()
    return tensor_of(a).clamp(*(x if x is None else operand(x) for x in (low, high)), out=out)


@counterpart(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """`x` with numbers for NaN and infinities."""
    if not copy:
        raise NotTaken("numpy.nan_to_num: copy=False is not supported for Tensors in a graph")
    return FUNCTIONS["nan_to_num"](tensor_of(x), nan, posinf, neginf)


@counterpart(np.take)
def take(a, indices, axis=None):
    """The elements at `indices` along an axis, of `a` as a vector if it is None."""
    x, places = tensor_of(a), tensor_of(indices).long()
    if axis is None:
        return x.ravel()[places]
    return x[(slice(None),) * (axis % x.ndim) + (places,)]


@counterpart(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """The elements at `indices`, which has the dims of `arr`, along an axis."""
    x, places = tensor_of(arr), tensor_of(indices).long()
    if axis is None:
        return x.ravel().gather(0, places)
    return x.gather(axis, places)


@counterpart(np.compress)
def compress(condition, a, axis=None):
    """The slices along an axis where the vector `condition` holds."""
    x, chosen = tensor_of(a), tensor_of(condition).nonzero().reshape(-1)
    return take(x, chosen, axis)


@counterpart(np.nonzero)
def nonzero(a):
    """The positions of what is not 0: an array of indices for each dim."""
    return tensor_of(a).nonzero(as_tuple=True)


@counterpart(np.argwhere)
def argwhere(a):
    """The positions of what is not 0, one in each row."""
    return tensor_of(a).nonzero()


@counterpart(np.flatnonzero)
def flatnonzero(a):
    """The positions in C order of what is not 0."""
    return tensor_of(a).ravel().nonzero().reshape(-1)


@counterpart(np.round, np.around)
def round_(a, decimals=0, out=None):
    """`a` rounded to a number of decimals, halves to even; its gradient is 0."""
    x = tensor_of(a)
    if decimals == 0 or not x.is_floating_point():
        return x.round(out=out)
    return FUNCTIONS["div"]((x * 10.0 ** decimals).round(), 10.0 ** decimals, out=out)


# ---- tensors like others -------------------------------------------------------------------------

@counterpart(np.copy)
def copy(a):
    """A copy of `a`, through which gradients flow."""
    return tensor_of(a).clone()


@counterpart(np.zeros_like)
def zeros_like(a, dtype=None):
    """Zeros of the shape of `a`."""
    return FUNCTIONS["zeros_like"](tensor_of(a), dtype=dtype_of(dtype))


@counterpart(np.ones_like)
def ones_like(a, dtype=None):
    """Ones of the shape of `a`."""
    return FUNCTIONS["ones_like"](tensor_of(a), dtype=dtype_of(dtype))


@counterpart(np.empty_like)
def empty_like(prototype, dtype=None):
    """A tensor of the shape of `prototype` with no values set."""
    return FUNCTIONS["empty_like"](tensor_of(prototype), dtype=dtype_of(dtype))


@counterpart(np.full_like)
def full_like(a, fill_value, dtype=None):
    """`fill_value` broadcast to the shape of `a`, in its dtype if none is given."""
    x = tensor_of(a)
    value = tensor_of(fill_value).to(x.dtype if dtype is None else dtype_of(dtype))
    return value.expand(x.shape).clone()


# ---- questions -----------------------------------------------------------------------------------

@counterpart(np.shape)
def shape(a):
    """The shape as a tuple."""
    return tuple(tensor_of(a).shape)


@counterpart(np.ndim)
def ndim(a):
    """The number of dims."""
    return tensor_of(a).ndim


@counterpart(np.size)
def size(a, axis=None):
    """The number of elements, or the size along an axis."""
    return tensor_of(a).numel() if axis is None else tensor_of(a).size(axis)


@counterpart(np.isclose)
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether |a - b| <= atol + rtol |b|, element by element; it has no gradient."""
    a, b = tensor_of(a).detach(), tensor_of(b).detach()
    close = (a == b) | (((a - b).abs() <= atol + rtol * b.abs()) & isfinite(b))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


@counterpart(np.allclose)
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close, as `isclose` has it."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


@counterpart(np.array_equal)
def array_equal(a1, a2):
    """Whether the shapes are equal and all elements."""
    a, b = tensor_of(a1), tensor_of(a2)
    return a.shape == b.shape and bool((a == b).all())


@counterpart(np.array_repr)
def array_repr(arr):
    """The text that `repr` gives."""
    return repr(tensor_of(arr))


@counterpart(np.array_str, np.array2string)
def array_str(a):
    """The text that `str` gives."""
    return str(tensor_of(a))


# ---- the protocol --------------------------------------------------------------------------------

def array_function(self, function, types, args, kwargs):
    """What NumPy calls for a function with a Tensor among its arguments.

    The function's counterpart gives Tensors in the graph. Where there is none, or it does not take
    an argument, NumPy's own function runs on the memory of the Tensors, and gives arrays.
    Raises: TypeError where a gradient would be lost by that.
    """
    if not all(issubclass(t, (Tensor, np.ndarray)) or hasattr(t, "__tensor_call__") for t in types):
        return NotImplemented
    ours = counterpart_of(function)
    if ours is None:
        return on_arrays(function, args, kwargs, missing(name_of(function)))
    if function in CONVERSIONS and not loses_gradient((args, kwargs)):
        return function(*as_arrays(args), **as_arrays(kwargs))
    try:
        check_arguments(function, ours, args, kwargs)
        return ours(*args, **kwargs)
    except TypeError as error:
        refusal = error
    if type(refusal) is NotTaken and not str(refusal).startswith("numpy."):
        refusal = NotTaken(f"{name_of(function)}: {refusal}")
    return on_arrays(function, args, kwargs, refusal)


def check_arguments(function, ours, args, kwargs):
    """Raises NotTaken for arguments of NumPy's function that its counterpart does not have."""
    code = ours.__code__
    if isinstance(kwargs.get("out"), np.ndarray):
        raise NotTaken(f"{name_of(function)}: out must be a Tensor where an argument is one")
    unknown = set(kwargs) - set(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
    if len(args) > code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
        places = list(inspect.signature(function).parameters)
        unknown.update(places[code.co_argcount:len(args)])
    if unknown:
        raise NotTaken(f"{name_of(function)}: {', '.join(sorted(unknown))} not supported for "
                       "Tensors in a graph; leave it out, or call it on x.detach().numpy()")
