"""`index_put` by rows: for examples of a batch, which may have positions of their own."""

import math

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.ops.index.scattering import scatter, scatter_add
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.value_checks import value_check


@value_check
def are_positions(index, size):
    """Raises IndexError for what is not a position in a dim of this size."""
    wrong = (index < -size).logical_or(index >= size)
    if wrong.any():
        raise IndexError(f"index_put: index {index[wrong][0].item()} is out of bounds for a dim of "
                         f"size {size}")


def put_in_rows(input, indices, values, accumulate):
    """`index_put` with values of the dtype: the dims before those of the rows become one."""
    if not 0 < len(indices) <= input.ndim:
        raise IndexError(f"index_put: {len(indices)} positions for {input.ndim} dims")
    number, sizes = 0, tuple(input.shape)[:len(indices)]
    for index, size in zip(indices, sizes):
        if index.dtype is BY_NAME["bool"]:
            raise RuntimeError("index_put: vmap: masks that differ between examples pick no fixed "
                               "number of elements; use where")
        are_positions(index, size)
        number = where(index < 0, index + size, index) + number * size
    row = tuple(input.shape)[len(sizes):]
    places, width = tuple(number.shape), math.prod(row)
    values = values.expand((*places, *row)).reshape(math.prod(places), width)
    number = number.reshape(math.prod(places), 1).expand(math.prod(places), width)
    rows = input.reshape(math.prod(sizes), width)
    put = scatter_add if accumulate else scatter
    return put(rows, 0, number, values).reshape(tuple(input.shape))
