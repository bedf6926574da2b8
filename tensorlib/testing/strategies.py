"""Hypothesis strategies for shapes, dtypes and Tensors of every layout.

They shrink towards what is easiest to read: contiguous, few dimensions, short sides, zeros.
"""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlib as tl

KINDS = {
    "bool": ("bool",),
    "integer": ("int64", "int32", "int16", "int8", "uint8"),
    "unsigned": ("uint16", "uint32", "uint64"),     # apart: they promote with no other integers
    "floating": ("float32", "float64", "float16", "bfloat16"),
    "complex": ("complex64", "complex128"),
}
LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "expanded")

# What lies between the elements of a strided layout: a kernel that steps wrongly meets it.
GAP = 99

Shape = tuple[int, ...]


def dtypes(
    kinds: str | Sequence[str] = ("floating", "integer", "bool"),
) -> st.SearchStrategy[tl.dtype]:
    """A strategy for dtypes of the given kinds: "bool", "integer", "unsigned", "floating",
    "complex". Of unsigned integers uint8 is among "integer", which all promote with each other.

    Raises: ValueError for no kind and for an unknown one.

    >>> dtypes("floating").example() in (tl.float32, tl.float64, tl.float16, tl.bfloat16)
    True
    """
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise ValueError(f"dtypes: kinds is {kinds!r}, it takes some of {', '.join(KINDS)}")
    return st.sampled_from([getattr(tl, name) for kind in kinds for name in KINDS[kind]])


def shapes(
    min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 5
) -> st.SearchStrategy[Shape]:
    """A strategy for shapes: tuples of side lengths, by default with 0-d and empty ones.

    >>> len(shapes(min_dims=2, max_dims=2).example())
    2
    """
    side = st.integers(min_side, max_side)
    return st.lists(side, min_size=min_dims, max_size=max_dims).map(tuple)


@st.composite
def broadcastable_shapes(
    draw: st.DrawFn,
    n: int,
    min_dims: int = 0,
    max_dims: int = 3,
    min_side: int = 0,
    max_side: int = 5,
) -> tuple[Shape, ...]:
    """A strategy for tuples of n shapes that broadcast together.

    >>> a, b = broadcastable_shapes(2).example()
    >>> len(np.broadcast_shapes(a, b)) == max(len(a), len(b))
    True
    """
    full = draw(shapes(min_dims, max_dims, min_side, max_side))
    result = []
    for _ in range(n):
        dropped = draw(st.integers(0, len(full) - min_dims))
        result.append(tuple(1 if draw(st.booleans()) else side for side in full[dropped:]))
    return tuple(result)


@st.composite
def tensors(
    draw: st.DrawFn,
    dtype: tl.dtype | st.SearchStrategy[tl.dtype] | None = None,
    shape: Sequence[int] | st.SearchStrategy[Shape] | None = None,
    elements: st.SearchStrategy[complex] | None = None,
    requires_grad: bool | st.SearchStrategy[bool] = False,
    layouts: Sequence[str] = LAYOUTS,
) -> tl.Tensor:
    """A strategy for Tensors of any dtype, shape, values and memory layout.

    `dtype`, `shape` and `requires_grad` are values or strategies; without them, float32, `shapes()`
    and False. `elements` is a strategy for numbers; without it, numbers of modest size that the
    dtype holds exactly (give one for infinities and NaN). `layouts` are some of "contiguous",
    "transposed", "strided" (gaps between the elements), "reversed" (a negative stride) and
    "expanded" (a stride of zero: such a Tensor cannot be written to). A Tensor that requires grad
    is a leaf of that layout.

    Raises: ValueError for an unknown layout.

    >>> x = tensors(dtype=tl.float64, shape=(2, 3), requires_grad=True).example()
    >>> x.dtype == tl.float64, tuple(x.shape), x.is_leaf
    (True, (2, 3), True)
    """
    unknown = [layout for layout in layouts if layout not in LAYOUTS]
    if unknown or not layouts:
        raise ValueError(f"tensors: layouts is {layouts!r}, it takes some of {', '.join(LAYOUTS)}")
    dtype = _drawn(draw, tl.float32 if dtype is None else dtype)
    shape = tuple(_drawn(draw, shapes() if shape is None else shape))
    layout = draw(st.sampled_from(layouts))
    wide, usual = _wide_dtype(dtype), _elements(dtype)
    array = draw(hnp.arrays(wide, shape, elements=usual if elements is None else elements))
    tensor = _laid_out(array, layout, dtype)
    if _drawn(draw, requires_grad):
        tensor = tensor.detach().requires_grad_()
    return tensor


def _laid_out(array, layout, dtype):
    """A Tensor of `dtype` with the values of `array` (expanded: of its first slice)."""

    def tensor(values):
        return tl.tensor(values).to(dtype)

    dims = tuple(range(array.ndim))
    if layout == "transposed" and array.ndim > 1:
        return tensor(array.transpose().copy()).permute(dims[::-1])
    if layout == "strided":
        if array.ndim == 0:
            return tensor(np.array([GAP, array[()], GAP]).astype(array.dtype))[1]
        spread = np.full((*array.shape[:-1], 2 * array.shape[-1]), GAP, dtype=array.dtype)
        spread[..., ::2] = array
        return tensor(spread)[..., ::2]
    if layout == "reversed" and array.ndim > 0:
        return tensor(array[::-1].copy())[::-1]
    if layout == "expanded" and array.ndim > 0:
        return tensor(array[:1].copy()).expand(array.shape)
    return tensor(array)


def _elements(dtype):
    """Numbers of modest size that `dtype` holds exactly: halves and thirds are left to the user."""
    if dtype == tl.bool:
        return st.booleans()
    if dtype.is_complex:
        return st.complex_numbers(max_magnitude=100, allow_nan=False)
    if dtype.is_floating_point:
        width = {tl.float64: 64, tl.float32: 32}.get(dtype, 16)
        return st.floats(-100, 100, width=width, allow_subnormal=False)
    return st.integers(-100 if dtype.is_signed else 0, 100)


def _wide_dtype(dtype):
    """The NumPy dtype in which values are drawn, before they are cast to `dtype`."""
    if dtype == tl.bool:
        return np.bool_
    if dtype.is_complex:
        return np.complex128
    return np.float64 if dtype.is_floating_point else np.int64


def _drawn(draw, value):
    return draw(value) if isinstance(value, st.SearchStrategy) else value
