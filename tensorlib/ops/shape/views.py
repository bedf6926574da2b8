"""Other shapes and orders of dims for the same elements: views and copies."""

import math
from operator import index as as_int

import numpy as np

from tensorlib._core.apply.operators import make_sized
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.formats import RANKS, contiguous_format
from tensorlib._core.base.shape import listed, wrap
from tensorlib._core.create.overwrite import take_layout
from tensorlib._core.layout import views
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.declare import alias, composite, op, publish
from tensorlib.ops.pointwise.casting import check_format, in_format
from tensorlib.ops.samples import given, refusals

# ---- sizes ---------------------------------------------------------------------------------------

RESHAPED = given(((2, 3), (3, 2)), ((4,), (2, 2)), ((2, 3), (-1,)), ((), (1, 1)), ((0, 2), (2, 0)))


@op(linear=True, view=True, maker=make_sized, kernel=views.view, public=False,
    reference=np.reshape,
    waive={"layouts": "a view needs strides that allow it"},
    samples=RESHAPED)
def view(input: Tensor, shape):
    """`input` under other sizes with the same elements, as a view. One size may be -1.

    A dtype in the place of sizes gives the same bytes as elements of that, without a gradient.
    Shapes: (N, M) under (K, -1) -> (K, N M / K).
    Raises: RuntimeError if the number of elements differs, or if it can't be done without a copy.
    """


@op(linear=True, maker=make_sized, kernel=views.reshape, reference=np.reshape,
    samples=RESHAPED, view="maybe")
def reshape(input: Tensor, shape):
    """`input` under other sizes with the same elements: a view if possible, else a copy.

    One size may be -1. Shapes: (N, M) under (K, -1) -> (K, N M / K).
    Raises: RuntimeError if the number of elements differs, TypeError for sizes that are not ints.
    """


@view.jvp
def view_jvp(d_input, shape):
    """dx in the new shape."""
    return d_input.reshape(shape)              # a tangent may have other strides than its primal


@view.vjp("input")
@reshape.vjp("input")
def reshape_vjp(g, input_shape):
    """g in the shape of the input."""
    return g.reshape(input_shape)


@op(linear=True, view=True, maker=make_sized, kernel=views.expand, public=False,
    reference=lambda x, shape: np.broadcast_to(x, tuple(
        n if n != -1 else x.shape[i - len(shape)] for i, n in enumerate(shape))),
    samples=given(((3, 1), (3, 4)), ((3, 1), (2, -1, 4)), ((), (2, 2)), ((1,), (0,))))
def expand(input: Tensor, shape):
    """`input` repeated along dims of size 1 and new leading dims, as a view. -1 keeps a size.

    Shapes: (1, M) to (B, N, -1) -> (B, N, M).
    Raises: RuntimeError for sizes that do not broadcast.
    """


@expand.vjp("input")
def expand_vjp(g):
    """g; backpropagation sums it over what was broadcast."""
    return g


def summed_to(x, size):
    """The reference of `sum_to_size`."""
    kept = x if x.dtype.kind in "fc" or x.shape == tuple(size) != () else x.astype(np.int64)
    x = kept.sum(tuple(range(x.ndim - len(size))), dtype=kept.dtype)
    return x.sum(tuple(d for d, n in enumerate(size) if n == 1), dtype=x.dtype, keepdims=True)


@op(linear=True, maker=make_sized, public=False, reference=summed_to, tolerance="reduction",
    errors=refusals((RuntimeError, (2, 3), (2,)), (RuntimeError, (3,), (1, 3))), view="maybe",
    samples=given(((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((0, 3), (1, 3)), ((), ())))
def sum_to_size(input: Tensor, size):
    """`input` summed over the dims along which a tensor of sizes `size` was broadcast to it.

    Shapes: (B, N, M) to (1, M) -> (1, M). Raises: RuntimeError for sizes that do not broadcast to
    those of `input`.
    """
    whole = not has_gradients(input.dtype) and (tuple(size) != tuple(input.shape) or not size)
    return views.sum_to_size(input.long() if whole else input, size)        # as `sum` does


@sum_to_size.vjp("input")
def sum_to_size_vjp(g, input_shape):
    """g expanded to the shape of the input."""
    return g.expand(input_shape)


# ---- order of dims -------------------------------------------------------------------------------

@op(linear=True, view=True, kernel=views.transpose, reference=np.swapaxes,
    samples=given(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((2, 3), 1, 1)))
def transpose(input: Tensor, dim0, dim1):
    """`input` with two dims exchanged, as a view.

    Shapes: (A, B, C) with dims 0 and 2 -> (C, B, A). Raises: IndexError for a dim out of range.
    """


@transpose.vjp("input")
def transpose_vjp(g, dim0, dim1):
    """g with the same dimensions exchanged."""
    return g.transpose(dim0, dim1)


@op(linear=True, view=True, maker=make_sized, kernel=views.permute, reference=np.transpose,
    samples=given(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ())))
def permute(input: Tensor, dims):
    """`input` with its dims in the order `dims`, as a view.

    Shapes: (A, B, C) in the order (2, 0, 1) -> (C, A, B).
    Raises: RuntimeError if `dims` is no order of all dims, IndexError for a dim out of range.

    >>> tensorlib.zeros(2, 3, 5).permute(2, 0, 1).shape
    tensorlib.Size([5, 2, 3])
    """


@permute.vjp("input")
def permute_vjp(g, dims):
    """The permutation undone."""
    ndim = len(dims)
    back = [0] * ndim
    for place, dim in enumerate(dims):
        back[dim % ndim] = place
    return g.permute(back)


@op(linear=True, view=True, reference=np.transpose, samples=given(((2, 3),), ((4,),), ((),)))
def t(input: Tensor):
    """The transpose of a matrix, as a view; vectors stay.

    Shapes: (N, M) -> (M, N). Raises: RuntimeError above 2 dims.
    """
    if input.ndim > 2:
        raise RuntimeError(f"t: expects a tensor with at most 2 dims, got {input.ndim}")
    return views.transpose(input, 0, 1) if input.ndim == 2 else views.permute(
        input, range(input.ndim))


@t.vjp("input")
def t_vjp(g):
    """g transposed."""
    return g.t()


def _last_two(self):
    """The matrices in the last two dims transposed, as a view.

    Shapes: (*, N, M) -> (*, M, N). Raises: RuntimeError below 2 dims.
    """
    if self.ndim < 2:
        raise RuntimeError(f"mT: expects a tensor with at least 2 dims, got {self.ndim}")
    return transpose(self, -2, -1)


attach("mT", property(_last_two, doc=_last_two.__doc__))


def _reversed(self):
    """The tensor with its dims in reverse order, as a view."""
    return t(self) if self.ndim == 2 else permute(self, range(self.ndim - 1, -1, -1))


attach("T", property(_reversed, doc=_reversed.__doc__))


def _backwards(self):
    """The rows from the last to the first, as `reversed` gives them; a 0-d tensor itself."""
    return self.flip(0) if self.ndim else self


attach("__reversed__", _backwards)


@op(linear=True, view=True, kernel=views.squeeze,
    reference=lambda x, dim: np.squeeze(x, tuple(
        d for d in (range(x.ndim) if dim is None else [dim]) if x.shape[d] == 1)),
    samples=given(((1, 3, 1), None), ((1, 3, 1), 0), ((1, 3), 1)))
def squeeze(input: Tensor, dim=None):
    """`input` without its dims of size 1, or without those of `dim` that have size 1, as a view.

    Shapes: (1, N, 1) -> (N,); with dim 0 -> (N, 1). Raises: IndexError for a dim out of range.

    >>> tensorlib.zeros(1, 2, 1).squeeze().shape
    tensorlib.Size([2])
    """


@squeeze.vjp("input")
def squeeze_vjp(g, input_shape):
    """g in the shape of the input."""
    return g.reshape(input_shape)


@op(linear=True, view=True, kernel=views.unsqueeze, reference=np.expand_dims,
    samples=given(((2, 3), 0), ((2, 3), -1), ((), 0)))
def unsqueeze(input: Tensor, dim):
    """`input` with a dim of size 1 put in at `dim`, as a view.

    Shapes: (N, M) at 1 -> (N, 1, M). Raises: IndexError for a dim out of range.
    """


@unsqueeze.vjp("input")
def unsqueeze_vjp(g, input_shape):
    """g in the shape of the input."""
    return g.reshape(input_shape)


# ---- the same in place ---------------------------------------------------------------------------
# The tensor takes on the layout of a view of itself. Its elements stay where they are, so that its
# base and its views know nothing of it.

def transpose_(self, dim0, dim1):
    """This tensor, with two of its dims exchanged in place.

    Raises: IndexError for a dim out of range, RuntimeError where it can't be written in place.
    """
    return take_layout("transpose_", self, transpose, (dim0, dim1))


def t_(self):
    """This tensor, transposed in place. Raises: RuntimeError above 2 dims."""
    return take_layout("t_", self, t, ())


def squeeze_(self, dim=None, *others):
    """This tensor, without its dims of size 1, or those of `dim`.

    Raises: IndexError for a dim out of range, RuntimeError where it can't be written in place.
    """
    return take_layout("squeeze_", self, squeeze, ((dim, *others) if others else dim,))


def unsqueeze_(self, dim):
    """This tensor, with a new dim of size 1 at `dim`.

    Raises: IndexError for a dim out of range, RuntimeError where it can't be written in place.
    """
    return take_layout("unsqueeze_", self, unsqueeze, (dim,))


for _function in (transpose_, t_, squeeze_, unsqueeze_):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- diagonals -----------------------------------------------------------------------------------

@op(linear=True, view=True, kernel=views.diagonal, reference=np.diagonal,
    samples=given(((3, 4), 0, 0, 1), ((3, 4), 1, 0, 1), ((2, 3, 3), -1, 1, 2)))
def diagonal(input: Tensor, offset=0, dim1=0, dim2=1):
    """The diagonal of two dims as one new last dim, as a view.

    Shapes: (N, M, *) -> (*, length of the diagonal).
    Raises: IndexError for a dim out of range, RuntimeError if both dims are the same.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).diagonal()
    tensor([1, 4])
    """


@diagonal.vjp("input")
def diagonal_vjp(g, input_shape, offset, dim1, dim2):
    """The gradient on the diagonal of zeros."""
    return diagonal_scatter(g.new_zeros(input_shape), g, offset, dim1, dim2)


def diagonal_scatter(base, values, offset, dim1, dim2):
    """`base` with `values` put on its diagonal: in place on a view of a fresh tensor."""
    base.diagonal(offset, dim1, dim2).copy_(values)
    return base


# ---- copies --------------------------------------------------------------------------------------

def copied(input, *, memory_format=None):
    """The `convert` of `clone`."""
    if memory_format is None:
        return (input,)
    return [lambda x: in_format("clone", x.clone(), memory_format), input]


def made_contiguous(input, *, memory_format=contiguous_format):
    """The `convert` of `contiguous`."""
    check_format("contiguous", memory_format)
    if memory_format in RANKS:
        return [lambda x: in_format("contiguous", x, memory_format), input]
    return (input,)


@op(linear=True, kernel=views.clone, reference=np.copy, samples=given(((2, 3),), ((),)),
    convert=copied, complex=True)
def clone(input: Tensor):
    """A copy, in the graph: without gaps, its dims in the same order in memory."""


@op(linear=True, kernel=views.contiguous, reference=np.copy, samples=given(((2, 3),), ((),)),
    view="maybe", convert=made_contiguous)
def contiguous(input: Tensor):
    """`input` itself if its elements lie in row-major order without gaps, else a copy that does."""


@clone.vjp("input")
@contiguous.vjp("input")
def copy_vjp(g):
    """g"""
    return g


# ---- made of others ------------------------------------------------------------------------------

def to_shape(x, size):
    """The reference of `broadcast_to`: -1 keeps a size."""
    sizes = (1,) * (len(size) - x.ndim) + x.shape
    return np.broadcast_to(x, tuple(m if n == -1 else n for n, m in zip(size, sizes)))


@composite(tensors=("input",), reference=to_shape,
           samples=given(((3, 1), (3, 4)), ((3, 1), (2, -1, 4)), ((), (2, 2)), ((1,), (0,))),
           errors=refusals((RuntimeError, (3, 4), (2, 4)), (RuntimeError, (3,), (-1, 3)),
                           (TypeError, (3,), (3.0,))), view="maybe", complex=True)
def broadcast_to(input: Tensor, size):
    """`input` repeated along dims of size 1 and new leading dims, as a view of sizes `size`.

    Shapes: (1, M) to (B, N, M) -> (B, N, M). Raises: RuntimeError for sizes that do not broadcast.

    >>> tensorlib.tensor([1, 2]).broadcast_to((3, 2)).shape
    tensorlib.Size([3, 2])
    """
    return expand(input, size)


def expand_as(self, other: Tensor):
    """`self` expanded to the shape of `other`, as a view.

    Shapes: (1, M), (B, N, M) -> (B, N, M). Raises: RuntimeError for shapes that do not broadcast.
    """
    return expand(self, other.shape)


def view_as(self, other: Tensor):
    """`self` under the sizes of `other`, as a view.

    Raises: RuntimeError for another number of elements, or if it can't be done without a copy.
    """
    return view(self, other.shape)


def reshape_as(self, other: Tensor):
    """`self` under the sizes of `other`. Raises: RuntimeError for another number of elements."""
    return reshape(self, other.shape)


def flattened(x, start_dim=0, end_dim=-1):
    """The reference of `flatten`."""
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:start], math.prod(x.shape[start:end + 1]), *x.shape[end + 1:])


@composite(reference=flattened,
           samples=given(((2, 3),), ((2, 3, 4), 1), ((2, 3, 4), 0, 1), ((2, 3), 1, 1), ((),),
                         ((0, 2, 3), 0, -2)),
           errors=refusals((RuntimeError, (2, 3, 4), 2, 1), (IndexError, (2, 3), 0, 2),
                           (IndexError, (), 1), (TypeError, (2, 3), 0.0, 1)), view="maybe",
                           complex=True)
def flatten(input: Tensor, start_dim=0, end_dim=-1):
    """`input` with the dims from `start_dim` to `end_dim` made one.

    A view if possible, else a copy.
    Shapes: (A, B, C, D) with dims 1 to 2 -> (A, B C, D); () -> (1,).
    Raises: RuntimeError if `start_dim` comes after `end_dim`, IndexError.

    >>> tensorlib.zeros(2, 3, 4).flatten(1).shape
    tensorlib.Size([2, 12])
    """
    if start_dim == 0 and end_dim == -1 and input.ndim != 1:
        return reshape(input, (input.numel(),))
    sizes = views.flat_sizes(input.shape, start_dim, end_dim)
    return input if sizes is None else reshape(input, sizes)


@composite(reference=np.ravel, samples=given(((2, 3),), ((4,),), ((),), ((0, 2),)), view="maybe",
           complex=True)
def ravel(input: Tensor):
    """`input` as a vector: a view of what is contiguous, else a copy. Shapes: (N, M) -> (N M,)."""
    return reshape(input.contiguous(), (-1,))


@composite(tensors=("input",), reference=lambda x, dim, sizes: x.reshape(
               *x.shape[:dim % x.ndim], *sizes, *x.shape[dim % x.ndim + 1:]),
           samples=given(((2, 6), 1, (2, 3)), ((2, 6), -2, (1, 2, 1)), ((0, 2), 0, (3, 0)),
                         ((6,), 0, (-1, 2))),
           errors=refusals((RuntimeError, (2, 6), 1, (4, 2)), (RuntimeError, (2, 6), 1, (4, -1)),
                           (RuntimeError, (2, 1), 1, ()), (IndexError, (2, 6), 2, (2, 3)),
                           (TypeError, (2, 6), 1, (2.0, 3))), view="maybe", complex=True)
def unflatten(input: Tensor, dim, sizes):
    """`input` with one dim made into several, of sizes `sizes`, of which one may be -1.

    A view if possible, else a copy. Shapes: (A, B C) with dim 1 into (B, C) -> (A, B, C).
    Raises: RuntimeError for no sizes, or sizes that don't multiply to that of the dim; IndexError.

    >>> tensorlib.zeros(2, 12).unflatten(1, (3, -1)).shape
    tensorlib.Size([2, 3, 4])
    """
    dim, sizes = wrap("unflatten", dim, input.ndim), listed(sizes)
    shape = tuple(input.shape)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if shape:
        try:
            size, product = shape[dim], math.prod(map(as_int, sizes))
        except TypeError:
            raise TypeError(f"unflatten: sizes must be ints, got {list(sizes)}") from None
        if product != size and (sizes.count(-1) != 1 or product == 0 or size % -product):
            raise RuntimeError(f"unflatten: sizes {list(sizes)} don't multiply up to the size of "
                               f"dim {dim}, which is {size}")
    return reshape(input, shape[:dim] + sizes + shape[dim + 1:])


@composite(tensors=("input",), reference=np.moveaxis,
           samples=given(((2, 3, 4), 0, 2), ((2, 3, 4), (0, -1), (1, 0)), ((2, 3), 1, 1),
                         ((2, 0, 3), (), ()), ((4,), 0, -1)),
           errors=refusals((RuntimeError, (2, 3), (0, 0), (0, 1)),
                           (RuntimeError, (2, 3), 0, (0, 1)),
                           (RuntimeError, (2, 3), (0, 1), (1, 1)),
                           (IndexError, (2, 3), 2, 0)), view="maybe", complex=True)
def movedim(input: Tensor, source, destination):
    """`input` with dims moved to other places, the others kept in order, as a view.

    Shapes: (A, B, C) with dim 0 to 2 -> (B, C, A). Raises: RuntimeError for a dim given twice or
    another number of sources than of destinations, IndexError.

    >>> tensorlib.zeros(2, 3, 5).movedim(0, -1).shape
    tensorlib.Size([3, 5, 2])
    """
    return permute(input, views.moved_order(input.ndim, source, destination))


@composite(tensors=("input",), reference=np.swapaxes,
           samples=given(((2, 3), 0, 1), ((2, 3, 4), -1, 0)),
           errors=refusals((IndexError, (2,), 0, 1)), view="maybe", complex=True)
def swapaxes(input: Tensor, axis0, axis1):
    """`transpose` with NumPy's name and names of arguments. Raises: IndexError."""
    return transpose(input, axis0, axis1)


def swapaxes_(self, axis0, axis1):
    """As `transpose_`."""
    return self.transpose_(axis0, axis1)


publish("swapaxes_", swapaxes_, swapaxes_.__doc__, public=False)
for _function in (expand_as, view_as, reshape_as):
    publish(_function.__name__, _function, _function.__doc__, public=False)
for _name, _function in {"swapdims": transpose, "moveaxis": movedim}.items():
    alias(_name, _function)
