"""Diagonals of matrices, matrices made of diagonals and of blocks."""

import numpy as np

from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.padding import on_diagonal
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import Tensors, composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import FUNCTIONS, attach_checked
from tensorlib.ops.samples import given, given_sequences, refusals, refused_sequences
from tensorlib.ops.shape.joining import cat
from tensorlib.ops.shape.padding import framed
from tensorlib.ops.shape.stacking import unpacked


# ---- diagonals -----------------------------------------------------------------------------------


@composite(reference=np.diag, out=True,
           samples=given(((3,),), ((2,), 1), ((2,), -2), ((0,), 1), ((3, 4),), ((3, 4), -1),
                         ((3, 4), 9)),
           errors=refusals((RuntimeError, ()), (RuntimeError, (2, 2, 2)), (TypeError, (2,), 1.5)),
           complex=True)
def diag(input: Tensor, diagonal=0):
    """The matrix with the vector `input` on a diagonal, or a copy of that diagonal of a matrix.

    Shapes: (N,) -> (N + abs(diagonal), N + abs(diagonal)); (N, M) -> (length of the diagonal,).
    Raises: RuntimeError for other numbers of dims, TypeError.

    >>> tensorlib.tensor([1, 2]).diag(1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    diagonal = integer("diag", "diagonal", diagonal)
    if input.ndim == 2:
        return input.diagonal(diagonal).clone()
    if input.ndim == 1 and is_looked_at_alone(input):
        made = on_diagonal("diag", input, diagonal)
        if made is not None:
            return made
    if input.ndim != 1:
        raise RuntimeError(f"diag: expects a vector or a matrix, got {input.ndim} dims")
    size = input.numel() + abs(diagonal)
    matrix = input.new_zeros((size, size))
    matrix.diagonal(diagonal).copy_(input)
    return matrix


@composite(reference=lambda x: np.trace(x, dtype=x.dtype if x.dtype.kind in "fc" else np.int64),
           tolerance="reduction",
           samples=given(((3, 3),), ((2, 4),), ((0, 0),)),
           errors=refusals((RuntimeError, (3,)), (RuntimeError, (2, 2, 2))), rounds_once=False,
           complex=True)
def trace(input: Tensor):
    """The sum of the diagonal of a matrix.

    Shapes: (N, M) -> (). Raises: RuntimeError for other numbers of dims.

    >>> tensorlib.trace(tensorlib.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expects a matrix, got {input.ndim} dims")
    return input.diagonal().sum()


def embedded(x, offset=0, dim1=-2, dim2=-1):
    """The reference of `diag_embed`."""
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@composite(tensors=("input",), reference=embedded,
           samples=given(((3,),), ((2, 3), 1), ((2, 3), -1, 0, 2), ((0,), 2),
                         ((2, 1, 2), 0, -1, 0)),
           errors=refusals((IndexError, ()), (RuntimeError, (2,), 0, 1, 1),
                           (IndexError, (2,), 0, 2), (TypeError, (2,), 1.5)), complex=True)
def diag_embed(input: Tensor, offset=0, dim1=-2, dim2=-1):
    """Matrices in two new dims with the last dim of `input` on a diagonal, zeros elsewhere.

    Shapes: (*, N) -> (*, N + abs(offset), N + abs(offset)), these two where `dim1` and `dim2` say.
    Raises: IndexError for dims out of range, RuntimeError for equal ones, TypeError.

    >>> tensorlib.tensor([1, 2]).diag_embed()
    tensor([[1, 0],
            [0, 2]])
    """
    if dim1 == -2 and dim2 == -1 and is_looked_at_alone(input):
        made = on_diagonal("diag_embed", input, offset)
        if made is not None:
            return made
    offset = integer("diag_embed", "offset", offset)
    first, second = (wrap("diag_embed", dim, input.ndim + 1) for dim in (dim1, dim2))
    if input.ndim == 0:
        raise IndexError("diag_embed: expects a tensor with at least a dim")
    if first == second:
        raise RuntimeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")
    sizes = list(input.shape[:-1])
    for dim in sorted((first, second)):
        sizes.insert(dim, input.shape[-1] + abs(offset))
    out = input.new_zeros(sizes)
    out.diagonal(offset, first, second).copy_(input)
    return out


@composite(tensors=("input",), reference=np.diagflat,
           samples=given(((3,),), ((2, 2), 1), ((), -1), ((0,),)),
           errors=refusals((TypeError, (2,), 1.5)), complex=True)
def diagflat(input: Tensor, offset=0):
    """The matrix with all elements of `input` on a diagonal, zeros elsewhere.

    Shapes: N elements -> (N + abs(offset), N + abs(offset)). Raises: TypeError.
    """
    return input.reshape(-1).diag(integer("diagflat", "offset", offset))


def places_of_diagonal(shape, wrap):
    """The places of the diagonal in a contiguous tensor; `wrap` starts anew below a square."""
    if len(shape) == 2:
        rows, columns = shape
        last = rows * columns if wrap else min(rows, columns) * columns
        return slice(0, last, columns + 1)
    size = shape[0]
    return slice(0, size ** len(shape), sum(size ** i for i in range(len(shape))) or 1)


def fill_diagonal_(self, fill_value, wrap=False):
    """This tensor, with `fill_value` on its diagonal.

    Shapes: (M, N), or (N, N, ..., N). wrap: in a matrix with more rows than columns the diagonal
    begins anew after a row that is left out.
    Raises: RuntimeError for fewer than two dims and for more than two that differ.
    """
    if self.ndim < 2:
        raise RuntimeError(f"fill_diagonal_: takes two dims or more, got {self.ndim}")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("fill_diagonal_: more than two dims must have the same size, got "
                           f"{tuple(self.shape)}")
    if self.ndim == 2 and not wrap:
        self.diagonal().fill_(fill_value)
        return self
    mask = np.zeros(self.numel(), bool)
    mask[places_of_diagonal(tuple(self.shape), wrap)] = True
    return self.masked_fill_(from_numpy(mask.reshape(tuple(self.shape))), fill_value)


attach_checked("fill_diagonal_", fill_diagonal_)


# ---- blocks --------------------------------------------------------------------------------------

def blocks(*xs):
    """The reference of `block_diag`."""
    xs = [np.atleast_2d(x) for x in xs]
    out = np.zeros((sum(x.shape[0] for x in xs), sum(x.shape[1] for x in xs)), xs[0].dtype)
    row = column = 0
    for x in xs:
        out[row:row + x.shape[0], column:column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return out


@composite(tensors=("tensors",), method=False, reference=blocks,
           samples=given_sequences(((2, 3), (2,), ()), ((2, 2),), ((0, 2), (1, 1))),
           errors=refused_sequences((RuntimeError, (2, 2, 2))), complex=True)
def block_diag(*tensors: Tensors):
    """The matrix with the matrices along its diagonal, zeros elsewhere.

    Shapes: (K, L), (M, N), ... -> (K + M + ..., L + N + ...). A vector is a row.
    Raises: RuntimeError for more than 2 dims, TypeError.

    >>> tensorlib.block_diag(tensorlib.tensor([[1, 2]]), tensorlib.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    tensors = unpacked("block_diag", tensors)
    for i, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError("block_diag: input tensors must have 2 or fewer dimensions, but "
                               f"tensor {i} has {x.ndim}")
    if not tensors:
        return FUNCTIONS["zeros"](1, 0)
    matrices = [x if x.ndim == 2 else x.reshape(1, x.numel()) for x in tensors]
    width, before, rows = sum(x.shape[1] for x in matrices), 0, []
    for x in matrices:
        columns = x.shape[1]
        rows.append(framed(x, (before, width - before - columns), 0))
        before += columns
    return cat(rows, 0)


declared(__name__)
