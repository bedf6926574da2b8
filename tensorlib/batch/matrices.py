"""Batching rules of linear algebra: the batch is one more leading dim."""

from tensorlib.batch.values import batch_of, batched
from tensorlib.ops.late import operations


@batched(operations.linalg_cholesky_ex, operations.linalg_inv_ex, operations.linalg_det,
         operations.linalg_slogdet, operations.cofactors, operations.linalg_eigh,
         operations.linalg_eigvalsh, operations.linalg_svd, operations.linalg_svdvals,
         operations.qr_tall, operations.linalg_pinv, operations.linalg_matrix_rank,
         operations.linalg_lu_factor_ex, operations.linalg_ldl_factor_ex, operations.geqrf,
         operations.linalg_eig, operations.linalg_eigvals)
def of_matrices(op, level, tensors, attributes):
    """Of each matrix of all examples."""
    x, = tensors
    if x.ndim < 2:
        raise RuntimeError(f"{op.name}: an example must have at least 2 dimensions, got shape "
                           f"{tuple(x.shape)}")
    return op.function(x.value, **attributes)


@batched(operations.pivot_matrices)
def of_vectors(op, level, tensors, attributes):
    """Of each vector of all examples."""
    x, = tensors
    if x.ndim < 1:
        raise RuntimeError(f"{op.name}: an example must have at least 1 dimension")
    return op.function(x.value, **attributes)


@batched(operations.solve_matrices, operations.solve_triangles, operations.ldl_systems_solved,
         operations.least_squares)
def of_pairs(op, level, tensors, attributes):
    """Of each pair of matrices of all examples, which have the same dims."""
    return op.function(*[batch_of(x, level).contiguous() for x in tensors], **attributes)
