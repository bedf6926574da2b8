"""Matrix products."""

from math import prod

import numpy as np

from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.apply.operators import make_product
from tensorlib._core.base.importing import deferred
from tensorlib._core.create.creation import zeros_like
from tensorlib._core.products import product
from tensorlib._core.products.linear import gram
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import alias, composite, op
from tensorlib.ops.pointwise.arithmetic import check_factors, mul
from tensorlib.ops.samples import given_pairs

MATRICES = (((2, 3), (3, 4)), ((1, 3), (3, 1)), ((2, 0), (0, 4)), ((0, 3), (3, 2)))
MATRIX_VECTOR = (((2, 3), (3,)), ((2, 0), (0,)), ((0, 3), (3,)))
VECTORS = (((3,), (3,)), ((0,), (0,)))
BATCHES = (((5, 2, 3), (5, 3, 4)), ((0, 2, 3), (0, 3, 4)), ((2, 2, 0), (2, 0, 3)))
MIXED = (((3,), (3, 2)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,)), ((5, 2, 3), (3, 4)),
         ((2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)), ((2, 5, 2, 3), (2, 1, 3, 2)))


def wrong(*cases):
    """Error samples: pairs of shapes whose product is refused."""
    def generate():
        for a, b in cases:
            yield (np.ones(a), np.ones(b)), {}, RuntimeError
    return generate


def product_multiplications(inputs, result):
    """Each element of the result is a sum over the last dim of the first input."""
    return prod(result) * (inputs[0][-1] if inputs[0] else 1)


# ---- products of two tensors ---------------------------------------------------------------------

@op(multilinear=True, maker=make_product(), out=True, reference=np.matmul,
    takes="integer floating",
    samples=given_pairs(*MATRICES, *MATRIX_VECTOR, *VECTORS, *BATCHES, *MIXED),
    errors=wrong(((2, 3), (2, 3)), ((), (3,)), ((3,), (2,)), ((2, 2, 3), (3, 3, 2))), packs=True,
    multiplications=product_multiplications, complex=True)
def matmul(input: Tensor, other: Tensor):
    """Matrix product over the last two dims: `input @ other`.

    Shapes: (*, M, K) @ (*, K, N) -> (*, M, N), with * broadcast. A vector on the left stands for a
    row, on the right for a column, and its dim is dropped from the result.
    Raises: RuntimeError for inner dims that differ.

    >>> tensorlib.matmul(tensorlib.ones(2, 3), tensorlib.ones(3))
    tensor([3., 3.])
    """


@op(public=False, method=False, dtypes=("float32", "float64"), tolerance="product",
    kernel=gram, reference=lambda x: x @ x.swapaxes(-1, -2),
    samples=lambda rng: (((rng.uniform(-2, 2, shape),), {}) for shape in (
        (2, 3), (3, 2), (2, 0), (0, 2), (2, 2, 3))), errors=lambda: iter(
            [((np.ones(3),), {}, RuntimeError)]),
    multiplications=lambda inputs, result: prod(result) * inputs[0][-1])
def gram_matrix(A: Tensor):
    """A @ A.mT, of which half is multiplied."""


@gram_matrix.vjp("A")
def gram_matrix_vjp(g, A):
    """(g + g.mT) @ A"""
    return (g + g.mT) @ A


@gram_matrix.jvp
def gram_matrix_jvp(d_A, A):
    """The sum of a product and its transpose"""
    moved = d_A @ A.mT
    return moved + moved.mT


@op(multilinear=True, maker=make_product(2, 2, "mat2"), out=True, reference=np.matmul,
    takes="integer floating", samples=given_pairs(*MATRICES),
    errors=wrong(((2, 3), (2, 3)), ((2, 3), (3,))), packs=True,
    multiplications=product_multiplications, complex=True)
def mm(input: Tensor, other: Tensor):
    """Product of two matrices.

    Shapes: (M, K) @ (K, N) -> (M, N).

    Raises: RuntimeError for other numbers of dims, and for inner dims that differ.
    """


@op(multilinear=True, maker=make_product(2, 1, "vec"), out=True, reference=np.matmul,
    takes="integer floating", samples=given_pairs(*MATRIX_VECTOR),
    errors=wrong(((2, 3), (2,)), ((3,), (3,))), multiplications=product_multiplications,
    complex=True)
def mv(input: Tensor, other: Tensor):
    """Product of a matrix and a vector.

    Shapes: (M, K) @ (K,) -> (M,).

    Raises: RuntimeError for other numbers of dims, and for inner dims that differ.
    """


@op(multilinear=True, maker=make_product(1, 1, "tensor"), out=True, reference=np.dot,
    takes="integer floating", samples=given_pairs(*VECTORS),
    errors=wrong(((3,), (4,)), ((2, 3), (3,))), multiplications=product_multiplications,
    complex=True)
def dot(input: Tensor, other: Tensor):
    """Inner product of two vectors.

    Shapes: (K,), (K,) -> ().

    Raises: RuntimeError for other numbers of dims, and for sizes that differ.
    """


@op(multilinear=True, maker=make_product(3, 3, "mat2"), out=True, reference=np.matmul,
    takes="integer floating", samples=given_pairs(*BATCHES),
    errors=wrong(((5, 2, 3), (4, 3, 4)), ((2, 3), (3, 4))),
    multiplications=product_multiplications, complex=True)
def bmm(input: Tensor, other: Tensor):
    """Products of two batches of matrices, pair by pair.

    Shapes: (B, M, K) @ (B, K, N) -> (B, M, N).

    Raises: RuntimeError for other numbers of dims, and for batch sizes or inner dims that differ.

    >>> tensorlib.bmm(tensorlib.ones(2, 1, 3), tensorlib.ones(2, 3, 1)).shape
    tensorlib.Size([2, 1, 1])
    """


for _product in (matmul, mm, mv, dot, bmm):
    _product.vjp("input")(product.grad_of_left)
    _product.vjp("other")(product.grad_of_right)

@composite(reference=np.vdot, samples=given_pairs(*VECTORS), takes="integer floating", out=True,
           complex=True, tolerance="product", rounds_once=False)
def vdot(input, other: Tensor):
    """Inner product of two vectors, of which the first is conjugated.

    Shapes: (K,), (K,) -> (). Raises: as `dot`.
    """
    return dot(input.conj() if input.is_complex() else input, other)


# ---- products made of operations -----------------------------------------------------------------

@composite(reference=np.outer, samples=given_pairs(((3,), (4,)), ((0,), (4,))),
           errors=wrong(((2, 3), (4,))), complex=True)
def outer(input, vec2: Tensor, *, out=None):
    """Every product of an element of one vector with one of another.

    Shapes: (M,), (N,) -> (M, N).

    Raises: RuntimeError for other than vectors.

    >>> tensorlib.outer(tensorlib.tensor([1., 2.]), tensorlib.tensor([1., 10.]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"outer: expects two vectors, got shapes {tuple(input.shape)} and "
                           f"{tuple(vec2.shape)}")
    return mul(input.unsqueeze(-1), vec2, out=out)


@composite(reference=np.inner, out=True, takes="integer floating",
           errors=wrong(((2, 3), (4, 2))),
           complex=True,
           samples=given_pairs(*VECTORS, ((2, 3), (4, 3)), ((2, 3), (3,)), ((), (3,))))
def inner(input, other: Tensor):
    """Sums of products over the last dim of both; the product where one has no dim.

    Shapes: (*a, K), (*b, K) -> (*a, *b).

    Raises: RuntimeError for last dims that differ.

    >>> tensorlib.inner(tensorlib.ones(2, 3), tensorlib.ones(4, 3)).shape
    tensorlib.Size([2, 4])
    """
    if input.ndim == 0 or other.ndim == 0:
        return mul(input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner: the last dims differ: {tuple(input.shape)} and "
                           f"{tuple(other.shape)}")
    if other.ndim <= 2:
        return matmul(input, other if other.ndim == 1 else other.mT)
    rows, columns = input.unsqueeze(0).flatten(0, -2), other.unsqueeze(0).flatten(0, -2).mT
    return matmul(rows, columns).reshape(input.shape[:-1] + other.shape[:-1])


def with_matrix(*cases):
    """The shapes of what is added and of both factors, then without and with factors for each."""
    def generate(rng):
        for case in cases:
            tensors = tuple(rng.uniform(-2, 2, shape) for shape in case)
            yield tensors, {}
            yield tensors, {"beta": 2, "alpha": 3}
    return generate


PLAIN = {int, float}


def added_product(name, product_of):
    """beta * input + alpha * (a @ b), where beta = 0 ignores even NaN in `input`."""
    def function(input, a, b, beta, alpha):
        made = product_of(a, b)
        dtype = made.dtype
        if dtype is not a.dtype and a.dtype is b.dtype is input.dtype:     # so `autocast` has it
            input = input.to(dtype)
        plain = type(beta) in PLAIN and type(alpha) in PLAIN
        if not (plain and dtype.is_floating_point):
            check_factors(name, (input, made), beta=beta, alpha=alpha)
            if isinstance(beta, float) and beta.is_integer():          # integers stay integers
                beta = int(beta)
        if isinstance(beta, (int, float)) and beta == 0:
            result = made if alpha == 1 else made * alpha
            result = result if input.dtype == dtype else result + zeros_like(input)
        else:
            other = input if isinstance(beta, int) and beta == 1 else input * beta
            if alpha == 1:
                result = made + other
            else:
                result = other.add(made, alpha=alpha) if plain else made * alpha + other
        if result.shape != made.shape:
            raise RuntimeError(f"{name}: input of shape {tuple(input.shape)} does not expand to "
                               f"the product's {tuple(made.shape)}")
        return result
    return function


def fits_linear(input, a, b):
    """Whether `input` + a @ b is what `linear` makes of half types, without a and b in float32."""
    if not isinstance(a, Tensor) or a.dtype.itemsize != 2 or not a.is_floating_point():
        return False
    for x in (input, b):
        if not isinstance(x, Tensor) or x.dtype != a.dtype or x.ndim > 2:
            return False
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        return False
    shape = (a.shape[0], b.shape[1])[2 - input.ndim:]
    return all(n in (1, m) for n, m in zip(input.shape, shape))


product_with_bias = deferred("tensorlib.nn.functional.linear", "linear_with_bias")
wide_product_of_rows = deferred("tensorlib.nn.functional.linear", "wide_linear")
_addmm, _addmv = rounded_once(added_product("addmm", mm)), added_product("addmv", mv)
_baddbmm = added_product("baddbmm", bmm)
# of half types: a product of these in float32, where `_addmm` has one of float32
_addmm_of_halves = added_product("addmm", lambda a, b: wide_product_of_rows(a, b.mT))


FACTORS = ("beta", "alpha")


def scaled_sum(x, a, b, beta=1, alpha=1):
    """The reference of `addmm`, `addmv` and `baddbmm`."""
    return beta * x + alpha * (a @ b)


@composite(factors=FACTORS, reference=scaled_sum, out=True, inplace=True, tolerance="product",
           takes="integer floating",
           samples=with_matrix(((4,), (2, 3), (3, 4)), ((2, 1), (2, 3), (3, 4)),
                              ((2, 4), (2, 3), (3, 4))), complex=True, rounds_once=False)
def addmm(input, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), with `input` expanded; ignored if beta is 0.

    Shapes: (M, N), (M, K), (K, N) -> (M, N).

    Raises: RuntimeError as `mm`, for an input that does not expand, and for a float as a factor
    of integers.

    >>> x, w = tensorlib.ones(1, 3), tensorlib.ones(3, 2)
    >>> tensorlib.addmm(tensorlib.tensor([10., 20.]), x, w)
    tensor([[13., 23.]])
    """
    if fits_linear(input, mat1, mat2):
        if type(beta) is type(alpha) is int and beta == alpha == 1:
            return product_with_bias(mat1, mat2.mT, input)
        return _addmm_of_halves(input.float(), mat1, mat2, beta, alpha).to(mat1.dtype)
    return _addmm(input, mat1, mat2, beta, alpha)


@composite(factors=FACTORS, reference=scaled_sum, out=True, inplace=True, tolerance="product",
           takes="integer floating",
           samples=with_matrix(((2,), (2, 3), (3,)), ((1,), (2, 3), (3,))), complex=True)
def addmv(input, mat: Tensor, vec: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec), with `input` expanded; ignored if beta is 0.

    Shapes: (M,), (M, K), (K,) -> (M,).

    Raises: RuntimeError as `mv`, for an input that does not expand, and for a float as a factor
    of integers.
    """
    return _addmv(input, mat, vec, beta, alpha)


@composite(factors=FACTORS, reference=scaled_sum, out=True, inplace=True, tolerance="product",
           takes="integer floating",
           samples=with_matrix(((3, 1), (2, 3, 2), (2, 2, 2)), ((2, 3, 2), (2, 3, 2), (2, 2, 2))),
           complex=True)
def baddbmm(input, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * (batch1 @ batch2), with `input` expanded; ignored if beta is 0.

    Shapes: (B, M, N), (B, M, K), (B, K, N) -> (B, M, N).

    Raises: RuntimeError as `bmm`, for an input that does not expand, and for a float as a factor
    of integers.
    """
    return _baddbmm(input, batch1, batch2, beta, alpha)


alias("ger", outer)
