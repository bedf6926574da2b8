"""`interpolate`, `affine_grid` and `grid_sample`: images of other sizes or at other points."""

import math
from functools import lru_cache
from operator import index as as_int

import numpy as np

from tensorlib._core.base.warned import warn_of
from tensorlib import arange, linspace, stack, uint8
from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.adaptive import adaptive_means
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.nn.functional.grid_sample import (
    bilinear_reference,
    cubic_formula,
    look,
    look_cubic,
    look_formula,
)
from tensorlib.nn.functional.interpolation import KEPT, resample
from tensorlib.ops.declare import composite, offered
from tensorlib.ops.samples import given, refusals

# ---- other sizes ---------------------------------------------------------------------------------

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
NEAREST, OF_IMAGES = ("nearest", "nearest-exact"), ("bilinear", "bicubic")


def nearest(size, count, scale, exact):
    """The nearest place of each element."""
    step = np.float32(1 / scale if scale else size / count)
    at = np.arange(count, dtype=np.float32)
    return np.minimum(((at + np.float32(0.5)) * step if exact else at * step).astype(int), size - 1)


kept_nearest = lru_cache(64)(nearest)


def target_sizes(name, spatial, size, scale_factor):
    """The sizes that are asked for, the factors that are given, and in which order to go through
    the dims. Raises: ValueError."""
    n = len(spatial)
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{name}: only one of size or scale_factor should be defined, and one "
                         "must be")
    if size is not None:
        sizes = tuple(map(as_int, size)) if isinstance(size, (tuple, list)) else (as_int(size),) * n
        factors = (None,) * n
    else:
        several = isinstance(scale_factor, (tuple, list))
        factors = tuple(map(float, scale_factor)) if several else (float(scale_factor),) * n
        sizes = tuple(math.floor(s * f) for s, f in zip(spatial, factors)
                      if math.isfinite(f) and f < 2 ** 30)
    if len(sizes) != n:
        raise ValueError(f"{name}: input and output must have the same number of spatial "
                         f"dimensions, got {spatial} and {sizes}")
    if any(not 0 < s < 2 ** 31 for s in (*sizes, *spatial)):
        raise RuntimeError(f"{name}: input and output sizes should be greater than 0, got "
                           f"{spatial} and {sizes}")
    # The last dim takes longest, as its elements are looked up one by one: it is resampled when the
    # image is smallest.
    larger = [d for d in reversed(range(n)) if sizes[d] > spatial[d]]
    return sizes, factors, [d for d in range(n) if d not in larger] + larger


kept_targets, NUMBERS = lru_cache(256)(target_sizes), {int, float, type(None)}


def target_of(name, spatial, size, scale_factor):
    """`target_sizes`, which takes longer than a small image does, found again for plain numbers."""
    kinds = {type(x) for given in (size, scale_factor)
             for x in (given if type(given) is tuple else (given,))}
    if kinds <= NUMBERS and type(size) is not float:
        return kept_targets(name, spatial, size, scale_factor)
    return target_sizes(name, spatial, size, scale_factor)


def resize_bytes(images, sizes, factors, cubic, align_corners, antialias):
    """Images of bytes in other sizes, rounded after the width and after the height."""
    for d in (1, 0):
        old, new = images.shape[2 + d], sizes[d]
        if old != new:
            wide = resample(images.double(), d - 2, old, new, cubic, align_corners, factors[d],
                            antialias, False, True)
            images = (wide + 0.5).floor().clamp(0, 255).to(uint8)      # halves go up
    return images


def resampled(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The reference of `interpolate`."""
    n = x.ndim - 2
    sizes = size if size is not None else tuple(int(s * scale_factor) for s in x.shape[2:])
    for d in range(n):
        old, new = x.shape[2 + d], sizes[d]
        if mode == "nearest":
            x = x.take([i * old // new for i in range(new)], 2 + d)
        elif align_corners:
            at = np.linspace(0, old - 1, new)
            x = np.apply_along_axis(lambda row: np.interp(at, np.arange(len(row)), row), 2 + d, x)
        else:
            at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
            x = np.apply_along_axis(lambda row: np.interp(at, np.arange(len(row)), row), 2 + d, x)
    return x


@composite(tensors=("input",), public=False, method=False, takes="floating", tolerance="product",
           reference=resampled, rounds_once=False,
           samples=given(((1, 2, 3), (5,)), ((1, 1, 2, 3), (4, 2), None, "bilinear", True),
                         ((1, 1, 2, 3), None, 2, "bilinear", False)),
           errors=refusals((ValueError, (1, 1, 3)), (ValueError, (1, 1, 3), 2, 2.0),
                           (RuntimeError, (1, 1, 3), 0), (NotImplementedError, (1, 1, 3), 2, None,
                                                          "bilinear"),
                           (ValueError, (1, 1, 3), 2, None, "nearest", True)))
def interpolate(input: Tensor, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    """Sequences, images or volumes brought to another size, or made larger by a factor.

    mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
    align_corners: the first and the last elements stay where they are. antialias: what is made
    smaller is averaged over as many elements as one of the result covers, of images alone.
    Images of bytes (uint8) are rounded to bytes along the width, then along the height; other
    tensors of bytes take the two modes of nearest elements alone.
    Shapes: (B, C, *) -> (B, C, *size).
    Raises: ValueError for a size and a factor or neither and for an `antialias` of other modes,
    NotImplementedError for a mode that does not fit to the dims, RuntimeError.
    """
    n = input.ndim - 2
    if input.dtype is not uint8 or mode not in (NEAREST if n != 2 else (*NEAREST, *OF_IMAGES)):
        require_floating("interpolate", input)
    if n not in (1, 2, 3):
        raise NotImplementedError("interpolate: expects 3 to 5 dims, got shape "
                                  f"{tuple(input.shape)}")
    if antialias and (n != 2 or mode not in OF_IMAGES):
        raise ValueError("interpolate: antialias is for images and the modes 'bilinear' and "
                         f"'bicubic', got {mode!r} and {input.ndim} dims")
    by_nearest = mode in NEAREST
    if (by_nearest or mode == "area") and align_corners is not None:
        raise ValueError("interpolate: align_corners option can only be set with the interpolating "
                         "modes: linear | bilinear | bicubic | trilinear")
    spatial = tuple(input.shape)[2:]
    sizes, factors, order = target_of("interpolate", spatial, size, scale_factor)
    if recompute_scale_factor:
        factors = (None,) * n
    if mode == "area":
        return adaptive_means("interpolate", n, input, sizes)
    if not by_nearest and (LINEAR.get(mode) or 2 * (
            mode == "bicubic")) != n:
        raise NotImplementedError(f"interpolate: mode {mode!r} does not fit to an input of "
                                  f"{input.ndim} dims")
    if input.dtype is uint8 and mode in OF_IMAGES:
        return resize_bytes(input, sizes, factors, mode == "bicubic", bool(align_corners),
                            bool(antialias))
    dtype = input.dtype
    if input.itemsize == 2 and not by_nearest:
        input = input.float()                        # one rounding at the end
    # With channels last, whole rows are looked up. The layout of a variable of a program is
    # unknown.
    beside = by_nearest and hasattr(input, "stride") and (
        input.stride(1) == 1 and not input.is_contiguous())
    input = input.movedim(1, -1) if beside else input
    for d in order:
        old, new, factor = spatial[d], sizes[d], factors[d]
        if by_nearest:
            if n == 2 and mode == "nearest" and new in (old, 2 * old):
                factor = None                        # PyTorch takes none there, of images alone
            find = kept_nearest if new <= KEPT else nearest
            places = find(old, new, factor, mode == "nearest-exact")
            input = input.index_select(d + (1 if beside else 2), from_numpy(places))
        else:
            input = resample(input, d - n, old, new, mode == "bicubic", bool(align_corners),
                             factor, bool(antialias), False)
    return input.movedim(-1, 1) if beside else input.to(dtype)


@offered
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate`, by its old name."""
    warn_of("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` "
            "instead.", level=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


@offered
def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` by the nearest element, under an old name. Warns that it is deprecated."""
    warn_of("`nn.functional.upsample_nearest` is deprecated. Use "
            "`nn.functional.interpolate` instead.", level=2)
    return interpolate(input, size, scale_factor, mode="nearest")


@offered
def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` of images with `align_corners`, under an old name. Warns so."""
    warn_of("`nn.functional.upsample_bilinear` is deprecated. Use "
            "`nn.functional.interpolate` instead.", level=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- images sampled at points --------------------------------------------------------------------

def coordinates(size, align_corners):
    """The coordinates of the middles of elements, from -1 to 1."""
    at = linspace(-1, 1, size) if size > 1 else arange(1.0) * 0
    return at if align_corners else at * ((size - 1) / size)


def points(size):
    """For the reference: the places of the elements of images, and a 1 for each."""
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in size[:1:-1]))
    return np.stack([*axes, np.ones(size[2:])], -1)


@composite(tensors=("theta",), public=False, method=False, takes="floating", tolerance="product",
           reference=lambda t, size, align: np.einsum("bij,hwj->bhwi", t, points(size)),
           samples=given(((1, 2, 3), (1, 1, 2, 3), True)),
           errors=refusals((ValueError, (1, 2, 2), (1, 1, 2, 2)),
                           (RuntimeError, (1, 2, 3), (1, 2))))
def affine_grid(theta: Tensor, size, align_corners=False):
    """The places that affine maps give to the elements of images, for `grid_sample`.

    Shapes: (B, 2, 3), (B, C, H, W) -> (B, H, W, 2); (B, 3, 4), (B, C, D, H, W) -> (B, D, H, W, 3).
    Raises: ValueError for maps of another shape, RuntimeError.
    """
    require_floating("affine_grid", theta)
    sizes = tuple(map(as_int, size))
    n = len(sizes) - 2
    if n not in (2, 3) or any(s < 1 for s in sizes):
        raise RuntimeError(f"affine_grid: expects 4 or 5 positive sizes, got {sizes}")
    if tuple(theta.shape) != (sizes[0], n, n + 1):
        raise ValueError(f"affine_grid: expected a batch of affine matrices of shape "
                         f"{(sizes[0], n, n + 1)}, got {tuple(theta.shape)}")
    axes = [coordinates(s, align_corners).to(theta.dtype) for s in sizes[2:]]
    grid = [axis.reshape([-1 if d == e else 1 for e in range(n)]).expand(sizes[2:])
            for d, axis in enumerate(axes)]
    points = stack([*reversed(grid), axes[0].new_ones(sizes[2:])], -1).reshape(-1, n + 1)
    return (points @ theta.mT).reshape((sizes[0], *sizes[2:], n))


@composite(tensors=("input", "grid"), public=False, method=False, takes="floating",
           tolerance="product", reference=bilinear_reference,
           samples=lambda rng: [((rng.uniform(-2, 2, (1, 2, 2, 3)), np.array(
               [[[[-0.13, 0.21], [0.41, -0.32]]]])), {})],
           errors=refusals((RuntimeError, (1, 1, 2, 2), np.ones((1, 2, 2, 3))),
                           (RuntimeError, (1, 1, 2, 2), np.ones((2, 2, 2, 2))),
                           (ValueError, (1, 1, 2, 2), np.ones((1, 2, 2, 2)), "lines")),
           rounds_once=False)
def grid_sample(input: Tensor, grid: Tensor, mode="bilinear", padding_mode="zeros",
                align_corners=None):
    """Images sampled at points given as coordinates from -1 to 1, the last dim first.

    mode: "bilinear", "nearest" or, of images, "bicubic". padding_mode: "zeros", "border" or
    "reflection", what lies outside.
    Shapes: (B, C, H, W), (B, *, *, 2) -> (B, C, *, *); with a dim more, too.
    Raises: ValueError for another mode, RuntimeError for sizes.
    Source: Jaderberg et al., "Spatial Transformer Networks", NIPS 2015.
    """
    require_floating("grid_sample", input)
    if mode not in ("bilinear", "nearest", "bicubic") or (
            padding_mode not in ("zeros", "border", "reflection")):
        raise ValueError(f"grid_sample: got mode {mode!r} and padding_mode {padding_mode!r}")
    sizes, of_grid = input.shape, grid.shape
    n = len(sizes) - 2
    if n not in (2, 3) or len(of_grid) != n + 2 or of_grid[-1] != n or (
            of_grid[0] != sizes[0] or 0 in sizes[2:]):
        raise RuntimeError(f"grid_sample: a grid of shape {tuple(of_grid)} does not fit to an "
                           f"input of shape {tuple(sizes)}")
    if mode == "bicubic":
        if n != 2:
            raise RuntimeError(f"grid_sample: bicubic is for images, got {input.ndim} dims")
        wide = input.float() if input.itemsize == 2 else input      # one rounding at the end
        places = grid.float() if grid.itemsize == 2 else grid
        rule = look_cubic if wide.dtype == places.dtype else cubic_formula
        return rule(wide, places, padding_mode, bool(align_corners)).to(input.dtype)
    if n == 2 and sizes[2] * sizes[3] < 2 ** 29 and input.dtype == grid.dtype:
        return look(input, grid, padding_mode, mode == "nearest", bool(align_corners))
    return look_formula(input, grid, padding_mode, mode == "nearest", bool(align_corners))
