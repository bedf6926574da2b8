"""Batching rules of linear algebra: the batch is one more leading dim."""

from tensorlib.batch.values import batch_of, rule


@rule("linalg_cholesky_ex", "linalg_inv_ex", "linalg_det", "linalg_slogdet", "cofactors",
      "linalg_eigh", "linalg_eigvalsh", "linalg_svd", "linalg_svdvals", "qr_tall", "linalg_pinv",
      "linalg_matrix_rank", "linalg_lu_factor_ex", "linalg_ldl_factor_ex", "geqrf",
      "linalg_eig", "linalg_eigvals")
def of_matrices(op, level, tensors, attributes):
    """Of each matrix of all examples."""
    x, = tensors
    if x.ndim < 2:
        raise RuntimeError(f"{op.name}: an example must have at least 2 dimensions, got shape "
                           f"{tuple(x.shape)}")
    return op.function(x.value, **attributes)


@rule("pivot_matrices")
def of_vectors(op, level, tensors, attributes):
    """Of each vector of all examples."""
    x, = tensors
    if x.ndim < 1:
        raise RuntimeError(f"{op.name}: an example must have at least 1 dimension")
    return op.function(x.value, **attributes)


@rule("solve_matrices", "solve_triangles", "ldl_systems_solved", "least_squares")
def of_pairs(op, level, tensors, attributes):
    """Of each pair of matrices of all examples, which have the same dims."""
    return op.function(*[batch_of(x, level).contiguous() for x in tensors], **attributes)
