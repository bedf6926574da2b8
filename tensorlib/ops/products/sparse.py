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


# ---- products of two sparse matrices -------------------------------------------------------------

OF_LEFT, OF_RIGHT, OF_PRODUCT = range(3)
# the positions of two matrices (3, 3) and of their product
LEFT_PLACES = np.array([[0, 0, 2], [1, 0, 1]])
RIGHT_PLACES = np.array([[0, 1, 1, 2], [1, 0, 1, 2]])
PRODUCT_PLACES = np.array([[0, 0, 2, 2], [0, 1, 0, 1]])


def met_reference(left, right, a, b, c, k, n, part):
    """The reference of `met_sums`."""
    out = np.zeros((a, b, c)[part].shape[1], np.result_type(left, right))
    for places in np.ndindex(a.shape[1], b.shape[1], c.shape[1]):
        x, y, z = (whole[:, i] for whole, i in zip((a, b, c), places))
        if x[0] == z[0] and x[1] == y[0] and y[1] == z[1]:
            first, second = (i for at, i in enumerate(places) if at != part)
            out[places[part]] += left[first] * right[second]
    return out


def met_samples(rng):
    """Samples of `met_sums`, one for each part."""
    places = LEFT_PLACES, RIGHT_PLACES, PRODUCT_PLACES
    for part in range(3):
        given = (rng.uniform(-2, 2, x.shape[1]) for at, x in enumerate(places) if at != part)
        yield (*given, *places, 3, 3, part), {}


@op(public=False, method=False, multilinear=True, takes="integer floating", complex=True,
    tolerance="product", checks_values=True, kernel=kernels.met_sums, reference=met_reference,
    samples=met_samples)
def met_sums(left: Tensor, right: Tensor, a, b, c, k, n, part):
    """The values of c = a @ b, sparse matrices (*, K) and (K, N) with entries in order of rows; or
    the gradients of those of a or b. Given are the values of the other two, in this order.

    Shapes: two of (A,), (B,), (C,), then (2, A), (2, B), (2, C) -> the third.
    Raises: IndexError for a position out of range, RuntimeError for other shapes and dtypes.
    """


@met_sums.vjp("left")
def met_sums_vjp_left(g, right, a, b, c, k, n, part):
    """The sums in which the first of the given parts has its part."""
    if part == OF_LEFT:
        return met_sums(g, right, a, b, c, k, n, OF_RIGHT)
    pair = (g, right) if part == OF_RIGHT else (right, g)
    return met_sums(*pair, a, b, c, k, n, OF_LEFT)


@met_sums.vjp("right")
def met_sums_vjp_right(g, left, a, b, c, k, n, part):
    """The same of the second."""
    if part == OF_PRODUCT:
        return met_sums(left, g, a, b, c, k, n, OF_RIGHT)
    pair = (g, left) if part == OF_LEFT else (left, g)
    return met_sums(*pair, a, b, c, k, n, OF_PRODUCT)


declared(__name__)
