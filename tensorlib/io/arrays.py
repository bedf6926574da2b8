"""NumPy functions that run on the memory of Tensors as arrays, where that loses no gradient."""

import inspect

import numpy as np

from tensorlib._core.create.overwrite import _count_write
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.tensor.tensor import Tensor

# Functions whose answers have no gradient: they take tensors of a graph too.
ANSWERS = {
    # predicates
    np.allclose, np.array_equal, np.array_equiv, np.isclose, np.iscomplex, np.iscomplexobj,
    np.isin, np.isneginf, np.isposinf, np.isreal, np.isrealobj, np.may_share_memory,
    np.shares_memory, np.signbit,
    # dtypes
    np.can_cast, np.common_type, np.min_scalar_type, np.result_type,
    # positions
    np.argpartition, np.argsort, np.digitize, np.lexsort, np.nanargmax, np.nanargmin,
    np.searchsorted,
    # files and texts
    np.array2string, np.array_repr, np.array_str, np.save, np.savetxt, np.savez,
    np.savez_compressed,
}
# Of these, those that ask for dtypes alone, which all examples of a batch have in common.
OF_DTYPES = {np.can_cast, np.common_type, np.iscomplexobj, np.isrealobj, np.min_scalar_type,
             np.result_type}
# Functions that write into their first argument.
WRITERS = {np.copyto, np.fill_diagonal, np.nan_to_num, np.place, np.put, np.put_along_axis,
           np.putmask}
# Functions that convert, as `np.asarray` does: they give arrays where no gradient is asked for.
CONVERSIONS = {np.atleast_1d, np.atleast_2d, np.atleast_3d}


class NotTaken(TypeError):
    """A function, or an argument of one, that has no counterpart for Tensors."""


def tensors_in(value):
    """The Tensors among nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def is_example(x):
    """Whether a Tensor is one example of a batch."""
    return hasattr(type(x), "__tensor_call__")


def loses_gradient(values):
    """Whether arrays in the place of Tensors would leave a graph, or a function that vmap maps."""
    recorded = is_grad_enabled()
    return any(is_example(x) or (recorded and x.requires_grad) for x in tensors_in(values))


def as_arrays(value, of_dtype=False):
    """`value` with arrays that share the memory of its Tensors; `of_dtype`, of their dtypes."""
    if isinstance(value, Tensor):
        if of_dtype and is_example(value):
            return np.empty(value.shape, np.dtype(value.dtype))
        return value.detach().numpy()
    if isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        return kind(as_arrays(part, of_dtype) for part in value)
    if isinstance(value, dict):
        return {name: as_arrays(part, of_dtype) for name, part in value.items()}
    return value


# With an `out` of no dims NumPy's running sums of a vector read past the dims that it has.
RUNNING = {"cumsum", "cumprod", "nancumsum", "nancumprod", "cumulative_sum", "cumulative_prod",
           "accumulate"}


def on_arrays(function, args, kwargs, refusal):
    """What NumPy's function gives for arrays that share the memory of the Tensors.

    Where it writes into a Tensor this counts as a write, and `out` is returned as it was given.
    Raises: `refusal` where a gradient would be lost, and where NumPy fails too.
    """
    of_dtype = function in OF_DTYPES
    if loses_gradient((args, kwargs)) and not of_dtype and (
            function not in ANSWERS or any(map(is_example, tensors_in((args, kwargs))))):
        raise plain(refusal)
    writes = function in WRITERS or function.__name__ == "at"
    out = None if writes else argument_out(function, args, kwargs)
    if function.__name__ in RUNNING and any(x.ndim == 0 for x in tensors_in(out)):
        raise ValueError(f"{function.__name__}: out must have the input's shape, not that of a "
                         "number")
    try:
        result = function(*as_arrays(args, of_dtype), **as_arrays(kwargs, of_dtype))
    except Exception as error:
        if not isinstance(refusal, NotTaken):
            raise refusal from None
        if isinstance(error, SystemError) and error.__cause__ is not None:
            raise error.__cause__ from None      # NumPy went on after an error
        raise
    finally:
        for x in tensors_in((args[:1], () if args else kwargs) if writes else out):
            _count_write(x)
    return as_given(result, out)


def plain(refusal):
    """The error as users see it."""
    return TypeError(str(refusal)) if type(refusal) is NotTaken else refusal


def argument_out(function, args, kwargs):
    """The argument `out` of a call, by place or by name."""
    if "out" in kwargs or not args:
        return kwargs.get("out")
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments.get("out")
    except (TypeError, ValueError):         # compiled functions need not have a signature
        return None


def as_given(result, out):
    """The result of a call, with the Tensors of `out` in the place of their arrays."""
    if isinstance(out, Tensor):
        return out
    if not isinstance(out, tuple):
        return result
    if len(out) == 1:
        return result if out[0] is None else out[0]
    return tuple(x if given is None else given for x, given in zip(result, out))
