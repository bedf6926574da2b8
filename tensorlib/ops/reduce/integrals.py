"""Differences of neighbours, and integrals and derivatives of sampled functions."""

import numpy as np

from tensorlib._core.base.dtypes import has_gradients, promote_types
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import wrap
from tensorlib._core.create.creation import plain_number
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer, refuse_bools, require_dims
from tensorlib.ops.declare import alias, composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import FUNCTIONS
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.shape.joining import cat, narrow


# ---- differences ---------------------------------------------------------------------------------

def differences(x, n=1, dim=-1):
    """The reference of `diff`."""
    return np.diff(x, n, dim)


@composite(tensors=("input",), out=True, reference=differences,
           samples=given(((5,),), ((2, 4), 2), ((3, 2), 1, 0), ((2, 3), 0), ((3,), 5), ((0, 2), 1)),
           errors=refusals((RuntimeError, ()), (IndexError, (3,), 1, 1), (RuntimeError, (3,), -1),
                           (TypeError, (3,), float("inf"))), complex=True)
def diff(input: Tensor, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along a dim, taken `n` times; of bools where neighbours differ.

    prepend, append: tensors to join before and after `input` first, unless `n` is 0.

    Shapes: (*, N, *) -> (*, N - n, *), at least 0.
    Raises: RuntimeError for a tensor without dims or a negative `n`, IndexError, TypeError.

    >>> tensorlib.tensor([1, 4, 9, 16]).diff()
    tensor([3, 5, 7])
    """
    require_dims("diff", input, 1)
    n = integer("diff", "n", n)
    if n < 0:
        raise RuntimeError(f"diff: n must be 0 or more, got {n}")
    dim = wrap("diff", dim, input.ndim)
    if n == 0:                                   # nothing is joined either, as in PyTorch
        return input.clone()
    parts = [part for part in (prepend, input, append) if part is not None]
    x = input if len(parts) == 1 else cat(parts, dim)
    for _ in range(min(n, x.shape[dim])):
        size = x.shape[dim] - 1
        after, before = narrow(x, dim, 1, size), narrow(x, dim, 0, size)
        x = after != before if x.dtype.name == "bool" else after - before
    return x.clone() if x is input else x        # of an empty dim


# ---- integrals -----------------------------------------------------------------------------------

def areas_between(y, x, dim=-1):
    """Twice the areas of the reference."""
    y, x = np.moveaxis(y, dim, -1), x if x.ndim == 1 else np.moveaxis(x, dim, -1)
    return (x[..., 1:] - x[..., :-1]) * (y[..., 1:] + y[..., :-1])


def sampled(rng):
    """Samples of the trapezoidal rules: values, and positions that ascend."""
    for shape, other in (((3, 4), (4,)), ((2, 3), (2, 3)), ((1,), (1,)), ((5,), (5,))):
        yield (rng.uniform(0, 2, shape), np.sort(rng.uniform(0, 3, other))), {}


BAD_TRAPEZOIDS = refusals((RuntimeError, (3,), np.ones(2)), (IndexError, ()))


def trapezoids(name, y, x, dx, dim):
    """Twice the areas between neighbours along a dim, and the dim.

    Raises: RuntimeError, IndexError, TypeError.
    """
    refuse_bools(name, y, RuntimeError)
    if y.ndim == 0:
        raise IndexError(f"{name}: dim {dim} of a tensor that has no dims")
    dim = wrap(name, dim, y.ndim)
    heights = after(y, dim) + before(y, dim)
    if x is None:
        return heights * plain_number(name, "dx", 1 if dx is None else dx), dim
    if dx is not None:
        raise TypeError(f"{name}: takes x or dx, not both")
    if not is_tensor(x):
        raise TypeError(f"{name}: x must be a Tensor, got {type_name(x)}")
    refuse_bools(name, x, RuntimeError)
    if x.ndim <= 1:
        if x.numel() != y.shape[dim]:
            raise RuntimeError(f"{name}: there must be one x value for each sample point, got "
                               f"{x.numel()} for {y.shape[dim]}")
        sizes = [1] * y.ndim
        sizes[dim] = y.shape[dim]
        x = x.reshape(sizes)
    while x.ndim < y.ndim:
        x = x.unsqueeze(0)
    return (after(x, dim) - before(x, dim)) * heights, dim


def after(x, dim):
    """All slices along a dim but the first."""
    return x.narrow(dim, min(x.shape[dim], 1), max(x.shape[dim] - 1, 0))


def before(x, dim):
    """All slices along a dim but the last."""
    return x.narrow(dim, 0, max(x.shape[dim] - 1, 0))


@composite(tensors=("y", "x"), method=False, takes="integer floating", tolerance="reduction",
           reference=lambda y, x: areas_between(y, x).sum(-1) / 2,
           samples=sampled, errors=BAD_TRAPEZOIDS, complex=True)
def trapezoid(y: Tensor, x=None, *, dx=None, dim=-1):
    """The integral along `dim` of a function with the values `y`, by the trapezoidal rule.

    x: the positions of the samples, a vector or a tensor that broadcasts to `y`; without it they
    are `dx` apart, by default 1.
    Shapes: (*, N, *), (N,) -> (*, *). Raises: RuntimeError for another number of positions and for
    bools, IndexError, TypeError.

    >>> tensorlib.trapezoid(tensorlib.tensor([1., 2., 4.]))
    tensor(4.5000)
    """
    if x is None and y.ndim and y.shape[place := wrap("trapezoid", dim, y.ndim)] > 1:
        refuse_bools("trapezoid", y, RuntimeError)
        ends = y.select(place, 0) + y.select(place, -1)      # which count once, all others twice
        dx = plain_number("trapezoid", "dx", 1 if dx is None else dx)
        return (y.sum(place) * 2 - ends) * (dx / 2)
    areas, dim = trapezoids("trapezoid", y, x, dx, dim)
    return areas.sum(dim) / 2


alias("trapz", trapezoid, method=False)


@composite(tensors=("y", "x"), method=False, takes="integer floating", tolerance="reduction",
           reference=lambda y, x: areas_between(y, x).cumsum(-1) / 2,
           samples=sampled, errors=BAD_TRAPEZOIDS, complex=True)
def cumulative_trapezoid(y: Tensor, x=None, *, dx=None, dim=-1):
    """The integrals up to each sample but the first, as `trapezoid`.

    Shapes: (*, N, *), (N,) -> (*, N - 1, *). Raises: as `trapezoid`.

    >>> tensorlib.cumulative_trapezoid(tensorlib.tensor([1., 2., 4.]))
    tensor([1.5000, 4.5000])
    """
    areas, dim = trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(dim) / 2


# ---- derivatives ---------------------------------------------------------------------------------

def slopes(x, spacing=1, dim=None, edge_order=1):
    """The reference of `gradient`."""
    x = x if x.dtype.kind in "fc" else x.astype(float)
    steps = spacing if isinstance(spacing, (list, tuple)) else [spacing]
    found = np.gradient(x, *steps, axis=dim, edge_order=edge_order)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


@composite(tensors=("input",), method=False, takes="integer floating", tolerance="reduction",
           reference=slopes,
           samples=lambda rng: ((args, options) for (shape, options) in (
               ((5,), {}), ((3, 4), {"spacing": 2.0}), ((3, 4), {"dim": 1, "edge_order": 2}),
               ((3, 3), {"spacing": [0.5, 2.0]})) for args in [(rng.uniform(-2, 2, shape),)]),
           errors=refusals((RuntimeError, (1,)), (RuntimeError, (3,), [1.0, 2.0])), complex=True)
def gradient(input: Tensor, spacing=1, dim=None, edge_order=1):
    """The derivatives along each dim of a function with the values `input`: a tuple.

    spacing: the distance of samples, one for each dim, or vectors of the positions of samples,
    which take part in the promotion of dtypes. dim: an int or several, by default all. edge_order:
    1 or 2, the order of the estimates at both ends.
    Shapes: (*) -> (*) for each dim. Raises: RuntimeError for a dim of less than edge_order + 1
    elements and for another number of spacings than dims, IndexError, TypeError.

    >>> tensorlib.gradient(tensorlib.tensor([1., 2., 4., 8.]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    refuse_bools("gradient", input, RuntimeError)
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    dims = range(input.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = [wrap("gradient", d, input.ndim) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient: a dim appears multiple times in {dims}")
    if isinstance(spacing, Tensor) and spacing.ndim == 0:
        spacing = plain_number("gradient", "spacing", spacing)
    elif isinstance(spacing, Tensor):
        raise TypeError("gradient: spacing must be a number or a sequence, got a Tensor")
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError("gradient: expected spacing to be a number or one for each of "
                           f"{len(dims)} dims, got {len(steps)}")
    return tuple(slope_along(input, d, step, edge_order) for d, step in zip(dims, steps))


def slope_along(x, dim, step, edge_order):
    """The derivative along one dim. Raises: RuntimeError, TypeError."""
    n = x.shape[dim]
    if n < edge_order + 1:
        raise RuntimeError("gradient: expected each dimension size to be at least edge_order + 1, "
                           f"got {n} along dim {dim}")
    placed = isinstance(step, Tensor) and step.ndim
    kind = promote_types(x.dtype, step.dtype) if placed else x.dtype
    x = x.to(kind if has_gradients(kind) else FUNCTIONS["ones"](()).dtype)
    between, even = after(x, dim) - before(x, dim), None
    if placed:
        if step.numel() != n:
            raise RuntimeError(f"gradient: expected {n} positions along dim {dim}, got "
                               f"{step.numel()}")
        sizes = [1] * x.ndim
        sizes[dim] = n - 1
        widths = step.to(x.dtype).reshape(-1).diff().reshape(sizes)
    else:
        step = step.item() if isinstance(step, Tensor) else step
        step = plain_number("gradient", "spacing", step)
        widths = x.new_full([n - 1 if d == dim else 1 for d in range(x.ndim)], step)
        even = 2 * step
    slopes_between = between / widths

    def at(values, place):
        return values.narrow(dim, place % (n - 1), 1)
    inner = []
    if n > 2 and even is not None:                # the element in the middle plays no part
        inner = [(x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / even]
    elif n > 2:
        left, right = before(widths, dim), after(widths, dim)
        inner = [(before(slopes_between, dim) * right + after(slopes_between, dim) * left)
                 / (left + right)]
    ends = [at(slopes_between, 0), at(slopes_between, -1)]
    if edge_order == 2:
        for k, (near, next_) in enumerate(((0, 1), (-1, -2))):
            bend = (at(slopes_between, near) - at(slopes_between, next_)) / (
                at(widths, near) + at(widths, next_))
            ends[k] = ends[k] + bend * at(widths, near)
    return cat([ends[0], *inner, ends[1]], dim)


declared(__name__)
