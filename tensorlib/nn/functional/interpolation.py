"""Resampling along one dim, as `interpolate` does dim by dim: sums of neighbours with weights."""

from functools import lru_cache

import numpy as np

from tensorlib import from_numpy
from tensorlib._core.layers import resample as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.grid_sample import cubic_far, cubic_near
from tensorlib.ops.adjoints import turned_by_back
from tensorlib.ops.declare import op
from tensorlib.ops.references import adjoint
from tensorlib.ops.samples import given

KEPT = 2 ** 16          # elements: the taps of dims up to this size are cached

# ---- taps: for each neighbour of each element where it is, and its weight ------------------------

def sources(size, count, scale, align_corners, cubic=False):
    """The position in a dim of `size` of each of `count` elements."""
    i = np.arange(count, dtype=float)
    if align_corners:
        return i * ((size - 1) / (count - 1) if count > 1 else 0.0)
    at = (i + 0.5) * (1 / scale if scale else size / count) - 0.5
    return at if cubic else np.maximum(at, 0.0)


def linear_taps(size, count, scale, align_corners):
    """Pairs of places and weights (count,) of linear interpolation."""
    at = sources(size, count, scale, align_corners)
    low = np.minimum(at.astype(int), size - 1)
    part = np.clip(at - low, 0, 1)
    return [(low, 1 - part), (np.minimum(low + 1, size - 1), part)]


def cubic_taps(size, count, scale, align_corners):
    """Pairs of places and weights (count,) of cubic convolution, with -0.75."""
    at = sources(size, count, scale, align_corners, cubic=True)
    low = np.floor(at).astype(int)
    return [(np.clip(low + k, 0, size - 1), cubic_weight(np.abs(at - low - k)))
            for k in range(-1, 3)]


def cubic_weight(d, a=-0.75):
    """The kernel of cubic convolution at a distance."""
    return np.where(d <= 1, cubic_near(d, a), np.where(d < 2, cubic_far(d, a), 0.0))


def wide_taps(size, count, scale, align_corners, cubic):
    """As `linear_taps` and `cubic_taps`, of kernels as wide as an element of a smaller result is.

    So no element of the input is left out. The cubic kernel is that of -0.5, as in Pillow.
    """
    reach, kernel = (2, lambda d: cubic_weight(d, -0.5)) if cubic else (
        1, lambda d: np.maximum(1 - d, 0.0))
    if align_corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale else size / count
    width = max(step, 1.0)
    middle = step * (np.arange(count) + 0.5)
    first = np.maximum((middle - reach * width + 0.5).astype(int), 0)
    last = np.minimum((middle + reach * width + 0.5).astype(int), size)
    places = first + np.arange((last - first).max()).reshape(-1, 1)
    weights = np.where(places < last, kernel(np.abs(places - middle + 0.5) / width), 0.0)
    total = weights.sum(0)
    weights /= np.where(total == 0, 1.0, total)
    return [*zip(np.minimum(places, size - 1), weights)]


def rounded_taps(taps):
    """The taps with weights that are integers over one power of two, as PyTorch has for bytes.

    The power is the largest one with which those integers have 15 bits.
    """
    weights = np.stack([weight for _, weight in taps])
    bits = max(bits for bits in range(23) if weights.max() * 2 ** bits < 2 ** 15 - 0.5)
    whole = np.trunc(weights * 2 ** bits + np.copysign(0.5, weights))
    return [(place, weight / 2 ** bits) for (place, _), weight in zip(taps, whole)]


def taps_of(size, count, cubic, align_corners, scale=None, antialias=False, of_bytes=False):
    """The taps of a resampling to `count` elements: places and weights (count,) for each."""
    if antialias:
        taps = wide_taps(size, count, scale, align_corners, cubic)
    else:
        taps = (cubic_taps if cubic else linear_taps)(size, count, scale, align_corners)
    return rounded_taps(taps) if of_bytes else taps


def grouped_taps(size, count, cubic, align_corners, scale, antialias, back, of_bytes):
    """The taps one element after the other, with where those of each begin; with `back` grouped by
    the elements that they were taken from."""
    taps = taps_of(size, count, cubic, align_corners, scale, antialias, of_bytes)
    places = np.stack([place for place, _ in taps], 1).reshape(-1)
    weights = np.stack([weight for _, weight in taps], 1).reshape(-1)
    if not back:
        first = np.arange(count + 1) * len(taps)
    else:
        first = np.concatenate([[0], np.bincount(places, minlength=size).cumsum()])
        order = places.argsort(kind="stable")
        places, weights = order // len(taps), weights[order]
    return tuple(from_numpy(np.ascontiguousarray(x, dtype)) for x, dtype in (
        (first, np.int64), (places, np.int64), (weights, np.float64)))


kept_taps = lru_cache(64)(grouped_taps)


# ---- the operation -------------------------------------------------------------------------------

def resample_reference(x, dim, size, count, cubic, align_corners, scale, antialias, back,
                       of_bytes=False):
    """The reference of `resample`, linear and between the middles or the ends of a dim."""
    def forward(x):
        at = np.linspace(0, size - 1, count) if align_corners else np.clip(
            (np.arange(count) + 0.5) * size / count - 0.5, 0, size - 1)
        return np.apply_along_axis(lambda row: np.interp(at, np.arange(size), row), dim, x)
    if not back:
        return forward(x)
    shape = list(x.shape)
    shape[dim] = size
    return adjoint(forward, shape, x)


@turned_by_back
@op(public=False, method=False, linear=True, takes="floating", tolerance="reduction",
    reference=resample_reference,
    samples=given(((2, 3, 2), -2, 3, 5, False, False, None, False, False),
                  ((2, 3), -1, 3, 4, False, True, None, False, False),
                  ((1, 4, 2), -2, 5, 4, False, False, None, False, True)))
def resample(input: Tensor, dim, size, count, cubic, align_corners, scale, antialias, back,
             of_bytes=False):
    """A dim of `size` elements brought to `count`; with `back` its adjoint, from `count`.

    dim: counted from the last one, below 0. of_bytes: weights are rounded as for images of bytes.
    The other attributes are those of `interpolate`.
    """
    make = kept_taps if max(size, count) <= KEPT else grouped_taps
    taps = make(size, count, cubic, align_corners, scale, antialias, back, of_bytes)
    return kernels.resample(input, dim, size if back else count, *taps)


resample.taps = taps_of      # for other forms of the operation, such as ONNX's
