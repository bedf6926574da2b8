"""NumPy's shape functions on Tensors: shapes, axes, joining and splitting."""

import numpy as np

from tensorlib._core.interpreters.foreign import elements_known
from tensorlib.io.operands import alike, dtype_of, tensor_of
from tensorlib.io.table import counterpart
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.foreign import repeated_places
from tensorlib.ops.shape.stacking import spread_vectors

cat, unsqueeze = FUNCTIONS["cat"], FUNCTIONS["unsqueeze"]


# ---- shapes and axes -----------------------------------------------------------------------------

@counterpart(np.reshape)
def reshape(a, shape):
    """`a` with another shape, a view where its strides allow one."""
    return tensor_of(a).reshape(shape)


@counterpart(np.ravel)
def ravel(a):
    """The elements of `a` as a vector, in C order."""
    return tensor_of(a).ravel()


@counterpart(np.transpose)
def transpose(a, axes=None):
    """`a` with its axes in the order of `axes`, reversed if that is None: a view."""
    x = tensor_of(a)
    return x.permute(tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


@counterpart(np.matrix_transpose)
def matrix_transpose(x):
    """`x` with its last two axes swapped: a view."""
    return tensor_of(x).mT


@counterpart(np.swapaxes)
def swapaxes(a, axis1, axis2):
    """`a` with two axes swapped: a view."""
    return tensor_of(a).transpose(axis1, axis2)


@counterpart(np.moveaxis)
def moveaxis(a, source, destination):
    """`a` with the axes `source` moved to the places `destination`: a view."""
    return tensor_of(a).movedim(source, destination)


@counterpart(np.squeeze)
def squeeze(a, axis=None):
    """`a` without its axes of size 1, or without those of `axis`: a view.

    Raises: ValueError for an axis of another size.
    """
    x = tensor_of(a)
    for d in () if axis is None else axis if isinstance(axis, tuple) else (axis,):
        if x.size(d) != 1:
            raise ValueError(f"numpy.squeeze: axis {d} of shape {tuple(x.shape)} has not size 1")
    return x.squeeze() if axis is None else x.squeeze(axis)


@counterpart(np.expand_dims)
def expand_dims(a, axis):
    """`a` with new axes of size 1 at the places `axis` of the result: a view."""
    x = tensor_of(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for d in sorted(d % (x.ndim + len(axes)) for d in axes):
        x = x.unsqueeze(d)
    return x


@counterpart(np.broadcast_to)
def broadcast_to(array, shape):
    """`array` broadcast to `shape`: a view, with stride 0 along what is repeated."""
    return tensor_of(array).expand(shape)


@counterpart(np.broadcast_arrays)
def broadcast_arrays(*args):
    """The arguments broadcast to one shape, as a tuple of views."""
    tensors = [tensor_of(x) for x in args]
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in tensors))
    return tuple(x.expand(shape) for x in tensors)


@counterpart(np.atleast_1d)
def atleast_1d(*arys):
    """The arguments with at least one dim; one argument gives no tuple."""
    return as_asked(FUNCTIONS["atleast_1d"]([tensor_of(x) for x in arys]))


@counterpart(np.atleast_2d)
def atleast_2d(*arys):
    """The arguments with at least two dims; one argument gives no tuple."""
    return as_asked(FUNCTIONS["atleast_2d"]([tensor_of(x) for x in arys]))


@counterpart(np.atleast_3d)
def atleast_3d(*arys):
    """The arguments with at least three dims; one argument gives no tuple."""
    return as_asked(FUNCTIONS["atleast_3d"]([tensor_of(x) for x in arys]))


def as_asked(found):
    """Arrays where nothing is in a graph: by these functions SciPy asks for that of a gradient."""
    tensors = found if isinstance(found, tuple) else (found,)
    if not elements_known(*tensors) or any(x.requires_grad for x in tensors):
        return found
    arrays = tuple(x.numpy() for x in tensors)
    return arrays if isinstance(found, tuple) else arrays[0]


@counterpart(np.meshgrid)
def meshgrid(*xi, indexing="xy"):
    """The coordinates of a grid, one array for each vector; "xy" has the second axis first.

    Raises: ValueError for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    return spread_vectors([tensor_of(x).ravel() for x in xi], indexing == "xy")


# ---- joining -------------------------------------------------------------------------------------

@counterpart(np.concatenate)
def concatenate(arrays, axis=0, out=None, *, dtype=None):
    """The arrays joined along an axis, as vectors if it is None, in their common dtype."""
    tensors = alike(arrays)
    if dtype is not None:
        tensors = [x.to(dtype_of(dtype)) for x in tensors]
    if axis is None:
        tensors, axis = [x.ravel() for x in tensors], 0
    return cat(tensors, axis, out=out)


@counterpart(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None):
    """The arrays joined along a new axis.

    Raises: RuntimeError for arrays of several shapes.
    """
    tensors = alike(arrays)
    shapes = {tuple(x.shape) for x in tensors}
    if len(shapes) > 1:
        raise RuntimeError(f"numpy.stack: the arrays must have one shape, got {sorted(shapes)}")
    return concatenate([unsqueeze(x, axis) for x in tensors], axis, out, dtype=dtype)


@counterpart(np.vstack)
def vstack(tup, *, dtype=None):
    """The arrays joined along the first axis, vectors as rows."""
    return concatenate([FUNCTIONS["atleast_2d"](tensor_of(x)) for x in tup], 0, dtype=dtype)


@counterpart(np.hstack)
def hstack(tup, *, dtype=None):
    """The arrays joined along the second axis, vectors along their only one."""
    tensors = [FUNCTIONS["atleast_1d"](tensor_of(x)) for x in tup]
    return concatenate(tensors, 0 if tensors[0].ndim == 1 else 1, dtype=dtype)


@counterpart(np.dstack)
def dstack(tup):
    """The arrays joined along the third axis."""
    return concatenate([FUNCTIONS["atleast_3d"](tensor_of(x)) for x in tup], 2)


@counterpart(np.column_stack)
def column_stack(tup):
    """The arrays joined along the second axis, vectors as columns."""
    tensors = [tensor_of(x) for x in tup]
    return concatenate([x.reshape(-1, 1) if x.ndim < 2 else x for x in tensors], 1)


@counterpart(np.append)
def append(arr, values, axis=None):
    """`values` joined to the end of `arr` along an axis, both as vectors if it is None."""
    return concatenate((arr, values), axis)


@counterpart(np.tile)
def tile(A, reps):
    """`A` repeated `reps` times along each axis; what has fewer axes gets leading ones."""
    x = tensor_of(A)
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    reps = (1,) * (x.ndim - len(reps)) + reps
    x = x.reshape((1,) * (len(reps) - x.ndim) + tuple(x.shape))
    sizes = [size for pair in zip(reps, x.shape) for size in pair]
    apart = x.reshape([size for n in x.shape for size in (1, n)]).expand(sizes)
    return apart.reshape([rep * n for rep, n in zip(reps, x.shape)])


@counterpart(np.repeat)
def repeat(a, repeats, axis=None):
    """Each element along an axis `repeats` times; of `a` as a vector if the axis is None."""
    x = tensor_of(a)
    x, axis = (x.ravel(), 0) if axis is None else (x, axis % x.ndim)
    places = repeated_places("repeat", x.size(axis), np.asarray(repeats))
    return x[(slice(None),) * axis + (places,)]


# ---- cutting -------------------------------------------------------------------------------------

@counterpart(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    """Views of parts along an axis: at these bounds, or a number of parts of about one size."""
    x = tensor_of(ary)
    size = x.size(axis)
    if isinstance(indices_or_sections, int):
        each_has, more = divmod(size, indices_or_sections)
        sizes = [each_has + (i < more) for i in range(indices_or_sections)]
        bounds = np.cumsum([0, *sizes]).tolist()
    else:
        bounds = [0, *indices_or_sections, size]
    before = (slice(None),) * (axis % x.ndim)
    return [x[(*before, slice(start, stop))] for start, stop in zip(bounds, bounds[1:])]


@counterpart(np.split)
def split(ary, indices_or_sections, axis=0):
    """As `array_split`.

    Raises: ValueError for a number of parts that does not divide the size.
    """
    if isinstance(indices_or_sections, int) and tensor_of(ary).size(axis) % indices_or_sections:
        raise ValueError(
            f"numpy.split: {tensor_of(ary).size(axis)} elements can't be split evenly in "
            f"{indices_or_sections}; array_split can")
    return array_split(ary, indices_or_sections, axis)


@counterpart(np.hsplit)
def hsplit(ary, indices_or_sections):
    """`split` along the second axis, of vectors along their only one."""
    return split(ary, indices_or_sections, 0 if tensor_of(ary).ndim == 1 else 1)


@counterpart(np.vsplit)
def vsplit(ary, indices_or_sections):
    """`split` along the first axis."""
    return split(ary, indices_or_sections, 0)


@counterpart(np.dsplit)
def dsplit(ary, indices_or_sections):
    """`split` along the third axis."""
    return split(ary, indices_or_sections, 2)


# ---- order and diagonals -------------------------------------------------------------------------

@counterpart(np.flip)
def flip(m, axis=None):
    """`m` with its elements reversed along the axes, along all if `axis` is None."""
    x = tensor_of(m)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    chosen = {d % x.ndim for d in axes}
    return x[tuple(slice(None, None, -1 if d in chosen else 1) for d in range(x.ndim))]


@counterpart(np.flipud)
def flipud(m):
    """`m` reversed along its first axis."""
    return flip(m, 0)


@counterpart(np.fliplr)
def fliplr(m):
    """`m` reversed along its second axis."""
    return flip(m, 1)


@counterpart(np.roll)
def roll(a, shift, axis=None):
    """`a` shifted along the axes, with what leaves at one end entering at the other."""
    x = tensor_of(a)
    if axis is None:
        return roll(x.ravel(), shift, 0).reshape(x.shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    for dim, by in zip(axes, shifts):
        size = x.size(dim)
        cut = -by % size if size else 0
        x = cat((x.narrow(dim, cut, size - cut), x.narrow(dim, 0, cut)), dim)
    return x


@counterpart(np.diag)
def diag(v, k=0):
    """The k-th diagonal of a matrix, a view; or the matrix with a vector there.

    Raises: ValueError for other numbers of dims.
    """
    x = tensor_of(v)
    if x.ndim == 2:
        return x.diagonal(k)
    if x.ndim != 1:
        raise ValueError(f"numpy.diag: takes 1 or 2 dims, got shape {tuple(x.shape)}")
    n = x.numel() + abs(k)
    places = np.arange(x.numel())
    matrix = x.new_zeros((n, n))
    matrix[places + max(-k, 0), places + max(k, 0)] = x
    return matrix


@counterpart(np.diagonal)
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of two axes, as the last axis: a view."""
    return tensor_of(a).diagonal(offset, axis1, axis2)


@counterpart(np.tril)
def tril(m, k=0):
    """`m` with 0 above its k-th diagonal; a vector is taken for each row."""
    return rows_of(m).tril(k)


@counterpart(np.triu)
def triu(m, k=0):
    """`m` with 0 below its k-th diagonal; a vector is taken for each row."""
    return rows_of(m).triu(k)


def rows_of(m):
    """A matrix, or the one whose rows are all the vector `m`."""
    x = tensor_of(m)
    return x.expand(x.numel(), x.numel()) if x.ndim == 1 else x
