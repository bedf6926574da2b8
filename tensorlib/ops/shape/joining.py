"""`cat` and `stack`, `split`, `chunk` and `unbind`: tensors joined, and split into views."""

from operator import index as as_int

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.interpreters.foreign import is_looked_at_alone
from tensorlib._core.layout import joining, views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import Tensors, alias, composite, op
from tensorlib.ops.foreign import members, within_memory
from tensorlib.ops.samples import calls, given, reals_of, refusals

# ---- one part ------------------------------------------------------------------------------------

@op(linear=True, view=True, kernel=views.narrow, reference=lambda x, dim, start, length: np.take(
    x, range(start, start + length), dim),
    samples=given(((4, 3), 0, 1, 2), ((4, 3), 1, 0, 0), ((5, 3), 0, 1, 2)),
    errors=refusals((RuntimeError, (4, 3), 0, 3, 2), (RuntimeError, (4, 3), 0, 0, -1),
                    (RuntimeError, (), 0, 0, 0), (IndexError, (4, 3), 2, 0, 1),
                    (IndexError, (4, 3), 0, 5, 0), (IndexError, (4, 3), 0, -5, 1),
                    (TypeError, (4, 3), 0, 1.0, 2)))
def narrow(input: Tensor, dim, start, length):
    """Elements `start` to `start + length` along `dim`, as a view.

    Shapes: (*, N, *) -> (*, length, *).
    Raises: RuntimeError for a range that ends outside the dim, IndexError for one that begins there
    and for another dim, TypeError.

    >>> tensorlib.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """


@narrow.vjp("input")
def narrow_vjp(g, input_shape, dim, start, length):
    """The gradient between zeros."""
    size, start, length = input_shape[dim], as_int(start), as_int(length)
    start = start + size if start < 0 else start
    if 2 * length < size:
        return put_between(g.new_zeros(input_shape), g, dim, start, length)
    before, after = list(input_shape), list(input_shape)
    before[dim], after[dim] = start, size - start - length
    return cat((g.new_zeros(before), g, g.new_zeros(after)), dim)


def put_between(base, values, dim, start, length):
    """`base` with `values` along a part of a dim: in place on a view of a fresh tensor."""
    base.narrow(dim, start, length).copy_(values)
    return base


# ---- joined --------------------------------------------------------------------------------------

def not_joined(*cases):
    """Error samples: the error, shapes of a sequence of tensors of ones, the dim."""
    def generate():
        for error, shapes, dim in cases:
            yield (tuple(np.ones(shape) for shape in shapes), dim), {}, error
    return generate


@op(linear=True, method=False, out=True, kernel=joining.cat,
    reference=lambda *xs, dim=0: np.concatenate(xs, dim),
    samples=calls((reals_of(((2, 3), (1, 3))), {"dim": 0}),
                  (reals_of(((2, 3), (2, 1), (2, 0))), {"dim": 1})),
    errors=not_joined((ValueError, (), 0), (RuntimeError, ((2, 3), (3, 2)), 0),
                      (RuntimeError, ((), ()), 0), (IndexError, ((2, 3), (2, 3)), 2)),
    complex=True)
def cat(tensors: Tensors, dim=0):
    """The tensors joined along an existing dim. Dtypes are promoted.

    Vectors without elements join with anything, along any dim.
    Shapes: (*, N, *), (*, M, *), ... along the dim of N and M -> (*, N + M + ..., *).
    Raises: ValueError for no tensors, RuntimeError for sizes that differ in another dim,
    IndexError.

    >>> tensorlib.cat((tensorlib.zeros(1, 2), tensorlib.ones(2, 2)))
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """


@cat.vjp
def cat_vjp(g, tensors_shape, dim):
    """Each tensor's part of the gradient."""
    grads, start = [], 0
    for shape in tensors_shape:
        if shape == (0,):                    # an empty vector joins with anything
            grads.append(g.new_zeros(shape))
            continue
        grads.append(g.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return grads


@op(linear=True, method=False, out=True, kernel=joining.stack,
    reference=lambda *xs, dim=0: np.stack(xs, dim),
    samples=calls((reals_of(((2, 3), (2, 3))), {"dim": 0}), (reals_of(((2,), (2,))), {"dim": -1})),
    errors=not_joined((RuntimeError, (), 0), (RuntimeError, ((2,), (3,)), 0),
                      (IndexError, ((2,), (2,)), 2)), complex=True)
def stack(tensors: Tensors, dim=0):
    """The tensors, all of one shape, joined along a new dim. Dtypes are promoted.

    Shapes: K times (N, M) along dim 0 -> (K, N, M).
    Raises: RuntimeError for no tensors or shapes that differ, IndexError.

    >>> tensorlib.stack((tensorlib.zeros(2), tensorlib.ones(2)), dim=1)
    tensor([[0., 1.],
            [0., 1.]])
    """


@stack.vjp
def stack_vjp(g, tensors_shape, dim):
    """Each tensor's slice of the gradient."""
    before = (slice(None),) * (dim % g.ndim)
    return [g[(*before, i)] for i in range(len(tensors_shape))]


for _name in ("concat", "concatenate"):
    alias(_name, cat, method=False)


# ---- cut -----------------------------------------------------------------------------------------

def pieces(x, size_or_sizes, dim=0):
    """The reference of `split`."""
    size = x.shape[dim]
    if isinstance(size_or_sizes, int):
        ends = range(size_or_sizes, size, size_or_sizes) if size else ()
    else:
        ends = np.cumsum(size_or_sizes)[:-1]
    return np.split(x, ends, dim)


@composite(tensors=("tensor",), reference=pieces,
           samples=given(((4, 3), 2), ((5,), 2), ((2, 3), [1, 2], -1), ((2, 3), (0, 2), 0),
                         ((0, 2), 2), ((3,), 7)),
           errors=refusals((RuntimeError, (4, 3), 0), (RuntimeError, (4, 3), -1),
                           (RuntimeError, (4, 3), [1, 2]), (RuntimeError, (4,), [5, -1]),
                           (RuntimeError, (), 1), (IndexError, (4, 3), 1, 2),
                           (TypeError, (4, 3), 1.5), (TypeError, (4, 3), True)), view="maybe",
                           complex=True)
def split(tensor: Tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    """Views of the tensor cut along a dim: in pieces of one size (the last may be smaller), or of
    the sizes given, which must add up. `split_size` is what PyTorch's method calls them.

    Shapes: (*, N, *) -> (*, size, *) for each.
    Raises: RuntimeError for sizes that are negative or do not add up, IndexError, TypeError.

    >>> tensorlib.arange(5).split(2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return split_along(
        tensor, split_size_or_sections if split_size is None else split_size, dim)


def split_along(x, wanted, dim):
    """What `split` gives."""
    dim = wrap("split", dim, x.ndim)
    if x.ndim == 0:
        raise RuntimeError("split: expects at least a 1-dimensional tensor")
    return within_memory("split", lambda: cut(x, dim, sizes_of_pieces(wanted, x.size(dim), dim)))


def cut(x, dim, sizes):
    """Views of `x` of these sizes along a dim, one after the other."""
    if is_looked_at_alone(x):
        return views.among_others(tuple(joining.views_along(x, dim, sizes)))
    parts, start, before = [], 0, (slice(None),) * dim
    for size in sizes:
        part = slice(start, start + size)
        parts.append(x[(*before, part)] if dim else x[part])
        start += size
    return views.among_others(tuple(parts))


def sizes_of_pieces(wanted, size, dim):
    """The sizes of the pieces that a dim of this size is cut into by `split`."""
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        wanted = as_int(wanted)
        if wanted < 0 or (wanted == 0 and size):
            raise RuntimeError(f"split: expects split_size be positive, got {wanted}")
        if size == 0:
            return [0]
        count, rest = divmod(size, wanted)
        check_room("split", count, Tensor.__basicsize__)
        return [wanted] * count + [rest] * (rest > 0)
    try:
        sizes = [as_int(n) for n in members("split", wanted)]
    except TypeError:
        raise TypeError(
            f"split: expects an int or a sequence of ints, got {wanted!r}") from None
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise RuntimeError(f"split: expects split_sizes to sum exactly to {size} (the size at "
                           f"dimension {dim}), got {sizes}")
    return sizes


def chunks_of(x, chunks, dim=0):
    """The reference of `chunk`."""
    size = x.shape[dim]
    return pieces(x, -(-size // chunks) if size else [0] * chunks, dim)


@composite(tensors=("input",), reference=chunks_of,
           samples=given(((4, 3), 2), ((5,), 3), ((5,), 4), ((2, 3), 2, -1), ((0, 2), 3)),
           errors=refusals((RuntimeError, (4, 3), 0), (RuntimeError, (), 1),
                           (IndexError, (4, 3), 1, 2), (TypeError, (4, 3), 2.0)), view="maybe",
                           complex=True)
def chunk(input: Tensor, chunks, dim=0):
    """Views of `input` cut along a dim in at most `chunks` pieces of one size, the last smaller.

    Shapes: (*, N, *) -> (*, N / chunks rounded up, *) for each.
    Raises: RuntimeError if `chunks` is not positive, IndexError, TypeError.

    >>> tensorlib.arange(5).chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    chunks = integer("chunk", "chunks", chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk: expects `chunks` to be greater than 0, got {chunks}")
    dim = wrap("chunk", dim, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("chunk: expects at least a 1-dimensional tensor")
    size = input.size(dim)
    if size == 0:
        check_room("chunk", chunks, Tensor.__basicsize__)
        return split(input, [0] * chunks, dim)
    return within_memory(
        "chunk", lambda: cut(input, dim, sizes_of_pieces(-(-size // chunks), size, dim)))


@composite(reference=lambda x, dim=0: tuple(np.moveaxis(x, dim, 0)),
           samples=given(((2, 3),), ((2, 3), -1), ((3,),), ((2, 0),)),
           errors=refusals((IndexError, ()), (IndexError, (2, 3), 2)), view="maybe", complex=True)
def unbind(input: Tensor, dim=0):
    """Views of `input` at each index of a dim, which goes away.

    Shapes: (*, N, *) -> N times (*, *). Raises: IndexError for a dim out of range.

    >>> tensorlib.tensor([[1, 2], [3, 4]]).unbind(1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    dim = wrap("unbind", dim, input.ndim)
    if input.ndim == 0:
        raise IndexError("unbind: expects at least a 1-dimensional tensor")
    check_room("unbind", input.size(dim), Tensor.__basicsize__)
    if is_looked_at_alone(input):
        return within_memory("unbind", lambda: views.among_others(
            tuple(joining.views_along(input, dim, [None] * input.size(dim)))))
    before = (slice(None),) * dim
    return within_memory("unbind", lambda: views.among_others(
        tuple([input[(*before, i)] if dim else input[i] for i in range(input.size(dim))])))
