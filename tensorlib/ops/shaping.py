"""Operations on shapes: views, copies, joining and splitting."""

from collections.abc import Iterable
from operator import index

import numpy as np

from tensorlib._core.apply.operators import make_sized
from tensorlib._core.apply.out_argument import store_out
from tensorlib._core.base.shape import wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.create.overwrite import take_layout
from tensorlib._core.layout import joining, views
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.declare import Tensors, alias, op, publish
from tensorlib.ops.samples import given, given_sequences

# ---- sizes ---------------------------------------------------------------------------------------

RESHAPED = given(((2, 3), (3, 2)), ((4,), (2, 2)), ((2, 3), (-1,)), ((), (1, 1)), ((0, 2), (2, 0)))


@op(linear=True, view=True, maker=make_sized, public=False, reference=np.reshape,
    waive={"layouts": "a view needs strides that allow it"},
    samples=RESHAPED)
def view(input: Tensor, shape):
    """`input` under other sizes with the same elements, as a view. One size may be -1.

    Raises: RuntimeError if the number of elements differs, or if it can't be done without a copy.
    """
    return views.reshape(input, shape, copy=False, name="view")


@op(linear=True, maker=make_sized, reference=np.reshape,
    samples=RESHAPED)
def reshape(input: Tensor, shape):
    """`input` under other sizes with the same elements: a view if possible, else a copy.

    One size may be -1. Raises: RuntimeError if the number of elements differs.
    """
    return views.reshape(input, shape)


@view.vjp("input")
@reshape.vjp("input")
def reshape_vjp(g, input_shape):
    return g.reshape(input_shape)


@op(linear=True, view=True, maker=make_sized, public=False,
    reference=lambda x, shape: np.broadcast_to(x, tuple(
        n if n != -1 else x.shape[i - len(shape)] for i, n in enumerate(shape))),
    samples=given(((3, 1), (3, 4)), ((3, 1), (2, -1, 4)), ((), (2, 2)), ((1,), (0,))))
def expand(input: Tensor, shape):
    """`input` repeated along dims of size 1 and new leading dims, as a view. -1 keeps a size.

    Raises: RuntimeError for sizes that do not broadcast.
    """
    return views.expand(input, shape)


@expand.vjp("input")
def expand_vjp(g):
    return g                # the sweep sums over what was broadcast


def summed_to(x, size):
    """The reference of `sum_to_size`."""
    x = x.sum(tuple(range(x.ndim - len(size))), dtype=x.dtype)
    return x.sum(tuple(d for d, n in enumerate(size) if n == 1), dtype=x.dtype, keepdims=True)


def not_broadcast():
    """Error samples of `sum_to_size`."""
    yield (np.ones((2, 3)), (2,)), {}, RuntimeError
    yield (np.ones(3), (1, 3)), {}, RuntimeError


@op(linear=True, maker=make_sized, public=False, reference=summed_to, errors=not_broadcast,
    tolerance="reduction",
    samples=given(((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((0, 3), (1, 3)), ((), ())))
def sum_to_size(input: Tensor, size):
    """`input` summed over the dims along which a tensor of sizes `size` was broadcast to it."""
    return views.sum_to_size(input, size)


@sum_to_size.vjp("input")
def sum_to_size_vjp(g, input_shape):
    return g.expand(input_shape)


# ---- order of dims -------------------------------------------------------------------------------

@op(linear=True, view=True, reference=np.swapaxes,
    samples=given(((2, 3), 0, 1), ((2, 3, 4), -1, 0), ((2, 3), 1, 1)))
def transpose(input: Tensor, dim0, dim1):
    """`input` with two dims exchanged, as a view. Raises: IndexError."""
    return views.transpose(input, dim0, dim1)


@transpose.vjp("input")
def transpose_vjp(g, dim0, dim1):
    return g.transpose(dim0, dim1)


@op(linear=True, view=True, maker=make_sized, reference=np.transpose,
    samples=given(((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ())))
def permute(input: Tensor, dims):
    """`input` with its dims in the order `dims`, as a view.

    Raises: RuntimeError if `dims` is no order of all dims, IndexError.
    """
    return views.permute(input, dims)


@permute.vjp("input")
def permute_vjp(g, dims):
    ndim = len(dims)
    back = [0] * ndim
    for place, dim in enumerate(dims):
        back[dim % ndim] = place
    return g.permute(back)


@op(linear=True, view=True, reference=np.transpose, samples=given(((2, 3),), ((4,),), ((),)))
def t(input: Tensor):
    """The transpose of a matrix, as a view; vectors stay. Raises: RuntimeError above 2 dims."""
    if input.ndim > 2:
        raise RuntimeError(f"t: expects a tensor with at most 2 dims, got {input.ndim}")
    return views.transpose(input, 0, 1) if input.ndim == 2 else views.permute(
        input, range(input.ndim))


@t.vjp("input")
def t_vjp(g):
    return g.t()


def _last_two(self):
    """The matrices in the last two dims transposed, as a view. Raises: RuntimeError (below 2)."""
    if self.ndim < 2:
        raise RuntimeError(f"mT: expects a tensor with at least 2 dims, got {self.ndim}")
    return transpose(self, -2, -1)


attach("mT", property(_last_two, doc=_last_two.__doc__))
attach("mH", property(_last_two, doc=_last_two.__doc__))
def _reversed(self):
    """The tensor with its dims in reverse order, as a view."""
    return t(self) if self.ndim == 2 else permute(self, range(self.ndim - 1, -1, -1))


attach("T", property(_reversed, doc=_reversed.__doc__))


@op(linear=True, view=True,
    reference=lambda x, dim: np.squeeze(x, tuple(
        d for d in (range(x.ndim) if dim is None else [dim]) if x.shape[d] == 1)),
    samples=given(((1, 3, 1), None), ((1, 3, 1), 0), ((1, 3), 1)))
def squeeze(input: Tensor, dim=None):
    """`input` without its dims of size 1, or without those of `dim` that have size 1, as a view.

    Raises: IndexError.
    """
    dims = range(input.ndim) if dim is None else [
        wrap("squeeze", d, input.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    return views.squeeze(input, dims)


@squeeze.vjp("input")
def squeeze_vjp(g, input_shape):
    return g.reshape(input_shape)


@op(linear=True, view=True, reference=np.expand_dims,
    samples=given(((2, 3), 0), ((2, 3), -1), ((), 0)))
def unsqueeze(input: Tensor, dim):
    """`input` with a dim of size 1 put in at `dim`, as a view. Raises: IndexError."""
    return views.unsqueeze(input, wrap("unsqueeze", dim, input.ndim + 1))


@unsqueeze.vjp("input")
def unsqueeze_vjp(g, input_shape):
    return g.reshape(input_shape)


# ---- the same in place ---------------------------------------------------------------------------
# The tensor takes on the layout of a view of itself. Its elements stay where they are, so that its
# base and its views know nothing of it.

def transpose_(self, dim0, dim1):
    """This tensor, after two of its dims were exchanged. Raises: IndexError, RuntimeError."""
    return take_layout("transpose_", self, transpose, (dim0, dim1))


def t_(self):
    """This tensor, after it was transposed. Raises: RuntimeError above 2 dims."""
    return take_layout("t_", self, t, ())


def squeeze_(self, dim=None):
    """This tensor, after it lost its dims of size 1, or those of `dim`. Raises: IndexError."""
    return take_layout("squeeze_", self, squeeze, (dim,))


def unsqueeze_(self, dim):
    """This tensor, after it got a dim of size 1 at `dim`. Raises: IndexError."""
    return take_layout("unsqueeze_", self, unsqueeze, (dim,))


for _function in (transpose_, t_, squeeze_, unsqueeze_):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- parts ---------------------------------------------------------------------------------------

@op(linear=True, view=True, reference=lambda x, dim, start, length: np.take(
    x, range(start, start + length), dim), samples=given(((4, 3), 0, 1, 2), ((4, 3), 1, 0, 0)))
def narrow(input: Tensor, dim, start, length):
    """Elements `start` to `start + length` along `dim`, as a view.

    Raises: IndexError, RuntimeError for a range outside the dim.
    """
    start, length = index(start), index(length)
    dim = wrap("narrow", dim, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("narrow: expects at least a 1-dimensional tensor")
    size = input.size(dim)
    start = start + size if start < 0 else start
    if not 0 <= start <= size or length < 0 or start + length > size:
        raise RuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({size})")
    return views.narrow(input, dim, start, length)


@narrow.vjp("input")
def narrow_vjp(g, input_shape, dim, start, length):
    size, start, length = input_shape[dim], index(start), index(length)
    start = start + size if start < 0 else start
    before, after = list(input_shape), list(input_shape)
    before[dim], after[dim] = start, size - start - length
    return cat((g.new_zeros(before), g, g.new_zeros(after)), dim)


@op(linear=True, view=True, reference=np.diagonal,
    samples=given(((3, 4), 0, 0, 1), ((3, 4), 1, 0, 1), ((2, 3, 3), -1, 1, 2)))
def diagonal(input: Tensor, offset=0, dim1=0, dim2=1):
    """The diagonal of two dims as one new last dim, as a view.

    Raises: IndexError, RuntimeError if both dims are the same.
    """
    first, second = wrap("diagonal", dim1, input.ndim), wrap("diagonal", dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal: dimensions cannot be identical {dim1}, {dim2}")
    return views.diagonal(input, offset, first, second)


@diagonal.vjp("input")
def diagonal_vjp(g, input_shape, offset, dim1, dim2):
    return diagonal_scatter(g.new_zeros(input_shape), g, offset, dim1, dim2)


def diagonal_scatter(base, values, offset, dim1, dim2):
    """`base` with `values` put on its diagonal: in place on a view of a fresh tensor."""
    base.diagonal(offset, dim1, dim2).copy_(values)
    return base


# ---- copies --------------------------------------------------------------------------------------

@op(linear=True, reference=np.copy, samples=given(((2, 3),), ((),)))
def clone(input: Tensor):
    """A copy, in the graph: without gaps, its dims in the same order in memory."""
    return views.clone(input)


@op(linear=True, reference=np.copy, samples=given(((2, 3),), ((),)))
def contiguous(input: Tensor):
    """`input` itself if its elements lie in row-major order without gaps, else a copy that does."""
    return views.contiguous(input)


@clone.vjp("input")
@contiguous.vjp("input")
def copy_vjp(g):
    return g


# ---- joining -------------------------------------------------------------------------------------

@op(linear=True, method=False, reference=lambda *xs, dim=0: np.concatenate(xs, dim),
    samples=given_sequences(((2, 3), (1, 3)), 0, ((2, 3), (2, 1), (2, 0)), 1))
def cat(tensors: Tensors, dim=0):
    """The tensors joined along a dim that is there. Dtypes are promoted.

    Raises: RuntimeError for no tensors or sizes that differ in another dim, IndexError.
    """
    return joining.cat(tensors, dim)


@cat.vjp
def cat_vjp(g, tensors_shape, dim):
    grads, start = [], 0
    for shape in tensors_shape:
        if shape == (0,):                    # an empty vector joins with anything
            grads.append(g.new_zeros(shape))
            continue
        grads.append(g.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return grads


_cat = cat


def cat(tensors, dim=0, *, out=None):
    """See the operation."""
    if out is None:
        return _cat(tensors, dim)
    tensors = tuple(tensors)
    return store_out("cat", tensors, _cat(tensors, dim), out)


publish("cat", cat, _cat.op.doc, method=False)
cat.op = _cat.op


@op(linear=True, method=False, reference=lambda *xs, dim=0: np.stack(xs, dim),
    samples=given_sequences(((2, 3), (2, 3)), 0, ((2,), (2,)), -1))
def stack(tensors: Tensors, dim=0):
    """The tensors, all of one shape, joined along a new dim. Dtypes are promoted.

    Raises: RuntimeError for no tensors or shapes that differ, IndexError.
    """
    return joining.stack(tensors, dim)


@stack.vjp
def stack_vjp(g, tensors_shape, dim):
    before = (slice(None),) * (dim % g.ndim)
    return [g[(*before, i)] for i in range(len(tensors_shape))]


_stack = stack


def stack(tensors, dim=0, *, out=None):
    """See the operation."""
    if out is None:
        return _stack(tensors, dim)
    if isinstance(tensors, Iterable):
        tensors = tuple(tensors)
    return store_out("stack", tensors, _stack(tensors, dim), out)


publish("stack", stack, _stack.op.doc, method=False)
stack.op = _stack.op


# ---- splitting -----------------------------------------------------------------------------------

def split(tensor, split_size_or_sections, dim=0):
    """Views of the tensor cut along a dim: in pieces of one size (the last may be smaller), or of
    the sizes given, which must add up.

    Raises: RuntimeError, IndexError.
    """
    step = index(split_size_or_sections) if isinstance(split_size_or_sections, int) else None
    dim = wrap("split", dim, tensor.ndim)
    if tensor.ndim == 0:
        raise RuntimeError("split: expects at least a 1-dimensional tensor")
    size = tensor.size(dim)
    if step is not None:
        check_room("split", size // step if step > 0 else 0, Tensor.__basicsize__)
        if step < 0 or (step == 0 and size):
            raise RuntimeError(f"split: expects split_size be positive, got {step}")
        sizes = [min(step, size - start) for start in range(0, size, step)] if size else [0]
    else:
        try:
            sizes = [index(n) for n in split_size_or_sections]
        except TypeError:
            raise TypeError("split: expects an int or a sequence of ints, got "
                            f"{split_size_or_sections!r}") from None
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise RuntimeError(
                f"split: expects split_sizes to sum exactly to {size} (the size at dimension "
                f"{dim}), got {sizes}")
    pieces, start = [], 0
    for length in sizes:
        pieces.append(narrow(tensor, dim, start, length))
        start += length
    return views.among_others(tuple(pieces))


def chunk(input, chunks, dim=0):
    """Views of `input` cut along a dim in at most `chunks` pieces of one size, the last smaller.

    Raises: RuntimeError if `chunks` is not positive, IndexError.
    """
    chunks = index(chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk: expects `chunks` to be greater than 0, got {chunks}")
    dim = wrap("chunk", dim, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("chunk: expects at least a 1-dimensional tensor")
    size = input.size(dim)
    if size == 0:
        check_room("chunk", chunks, Tensor.__basicsize__)
        return tuple(input.narrow(dim, 0, 0) for _ in range(chunks))
    return split(input, -(-size // chunks), dim)


def unbind(input, dim=0):
    """Views of `input` at each index of a dim, which goes away. Raises: IndexError."""
    dim = wrap("unbind", dim, input.ndim)
    if input.ndim == 0:
        raise IndexError("unbind: expects at least a 1-dimensional tensor")
    check_room("unbind", input.size(dim), Tensor.__basicsize__)
    return views.among_others(
        tuple(narrow(input, dim, i, 1).squeeze(dim) for i in range(input.size(dim))))


# ---- made of others ------------------------------------------------------------------------------

def broadcast_to(input, size):
    """`input` repeated along dims of size 1 and new leading dims, as a view of sizes `size`."""
    return expand(input, size)


def expand_as(self, other: Tensor):
    """`self` expanded to the shape of `other`, as a view."""
    return expand(self, other.shape)


def view_as(self, other: Tensor):
    """`self` under the sizes of `other`, as a view."""
    return view(self, other.shape)


def reshape_as(self, other: Tensor):
    """`self` under the sizes of `other`."""
    return reshape(self, other.shape)


def flatten(input, start_dim=0, end_dim=-1):
    """`input` with the dims from `start_dim` to `end_dim` made one.

    Raises: RuntimeError if `start_dim` comes after `end_dim`, IndexError.
    """
    if start_dim == 0 and end_dim == -1 and input.ndim != 1:
        return reshape(input, (input.numel(),))
    start, end = wrap("flatten", start_dim, input.ndim), wrap("flatten", end_dim, input.ndim)
    if start > end:
        raise RuntimeError("flatten: has invalid args: start_dim cannot come after end_dim")
    if input.ndim == 0:
        return reshape(input, (1,))
    if start == end:
        return input
    sizes = input.shape
    return reshape(input, sizes[:start] + (sizes[start:end + 1].numel(),) + sizes[end + 1:])


def ravel(input):
    """`input` as a vector."""
    return reshape(input, (-1,))


def unflatten(input, dim, sizes):
    """`input` with one dim made into several, of sizes `sizes`."""
    dim = wrap("unflatten", dim, input.ndim)
    return reshape(input, input.shape[:dim] + tuple(sizes) + input.shape[dim + 1:])


def movedim(input, source, destination):
    """`input` with dims moved to other places, the others kept in order, as a view."""
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(f"movedim: got {len(sources)} source and {len(targets)} target dims")
    sources = [wrap("movedim", d, input.ndim) for d in sources]
    targets = [wrap("movedim", d, input.ndim) for d in targets]
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise RuntimeError("movedim: repeated dims")
    if input.ndim == 0:
        return permute(input, ())
    order = [d for d in range(input.ndim) if d not in sources]
    for place, dim in sorted(zip(targets, sources)):
        order.insert(place, dim)
    return permute(input, order)


for _function in (split, chunk, unbind, flatten, ravel, unflatten, movedim, broadcast_to):
    publish(_function.__name__, _function, _function.__doc__)
for _function in (expand_as, view_as, reshape_as):
    publish(_function.__name__, _function, _function.__doc__, public=False)
for _name, _function in {"swapaxes": transpose, "swapdims": transpose, "moveaxis": movedim}.items():
    alias(_name, _function)
for _name, _function in {"concat": cat, "concatenate": cat}.items():
    alias(_name, _function, method=False)
