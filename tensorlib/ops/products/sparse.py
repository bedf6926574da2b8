"""The operations under products of sparse matrices, on the values of their entries."""

import numpy as np

from tensorlib._core.products import sparse as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import op
from tensorlib.ops.lazy import declared

ROWS, COLUMNS = np.array([0, 0, 2, 1]), np.array([1, 0, 1, 2])


def product_reference(values, dense, rows, columns, size):
    """The reference of `sparse_product`."""
    out = np.zeros((size, dense.shape[1]), np.result_type(values, dense))
    np.add.at(out, rows, values[:, None] * dense[columns])
    return out


@op(public=False, method=False, multilinear=True, takes="floating", dtypes=("float32", "float64"),
    tolerance="product", checks_values=True, kernel=kernels.sparse_product,
    reference=product_reference, samples=lambda rng: [
        ((rng.uniform(-2, 2, 4), rng.uniform(-2, 2, (3, k)), ROWS, COLUMNS, 4), {})
        for k in (2, 1, 0)])
def sparse_product(values: Tensor, dense: Tensor, rows, columns, size):
    """The sparse matrix with `values` at (rows, columns), of `size` rows, times a dense one.

    Shapes: (E,), (M, K), (E,), (E,) -> (size, K). Entries in one place are added.
    Raises: IndexError for a position out of range, RuntimeError for other shapes and dtypes.
    """


@op(public=False, method=False, multilinear=True, takes="floating", dtypes=("float32", "float64"),
    tolerance="product", checks_values=True, kernel=kernels.sampled_product,
    reference=lambda a, b, rows, columns: (a[rows] * b[columns]).sum(1),
    samples=lambda rng: [((rng.uniform(-2, 2, (4, k)), rng.uniform(-2, 2, (3, k)), ROWS, COLUMNS),
                          {}) for k in (2, 1)])
def sampled_product(left: Tensor, right: Tensor, rows, columns):
    """The elements of left @ right.mT at (rows, columns).

    Shapes: (N, K), (M, K), (E,), (E,) -> (E,). Raises: as `sparse_product`.
    """


@sparse_product.vjp("values")
def sparse_product_vjp_values(g, dense, rows, columns):
    """g @ dense.mT, at the places of the values alone."""
    return sampled_product(g, dense, rows, columns)


@sparse_product.vjp("dense")
def sparse_product_vjp_dense(g, values, dense_shape, rows, columns):
    """The transposed sparse matrix times g."""
    return sparse_product(values, g, columns, rows, tuple(dense_shape)[0])


@sampled_product.vjp("left")
def sampled_product_vjp_left(g, right, left_shape, rows, columns):
    """The sparse matrix with g for its values, times `right`."""
    return sparse_product(g, right, rows, columns, tuple(left_shape)[0])


@sampled_product.vjp("right")
def sampled_product_vjp_right(g, left, right_shape, rows, columns):
    """The transposed sparse matrix with g for its values, times `left`."""
    return sparse_product(g, left, columns, rows, tuple(right_shape)[0])


declared(__name__)
