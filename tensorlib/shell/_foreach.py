"""`_foreach_add` and the like: one operation on each tensor of a list.

Optimisers and moving averages outside of the library ask PyTorch for them, which fuses such calls
on GPUs. Here they are loops, of calls that are cheap by themselves.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import tensorlib
from tensorlib._core.tensor.tensor import Tensor

UNARY = """abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10
log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc""".split()
BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub".split()
TERNARY = "addcdiv addcmul lerp".split()
OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}    # beside a number
OF_TENSORS = {number: name for name, number in OF_NUMBERS.items()}


def checked(name: str, tensors: Any) -> Sequence[Tensor]:
    """The list of tensors. Raises: TypeError for something else, RuntimeError for none."""
    if not isinstance(tensors, (tuple, list)) or not all(
            issubclass(kind, Tensor) for kind in set(map(type, tensors))):
        raise TypeError(f"{name}: expected a list of Tensors, got {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError(f"{name}: expected a list of at least one Tensor")
    return tensors


def beside(name: str, given: Any, count: int) -> Iterable[Any]:
    """What stands beside each of `count` tensors: the items of a list, or one value for all."""
    if not isinstance(given, (tuple, list)):
        return repeat(given, count)
    if len(given) != count:
        raise RuntimeError(f"{name}: the lists must have the same length, got {count} and "
                           f"{len(given)}")
    return given


def each(operation: str, written: bool = False) -> Callable[..., Any]:
    """The function of a list of tensors, which gives a tuple, or writes each of them in place.

    Of the other arguments each is one value for all tensors, or a list of values.
    """
    name = f"_foreach_{operation}{'_' * written}"

    def function(self: Any, *others: Any, **options: Any) -> Any:
        if operation == "pow" and not isinstance(self, (tuple, list)):      # of one number
            return tuple(tensorlib.pow(self, x) for x in checked(name, others[0]))
        tensors = checked(name, self)
        given = [*others, *(options.pop(key) for key in ("other", "tensors", "weight", "scalars")
                            if key in options)]
        method = method_beside(given[0] if given else None)
        if operation.startswith("addc") and len(given) == 3:      # their numbers are an option
            given[2] = given[2].tolist() if isinstance(given[2], Tensor) else given[2]
            rows = zip(tensors, *(beside(name, x, len(tensors)) for x in given))
            results = tuple(method(x, y, z, value=value) for x, y, z, value in rows)
        else:
            run = partial(method, **options) if options else method
            results = tuple(map(run, tensors, *(beside(name, x, len(tensors)) for x in given)))
        return self if written else results

    def method_beside(given: Any) -> Callable[..., Tensor]:
        other = given[0] if isinstance(given, (tuple, list)) and given else given
        names = OF_TENSORS if isinstance(other, Tensor) else OF_NUMBERS
        return getattr(Tensor, names.get(operation, operation) + "_" * written)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{operation}` of each of the tensors" + (", in place." if written else ".")
    return function


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes the elements of each tensor of `src` over those of one of `self`."""
    for x, y in zip(checked("_foreach_copy_", self), beside("_foreach_copy_", src, len(self))):
        x.copy_(y)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Zeros in each of the tensors."""
    for x in checked("_foreach_zero_", self):
        x.zero_()
    return self


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each of the tensors as a vector."""
    norm = partial(tensorlib.linalg.vector_norm, ord=ord, dtype=dtype)
    return tuple(map(norm, checked("_foreach_norm", self)))


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each of the tensors."""
    return tuple(x.max() for x in checked("_foreach_max", self))


FUNCTIONS = {
    function.__name__: function for function in (
        _foreach_copy_, _foreach_zero_, _foreach_norm, _foreach_max,
        *(each(name, written) for name in (*UNARY, *BINARY, *TERNARY) for written in (False, True)
          if (name, written) != ("clone", True)))
}
