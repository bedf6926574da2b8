"""`unfold` and `fold`: sliding windows as columns (im2col), and their sums (col2im)."""

import math

import numpy as np

from tensorlib import arange, cat, complex
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.layers import windows as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.convolution import out_size, sizes_of
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.nn.functional.pooling import planes_of, windows_at
from tensorlib.ops.adjoints import turned_by_back
from tensorlib.ops.declare import composite, op
from tensorlib.ops.references import adjoint
from tensorlib.ops.samples import given, refusals


def column_reference(x, spatial, kernel, stride, padding, dilation, planes, back=False):
    """The reference of `columns`."""
    if back:
        size = math.prod(kernel)
        like = (*x.shape[:-2], x.shape[-2] // size, *spatial)
        return adjoint(lambda y: column_reference(
            y, spatial, kernel, stride, padding, dilation, planes), like, x)
    rows = np.zeros((*x.shape[:-len(kernel)], math.prod(kernel), *planes))
    for place, values, _ in windows_at(x, kernel, stride, padding, dilation, planes, 0.0):
        rows[(..., slice(None), *place)] = np.moveaxis(values, 0, -1)
    return rows.reshape(*x.shape[:-len(kernel) - 1], -1, math.prod(planes))


@turned_by_back
@op(public=False, method=False, linear=True, takes="floating", kernel=kernels.columns,
    tolerance="reduction", reference=column_reference,
    samples=given(((1, 2, 3, 2), (3, 2), (2, 2), (1, 2), (1, 1), (1, 1), (4, 2), False),
                  ((2, 4, 2), (5,), (2,), (2,), (0,), (2,), (2,), True)))
def columns(input: Tensor, spatial, kernel, stride, padding, dilation, planes, back):
    """The windows of planes as columns, (*, C * elements, windows); with `back` its adjoint."""


def column_sizes(name, spatial, kernel_size, dilation, padding, stride):
    """The sizes that `columns` takes. Raises: RuntimeError."""
    kernel = sizes_of(name, "kernel_size", kernel_size, 2, 1)
    dilation = sizes_of(name, "dilation", dilation, 2, 1)
    padding, stride = sizes_of(name, "padding", padding, 2), sizes_of(name, "stride", stride, 2, 1)
    planes = tuple(map(out_size, spatial, kernel, stride, padding, dilation))
    if min(planes) < 1:
        raise RuntimeError(f"{name}: given spatial size {spatial} and kernel_size {kernel}, there "
                           f"are no windows: {planes}")
    return spatial, kernel, stride, padding, dilation, planes


@composite(tensors=("input",), public=False, method=False,
           reference=lambda x, kernel: column_reference(
               x, x.shape[2:], (kernel,) * 2, (1, 1), (0, 0), (1, 1),
               tuple(s - kernel + 1 for s in x.shape[2:])).astype(x.dtype),
           samples=given(((1, 2, 3, 2), 2)),
           errors=refusals((RuntimeError, (2, 3), 2), (RuntimeError, (1, 1, 3, 3), 4)))
def im2col(input: Tensor, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of images as columns: `nn.functional.unfold`.

    Shapes: (B, C, H, W) -> (B, C * elements of a window, windows); without B, too.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    spatial = planes_of("unfold", input, 2)
    sizes = column_sizes("unfold", spatial, kernel_size, dilation, padding, stride)
    if input.is_floating_point():
        return columns(input, *sizes, False)
    count = math.prod(spatial)            # the index of the element at each place; 0 is the padding
    numbers = arange(1.0, count + 1, dtype=BY_NAME["float64"]).reshape((1, *spatial))
    places = columns(numbers, *sizes, False).to(BY_NAME["int64"])
    found = cat([input.new_zeros((*input.shape[:-2], 1)), input.flatten(-2)], -1)[..., places]
    return found.flatten(-3, -2)


@composite(tensors=("input",), public=False, method=False, takes="floating", tolerance="reduction",
           complex=True, reference=lambda x, size, kernel: column_reference(
               x, size, kernel, (1, 1), (0, 0), (1, 1),
               tuple(s - k + 1 for s, k in zip(size, kernel)), True),
           samples=given(((1, 4, 2), (3, 2), (2, 2))),
           errors=refusals((RuntimeError, (1, 4, 3), (3, 2), (2, 2)),
                           (RuntimeError, (1, 3, 2), (3, 2), (2, 2))), rounds_once=False)
def col2im(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sums of windows given as columns, `nn.functional.fold`: the adjoint of `unfold`.

    Shapes: (B, C * elements of a window, windows) -> (B, C, *output_size); without B, too.
    Raises: RuntimeError for sizes that do not fit, TypeError.
    """
    if input.is_complex():                   # real and imaginary parts are summed separately
        return complex(*(col2im(part, output_size, kernel_size, dilation, padding, stride)
                         for part in (input.real, input.imag)))
    require_floating("fold", input)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"fold: expected 2D or 3D input, got shape {tuple(input.shape)}")
    spatial = sizes_of("fold", "output_size", output_size, 2, 1)
    sizes = column_sizes("fold", spatial, kernel_size, dilation, padding, stride)
    window, places = math.prod(sizes[1]), math.prod(sizes[5])
    if input.shape[-2] % window or input.shape[-1] != places:
        raise RuntimeError(f"fold: expected (*, a multiple of {window}, {places}), got "
                           f"{tuple(input.shape)}")
    return columns(input, *sizes, True)
