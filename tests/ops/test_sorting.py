"""Orders: ties, NaN, integers that fill their dtype, and rows of which most is left out."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import gradcheck

nan, inf = float("nan"), float("inf")
AWKWARD = [3.0, nan, -0.0, 0.0, nan, inf, -inf, 3.0]
WHOLE = [2**63 - 1, -2**63, 0, 2**63 - 1, -1, -2**63]


def order(values, descending):
    """The stable order, NaN as the greatest."""
    keys = [(x != x, 0.0 if x != x else x) for x in values]
    if descending:                               # `reverse` keeps the order of what is equal
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    return sorted(range(len(keys)), key=keys.__getitem__)


@each("descending", [False, True])
@each("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_the_greatest_and_equal_numbers_keep_their_order(dtype, descending):
    x = tl.tensor(AWKWARD, dtype=getattr(tl, dtype))
    assert x.argsort(descending=descending).tolist() == order(AWKWARD, descending)
    assert x.sort(descending=descending).values.isnan().sum() == 2
    assert (1 / x.sort()[0][1:3]).tolist() == [-inf, inf]


@pytest.mark.parametrize("descending", [False, True])
def test_integers_of_64_bits_are_told_apart(descending):
    x = tl.tensor(WHOLE)
    assert x.argsort(descending=descending).tolist() == order(WHOLE, descending)
    assert x.topk(3, largest=descending).indices.tolist() == order(WHOLE, descending)[:3]
    assert x.kthvalue(3).values == -1


@each("dtype", ["uint8", "float16", "float32", "int64", "float64"])
@each("largest", [False, True])
def test_few_of_a_long_row(dtype, largest):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 250, (2, 9000)).astype(np.float64)
    if dtype[0] == "f":
        array[0, rng.integers(0, 9000, 20)] = nan
        array[1] = nan
        array[1, 5:5000:50] = 7.0
    x = tl.tensor(array).to(getattr(tl, dtype))
    for k in (1, 30):
        values, indices = x.topk(k, largest=largest)
        wanted = x.argsort(descending=largest)[:, :k]
        assert (indices == wanted).all()
        assert values.tolist().__repr__() == x.gather(1, wanted).tolist().__repr__()


@each("dtype", ["uint8", "uint64", "int64", "bfloat16", "float32", "float64"])
@each("shape", [(7,), (3, 1), (5, 4), (3, 6, 4), (2, 0, 3), (2, 70)])
def test_short_rows_along_any_dim_have_the_elements_at_their_places(dtype, shape):
    x = tl.arange(2 * int(np.prod(shape))).mul(7).remainder(5)
    x = x.to(getattr(tl, dtype)).reshape(*shape[:-1], 2 * shape[-1])[..., ::2]
    for dim in range(-1, x.ndim):
        n = x.shape[dim]
        for descending in (False, True):
            places = x.argsort(dim, descending)
            for k in {min(1, n), n // 2, n}:
                values, found = x.topk(k, dim, descending)
                assert found.tolist() == places.narrow(dim, 0, k).tolist()
                assert tl.equal(values, x.gather(dim, found)) and values.dtype is x.dtype
            values, found = x.sort(dim, descending)
            assert tl.equal(found, places) and tl.equal(values, x.gather(dim, places))


def with_ties(rows, n, dtype):
    """Rows of a few numbers each, and of NaN."""
    values = np.random.default_rng(n).integers(0, 1 + 2 * n // 3, (rows, n)).astype("f8") - n // 3
    if dtype.is_floating_point:
        values[values == 1] = nan
    return tl.tensor(values * 2.0**50 if dtype is tl.int64 and n % 2 else values).to(dtype)


@each("dtype", [tl.uint8, tl.int32, tl.int64, tl.float16, tl.float32, tl.float64])
@each("n", [1, 2, 7, 8, 9, 16, 17, 33, 64, 65, 128, 150, 511, 1000, 2500])
def test_rows_of_every_length_are_put_in_order_and_chosen_from(n, dtype):
    """Both sides of the lengths and the numbers from which on other loops do it, on more rows than
    are done at once."""
    x = with_ties(9 if n > 60 else 300, n, dtype)
    keys = x.double().numpy() if dtype is not tl.int64 else x.numpy()
    upward = np.argsort(keys, kind="stable")
    downward = n - 1 - np.argsort(keys[:, ::-1], kind="stable")[:, ::-1]
    assert (x.argsort().numpy() == upward).all()
    assert (x.t().argsort(0, descending=True).t().numpy() == downward).all()
    for k in {1, min(n, 4), min(n, 16), min(n, 17), min(n, 64), min(n, 65), n}:
        assert (x.topk(k).indices.numpy() == downward[:, :k]).all()
        found = x.topk(k, largest=False)
        assert (found.indices.numpy() == upward[:, :k]).all()
        np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(
            x.numpy(), upward[:, :k], 1))
        np.testing.assert_array_equal(x.kthvalue(k).values.numpy(), np.take_along_axis(
            x.numpy(), upward[:, k - 1:k], 1)[:, 0])
    known = n - np.isnan(keys).sum(1, keepdims=True)
    for function, places in ((tl.median, np.where(known < n, known, (n - 1) // 2)),
                             (tl.nanmedian, np.maximum(known - 1, 0) // 2)):
        found = function(x, 1, keepdim=True)
        wanted = np.take_along_axis(upward, places, 1)
        np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(
            x.numpy(), wanted, 1))
        assert (found.indices.numpy() == wanted).all()


@each("right", [False, True])
@each("dtype", [tl.uint8, tl.int64, tl.float32, tl.float64])
def test_values_belong_where_a_sorted_row_has_them(dtype, right):
    rows = with_ties(3, 40, dtype).nan_to_num(2).sort().values
    values = with_ties(3, 150, dtype)
    found = tl.searchsorted(rows, values, right=right).numpy()
    for row, value, places in zip(rows.numpy(), values.numpy(), found):
        assert (places == np.searchsorted(row, value, "right" if right else "left"))[
            value == value].all()
        assert (places[value != value] == 40).all()


def test_ties_of_numbers_that_leave_no_room_for_positions():
    for shape in ((3, 90), (30, 100), (3, 500), (3, 3000)):
        array = np.random.default_rng(0).integers(-3, 3, shape) * 1e300
        assert (tl.tensor(array).argsort().numpy() == np.argsort(array, kind="stable")).all()


@each("dtype", ["int32", "int64", "float32", "float64"])
@each("n", [600, 2048, 5000])
def test_numbers_of_any_bits_are_put_in_order(n, dtype):
    """Of all signs and sizes, of few bits that differ, and none."""
    bits = np.random.default_rng(n).integers(-2 ** 63, 2 ** 63 - 1, (2, n), endpoint=True)
    for kept in (-1, 0xFFF << 50, 1 << 63 >> 1 | 1, 7, 0):
        x = (bits & kept).view(dtype)[:, :n]
        x = np.where(x == x, x, 0)
        assert (tl.tensor(x).argsort().numpy() == np.argsort(x, kind="stable")).all()
        down = n - 1 - np.argsort(x[:, ::-1], kind="stable")[:, ::-1]
        assert (tl.tensor(x).argsort(descending=True).numpy() == down).all()
        assert (tl.tensor(x).unique().numpy() == np.unique(x)).all()
        assert (tl.tensor(x).mode().values.numpy() == [most_frequent(row) for row in x]).all()


def most_frequent(row):
    values, counts = np.unique(row, return_counts=True)
    return values[counts.argmax()]


@pytest.mark.parametrize("row", [[], [True], [False] * 3, [True, False, True] * 300], ids=len)
def test_bools_that_there_are_and_how_often(row):
    x = np.array(row, bool)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    assert tl.tensor(x).unique().tolist() == values.tolist()
    assert [part.tolist() for part in tl.tensor(x).unique(return_counts=True)] == [
        values.tolist(), counts.tolist()]
    assert [part.tolist() for part in tl.tensor(x).unique(return_inverse=True)] == [
        values.tolist(), inverse.tolist()]


@each("dtype", ["bool", "uint8", "int64", "float32"])
@each("most", [1, 2, 50])
def test_rows_that_share_their_first_columns_are_sorted_by_the_others(dtype, most):
    x = np.random.default_rng(most).integers(0, most + 1, (300, 6)).astype(dtype)
    values, inverse, counts = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    ours = tl.tensor(x).unique(dim=0, return_inverse=True, return_counts=True)
    assert [part.tolist() for part in ours] == [
        values.tolist(), inverse.reshape(-1).tolist(), counts.tolist()]


@each("n", [100, 600, 5000])
@each("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_numbers_on_both_sides_of_0_keep_their_order(dtype, n):
    x = np.random.default_rng(n).integers(-100, 100, n).astype(dtype)
    assert tl.tensor(x).argsort(stable=True).tolist() == x.argsort(kind="stable").tolist()


def test_orders_are_taken_of_what_is_laid_out_otherwise():
    array = np.random.default_rng(0).normal(size=(5, 7, 3))
    x = tl.tensor(array).permute(2, 0, 1)[:, ::-1]
    assert (x.sort(1)[0].numpy() == np.sort(x.numpy(), 1)).all()
    assert x.sort(1)[0].is_contiguous()


def test_results_are_written_into_out():
    values, indices = tl.empty(0), tl.empty(0, dtype=tl.int64)
    found = tl.topk(tl.tensor([1.0, 3.0, 2.0]), 2, out=(values, indices))
    assert values.tolist() == [3, 2] and indices.tolist() == [1, 2] and found.values is values


@pytest.mark.parametrize("q", [np.float32(0.5), np.float16(0.5), np.int64(1)])
def test_numbers_of_numpy_are_quantiles(q):
    x = tl.tensor([1.0, 2.0, 4.0])
    for function in (tl.quantile, tl.nanquantile):
        assert function(x, q).item() == np.quantile([1, 2, 4], q)


def test_quantiles_have_a_gradient_for_where_they_are_taken():
    x = tl.tensor(np.random.default_rng(0).normal(size=(4, 5)), requires_grad=True)
    q = tl.tensor([0.1, 0.63], dtype=tl.float64, requires_grad=True)
    assert gradcheck(lambda x, q: x.quantile(q, 0), [x, q])
    assert gradcheck(lambda x, q: x.nanquantile(q), [x, q])


def test_no_dim_is_the_last_one():
    x = tl.tensor(np.random.default_rng(2).permutation(60).reshape(3, 4, 5)).float()
    for call in (lambda **dim: x.topk(2, **dim), lambda **dim: x.kthvalue(2, **dim),
                 lambda **dim: x.sort(**dim), lambda **dim: x.median(dim=dim.get("dim", -1)),
                 lambda **dim: x.mode(**dim)):
        wanted = call(dim=2)
        for found in (call(), call(dim=-1)):
            assert tl.equal(found.values, wanted.values)
            assert tl.equal(found.indices, wanted.indices)
    for call in (x.topk, x.kthvalue):
        assert tl.equal(call(2, dim=None).indices, call(2, dim=2).indices)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
@each("n", [1, 2, 4, 7, 8, 9])
def test_the_kth_of_short_rows_is_that_of_the_sorted_row(dtype, n):
    array = np.random.default_rng(n).integers(0, 4, (60, n)).astype(np.float64)
    if dtype == "int64":
        array[::2] *= 2.0**60                        # no room for positions beside them
    elif dtype[0] == "f":
        array[array == 3] = np.nan
        array[array == 0] *= -1
    x = tl.tensor(array).to(getattr(tl, dtype))
    order = np.argsort(x.double().numpy(), 1, kind="stable")
    for k in range(1, n + 1):
        assert (x.kthvalue(k, 1).indices.numpy() == order[:, k - 1]).all()
