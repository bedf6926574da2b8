"""Padding: with a number, or by reflecting, replicating or wrapping round. `nn.functional.pad`."""

import numpy as np

from tensorlib._core.create import padding as kernels
from tensorlib._core.create.creation import plain_number
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.adjoints import forward_and_back, turned_by_back
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import FUNCTIONS, composite, op
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import given, refusals

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}       # and NumPy's names


def margins(x, pad, mode="constant", value=None):
    """The reference of `pad`."""
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2)
    pairs += [pad[i:i + 2] for i in range(len(pad) - 2, -2, -2)]
    x = x[tuple(slice(max(-a, 0), x.shape[d] - max(-b, 0)) for d, (a, b) in enumerate(pairs))]
    pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        return np.pad(x, pairs, constant_values=value or 0)
    return np.pad(x, pairs, MODES[mode])


@op(public=False, method=False, kernel=kernels.framed, affine=True,
    reference=lambda x, pad, value: margins(x, pad, value=value),
    samples=given(((2, 3), (1, 2), 0), ((2, 3), (-1, 1, 0, 1), 1), ((3,), (-1, -1), 0)),
    complex=True)
def framed(input: Tensor, pad, value):
    """`input` padded with a number; negative padding crops: see `pad`."""


@framed.vjp("input")
def framed_vjp(g, pad):
    """The gradient without the padding, and zeros for what was cropped."""
    return framed(g, tuple(-n for n in pad), 0)


@framed.jvp
def framed_jvp(d_input, pad):
    """Linear in the input; the frame is constant."""
    return framed(d_input, pad, 0)


BORDERED = tuple(((2, *size), size, margins, mode, False) for size, margins, mode in (
    ((4,), (2, 1), "reflect"), ((3, 4), (1, 2, 0, -1), "circular"), ((3,), (4, -1), "replicate"),
    ((1, 2, 3), (1, 1, 1, 0, 2, 1), "replicate")))


@turned_by_back
@op(public=False, method=False, linear=True, kernel=kernels.bordered, tolerance="reduction",
    reference=forward_and_back(lambda x, spatial, *options: margins(x, *options)),
    samples=given(*BORDERED))
def bordered(input: Tensor, spatial, margins, mode, back):
    """Planes of sizes `spatial`, padded by what they show (see `pad`), or the adjoint."""


PADDED = (((2, 3), (1, 2)), ((2, 3), (1, 0, 2, 1), "constant", 1.0), ((2, 2), (-1, 1, 0, -1)),
          *[((1, 2, 4), (2, 1), mode) for mode in MODES],
          *[((1, 3, 4), (1, 2, 1, -1), mode) for mode in ("reflect", "circular")], ((3,), ()))


@composite(tensors=("input",), public=False, method=False, reference=margins,
           samples=given(*PADDED),
           errors=refusals((RuntimeError, (3,), (1,)), (RuntimeError, (3,), (1, 1, 1, 1)),
                           (RuntimeError, (3,), (-2, -2)), (TypeError, (3,), (1.5, 1)),
                           (RuntimeError, (1, 3), (3, 0), "reflect"),
                           (RuntimeError, (1, 3), (4, 0), "circular"),
                           (RuntimeError, (1, 3), (1, 1), "reflect", 1.0),
                           (NotImplementedError, (3,), (1, 1), "reflect"),
                           (NotImplementedError, (1, 3), (1, 1), "mirror")), complex=True)
def pad(input: Tensor, pad, mode="constant", value=None):
    """`input` padded: pairs of sizes before and after, for the last dim first.

    mode: "constant" fills them with `value`, by default 0; "reflect" with what lies on the other
    side of the border, "replicate" with the border itself, "circular" with what lies at the other
    end. Negative sizes cut off.

    Shapes: (*, N, M) by (a, b, c, d) -> (*, N + c + d, M + a + b). Other modes than "constant" take
    the last one, two or three dims of a tensor with one or two more.
    Raises: RuntimeError for an odd number of sizes or more than there are dims, margins that are
    too large for the mode, and results of a negative size; NotImplementedError for other modes and
    numbers of dims; TypeError.

    >>> from tensorlib.ops.shape.padding import pad
    >>> pad(tensorlib.tensor([[1, 2, 3]]), (1, 2), "reflect")
    tensor([[2, 1, 2, 3, 2, 1]])
    """
    sizes = checked_margins(input, pad)
    if mode == "constant":
        value = plain_number("pad", "value", 0 if value is None else value)
        if not (input.is_floating_point() or input.is_complex()):
            value = int(value)
        return framed(input, sizes, value)
    if mode not in MODES:
        raise NotImplementedError(f"pad: unrecognised padding mode {mode!r}")
    if value is not None and value != 0:
        raise RuntimeError(f'pad: padding mode "{mode}" takes no value, got {value!r}')
    shape, n = tuple(input.shape), len(sizes) // 2
    if not 0 < n < 4 or len(shape) - n not in (1, 2):
        raise NotImplementedError(
            f"pad: padding size {len(sizes)} is not supported for a {input.ndim}D tensor in mode "
            f"{mode!r}; 2 sizes take 2 or 3 dims, 4 take 3 or 4, 6 take 4 or 5")
    spatial = shape[-n:]
    if min(sizes) < 0 or max(sizes) >= min(spatial):     # else they fit in any mode
        for size, before, after in zip(reversed(spatial), sizes[::2], sizes[1::2]):
            check_border(size, before, after, mode)
    if not any(sizes):
        return input.clone()
    if input.is_complex():                               # its parts are padded alike
        return FUNCTIONS["complex"](*(bordered(part, spatial, sizes, mode, False)
                                      for part in (input.real, input.imag)))
    return bordered(input, spatial, sizes, mode, False)


def checked_margins(input, pad):
    """The sizes of the padding as ints. Raises: RuntimeError, TypeError."""
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad: expected a sequence of ints, got {pad!r}")
    sizes = tuple(pad)
    if set(map(type, sizes)) != {int}:
        sizes = tuple(integer("pad", "each size", n) for n in sizes)
    if len(sizes) % 2:
        raise RuntimeError(f"pad: padding length must be divisible by 2, got {len(sizes)}")
    if len(sizes) > 2 * input.ndim:
        raise RuntimeError("pad: padding length should be at most twice the number of dims, got "
                           f"{len(sizes)} for {input.ndim}")
    return sizes


def check_border(size, before, after, mode):
    """Raises RuntimeError for padding that a dim of this size cannot fill."""
    most = larger = max(before, after)
    if mode == "reflect":
        most = size - 1
    elif mode == "circular":
        most = size + min(before, 0) + min(after, 0)
    if (before or after) and (size == 0 or larger > most or size + before + after < 0):
        words = "" if mode != "reflect" else (
            "Padding size should be less than the corresponding input dimension: ")
        raise RuntimeError(f"pad: {words}margins of {before} and {after} don't fit a dim of size "
                           f"{size} in mode {mode!r}")


declared(__name__)
