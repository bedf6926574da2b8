"""The distance between tensors, and rows scaled down to a maximal norm."""

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.create.creation import plain_number
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.reduce.variance import norm
from tensorlib.ops.samples import given, given_pairs, refusals

inf = float("inf")


# ---- distances -----------------------------------------------------------------------------------

@composite(takes="floating", tolerance="reduction",
           reference=lambda x, y, p=2: np.linalg.norm((x - y).reshape(-1), p),
           samples=given_pairs(((3,), (3,)), ((2, 3), (3,), 1), ((2, 1), (3,), 3.5),
                               ((4,), (4,), inf)),
           errors=refusals((RuntimeError, (2, 3), np.ones((3, 2)))), complex=True)
def dist(input, other: Tensor, p=2):
    """The p-norm of the difference of two tensors, which broadcast.

    Gradient: as `norm`. Raises: RuntimeError for shapes that do not broadcast and for integers.
    """
    return norm(input - other, p)


def bounded(x, p, dim, maxnorm):
    """The reference of `renorm`."""
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    sizes = (np.abs(x) ** p).sum(others, keepdims=True) ** (1 / p)
    return x * np.where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1)


@composite(tensors=("input",), out=True, inplace=True, takes="floating", tolerance="reduction",
           reference=bounded,
           samples=given(((3, 4), 2, 0, 2.0), ((2, 3, 2), 1, -1, 1.0), ((2, 2), 3, 1, 100.0)),
           errors=refusals((RuntimeError, (3,), 2, 0, 1.0), (RuntimeError, (2, 2), -1, 0, 1.0),
                           (RuntimeError, (2, 2), 2, 0, -1.0), (IndexError, (2, 2), 2, 2, 1.0)),
                           complex=True)
def renorm(input, p, dim: int, maxnorm: float):
    """`input` with each slice along `dim` made smaller where its p-norm is above maxnorm.

    Shapes: as `input`.
    Raises: RuntimeError for less than two dims, integers, a p that is not positive and a negative
    maxnorm; IndexError.
    """
    if input.ndim < 2:
        raise RuntimeError(f"renorm: expects at least 2 dims, got {input.ndim}")
    dim = wrap("renorm", dim, input.ndim)
    p, maxnorm = plain_number("renorm", "p", p), plain_number("renorm", "maxnorm", maxnorm)
    if not p > 0 or not maxnorm >= 0:
        raise RuntimeError(f"renorm: p must be positive and maxnorm 0 or more, got {p} and "
                           f"{maxnorm}")
    x = input.clone() if input.requires_grad else input      # `renorm_` writes over `input` itself
    sizes = norm(x, p, (*range(dim), *range(dim + 1, input.ndim)), True)
    return (x * (maxnorm / (sizes + 1e-7)).where(sizes > maxnorm, 1)).contiguous()


declared(__name__)
