"""Factors of matrices, with gradients: the Cholesky factor and triangular systems.

The factors are NumPy's; the rules are made of operations, so that they have gradients in turn.
"""

import numpy as np

import tensorlib as tl
from tensorlib._core.products.blas import one_blas_thread
from tensorlib.autograd import Function


def by_numpy(function, *matrices):
    """What a NumPy function gives for these tensors, in their dtype."""
    with one_blas_thread():
        found = function(*(x.detach().double().numpy() for x in matrices))
    return tl.from_numpy(np.ascontiguousarray(found)).to(matrices[0].dtype)


class Cholesky(Function):
    """The lower triangle L of positive definite matrices L @ L.mT."""

    @staticmethod
    def forward(ctx, matrix):
        try:
            factor = by_numpy(np.linalg.cholesky, matrix)
        except np.linalg.LinAlgError:
            raise RuntimeError("cholesky: the input is not positive definite") from None
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx, g):
        """Murray, "Differentiation of the Cholesky decomposition" (2016), arXiv:1602.07527"""
        factor, = ctx.saved_tensors
        inner = (factor.mT @ g).tril()
        half = inner - 0.5 * inner * tl.eye(inner.shape[-1], dtype=inner.dtype)
        whole = solve_triangular(factor.mT, solve_triangular(factor.mT, half, upper=True).mT,
                                 upper=True)
        return 0.5 * (whole + whole.mT)


class SolveTriangular(Function):
    """X with matrix @ X = other, for triangular matrices."""

    @staticmethod
    def forward(ctx, matrix, other, upper):
        solution = by_numpy(np.linalg.solve, matrix, other)
        ctx.save_for_backward(matrix, solution)
        ctx.upper = upper
        return solution

    @staticmethod
    def backward(ctx, g):
        matrix, solution = ctx.saved_tensors
        of_other = solve_triangular(matrix.mT, g, upper=not ctx.upper)
        of_matrix = -(of_other @ solution.mT)
        return of_matrix.triu() if ctx.upper else of_matrix.tril(), of_other, None


def cholesky(matrix):
    """The lower triangle L of positive definite matrices L @ L.mT. Raises: RuntimeError."""
    return Cholesky.apply(matrix)


def solve_triangular(matrix, other, *, upper):
    """X with matrix @ X = other, for triangular matrices of one batch shape."""
    shape = (matrix[..., :1] + other[..., :1]).shape[:-2] if matrix.ndim + other.ndim > 4 else ()
    return SolveTriangular.apply(matrix.expand((*shape, *matrix.shape[-2:])),
                                 other.expand((*shape, *other.shape[-2:])), upper)
