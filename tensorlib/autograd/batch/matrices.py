"""Batching rules of linear algebra: the batch is one more leading dim."""

from tensorlib.autograd.batch.values import batch_of, batched
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import operations

arange, stack = FUNCTIONS["arange"], FUNCTIONS["stack"]


@batched(operations.linalg_cholesky_ex, operations.linalg_inv_ex, operations.linalg_det,
         operations.linalg_slogdet, operations.cofactors, operations.linalg_eigh,
         operations.eigenvalues_alone, operations.linalg_svd, operations.singular_values_alone,
         operations.qr_tall, operations.linalg_pinv, operations.linalg_matrix_rank,
         operations.linalg_lu_factor_ex, operations.linalg_ldl_factor_ex, operations.geqrf,
         operations.linalg_eig, operations.linalg_eigvals, operations.gram_matrix,
         operations.inverse_by_factor)
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
         operations.least_squares, operations.linalg_householder_product)
def of_pairs(op, level, tensors, attributes):
    """Of each pair of all examples, whose batches have the same dims."""
    return op.function(*[batch_of(x, level).contiguous() for x in tensors], **attributes)


# ---- sparse matrices -----------------------------------------------------------------------------

def examples_of(op, level, tensors, *ndims):
    """The batches of tensors whose examples have these numbers of dims. Raises: RuntimeError."""
    if tuple(x.ndim for x in tensors) != ndims:
        raise RuntimeError(f"{op.name}: expected examples of {ndims} dims, got shapes "
                           f"{[tuple(x.shape) for x in tensors]}")
    return [batch_of(x, level) for x in tensors]


def places_of_all(op, level, places, size):
    """Rows or columns of the entries, for the examples' matrices one below the other.

    Raises: IndexError for one that the matrix of an example does not have.
    """
    if places.numel() and not 0 <= int(places.min()) <= int(places.max()) < size:
        raise IndexError(f"{op.name}: an entry lies outside of the matrix, which has {size} rows "
                         "or columns there")
    return (arange(level.size).unsqueeze(1) * size + places).reshape(-1)


@batched(operations.sparse_product)
def sparse_products(op, level, tensors, attributes):
    """One product: a large sparse matrix has those of all examples on its diagonal."""
    values, dense = examples_of(op, level, tensors, 1, 2)
    size, (_, inner, width) = attributes["size"], dense.shape
    rows = places_of_all(op, level, attributes["rows"], size)
    columns = places_of_all(op, level, attributes["columns"], inner)
    out = op.function(values.reshape(-1), dense.reshape(level.size * inner, width), rows, columns,
                      level.size * size)
    return out.reshape((level.size, size, width))


@batched(operations.sampled_product)
def sampled_products(op, level, tensors, attributes):
    """As of the sparse product, of all rows of all examples."""
    left, right = examples_of(op, level, tensors, 2, 2)
    rows = places_of_all(op, level, attributes["rows"], left.shape[1])
    columns = places_of_all(op, level, attributes["columns"], right.shape[1])
    out = op.function(*(x.reshape(x.shape[0] * x.shape[1], x.shape[2]) for x in (left, right)),
                      rows, columns)
    return out.reshape((level.size, attributes["rows"].numel()))


@batched(operations.met_sums)
def sums_of_meetings(op, level, tensors, attributes):
    """As of the sparse product, of three sparse matrices."""
    left, right = examples_of(op, level, tensors, 1, 1)
    of_a, of_b, of_c = (attributes[name] for name in ("a", "b", "c"))
    m = int(of_a[0].max()) + 1 if of_a.shape[1] else 0
    k, n = attributes["k"], attributes["n"]
    places = [stack([places_of_all(op, level, each, size) for each, size in zip(of, sizes)])
              for of, sizes in ((of_a, (m, k)), (of_b, (k, n)), (of_c, (m, n)))]
    out = op.function(left.reshape(-1), right.reshape(-1), *places, level.size * k,
                      level.size * n, attributes["part"])
    return out.reshape((level.size, -1) if out.numel() else (level.size, 0))
