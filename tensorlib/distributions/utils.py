"""Helpers for distributions of one's own, under the names of `torch.distributions.utils`."""

import tensorlib as tl
from tensorlib.distributions.arguments import (
    broadcast_all, clamp_probs, logits_to_probs, probs_to_logits)
from tensorlib.distributions.arguments import derived as lazy_property
from tensorlib.distributions.arguments import sum_rightmost as _sum_rightmost  # noqa: F401  Pyro

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.5772156649015329


def tril_matrix_to_vec(mat, diag=0):
    """The elements on and below a diagonal, row by row.

    Shapes: (*, N, N) -> (*, L). diag: 0 for the main diagonal, negative for one below it.
    Raises: ValueError for a diagonal that the matrix does not have.

    >>> tensorlib.distributions.utils.tril_matrix_to_vec(tensorlib.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag must be from {-n} to {n - 1}, got {diag}")
    rows, columns = tl.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """The square matrix of which `tril_matrix_to_vec` gives `vec`, with zeros elsewhere.

    Shapes: (*, L) -> (*, N, N). Raises: ValueError where no N has so many elements.
    """
    length = vec.shape[-1]
    size = next((n for n in range(max(diag + 1, -diag), length + 2 + abs(diag))
                 if tl.tril_indices(n, n, diag).shape[1] == length), None)
    if size is None:
        raise ValueError(f"vec_to_tril_matrix: no square matrix has {length} elements on and below "
                         f"diagonal {diag}")
    rows, columns = tl.tril_indices(size, size, diag)
    matrix = vec.new_zeros(*vec.shape[:-1], size, size)
    matrix[..., rows, columns] = vec
    return matrix


def _standard_normal(shape, dtype, device):
    """Draws from the normal distribution of mean 0 and deviation 1, by the name GPyTorch takes."""
    return tl.randn(shape, dtype=dtype, device=device)
