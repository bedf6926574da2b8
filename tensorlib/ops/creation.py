"""New tensors, and new values for old ones."""

import numpy as np

from tensorlib._core.arrays import convert
from tensorlib._core.arrays.arrays import from_numpy, frombuffer
from tensorlib._core.base.dtypes import set_default_dtype
from tensorlib._core.create import creation, overwrite, ranges
from tensorlib._core.layout.views import to_dtype
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import in_place, op, publish, within_memory
from tensorlib.ops.samples import given, given_pairs

for _function in (
    convert.tensor, convert.as_tensor, convert.asarray, from_numpy, frombuffer,
    creation.empty, creation.zeros, creation.ones, creation.full, creation.scalar_tensor,
    creation.empty_like, creation.zeros_like, creation.ones_like, creation.full_like,
    ranges.arange, ranges.linspace, ranges.logspace, ranges.eye, set_default_dtype,
):
    publish(_function.__name__, _function, _function.__doc__, method=False)

for _function in (
    creation.new_empty, creation.new_zeros, creation.new_ones, creation.new_full,
    creation.new_tensor, overwrite.copy_, overwrite.fill_, overwrite.zero_,
):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- what `copy_` and its kin record -------------------------------------------------------------

@op(linear=True, public=False, method=False,
    reference=lambda x, src: np.broadcast_to(src, x.shape),
    samples=given_pairs(((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 2), (2,))))
def copy(input: Tensor, src: Tensor):
    """The elements of `src`, cast and broadcast to `input`, whose own are lost."""
    return to_dtype(src, input.dtype).expand(input.shape).clone()


copy.op.add_rule("input", lambda: 0, constant=0)
copy.op.add_rule("src", lambda: 1, constant=1)


# ---- triangles -----------------------------------------------------------------------------------

@op(linear=True, reference=np.tril,
    samples=given(((3, 3),), ((2, 4), 1), ((2, 3, 4), -1), ((0, 2),), ((3, 2), 9)))
def tril(input: Tensor, diagonal=0):
    """The lower triangles of matrices, with zeros above `diagonal`. Raises: RuntimeError."""
    return ranges.triangle(input, diagonal, False)


@op(linear=True, reference=np.triu,
    samples=given(((3, 3),), ((2, 4), 1), ((2, 3, 4), -1), ((0, 2),), ((3, 2), -9)))
def triu(input: Tensor, diagonal=0):
    """The upper triangles of matrices, with zeros below `diagonal`. Raises: RuntimeError."""
    return ranges.triangle(input, diagonal, True)


@tril.vjp("input")
def tril_vjp(g, diagonal):
    return g.tril(diagonal)


@triu.vjp("input")
def triu_vjp(g, diagonal):
    return g.triu(diagonal)


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Rows and columns of the elements of a lower triangle, as two rows of int64."""
    with within_memory("tril_indices"):
        return _indices(np.tril_indices(row, offset, col), dtype, device)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
    """Rows and columns of the elements of an upper triangle, as two rows of int64."""
    with within_memory("triu_indices"):
        return _indices(np.triu_indices(row, offset, col), dtype, device)


def _indices(pair, dtype, device):
    """A pair of arrays of positions as a tensor of two rows."""
    return convert.asarray(np.stack(pair).astype(np.int64), dtype=dtype, device=device)


for _name in ("tril", "triu"):
    in_place(_name)

for _function in (tril_indices, triu_indices):
    publish(_function.__name__, _function, _function.__doc__, method=False)
