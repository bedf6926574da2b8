"""Sums of products that are added to a tensor."""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite
from tensorlib.ops.late import declared
from tensorlib.ops.linalg import added_product, bmm, outer, with_matrix


def vectors(name, a, b):
    """The outer product of two vectors. Raises: RuntimeError for other dims."""
    for what, x in (("vec1", a), ("vec2", b)):
        if x.ndim != 1:
            raise RuntimeError(f"{name}: {what} must have one dim, got {x.ndim}")
        if x.dtype.name == "bool":
            raise RuntimeError(f"{name}: {what} must be of numbers, got {x.dtype}")
    return outer(a, b)


_addr = added_product("addr", lambda a, b: vectors("addr", a, b))
_addbmm = added_product("addbmm", lambda a, b: bmm(a, b).sum(0, dtype=a.dtype))


@composite(reference=lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a[:, None] * b),
           out=True, inplace=True, tolerance="product", takes="integer floating",
           samples=with_matrix(((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((2, 0), (2,), (0,))))
def addr(input, vec1: Tensor, vec2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2), with `input` expanded; ignored if beta is 0.

    Shapes: (M, N), (M,), (N,) -> (M, N).

    Raises: RuntimeError for factors of other dims, an input that does not expand, and for a float
    as a factor of integers.
    """
    half = input.is_floating_point() and input.itemsize == 2
    if half and input.dtype == vec1.dtype == vec2.dtype:     # one rounding, as PyTorch's
        return _addr(input.float(), vec1.float(), vec2.float(), beta, alpha).to(input.dtype)
    return _addr(input, vec1, vec2, beta, alpha)


@composite(reference=lambda x, a, b, beta=1, alpha=1: (
               beta * x + alpha * (a @ b).sum(0, dtype=a.dtype)),
           out=True, inplace=True, tolerance="product", takes="integer floating",
           samples=with_matrix(((3, 2), (4, 3, 2), (4, 2, 2)), ((1,), (2, 3, 2), (2, 2, 1))))
def addbmm(input, batch1: Tensor, batch2: Tensor, *, beta=1, alpha=1):
    """beta * input + alpha * (the sum of the products in the batch), with `input` expanded.

    Shapes: (M, N), (B, M, K), (B, K, N) -> (M, N). `input` is ignored if beta is 0.

    Raises: RuntimeError as `bmm`, for an input that does not expand, and for a float as a factor
    of integers.
    """
    return _addbmm(input, batch1, batch2, beta, alpha)


declared(__name__)
