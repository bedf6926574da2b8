"""Functions and methods that only older scripts call."""

from math import prod
from operator import index

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import contiguous_format, preserve_format
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite, publish
from tensorlib.ops.late import declared
from tensorlib.ops.publish import attach_checked
from tensorlib.ops.samples import given, refusals

empty_like = FUNCTIONS["empty_like"]


# ---- filled --------------------------------------------------------------------------------------

@composite(tensors=("input",), method=False, reference=lambda x, value: np.full_like(x, value),
           samples=given(((2, 3), 2), ((), 1), ((0, 2), 3)),
           errors=refusals((RuntimeError, (2,), np.ones(2))), complex=True)
def fill(input: Tensor, value):
    """A copy of `input` whose elements are all `value`, a number or a tensor without dims.

    Gradient: of `value`. Raises: RuntimeError for a tensor with dims.

    >>> tensorlib.fill(tensorlib.ones(2), 3)
    tensor([3., 3.])
    """
    if input.requires_grad or isinstance(value, Tensor):
        return input.clone().fill_(value)
    return empty_like(input).fill_(value)


# ---- element by element in Python ----------------------------------------------------------------

def apply_(self, callable):
    """This tensor, after each element x became callable(x), a number. It is slow.

    Raises: RuntimeError for a tensor that requires a gradient, TypeError.
    """
    return written("apply_", self, [callable(x) for x in elements("apply_", self)])


def map_(self, tensor: Tensor, callable):
    """This tensor, after each element x became callable(x, y) for the element y of `tensor`.

    Raises: RuntimeError for a tensor that requires a gradient or does not expand, TypeError for
    another dtype.
    """
    if tensor.dtype != self.dtype:
        raise TypeError(f"map_: tensor must be of dtype {self.dtype}, got {tensor.dtype}")
    others = elements("map_", tensor.detach().expand(self.shape))
    return written("map_", self, [callable(*pair) for pair in zip(elements("map_", self), others)])


def elements(name, x):
    """The elements of a tensor as a list. Raises: RuntimeError in a graph."""
    if x.requires_grad:
        raise RuntimeError(f"{name}: the tensor requires a gradient, which Python's functions do "
                           f"not have; call it on x.detach()")
    return x.flatten().tolist()


def written(name, x, values):
    """The tensor, after these numbers became its elements."""
    made = FUNCTIONS["tensor"](values, dtype=x.dtype) if values else x.new_empty(0)
    if made.ndim != 1:
        raise TypeError(f"{name}: the callable must return a number")
    return x.copy_(made.reshape(x.shape))


# ---- another size --------------------------------------------------------------------------------

def resize_(self, *sizes, size=None, memory_format=None):
    """This tensor with other sizes, over the same memory in its order from where it begins.

    size: the sizes as one sequence, as `sizes` may be given, too.

    Where the memory does not suffice, the tensor gets new memory, with the old elements first and
    any others behind them; views of the old memory stay with that.

    Raises: RuntimeError for a tensor that requires a gradient, for negative sizes and for another
    memory format than the contiguous one; TypeError.

    >>> tensorlib.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if size is not None:
        if sizes:
            raise TypeError("resize_: takes sizes one by one or as size=, not both")
        sizes = (size,)
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    for each in shape:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(f"resize_: sizes must be ints, got {type_name(each)}")
    shape = tuple(map(index, shape))
    if shape and min(shape) < 0 or prod(shape) * self.itemsize >= 2**63:
        raise RuntimeError(f"resize_: sizes must not be negative, or too large, got {shape}")
    if self.requires_grad:
        raise RuntimeError("resize_: the tensor requires a gradient; resize x.detach()")
    if memory_format not in (None, contiguous_format, preserve_format):
        raise RuntimeError(f"resize_: memory_format must be contiguous_format, got {memory_format}")
    count, whole = prod(shape), FUNCTIONS["as_strided"](
        self.data, (self.untyped_storage().nbytes() // self.itemsize - self.storage_offset(),),
        (1,))
    if count > whole.numel():
        longer = self.new_empty(count)
        longer[:whole.numel()] = whole
        whole = longer
    self.data = whole[:count].view(shape)
    return self


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format=None):
    """`input` with the sizes of `the_template`, as `resize_` gives it. Raises: as `resize_`."""
    return resize_(input, the_template.shape, memory_format=memory_format)


publish("resize_as_", resize_as_, resize_as_.__doc__)
for _method in (apply_, map_, resize_):
    attach_checked(_method.__name__, _method)

declared(__name__)
