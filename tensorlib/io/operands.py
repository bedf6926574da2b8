"""Arguments of NumPy's functions converted to those of tensorlib's, or refused."""

import functools
import sys

import numpy as np

from tensorlib._core.base.dtypes import dtype as Dtype
from tensorlib._core.base.dtypes import get_default_dtype, promote_types
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.io.arrays import NotTaken
from tensorlib.ops.declare import FUNCTIONS

asarray, stack = FUNCTIONS["asarray"], FUNCTIONS["stack"]


def tensor_of(value):
    """`value` as a Tensor that shares its memory where it can; a sequence of Tensors is stacked."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (list, tuple)) and any(isinstance(x, Tensor) for x in flat(value)):
        return stack(alike(value))
    if value is None:
        raise NotTaken("None stands where a Tensor or an array goes")
    return asarray(value)


def flat(values):
    """The elements of nested lists and tuples."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        else:
            yield value


def operand(value):
    """Arrays and sequences as Tensors, for an element-wise function.

    Numbers stay, as they don't promote, and so does what the function refuses by its own error.
    """
    arrays = isinstance(value, (np.ndarray, np.generic, list, tuple))
    return tensor_of(value) if arrays and not isinstance(value, float) else value


def alike(values):
    """The values as Tensors of one dtype, the smallest that all convert to."""
    tensors = [tensor_of(value) for value in values]
    if not tensors:
        return tensors
    common = functools.reduce(promote_types, [x.dtype for x in tensors])
    return [x.to(common) for x in tensors]


def floating(value):
    """`value` as a floating or complex Tensor: integers and bools become the default dtype."""
    x = tensor_of(value)
    return x if x.is_floating_point() or x.is_complex() else x.to(get_default_dtype())


def dtype_of(value):
    """The dtype that `value` names: tensorlib's or NumPy's, or None."""
    return value if value is None or isinstance(value, Dtype) else np.dtype(value)


def name_of(function):
    """A function as a user writes it: numpy.linalg.norm, scipy.special.gammaln."""
    name = function.__name__
    if not isinstance(function, np.ufunc):
        return f"{getattr(function, '__module__', None) or 'numpy'}.{name}"
    if getattr(np, name, None) is function:
        return f"numpy.{name}"
    # a ufunc does not know its module: it is a public one that has it, the shortest name of them
    homes = [home for home, module in list(sys.modules.items())
             if getattr(module, "__dict__", {}).get(name) is function
             and not any(part.startswith("_") for part in home.split("."))]
    return f"{min(homes, key=len)}.{name}" if homes else name


def missing(name):
    """The error of a function that has no counterpart here, where a gradient would be lost."""
    return NotTaken(
        f"{name}: works on arrays alone, which would lose the gradient (or the batch of a vmap); "
        "call it on x.detach().numpy(), or make it an operation with tensorlib.ops.primitive")


def refuse(name, options, neutral):
    """Raises TypeError for options that are set to something else than what changes nothing."""
    for option, value in options.items():
        if option not in neutral or not same(value, neutral[option]):
            raise NotTaken(f"{name}: {option}={value!r} is not supported for Tensors in a graph; "
                           "leave it out, or call it on x.detach().numpy()")


def same(value, neutral):
    """Whether an argument has the value that changes nothing: itself, or an equal text."""
    return value is neutral or (isinstance(value, str) and value == neutral)
