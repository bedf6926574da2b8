"""New tensors: from data, of given sizes, evenly spaced; and triangles of matrices."""

from functools import partial
from math import floor, isfinite
from operator import index as as_int

import numpy as np

from tensorlib._core.apply.getitem import is_plain_write, write_over
from tensorlib._core.arrays import convert
from tensorlib._core.arrays.arrays import from_numpy, frombuffer
from tensorlib._core.arrays.dlpack import from_dlpack, to_dlpack
from tensorlib._core.base.dtypes import BY_NAME, get_default_dtype, set_default_dtype
from tensorlib._core.base.error_names import renamed
from tensorlib._core.base.warned import warn_of
from tensorlib._core.create import creation, overwrite, ranges
from tensorlib._core.create.overwrite import write_result
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite, op, publish
from tensorlib.ops.publish import parameters
from tensorlib.ops.samples import calls, given, given_pairs, refusals, refused_calls

SHAPES = given(((2, 3),), ((),), ((0, 3),))
INT16, INT64, FLOAT64 = (BY_NAME[name] for name in ("int16", "int64", "float64"))


def made(function, **declared):
    """Declares a function that makes tensors, whose signature and docstring are its own."""
    tensors = tuple(name for name in parameters(function) if name == "input")
    return composite(tensors=tensors, method=False, differentiable=False, **declared)(function)


def as_numpy(dtype, otherwise=np.float32):
    """NumPy's dtype for one of tensors, or for None."""
    return np.dtype(otherwise if dtype is None else dtype.name)


def sized(make):
    """The reference of a function of sizes, which `make` takes as a tuple, with a dtype."""
    def reference(*sizes, size=None, dtype=None):
        given = sizes if size is None else (size,)
        return make(given if isinstance(given[0], int) else given[0], as_numpy(dtype))
    return reference


# ---- of data -------------------------------------------------------------------------------------

def array_of(data, dtype=None):
    """The reference of what makes tensors of Python's numbers, or of arrays."""
    if dtype is None and not isinstance(data, np.ndarray):
        array = np.array(data)
        return array.astype(np.float32) if array.dtype.kind == "f" else array
    return np.array(data, dtype and as_numpy(dtype))


SEQUENCES = calls(([[1, 2.5], [3, 4]],), (3,), (True,), ([],), ([[True, False]],),
                  ([[1, 2, 3]], {"dtype": INT16}), ((1.5, -2), {"dtype": FLOAT64}))
NO_NUMBERS = refused_calls((ValueError, [[1, 2], [3]]), (TypeError, [1, "a"]), (RuntimeError, None))

made(convert.tensor, reference=array_of, samples=SEQUENCES, errors=NO_NUMBERS)
for _function, _given in ((convert.as_tensor, "data"), (convert.asarray, "obj")):
    composite(tensors=(_given,), method=False, view="maybe", reference=np.asarray,
              samples=SHAPES, errors=NO_NUMBERS, complex=True)(_function)

made(frombuffer,
     reference=lambda buffer, dtype, count=-1, offset=0: np.frombuffer(
         buffer, as_numpy(dtype), count, offset),
     samples=calls((bytes(range(8)), {"dtype": INT16}),
                   (bytearray(16), {"dtype": FLOAT64, "count": 1, "offset": 8})),
     errors=refused_calls((ValueError, b"", {"dtype": INT64}), (ValueError, 3, {"dtype": INT64}),
                          (ValueError, bytes(9), {"dtype": INT64}),
                          (ValueError, bytes(8), {"dtype": INT64, "offset": 8})))

for _function in (from_numpy, from_dlpack, to_dlpack, set_default_dtype):
    publish(_function.__name__, _function, _function.__doc__, method=False)


# ---- of sizes ------------------------------------------------------------------------------------

SIZES = calls((2, 3), ((2, 3),), ([4],), ((),), (0, 3), ({"size": (2,)},), (3, {"dtype": INT64}),
              ((2, 1), {"dtype": FLOAT64}))
BAD_SIZES = refused_calls((RuntimeError, -1), (RuntimeError, (2, -3)), (RuntimeError, 2**62, 4),
                          (TypeError, 2.5), (TypeError,), (TypeError, (2,), 3),
                          (RuntimeError, 2, {"dtype": INT64, "requires_grad": True}))
VALUES = calls(((2, 3), 2.5), ((), 3), ((2,), True), ((2,), 2.5, {"dtype": INT64}), ((0, 2), -1))
BAD_VALUES = refused_calls((RuntimeError, (-1,), 0), (TypeError, (2,), "a"), (TypeError, 2.5, 0),
                           (OverflowError, (2,), 2**70),
                           (OverflowError, (2,), 300, {"dtype": BY_NAME["uint8"]}))


def full_of(size, fill_value, dtype=None):
    """The reference of `full`."""
    return np.full(size, fill_value, array_of(fill_value, dtype).dtype)


made(creation.empty, reference=sized(np.empty), errors=BAD_SIZES,
     samples=calls(((0, 3),), (2, 0, {"dtype": INT64})))       # no elements: these may be anything
made(creation.zeros, reference=sized(np.zeros), samples=SIZES, errors=BAD_SIZES)
made(creation.ones, reference=sized(np.ones), samples=SIZES, errors=BAD_SIZES)
made(creation.full, reference=full_of, samples=VALUES, errors=BAD_VALUES)
made(creation.scalar_tensor, reference=lambda s, dtype=None: np.array(s, as_numpy(dtype)),
     samples=calls((2.5,), (3,), (True, {"dtype": INT64})), errors=refused_calls((TypeError, "a")))


# ---- as another tensor ---------------------------------------------------------------------------

made(creation.empty_like, reference=np.empty_like, samples=given(((0, 3),), ((2, 0),)),
     complex=True)
made(creation.zeros_like, reference=np.zeros_like, samples=SHAPES, complex=True)
made(creation.ones_like, reference=np.ones_like, samples=SHAPES, complex=True)
made(creation.full_like, reference=np.full_like,
     samples=given(((2, 3), 2), ((), True), ((0, 3), 1.5)),
     errors=refusals((TypeError, (2,), "a"), (TypeError, (2,), np.ones(2))), complex=True)

for _function in (
    creation.new_empty, creation.new_zeros, creation.new_ones, creation.new_full,
    creation.new_tensor, overwrite.copy_, overwrite.fill_, overwrite.zero_,
):
    publish(_function.__name__, _function, _function.__doc__, public=False)


# ---- evenly spaced -------------------------------------------------------------------------------

def numbers_between(*bounds, dtype=None):
    """The reference of `arange`."""
    whole = all(isinstance(bound, int) for bound in bounds)
    return np.arange(*bounds).astype(as_numpy(dtype, np.int64 if whole else np.float32))


def spaced(start, end, steps, dtype=None):
    """The reference of `linspace`."""
    return np.linspace(start, end, steps).astype(as_numpy(dtype))


def powers(start, end, steps, base=10.0, dtype=None):
    """The reference of `logspace`."""
    return np.logspace(start, end, steps, base=base).astype(as_numpy(dtype))


made(ranges.arange, reference=numbers_between,
     samples=calls((5,), (1, 2, 0.25), (5, 0, -2), (2, 2), (2, 5.5, {"dtype": FLOAT64}),
                   (3.0, {"dtype": INT16})),
     errors=refused_calls((RuntimeError, 0, 5, 0), (RuntimeError, 0, 5, -1), (TypeError, "a"),
                          (RuntimeError, float("inf")), (OverflowError, 70000, {"dtype": INT16})))
made(ranges.linspace, reference=spaced,
     samples=calls((0, 1, 5), (3, -1, 2), (2, 5, 1), (0, 1, 0), (0, 1, 7, {"dtype": FLOAT64})),
     errors=refused_calls((RuntimeError, 0, 1, -1), (TypeError, 0, 1, 2.5), (TypeError, "a", 1, 3)))
made(ranges.logspace, reads_values=True, reference=powers,
     samples=calls((0, 2, 3), (0, 3, 4, 2), (1, -1, 3, {"dtype": FLOAT64})),
     errors=refused_calls((RuntimeError, 0, 1, -1), (TypeError, 0, 1, 2.5),
                          (TypeError, 0, 1, 3, "a")))


def numbers_up_to(start=0, end=None, step=1, dtype=None):
    """The reference of `range`."""
    return (start + step * np.arange(int((end - start) / step) + 1)).astype(as_numpy(dtype))


@partial(made, reference=numbers_up_to,
         samples=calls((1, 4), (0, 1, 0.3), (4, 1, -1, {"dtype": INT64}), (2, 2.5)),
         errors=refused_calls((RuntimeError, 1, 4, 0), (RuntimeError, 1, 4, -1), (TypeError,),
                              (TypeError, "a", 1), (RuntimeError, 0, float("inf"))))
def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None,
          pin_memory=False, requires_grad=False):
    """The numbers start, start + step, ... up to `end` and with it. Deprecated for `arange`.

    The dtype is the default one, also for integers.
    Shapes: (floor((end - start) / step) + 1,).
    Raises: RuntimeError for a step of 0 or away from `end` and for infinite ranges, TypeError for
    what is not a number.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     tensorlib.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    warn_of("range is deprecated: unlike Python's it has its end. Use arange instead, which has "
            "the values in [start, end).", level=2)
    if end is None:
        raise TypeError("range: end must be given")
    start, end, step = (creation.plain_number("range", name, value) for name, value in (
        ("start", start), ("end", end), ("step", step)))
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"range: unsupported range: {start} -> {end}")
    if dtype is None:
        dtype = out.dtype if isinstance(out, Tensor) else get_default_dtype()
    whole = not getattr(dtype, "is_floating_point", True)
    if whole:                                    # as in PyTorch
        start, end, step = int(start), int(end), int(step)
    if not step or (end - start) / step < 0:
        raise RuntimeError(f"range: from {start} to {end} there is no step of {step}")
    if whole:
        beyond = start + ((end - start) // step + 1) * step
    else:
        beyond = start + (floor((end - start) / step) + 0.5) * step
    try:
        return ranges.arange(start, beyond, step, out=out, dtype=dtype, layout=layout,
                             device=device, pin_memory=pin_memory,
                             requires_grad=requires_grad)
    except Exception as error:
        raise renamed(error, "arange", "range")


made(ranges.eye, reference=lambda n, m=None, dtype=None: np.eye(n, m, dtype=as_numpy(dtype)),
     samples=calls((3,), (2, 4), (3, 2, {"dtype": INT64}), (0,)),
     errors=refused_calls((RuntimeError, -1), (RuntimeError, 2, -1), (TypeError, 2.5)))


# ---- what `copy_`, `fill_` and `zero_` record ----------------------------------------------------

@op(linear=True, public=False, method=False,
    reference=lambda x, src: np.broadcast_to(src, x.shape),
    samples=given_pairs(((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 2), (2,))), complex=True)
def copy(input: Tensor, src: Tensor):
    """The elements of `src`, cast, broadcast and laid out as `input`, whose own are lost."""
    return creation.empty_like(input).copy_(src)


copy.op.add_rule("input", lambda: 0, constant=0)
copy.op.add_rule("src", lambda: 1, constant=1)


# ---- triangles -----------------------------------------------------------------------------------

def tril_(input, diagonal=0):
    """In place."""
    return triangle_over("tril", input, diagonal, False)


def triu_(input, diagonal=0):
    """In place."""
    return triangle_over("triu", input, diagonal, True)


def triangle_over(name, input, diagonal, upper):
    """`input`, after zeros were written to one of its triangles."""
    if input.is_contiguous() and is_plain_write(input, input):
        return write_over(f"{name}_", input, ranges.clear_triangle, diagonal, upper)
    return write_result(f"{name}_", input, FUNCTIONS[name](input, diagonal))


@op(linear=True, out=True, inplace=tril_, reference=np.tril, errors=refusals((RuntimeError, (3,))),
    samples=given(((3, 3),), ((2, 4), 1), ((2, 3, 4), -1), ((0, 2),), ((3, 2), 9)), complex=True)
def tril(input: Tensor, diagonal=0):
    """The lower triangles of matrices, with zeros above `diagonal`.

    Shapes: (*, N, M) -> (*, N, M). Raises: RuntimeError for less than 2 dims.

    >>> tensorlib.ones(2, 3).tril()
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    return ranges.triangle(input, diagonal, False)


@op(linear=True, out=True, inplace=triu_, reference=np.triu, errors=refusals((RuntimeError, (3,))),
    samples=given(((3, 3),), ((2, 4), 1), ((2, 3, 4), -1), ((0, 2),), ((3, 2), -9)), complex=True)
def triu(input: Tensor, diagonal=0):
    """The upper triangles of matrices, with zeros below `diagonal`.

    Shapes: (*, N, M) -> (*, N, M). Raises: RuntimeError for less than 2 dims.
    """
    return ranges.triangle(input, diagonal, True)


@tril.vjp("input")
def tril_vjp(g, diagonal):
    """The lower triangle of g."""
    return g.tril(diagonal)


@triu.vjp("input")
def triu_vjp(g, diagonal):
    """The upper triangle of g."""
    return g.triu(diagonal)


TRIANGLES = calls((3, 3), (2, 4, 1), (4, 2, -1), (0, 3), (3, 3, 9), (3, 2, {"dtype": INT16}))
NO_TRIANGLES = refused_calls((RuntimeError, -1, 3), (RuntimeError, 3, -1), (TypeError, 2.5, 3),
                             (TypeError, 3, 3, 0.5))


@composite(tensors=(), method=False, differentiable=False, samples=TRIANGLES, errors=NO_TRIANGLES,
           reference=lambda row, col, offset=0, dtype=None: np.stack(
               np.tril_indices(row, offset, col)).astype(as_numpy(dtype, np.int64)),
           reads_values=True)
def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False):
    """Rows and columns of the elements of a lower triangle, as two rows of int64.

    Shapes: (2, number of elements). Raises: RuntimeError for negative sizes, TypeError.

    >>> tensorlib.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _indices("tril_indices", False, row, col, offset, dtype, device)


@composite(tensors=(), method=False, differentiable=False, samples=TRIANGLES, errors=NO_TRIANGLES,
           reference=lambda row, col, offset=0, dtype=None: np.stack(
               np.triu_indices(row, offset, col)).astype(as_numpy(dtype, np.int64)),
           reads_values=True)
def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=False):
    """Rows and columns of the elements of an upper triangle, as two rows of int64.

    Shapes: (2, number of elements). Raises: RuntimeError for negative sizes, TypeError.
    """
    return _indices("triu_indices", True, row, col, offset, dtype, device)


def _indices(name, above, row, col, offset, dtype, device):
    """The rows and columns of the elements of a triangle, in a tensor of two rows."""
    try:
        row, col, offset = as_int(row), as_int(col), as_int(offset)
    except TypeError:
        raise TypeError(f"{name}: expects ints, got {row!r}, {col!r} and {offset!r}") from None
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: sizes must be 0 or more, got {row} and {col}")
    pair = ranges.triangle_places(name, row, col, offset, above)
    return convert.asarray(pair, dtype=dtype, device=device)
