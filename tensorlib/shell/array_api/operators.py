"""The standard's operators where PyTorch's differ: dtypes that meet, quotients and remainders."""

from tensorlib import Tensor, zeros
from tensorlib._core.interpreters.stack import Interpreter
from tensorlib.array_api.elementwise import floor_divide, remainder
from tensorlib.array_api.operands import common_dtype

FUNCTIONS = {"floor_divide": floor_divide, "remainder": remainder}


class standard_operators(Interpreter):
    """A context under which operators do what the functions of this namespace do.

    Without it they are PyTorch's: a 0-d tensor gives way to others of its kind where dtypes meet,
    and quotients of infinities that are rounded down are NaN.

    >>> x, y = tensorlib.ones(2), tensorlib.ones((), dtype=tensorlib.float64)
    >>> with tensorlib.array_api.standard_operators():
    ...     print((x + y).dtype, (x + 1.5).dtype)
    tensorlib.float64 tensorlib.float32
    >>> (x + y).dtype
    tensorlib.float32
    """

    def call(self, op, args, kwargs):
        if op.name in FUNCTIONS and not kwargs:
            return FUNCTIONS[op.name](*args)
        if op.name in KEYS and not kwargs:
            args = (args[0], KEYS[op.name](*args))
        if op.elementwise and len(args) > 1:
            args = promoted(op, args)
        return self.below(op, args, kwargs)

    def write(self, op, name, args, kwargs):
        if op.name in FUNCTIONS:
            return args[0].copy_(FUNCTIONS[op.name](*args))
        return self.below(op, args, kwargs, name)


def whole_mask(x, key):
    """The key, or a mask of no element in place of one that has none, whatever its other sizes."""
    if (isinstance(key, Tensor) and key.dtype.name == "bool" and 0 in key.shape
            and all(n in (0, size) for n, size in zip(key.shape, x.shape, strict=False))
            and key.ndim <= x.ndim):
        return zeros(x.shape[:key.ndim], dtype=key.dtype)
    return key


KEYS = {"getitem": whole_mask}      # what is done to the keys of an operation


def promoted(op, args):
    """The arguments of an element-wise operation in the dtype of all, if one has no axes."""
    places = [place for place, x in enumerate(args)
              if isinstance(x, Tensor) and place not in op.boolean_inputs]
    if len({args[place].dtype for place in places}) < 2 or all(args[p].ndim for p in places):
        return args
    dtype = common_dtype([args[place] for place in places])
    return tuple(x.to(dtype) if place in places else x for place, x in enumerate(args))
