"""`cdist` and `pdist`: distances between the rows of matrices."""

import numpy as np

from tensorlib import cat, matmul, norm, where, zeros_like
from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.create.creation import plain_number
from tensorlib._core.create.ranges import triangle_places
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.reduce import distances as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.ops.declare import composite, elementwise, op
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import given, given_pairs, reals, refusals, with_gradients

inf = float("inf")

PIECE = 1 << 16          # elements of differences at once, so that they stay in the cache
FEW = 25                 # up to so many rows distances are computed from differences
LOOPED = (1, 2, inf)  # the norms that kernels have loops for
MODES = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
         "donot_use_mm_for_euclid_dist")


# ---- rows of two matrices, by kernels and by the formulas that these replace ---------------------

def between(x, y, p=2.0, mode=None):
    """The reference of `cdist`."""
    return np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def sizes_of(away, p):
    """The p-norms of differences."""
    return norm(away, p, -1) if away.shape[-1] else away.sum(-1)


def rows_formula(x1, x2, p):
    """`row_distances` composed of operations, in pieces; with dims before that broadcast."""
    count = max(1, PIECE // max(1, x2.shape[-2] * x2.shape[-1]))
    others = x2.unsqueeze(-3)
    found = [sizes_of(x1.narrow(-2, i, min(count, x1.shape[-2] - i)).unsqueeze(-2) - others, p)
             for i in range(0, max(1, x1.shape[-2]), count)]
    return cat(found, -2) if len(found) > 1 else found[0]


def slope_of(away, sizes, p):
    """How the p-norms of differences along the last dim change with these."""
    if p == 2:
        return where(sizes != 0, away / sizes, 0)
    if p == 1 or not away.shape[-1]:
        return away.sign()
    top = away.abs() == away.abs().amax(-1, True)
    return away.sign() * top / top.sum(-1, True)


def rows_back(grad, x1, x2, sizes, p):
    """`row_distances_backward` composed of operations."""
    away = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return (grad.unsqueeze(-1) * slope_of(away, sizes.unsqueeze(-1), p)).sum(-2)


SOME_ROWS = given_pairs(*(((2, 3), (3, 3), float(p)) for p in LOOPED), ((2, 1, 2), (2, 34, 2), 1.0))


@stands_for(rows_back)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    reference=lambda g, x, y, out, p: gradients(between)(g, x, y, p),
    samples=with_gradients(SOME_ROWS, between, 2), kernel=kernels.row_distances_backward)
def row_distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, sizes: Tensor, p):
    """The gradient of `row_distances` for the first rows."""


def both_back(grad, x1, x2, out, p):
    """The gradients of `row_distances`: the second is the first of the distances the other way."""
    return (row_distances_backward(grad, x1, x2, out, p),
            row_distances_backward(grad.mT, x2, x1, out.mT, p))


@differentiated_by(rows_formula, both_back)
@op(public=False, method=False, takes="floating", tolerance="reduction", reference=between,
    samples=SOME_ROWS, kernel=kernels.row_distances)
def row_distances(x1: Tensor, x2: Tensor, p):
    """The p-norm of the difference of each row of one matrix with each row of another.

    Shapes: (*, P, M), (*, R, M) -> (*, P, R). Gradient: as `norm`.
    """


# ---- pairs of rows of one matrix -----------------------------------------------------------------

def pairs_of(count):
    """The first and the second row of each pair."""
    places = triangle_places("pdist", count, count, 1, True)
    tell("made", places)                     # a constant for what captures it
    return places


def pairs_formula(input, p):
    """`pair_distances` composed of operations, in pieces."""
    first, second = pairs_of(input.shape[0])
    count = max(1, PIECE // max(1, input.shape[1]))
    if first.shape[0] <= count:
        return sizes_of(input[first] - input[second], p)
    return cat([sizes_of(input[i] - input[j], p)
                for i, j in zip(first.split(count), second.split(count))])


def pairs_back(grad, input, sizes, p):
    """`pair_distances_backward` composed of operations."""
    first, second = pairs_of(input.shape[0])
    each = grad.unsqueeze(-1) * slope_of(input[first] - input[second], sizes.unsqueeze(-1), p)
    return zeros_like(input).index_add(0, first, each).index_add(0, second, -each)


def above(x, p):
    """The reference of `pdist`."""
    return between(x, x, p)[np.triu_indices(len(x), 1)]


SOME_PAIRS = given(*(((4, 3), float(p)) for p in LOOPED), ((34, 1), 1.0))


@stands_for(pairs_back)
@op(public=False, method=False, takes="floating", tolerance="reduction", differentiable=False,
    reference=lambda g, x, out, p: gradients(above)(g, x, p),
    samples=with_gradients(SOME_PAIRS, above, 1), kernel=kernels.pair_distances_backward)
def pair_distances_backward(grad: Tensor, input: Tensor, sizes: Tensor, p):
    """The gradient of `pair_distances`."""


@differentiated_by(pairs_formula, lambda grad, input, out, p: pair_distances_backward(
    grad, input, out, p))
@op(public=False, method=False, takes="floating", tolerance="reduction", reference=above,
    samples=SOME_PAIRS, kernel=kernels.pair_distances)
def pair_distances(input: Tensor, p):
    """The p-norm of the difference of each two rows of a matrix. Gradient: as `norm`."""


# ---- the functions -------------------------------------------------------------------------------

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
            raise UnsupportedDtype(f"cdist: takes floating-point dtypes, got {x.dtype}")
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
    if x1.dtype is not x2.dtype or p not in LOOPED:
        return rows_formula(x1, x2, p)
    if x1.shape[:-2] != x2.shape[:-2]:
        batch = broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2])
        x1, x2 = (x.expand((*batch, *x.shape[-2:])) for x in (x1, x2))
    return row_distances(x1, x2, p)


@composite(method=False, takes="floating", tolerance="reduction",
           reference=lambda x, p=2.0: above(x, p),
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
    return pair_distances(input, p) if p in LOOPED else pairs_formula(input, p)


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
