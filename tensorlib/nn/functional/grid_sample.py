"""`grid_sample`: images interpolated at points, by a kernel and by the formula it replaces."""

import numpy as np

from tensorlib import where
from tensorlib._core.layers import cubic_sample
from tensorlib._core.layers import grid_sample as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, gradients_of, stands_for
from tensorlib.ops.declare import op
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import given, with_gradients

# ---- the formula ---------------------------------------------------------------------------------

def mirrored(x, low, high):
    """Positions reflected into [low, high]."""
    span = high - low
    if span == 0:
        return x * 0
    away = (x - low).abs()
    turns = (away / span).floor().detach()
    rest = away - turns * span
    return where(turns % 2 == 0, rest + low, high - rest)


def unbounded(x, size, align_corners):
    """Coordinates in [-1, 1] as pixel positions in a dim, or outside of it."""
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def places_of(x, size, padding_mode, align_corners):
    """Coordinates in [-1, 1] as pixel positions in a dim."""
    return within(unbounded(x, size, align_corners), size, padding_mode, align_corners)


def within(at, size, padding_mode, align_corners):
    """Positions brought into a dim by the padding mode."""
    if padding_mode == "reflection":
        bounds = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        at = mirrored(at, *bounds)
    if padding_mode != "zeros":
        at = where(at > 0, where(at < size - 1, at, size - 1.0), 0.0)
    return at


def looked_up(input, corner):
    """The pixels at integer positions (B, *, n), 0 outside."""
    inside, flat = None, 0
    spatial = tuple(input.shape)[2:]
    for at, size in zip(corner, spatial):
        known = (at >= 0) & (at < size)
        inside = known if inside is None else inside & known
        flat = flat * size + where(known, at, 0.0)
    flat = flat.long()
    batch, channels = input.shape[:2]
    found = input.flatten(2).gather(2, flat.flatten(1).unsqueeze(1).expand(batch, channels, -1))
    found = found.reshape((batch, channels, *flat.shape[1:]))
    return where(inside.unsqueeze(1), found, 0)


def look_formula(input, grid, padding, nearest, align):
    """`grid_sample` composed of operations, for images and volumes."""
    n = input.ndim - 2
    places = [places_of(grid.select(-1, n - 1 - d), size, padding, align)
              for d, size in enumerate(tuple(input.shape)[2:])]
    if nearest:
        return looked_up(input, [at.detach().round() for at in places])
    total = 0
    floors = [at.detach().floor() for at in places]
    for corner in np.ndindex(*(2,) * n):
        at = [low + k for low, k in zip(floors, corner)]
        weight = 1
        for place, one, k in zip(places, at, corner):      # a slope there is at the corner itself
            weight = weight * (1 - (one - place if k else place - one))
        total = total + looked_up(input, at) * weight.unsqueeze(1)
    return total


def cubic_near(d, a):
    """The kernel of cubic convolution at distances up to 1."""
    return ((a + 2) * d - (a + 3)) * d * d + 1


def cubic_far(d, a):
    """The kernel of cubic convolution at distances from 1 to 2."""
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def cubic_formula(input, grid, padding, align, a=-0.75):
    """`grid_sample` of images by cubic convolution: each neighbour is padded by itself."""
    neighbours = []
    for d, size in enumerate(tuple(input.shape)[2:]):
        at = unbounded(grid.select(-1, 1 - d), size, align)
        low = at.detach().floor()
        t = at - low
        weights = (cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a),
                   cubic_far(2 - t, a))
        neighbours.append([(within(low + k, size, padding, align), weight)
                           for k, weight in zip(range(-1, 3), weights)])
    total = 0
    for row, row_weight in neighbours[0]:
        for column, weight in neighbours[1]:
            total = total + looked_up(input, [row, column]) * (row_weight * weight).unsqueeze(1)
    return total


# ---- the references ------------------------------------------------------------------------------

def bilinear_reference(x, grid, *options):
    """The reference of `grid_sample`, for places inside."""
    h, w = x.shape[2:]
    found = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        col, row = (grid[b, i, j] + 1) * (w, h) / 2 - 0.5
        r, c = int(np.floor(row)), int(np.floor(col))
        for y in (r, r + 1):
            for z in (c, c + 1):
                if 0 <= y < h and 0 <= z < w:
                    found[b, :, i, j] += x[b, :, y, z] * (1 - abs(row - y)) * (1 - abs(col - z))
    return found


def cubic_reference(x, grid, *options):
    """The reference of `look_cubic`, for places inside; outside are zeros."""
    h, w = x.shape[2:]
    found = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        col, row = (grid[b, i, j] + 1) * (w, h) / 2 - 0.5
        for y in range(max(0, int(row) - 2), min(h, int(row) + 4)):
            for z in range(max(0, int(col) - 2), min(w, int(col) + 4)):
                weight = 1
                for d in (abs(row - y), abs(col - z)):
                    weight *= cubic_near(d, -0.75) if d < 1 else cubic_far(d, -0.75) * (d < 2)
                found[b, :, i, j] += x[b, :, y, z] * weight
    return found


GRID = np.array([[[[-0.13, 0.21], [0.41, -0.32]]]])             # positions between pixels
LOOKS = given(((1, 2, 2, 3), GRID, "zeros", False, False),
              ((1, 2, 2, 3), GRID, "border", False, False))
CUBIC_LOOKS = given(((1, 2, 2, 3), GRID, "zeros", False))


# ---- the operations ------------------------------------------------------------------------------

@stands_for(gradients_of(look_formula, 2))
@op(public=False, method=False, takes="floating", tolerance="product", differentiable=False,
    outputs=("g_input", "g_grid"), reference=gradients(bilinear_reference, 2),
    samples=with_gradients(LOOKS, bilinear_reference), kernel=kernels.look_back)
def look_back(grad: Tensor, input: Tensor, grid: Tensor, padding, nearest, align):
    """The gradients of `look` for images and positions, by one kernel."""


@differentiated_by(look_formula, look_back)
@op(public=False, method=False, takes="floating", tolerance="product",
    reference=bilinear_reference, samples=LOOKS, kernel=kernels.look)
def look(input: Tensor, grid: Tensor, padding, nearest, align):
    """Images interpolated at positions: see `grid_sample`.

    Shapes: (B, C, H, W), (B, h, w, 2) -> (B, C, h, w). Raises: RuntimeError for sizes.
    """


@stands_for(gradients_of(cubic_formula, 2))
@op(public=False, method=False, takes="floating", tolerance="product", differentiable=False,
    outputs=("g_input", "g_grid"), reference=gradients(cubic_reference, 2),
    samples=with_gradients(CUBIC_LOOKS, cubic_reference), kernel=cubic_sample.look_cubic_back)
def look_cubic_back(grad: Tensor, input: Tensor, grid: Tensor, padding, align):
    """The gradients of `look_cubic` for images and positions."""


@differentiated_by(cubic_formula, look_cubic_back)
@op(public=False, method=False, takes="floating", tolerance="product",
    reference=cubic_reference, samples=CUBIC_LOOKS, kernel=cubic_sample.look_cubic)
def look_cubic(input: Tensor, grid: Tensor, padding, align):
    """Images interpolated at positions by cubic convolution: see `grid_sample`.

    Shapes: (B, C, H, W), (B, h, w, 2) -> (B, C, h, w). Raises: RuntimeError for sizes.
    """
