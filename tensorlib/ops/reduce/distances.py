"""Distances between tensors and between their rows, and rows scaled to a largest norm."""

import numpy as np

from tensorlib._core.base.shape import wrap
from tensorlib._core.create.creation import plain_number
from tensorlib._core.create.ranges import triangle_places
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, elementwise
from tensorlib.ops.late import declared
from tensorlib.ops.products.matmul import matmul
from tensorlib.ops.reduce.variance import norm
from tensorlib.ops.samples import given, given_pairs, reals, refusals
from tensorlib.ops.shape.joining import cat

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


PIECE = 1 << 16          # elements of differences at a time, which stay in the cache
FEW = 25                 # rows up to which distances are taken by differences
MODES = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
         "donot_use_mm_for_euclid_dist")


def between(x, y, p=2.0, mode=None):
    """The reference of `cdist`."""
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


@composite(method=False, takes="floating", tolerance="product", reference=between,
           samples=given_pairs(((3, 2), (2, 2)), ((2, 3, 2), (2, 2), 1.0), ((2, 3), (1, 3), inf),
                               ((2, 3), (3, 3), 3.0),
                               ((3, 2), (2, 2), 2.0, "use_mm_for_euclid_dist"), ((0, 2), (3, 2))),
           errors=refusals((RuntimeError, (2, 3), np.ones((2, 2))),
                           (RuntimeError, (3,), np.ones(3)),
                           (RuntimeError, (2, 2), np.ones((2, 2)), -1.0),
                           (RuntimeError, (2, 2), np.ones((2, 2)), 2.0, "no")))
def cdist(x1: Tensor, x2: Tensor, p=2.0, compute_mode=None):
    """The p-norm of the difference of each row of one matrix with each row of another.

    compute_mode: whether a p of 2 is computed by a product of matrices, which is faster and less
    exact: by default for more than 25 rows; "use_mm_for_euclid_dist" for always and
    "donot_use_mm_for_euclid_dist" for never.

    Shapes: (*, P, M), (*, R, M) -> (*, P, R), with * broadcast.
    Gradient: as `norm`.
    Raises: RuntimeError for shapes that do not fit, integers, a negative p and other modes.

    >>> tensorlib.cdist(tensorlib.tensor([[0., 0.]]), tensorlib.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    for x in (x1, x2):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist: takes floating-point dtypes, got {x.dtype}")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError("cdist: expected tensors of at least 2 dims, and of the same last size, "
                           f"got shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    p = plain_number("cdist", "p", p)
    if not p >= 0:
        raise RuntimeError(f"cdist: p must be 0 or more, got {p}")
    if compute_mode not in MODES:
        raise RuntimeError(f"cdist: compute_mode must be one of {MODES}, got {compute_mode!r}")
    many = x1.shape[-2] > FEW or x2.shape[-2] > FEW
    if p == 2 and (compute_mode == MODES[2] or many and compute_mode != MODES[3]):
        return euclidean(x1, x2)
    count = max(1, PIECE // max(1, x2.shape[-2] * x2.shape[-1]))
    others = x2.unsqueeze(-3)
    found = [sizes_of(x1.narrow(-2, i, min(count, x1.shape[-2] - i)).unsqueeze(-2) - others, p)
             for i in range(0, max(1, x1.shape[-2]), count)]
    return cat(found, -2) if len(found) > 1 else found[0]


def sizes_of(away, p):
    """The p-norms of differences."""
    return norm(away, p, -1) if away.shape[-1] else away.sum(-1)


@composite(method=False, takes="floating", tolerance="reduction",
           reference=lambda x, p=2.0: between(x, x, p)[np.triu_indices(len(x), 1)],
           samples=given(((4, 3),), ((3, 2), 1.0), ((4, 2), inf), ((3, 3), 3.0), ((1, 2),),
                         ((0, 2),)),
           errors=refusals((RuntimeError, (2, 3, 2)), (RuntimeError, (3,)),
                           (RuntimeError, (2, 2), -1.0)))
def pdist(input: Tensor, p=2.0):
    """The p-norm of the difference of each two rows of a matrix.

    They are those of `cdist` above its diagonal.

    Shapes: (N, M) -> (N * (N - 1) / 2).
    Gradient: as `norm`. Raises: RuntimeError for no matrix, integers and a negative p.

    >>> tensorlib.pdist(tensorlib.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2 or not input.is_floating_point():
        raise RuntimeError("pdist: takes a matrix of a floating-point dtype, got shape "
                           f"{tuple(input.shape)} of {input.dtype}")
    p = plain_number("pdist", "p", p)
    if not p >= 0:
        raise RuntimeError(f"pdist: p must be 0 or more, got {p}")
    count = input.shape[0]
    places = triangle_places("pdist", count, count, 1, True)
    tell("made", places)                     # a constant for what captures it
    first, second = places
    count = max(1, PIECE // max(1, input.shape[1]))
    if first.shape[0] <= count:
        return sizes_of(input[first] - input[second], p)
    return cat([sizes_of(input[i] - input[j], p)
                for i, j in zip(first.split(count), second.split(count))])


@elementwise(kernel="root_of_positive", reference=lambda x: np.sqrt(np.where(x < 0, 0, x)),
             samples=reals(0.1, 3), edges=(1.0, 2.5, inf, float("nan"), -2.5), takes="floating",
             public=False, method=False)
def root_of_positive(input):
    """The square root of each element, and 0 of what rounding made negative."""


@root_of_positive.deriv
def root_of_positive_deriv(out):
    """0 at 0: rows that are equal stay so."""
    return (0.5 / out).where(out != 0, 0.0)


def euclidean(x, y):
    """Distances by one product, whose last two columns add the squares of the rows."""
    of_x, of_y = (row.square().sum(-1, True) for row in (x, y))
    left = cat([x * -2, of_x, of_x.new_ones(of_x.shape)], -1)
    return root_of_positive(matmul(left, cat([y, of_y.new_ones(of_y.shape), of_y], -1).mT))


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
    p, maxnorm = (plain_number("renorm", name, x) for name, x in (("p", p), ("maxnorm", maxnorm)))
    if not p > 0 or not maxnorm >= 0:
        raise RuntimeError(f"renorm: p must be positive and maxnorm 0 or more, got {p} and "
                           f"{maxnorm}")
    x = input.clone()                    # `renorm_` writes over `input` itself
    sizes = norm(x, p, tuple(d for d in range(x.ndim) if d != dim), True)
    return x * (maxnorm / (sizes + 1e-7)).where(sizes > maxnorm, 1)


declared(__name__)
