"""Options of operations beside NumPy's functions, laws between calls, numbers known beforehand."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

VECTOR = tl.tensor([1.0, 2.0, 4.0, 8.0])
RNG = np.random.default_rng(5)


def assert_same(found, wanted, dtype=tl.float64):
    """The numbers of an array, up to rounding, in a dtype."""
    assert_close(found, tl.tensor(np.array(wanted), dtype=dtype))


# ---- shapes and dtypes ---------------------------------------------------------------------------

def test_blocks_of_nothing_are_an_empty_row():
    assert tl.block_diag().shape == (1, 0)


@each("columns", [31, 32, 65])
@each("rows", [(2, 3), (3,), (2, 1), (0, 3), (), (2, 2, 3)])
def test_products_of_long_rows(rows, columns):
    for shape in ((2, columns), (columns,), (0, columns)):
        a, b = RNG.normal(size=rows), RNG.normal(size=shape)
        assert_same(tl.kron(tl.tensor(a), tl.tensor(b)), np.kron(a, b))
        for dtype in (tl.float16, tl.float32):
            x, y = tl.tensor(a, dtype=dtype), tl.tensor(b, dtype=dtype)
            assert tl.equal(tl.kron(x, y), tl.kron(x.double(), y.double()).to(dtype))
            assert tl.kron(x, y.double()).dtype is tl.float64


def test_a_sum_over_more_names_than_letters():
    shape = (1,) * 60 + (2, 3)
    x, names = tl.arange(6.0).reshape(shape), list(range(40))
    wide = tl.einsum(x, [Ellipsis, *names], tl.tensor(2.0), [], tl.tensor(5.0), [],
                     [Ellipsis, *names[:-2]])
    assert wide.shape == (1,) * 60 and wide.sum() == 150.0


def test_a_grid_and_parts_and_sizes_of_others():
    x, y = tl.meshgrid(VECTOR[:2], VECTOR[:3], indexing="xy")
    assert (x.tolist(), y.tolist()) == ([[1.0, 2.0]] * 3, [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    parts = tl.tensor_split(VECTOR, tl.tensor([1, 3]))
    assert [part.tolist() for part in parts] == [[1.0], [2.0, 4.0], [8.0]]
    assert [len(part) for part in tl.tensor_split(VECTOR, tl.tensor(3))] == [2, 1, 1]
    assert VECTOR.reshape_as(tl.ones(2, 2)).tolist() == [[1.0, 2.0], [4.0, 8.0]]


@each("a, b, wanted", [
    (1, 2, tl.int64), (1, 2.0, tl.float32), (True, 1, tl.int64), (True, False, tl.bool),
    (tl.tensor(True), tl.tensor([False]), tl.bool), (tl.tensor([True]), 1, tl.int64),
    (tl.tensor([1], dtype=tl.int32), 2.0, tl.float32), (tl.tensor(1.0), 2, tl.float32),
])
def test_the_dtype_of_a_sum(a, b, wanted):
    assert tl.result_type(a, b) is tl.result_type(b, a) is wanted


def test_positions_of_to_without_a_name():
    for what in ((tl.float32,), (VECTOR,), ("cpu", tl.float32)):
        assert VECTOR.to(*what, True) is VECTOR               # non_blocking
        assert VECTOR.to(*what, False, False) is VECTOR
        copied = VECTOR.to(*what, False, True)
        assert copied is not VECTOR and copied.tolist() == VECTOR.tolist()
    assert VECTOR.to(other=tl.ones(1, dtype=tl.float64)).dtype == tl.float64


def test_writing_forms():
    x = tl.tensor([1.0, -1.0])
    assert x.nextafter_(tl.tensor([2.0, -2.0])) is x
    assert x.tolist() == [1 + 2.0**-23, -1 - 2.0**-23]
    y = tl.tensor([2.0, 3.0], dtype=tl.float64)
    assert y.float_power_(tl.tensor([3, -1])) is y
    assert_same(y, [8.0, 1 / 3])


def test_a_number_to_the_power_of_a_tensor():
    x = tl.tensor([1.0, 3.0], requires_grad=True)
    y = tl.float_power(2, x)
    assert y.dtype == tl.float64 and y.tolist() == [2.0, 8.0]
    y.sum().backward()
    assert_same(x.grad, [2 * math.log(2), 8 * math.log(2)], tl.float32)


# ---- sums over parts -----------------------------------------------------------------------------

@each("dim", [0, 1, -1])
@each("keepdim", [False, True])
def test_gradients_of_products_with_zeros(dim, keepdim):
    x = tl.tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]], requires_grad=True)
    tl.prod(x, dim, keepdim).sum().backward()
    columns = [[0.0, 0.0, 4.0], [2.0, 0.0, 3.0]]
    rows = [[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]
    assert x.grad.tolist() == (columns if dim == 0 else rows)


WEIGHTS = [{}, {"fweights": [2, 1, 0, 3]}, {"aweights": [0.5, 1.5, 2.0, 1.0]},
           {"fweights": [2, 1, 1, 3], "aweights": [0.5, 1.5, 2.0, 1.0]}]


@each("weights", WEIGHTS, ids=lambda weights: "-".join(weights) or "none")
@each("correction", [0, 1, 2])
def test_covariance_with_weights(weights, correction):
    x = RNG.normal(size=(3, 4))
    found = tl.cov(tl.tensor(x), correction=correction,
                   **{name: tl.tensor(value) for name, value in weights.items()})
    assert_same(found, np.cov(x, ddof=correction, **weights))


def test_covariance_without_freedom_is_not_finite():
    one = tl.cov(VECTOR, correction=3, fweights=tl.tensor([1, 0, 1, 0]))
    assert one.isinf()


@pytest.mark.parametrize("shape", [(4,), (1, 4)])
def test_the_correlation_of_one_variable_is_one(shape):
    assert tl.corrcoef(VECTOR.reshape(shape)).tolist() == 1.0


# ---- counts and orders ---------------------------------------------------------------------------

def test_counts_with_weights():
    places, weights = [1, 3, 1, 0], [0.5, 2.0, 0.25, -1.0]
    assert_same(tl.bincount(tl.tensor(places), tl.tensor(weights), 6),
                np.bincount(places, weights, 6),
                tl.float32)
    x = RNG.normal(size=(3, 5))
    w = RNG.uniform(size=(3, 5))
    for density in (False, True):
        for weight in (None, w):
            wanted, edges = np.histogram(x, 4, (-1, 1.5), density, weight)
            found = tl.histogram(tl.tensor(x), 4, range=(-1, 1.5), density=density,
                                 weight=None if weight is None else tl.tensor(weight))
            assert_same(found.hist, wanted)
            assert_same(found.bin_edges, edges)


def test_a_histogram_of_nothing_goes_from_zero_to_one():
    found = tl.histogram(tl.tensor([]), 4)
    assert (found.hist.tolist(), found.bin_edges.tolist()) == ([0.0] * 4, [0, 0.25, 0.5, 0.75, 1])


@each("n", [1, 2, 63, 64, 65, 66, 131])
def test_medians_of_few_and_of_many(n):
    x = RNG.permutation(n).astype(np.float64)
    assert tl.median(tl.tensor(x)).item() == (n - 1) // 2
    assert tl.nanmedian(tl.tensor(x)).item() == (n - 1) // 2
    assert tl.median(tl.tensor(x.astype(np.int64))).item() == (n - 1) // 2
    known = np.where(x < n // 2, x, math.nan)                    # the least n // 2 of them
    assert tl.median(tl.tensor(known)).isnan()
    found = tl.nanmedian(tl.tensor(known))
    assert found.isnan() if n == 1 else found.item() == (n // 2 - 1) // 2


def test_medians_of_rows_with_unknown_numbers():
    nan = math.nan
    x = tl.tensor([[3.0, nan, 1.0, nan], [4.0, 3.0, 2.0, 1.0], [nan] * 4, [nan, 5.0, nan, 7.0]])
    values, places = tl.nanmedian(x, 1)
    assert places.tolist()[:2] == [2, 2] and values[2].isnan() and places[3] == 1
    assert values.tolist()[:2] == [1.0, 2.0] and values[3] == 5.0
    values, places = tl.median(x, 1, keepdim=True)
    assert values.shape == (4, 1) and values.squeeze(1).isnan().tolist() == [True, False] + [
        True] * 2
    assert places.squeeze(1).tolist() == [1, 2, 0, 0] and values[1] == 2.0
    assert tl.median(tl.tensor([])).isnan() and tl.nanmedian(tl.tensor([nan])).isnan()


def test_rows_in_another_order_are_searched_by_their_sorter():
    rows, values = np.array([[3.0, 1.0, 2.0], [5.0, 9.0, 7.0]]), np.array([[2.0], [8.0]])
    sorter = rows.argsort()
    for right in (False, True):
        found = tl.searchsorted(tl.tensor(rows), tl.tensor(values), right=right,
                                sorter=tl.tensor(sorter))
        assert found.tolist() == [[2 if right else 1], [2]]
    for side in ("left", "right"):
        assert tl.searchsorted(tl.tensor(rows[0]), tl.tensor(values[0]), side=side,
                               sorter=tl.tensor(sorter[0])).tolist() == [1 + (side == "right")]


def test_one_number_is_taken_along_no_dims():
    x = tl.tensor(3.0, requires_grad=True)
    found = tl.take_along_dim(x, tl.tensor(0), 0)
    assert (found.shape, found.item()) == ((), 3.0)
    assert tl.autograd.grad(found, x)[0].item() == 1.0


def test_repeats_may_be_a_list():
    x = tl.tensor([5, 6, 7])
    assert tl.repeat_interleave(x, [1, 0, 2]).tolist() == [5, 7, 7]
    with pytest.raises(TypeError, match="repeats must be ints, got"):
        tl.repeat_interleave(x, [1, 0, 2.5])


def test_many_draws_are_as_likely_as_they_should_be():
    tl.manual_seed(0)
    chances = tl.tensor([[1.0, 0.0, 3.0] + [0.0] * 9, [0.0] * 11 + [2.0]])
    found = tl.multinomial(chances, 50_000, replacement=True)    # more than are compared at once
    assert found.shape == (2, 50_000) and (found[1] == 11).all()
    counts = found[0].bincount(minlength=12)
    assert counts.sum() == counts[0] + counts[2] and abs(counts[0].item() - 12_500) < 500


# ---- integrals and derivatives -------------------------------------------------------------------

X = np.array([0.0, 0.5, 2.0, 3.0, 5.0])


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("n", [3, 5])
def test_slopes_between_places_of_ones_own(n, edge_order):
    y = RNG.normal(size=(n, 4))
    widths = X[:n], X[:4] * 2
    for dims in ((0,), (1,), (0, 1)):
        found = tl.gradient(tl.tensor(y), spacing=[tl.tensor(widths[d]) for d in dims], dim=dims,
                            edge_order=edge_order)
        for d, slopes in zip(dims, found, strict=True):
            assert_same(slopes, np.gradient(y, widths[d], axis=d, edge_order=edge_order))


def test_a_tensor_without_dims_is_a_width():
    y = tl.tensor([1.0, 2.0, 4.0])
    for found, wanted in zip(tl.gradient(y, spacing=tl.tensor(2)), tl.gradient(y, spacing=2)):
        assert tl.equal(found, wanted)


@pytest.mark.parametrize(("kind", "places", "wanted"), [
    ("float32", "float64", "float64"), ("int64", "float64", "float64"),
    ("float32", "int64", "float32"), ("int64", "int32", "float32"),
    ("float16", "float32", "float32"), ("complex64", "float64", "complex128"),
])
def test_places_of_ones_own_take_part_in_the_promotion_of_slopes(kind, places, wanted):
    y, at = np.array([1, 2, 4, 8]).astype(kind), np.array([1, 2, 4, 8]).astype(places)
    (slope,) = tl.gradient(tl.tensor(y), spacing=[tl.tensor(at)])
    assert_same(slope, np.gradient(y, at), getattr(tl, wanted))


def test_slopes_of_two_places():
    found, = tl.gradient(tl.tensor([1.0, 4.0]), spacing=(tl.tensor([2.0, 8.0]),))
    assert found.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("shape, dim", [((5,), -1), ((3, 5), -1), ((5, 1), 1), ((5, 3), 1)])
def test_areas_over_places_of_fewer_dims(shape, dim):
    y, x = RNG.normal(size=(2, 5, 3)), RNG.normal(size=shape)
    if dim == -1:
        y = y.swapaxes(1, 2)
    integral = getattr(np, "trapezoid", None) or np.trapz
    assert_same(tl.trapezoid(tl.tensor(y), tl.tensor(x), dim=dim),
                integral(y, np.broadcast_to(x, y.shape), axis=dim))


# ---- special functions ---------------------------------------------------------------------------

def test_polygamma_as_a_method_takes_the_order_second():
    x = tl.tensor([1.0, 0.5], dtype=tl.float64)
    assert_same(x.polygamma(1), [math.pi**2 / 6, math.pi**2 / 2])
    assert x.polygamma(2).tolist() == tl.polygamma(2, x).tolist()


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_arguments_without_a_derivative_say_so(name):
    x, y = tl.tensor([1.5], requires_grad=True), tl.tensor([0.5], requires_grad=True)
    out = getattr(tl, name)(x, y)
    with pytest.raises(RuntimeError, match=f"{name}: the derivative for 'input' is not impl"):
        out.sum().backward()
    assert x.grad is None
    getattr(tl, name)(x.detach(), y).sum().backward()
    slope = 0.5**0.5 * math.exp(-0.5) / math.gamma(1.5)
    assert y.grad.item() == pytest.approx(slope if name == "igamma" else -slope)


@pytest.mark.parametrize("rows, columns", [((3,), (41,)), ((2, 3), (2, 41)), ((4, 4), (3, 3))])
def test_signs_of_zeros_in_kronecker_products(rows, columns):
    """Each element is one product: no sum that begins with 0 makes it +0."""
    rng = np.random.default_rng(1)
    x, y = (rng.choice([0.0, -0.0, 1.0, -2.0, math.inf], shape) for shape in (rows, columns))
    with np.errstate(invalid="ignore"):
        expected = np.kron(x, y)
    found = tl.kron(tl.tensor(x), tl.tensor(y)).numpy()
    np.testing.assert_array_equal(found, expected)
    assert np.array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))
