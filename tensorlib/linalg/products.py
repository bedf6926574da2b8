"""Products of several matrices, powers and exponentials, and products along one dim."""

import math
from functools import lru_cache, reduce
from operator import add

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import broadcast_shapes, wrap
from tensorlib._core.base.storage import check_room
from tensorlib._core.create.ranges import eye
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg.checks import (
    DTYPES, NOT_SQUARE, SQUARES, TAKEN, first, refused_matrices, regular, require_square,
    values_behind,
)
from tensorlib.linalg.inverses import linalg_inv, linalg_solve
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import Tensors, composite
from tensorlib.ops.shape.joining import cat
from tensorlib.ops.pointwise.comparison import with_no_slope
from tensorlib.ops.products.matmul import matmul
from tensorlib.ops.foreign import members
from tensorlib.ops.samples import given_pairs, given_sequences, given_tensors, refused_sequences
from tensorlib.ops.shape.views import diagonal


# ---- powers --------------------------------------------------------------------------------------

def powers(rng):
    """Matrices with exponents."""
    for n in (3, 0, 1, 6, -1, -2):
        yield (np.diag([0.2, 0.4]) + 0.3 * rng.uniform(-1, 1, (2, 2)), n), {}


POWERS = {"dtypes": TAKEN, "complex": True, "tolerance": "product", "samples": powers,
          "reference": lambda x, n: np.linalg.matrix_power(regular(x), n),
          "prepare": first(regular)}
NO_POWERS = refused_matrices((RuntimeError, (2, 3), 2), (RuntimeError, (3,), 2),
                             (TypeError, (2, 2), 1.5))


def power_of(name, A, n):
    """The product of n matrices, by squares; of inverses where n is negative."""
    n = integer(name, "n", n)
    require_square(name, A)
    if n < 0:
        A, n = linalg_inv(A), -n
    if n == 0:
        return identity_like(A)
    result = None
    while n:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        A = A @ A if n else A
    return result.clone() if result is A else result


def identity_like(A):
    """Identity matrices of the shape of A, with a gradient of zero for it."""
    return with_no_slope(eye(A.shape[-1], dtype=A.dtype).expand(A.shape), A)


@composite(public=False, method=False, out=True, errors=NO_POWERS, **POWERS)
def linalg_matrix_power(A: Tensor, n: int):
    """The product of n equal square matrices, of their inverses where n is negative.

    Shapes: (*, N, N) -> (*, N, N).
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64, LinAlgError for singular ones with a negative n, TypeError.
    """
    return power_of("linalg.matrix_power", A, n)


@composite(out=True, errors=NO_POWERS, **POWERS)
def matrix_power(input, n: int):
    """The product of n equal square matrices: see `linalg.matrix_power`."""
    return power_of("matrix_power", input, n)


# ---- exponential ---------------------------------------------------------------------------------

# Norms up to which diagonal approximants of these orders are exact, and so are their derivatives:
# in float64 (Al-Mohy & Higham, "Computing the Frechet derivative of the matrix exponential", SIAM
# J. Matrix Anal. Appl. 30, 2009), and in float32 (four fifths of the norms in Higham, "The scaling
# and squaring method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26, 2005).
DOUBLE = ((3, 0.0108), (5, 0.2), (7, 0.783), (9, 1.78), (13, 4.74))
SINGLE = ((3, 0.34), (5, 1.5), (7, 3.13))


def coefficients(order):
    """Those of the numerator of a diagonal approximant to exp, for whole numbers, lowest first."""
    return [float(math.factorial(2 * order - k) // (math.factorial(order - k) * math.factorial(k)))
            for k in range(order + 1)]


def exponential(name, A):
    """exp of matrices: of a part that is small enough, then squared."""
    require_square(name, A)
    if A.numel() == 0:
        return A.clone()
    if A.shape[-1] == 1:
        return A.exp()
    sums = np.abs(values_behind(A)).sum(-2)
    largest = float(sums[np.isfinite(sums)].max(initial=0))
    orders = SINGLE if A.dtype.name in ("float32", "complex64") else DOUBLE
    for order, norm in orders:
        if largest <= norm:
            return approximant(A, order)
    squarings = math.ceil(math.log2(largest / norm))
    out = approximant(A * 2.0 ** -squarings, order)
    for _ in range(squarings):
        out = out @ out
    return out


def approximant(A, order):
    """The diagonal approximant of this order to exp of matrices."""
    b = coefficients(order)
    powers = [eye(A.shape[-1], dtype=A.dtype), A @ A]          # the even ones
    while len(powers) <= (order // 2 if order < 13 else 3):
        powers.append(powers[-1] @ powers[1])

    def combined(first):
        """Every second term, from the first, without A itself."""
        found = reduce(add, [b[first + 2 * k] * x for k, x in enumerate(powers)])
        if order < 13:
            return found
        return powers[3] @ (b[first + 12] * powers[3] + b[first + 10] * powers[2]
                            + b[first + 8] * powers[1]) + found

    odd, even = A @ combined(1), combined(0)
    return linalg_solve(even - odd, even + odd)


def series(x):
    """The reference of `linalg_matrix_exp`: the power series of a 64th, squared six times."""
    part, out = x / 64, np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    term = out
    for k in range(1, 25):
        term = term @ part / k
        out = out + term
    for _ in range(6):
        out = out @ out
    return out


@composite(public=False, method=False, dtypes=DTYPES, tolerance="product", samples=SQUARES,
           errors=NOT_SQUARE, reference=series, reads_values=True)
def linalg_matrix_exp(A: Tensor):
    """The exponential of square matrices: 1 + A + A @ A / 2 + ...

    Shapes: (*, N, N) -> (*, N, N).
    Raises: RuntimeError for other than square matrices and for dtypes other than float32 and
    float64.
    Source: Higham, "The Scaling and Squaring Method for the Matrix Exponential Revisited", SIAM
    Journal on Matrix Analysis and Applications 26(4), 2005.

    >>> tensorlib.linalg.matrix_exp(tensorlib.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return exponential("linalg.matrix_exp", A)


@composite(dtypes=TAKEN, tolerance="product", samples=SQUARES, errors=NOT_SQUARE, reference=series,
           reads_values=True, complex=True)
def matrix_exp(input):
    """The exponential of square matrices: see `linalg.matrix_exp`."""
    return exponential("matrix_exp", input)


# ---- chains --------------------------------------------------------------------------------------

@lru_cache(maxsize=256)
def multiplications(name, shapes):
    """Which two of a chain of matrices to multiply, one pair after the other, such that it takes
    the fewest multiplications; the product is in the place of the first one. Raises: RuntimeError.

    Source: Cormen and others, "Introduction to Algorithms", 15.2.
    """
    n = len(shapes)
    if n < 2:
        raise RuntimeError(f"{name}: expected at least 2 tensors but got {n}")
    for i, shape in enumerate(shapes):
        if len(shape) != 2 and not (len(shape) == 1 and i in (0, n - 1)):
            raise RuntimeError(f"{name}: tensor {i} must have 2 dims"
                               + (" (or 1)" if i in (0, n - 1) else "") + f", got {len(shape)}")
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0], *(x[0] for x in shapes[1:]),
             1 if len(shapes[-1]) == 1 else shapes[-1][1]]
    for i, (x, y) in enumerate(zip(shapes, shapes[1:])):
        if x[-1] != y[0]:
            raise RuntimeError(f"{name}: tensors {i} and {i + 1} with shapes {tuple(x)} and "
                               f"{tuple(y)} cannot be multiplied")
    costs, cuts = [[0] * n for _ in range(n)], {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs[i][j], cuts[i, j] = min(
                (costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j))

    def pairs(i, j):
        k = cuts.get((i, j))
        return [] if k is None else [*pairs(i, k), *pairs(k + 1, j), (i, k + 1)]
    return pairs(0, n - 1)


def chain(name, tensors):
    """The product of a chain of matrices; the first and last may be vectors."""
    held = list(members(name, tensors))
    for i, x in enumerate(held):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a Tensor as element {i}, got {type_name(x)}")
    for i, j in multiplications(name, tuple([x.shape for x in held])):
        held[i], held[j] = matmul(held[i], held[j]), None
    return held[0]


@composite(public=False, method=False, out=True, takes="integer floating", tolerance="product",
           reference=lambda *xs: np.linalg.multi_dot(xs),
           samples=given_sequences(((2, 3), (3, 4), (4, 2)), ((3,), (3, 2), (2,)), ((2, 3), (3, 2)),
                                   low=-1, high=1),
           errors=refused_sequences((RuntimeError, (2, 3)), (RuntimeError, (2, 3), (2, 3)),
                                    (RuntimeError, (2, 2, 2), (2, 2))))
def linalg_multi_dot(tensors: Tensors):
    """The product of a chain of matrices, in the order that takes the fewest multiplications.

    The first may be a vector, as a row, and the last, as a column.

    Shapes: (M, *), ..., (*, N) -> (M, N).
    Raises: RuntimeError for less than two tensors and for shapes that cannot be multiplied.
    """
    return chain("linalg.multi_dot", tensors)


@composite(out=True, tensors=("matrices",), method=False, takes="integer floating",
           tolerance="product",
           reference=lambda *xs: np.linalg.multi_dot(xs) if len(xs) > 1 else xs[0],
           samples=given_sequences(((2, 3), (3, 4), (4, 2)), ((2, 3),), low=-1, high=1),
           errors=refused_sequences((RuntimeError, (2, 3), (2, 3)), (RuntimeError, (3,), (3, 2))),
           complex=True)
def chain_matmul(*matrices: Tensors):
    """The product of a chain of matrices: `linalg.multi_dot` of its arguments."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    for i, x in enumerate(matrices):
        if not isinstance(x, Tensor):
            raise TypeError(f"chain_matmul: expected a Tensor as argument {i}, got "
                            f"{type_name(x)}")
        if x.ndim != 2:
            raise RuntimeError(f"chain_matmul: expected matrices, got {x.ndim} dims")
    return chain("chain_matmul", matrices) if len(matrices) != 1 else matrices[0].clone()


# ---- along a dim ---------------------------------------------------------------------------------

def cross_of(name, x, y, dim):
    """The cross product along a dim of size 3."""
    sizes, others = x.shape, y.shape
    if len(sizes) != len(others):
        raise RuntimeError(f"{name}: inputs must have the same number of dimensions, got {x.ndim} "
                           f"and {y.ndim}")
    dim = wrap(name, dim, len(sizes))
    if not sizes or sizes[dim] != 3 or others[dim] != 3:
        raise RuntimeError(f"{name}: inputs dimension {dim} must have length 3, got shapes "
                           f"{tuple(sizes)} and {tuple(others)}")
    return (x * y.roll(-1, dim) - x.roll(-1, dim) * y).roll(-1, dim)


def crossed(x, y, dim=-1):
    """The reference of `linalg_cross`."""
    return np.cross(*np.broadcast_arrays(x, y), axis=dim)


CROSSES = {"takes": "integer floating", "tolerance": "product", "reference": crossed}


@composite(public=False, method=False, out=True, complex=True, **CROSSES,
           samples=given_tensors(((3,), (3,)), ((2, 3), (1, 3)), ((3, 2), (3, 2), {"dim": 0}),
                                 ((0, 3), (0, 3))),
           errors=refused_matrices((RuntimeError, (2, 3), np.ones(3)),
                                   (RuntimeError, (2, 2), np.ones((2, 2)))))
def linalg_cross(input, other: Tensor, *, dim=-1):
    """The cross product of vectors of three elements, which lie in `dim`.

    Shapes: (*, 3, *), (*, 3, *) -> (*, 3, *), with * broadcast.
    Raises: RuntimeError for other sizes, and for numbers of dims that differ; IndexError.

    >>> tensorlib.linalg.cross(tensorlib.tensor([1., 0., 0.]), tensorlib.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    return cross_of("linalg.cross", input, other, dim)


@composite(out=True, **CROSSES, samples=given_pairs(((3,), (3,)), ((3, 2), (3, 2), 0)),
           complex=True)
def cross(input, other: Tensor, dim=None):
    """The cross product along `dim`, by default the first dim of size 3: see `linalg.cross`."""
    if dim is None:
        sizes, others = input.shape, other.shape
        sizes = sizes if sizes == others else broadcast_shapes("cross", sizes, others)
        if 3 not in sizes:
            raise RuntimeError(f"cross: no dimension of size 3 in input, got {tuple(sizes)}")
        dim = sizes.index(3)
    return cross_of("cross", input, other, dim)


@composite(public=False, method=False, out=True, takes="floating", tolerance="product",
           samples=given_tensors(((3,), (3,)), ((2, 3), (3,)), ((3, 2), (3, 2), {"dim": 0})),
           reference=lambda x, y, dim=-1: (x.conj() * y).sum(dim), complex=True)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim=-1):
    """The sums over a dim of the products of two tensors, the first one conjugate.

    Shapes: (*, N, *), (*, N, *) -> (*, *), with * broadcast. Raises: RuntimeError, IndexError.
    """
    return (x.conj() * y).sum(dim)


@composite(public=False, method=False, complex=True,
           samples=given_tensors(((3, 3),), ((2, 3, 4), {"offset": 1, "dim1": 0, "dim2": 2})),
           reference=lambda x, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
           view="maybe")
def linalg_diagonal(A: Tensor, *, offset=0, dim1=-2, dim2=-1):
    """The diagonals of matrices, a view: `diagonal` of the last two dims."""
    return diagonal(A, offset, dim1, dim2)


@composite(public=False, method=False,
           samples=given_tensors(((3,),), ((2, 3),), ((2,), {"N": 4}), ((2,), {"N": 2})),
           takes="floating", tolerance="product",
           errors=refused_matrices((RuntimeError, (3,), {"N": 1}),
                                   (TypeError, (3,), {"N": 1.5})),
           reference=lambda x, N=None: x[..., None] ** np.arange(x.shape[-1] if N is None else N))
def linalg_vander(x: Tensor, *, N=None):
    """Powers of the elements from 0 to N - 1, by default as many as there are elements.

    Shapes: (*, M) -> (*, M, N); what has no dims counts as a vector of one.
    Raises: RuntimeError for an N below 2, TypeError.

    >>> tensorlib.linalg.vander(tensorlib.tensor([2., 3.]))
    tensor([[1., 2.],
            [1., 3.]])
    """
    x = x if x.ndim else x.reshape(1)
    n = x.shape[-1] if N is None else integer("linalg.vander", "N", N)
    if n < 2 and N is not None:
        raise RuntimeError(f"linalg.vander: N must be at least 2, got {N}")
    check_room("linalg.vander", n * x.numel(), x.itemsize)
    powers = x.unsqueeze(-1).expand(*x.shape, max(n - 1, 0)).cumprod(-1)
    return cat([powers.new_ones((*x.shape, min(n, 1))), powers], -1)


# ---- tensors as matrices -------------------------------------------------------------------------

def tensor_cases(*cases):
    """Tensors that are regular matrices when their dims are joined, then keywords."""
    def generate(rng):
        for rows, columns, *rest in cases:
            n = math.prod(rows)
            yield (regular(rng.uniform(-1, 1, (n, n))).reshape(rows + columns), *rest), {}
    return generate


def regular_map(x):
    """A tensor that is a regular matrix when its dims are joined, for arrays and Tensors."""
    n = math.isqrt(math.prod(x.shape))
    added = 3 * np.eye(n).reshape(x.shape)
    return x + (added if isinstance(x, np.ndarray) else x.new_tensor(added))


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           samples=tensor_cases(((2,), (2, 1), 1), ((2, 2), (4,)), ((2, 1), (2,))),
           reference=lambda x, ind=2: np.linalg.tensorinv(regular_map(x), ind),
           prepare=first(regular_map),
           errors=refused_matrices((RuntimeError, (2, 3), 1), (RuntimeError, (2, 2), 0)))
def linalg_tensorinv(A: Tensor, ind=2):
    """The inverse of a tensor as a map: of the matrix that its first `ind` dims, joined, and the
    others make.

    Shapes: (*rows, *columns) -> (*columns, *rows), where both have equally many elements.
    Raises: RuntimeError for other shapes and for an `ind` below 1, LinAlgError if it has none.
    """
    ind = integer("linalg.tensorinv", "ind", ind)
    rows, columns = A.shape[:max(ind, 0)], A.shape[max(ind, 0):]
    if ind < 1 or math.prod(rows) != math.prod(columns):
        raise RuntimeError("linalg.tensorinv: expected an ind of at least 1 and as many elements "
                           f"before as after it, got {ind} and shape {tuple(A.shape)}")
    n = math.prod(rows)
    return linalg_inv(A.reshape(n, n)).reshape(tuple(columns) + tuple(rows))


@composite(public=False, method=False, out=True, dtypes=DTYPES, tolerance="product",
           samples=lambda rng: (((x, rng.uniform(-1, 1, (2, 1))), {}) for (x,), _ in tensor_cases(
               ((2, 1), (2,)))(rng)),
           reference=lambda a, b: np.linalg.tensorsolve(regular_map(a), b),
           prepare=first(regular_map),
           errors=refused_matrices((RuntimeError, (2, 3), np.ones(2))))
def linalg_tensorsolve(A: Tensor, B: Tensor, dims=None):
    """The X of tensordot(A, X, X.ndim) = B. dims: those of A to move to the end first.

    Shapes: (*B, *X), (*B) -> (*X), where both have equally many elements.
    Raises: RuntimeError for other shapes, LinAlgError where there is no single solution.
    """
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(tuple(dims)), A.ndim)))
    rest, n = A.shape[B.ndim:], B.numel()
    if math.prod(rest) != n or A.numel() != n * n:
        raise RuntimeError("linalg.tensorsolve: expected A of shape (*B, *X) with as many elements "
                           f"in B as in X, got {tuple(A.shape)} and {tuple(B.shape)}")
    return linalg_solve(A.reshape(n, n), B.reshape(n)).reshape(tuple(rest))
