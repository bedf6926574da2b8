"""Forms of arguments that PyTorch takes: integers, bools, no elements, sizes of 1."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.nn import functional as F

INTS = tl.tensor([[1, -5, 3, 7, 2, 2]])


def test_pools_of_integers_keep_their_dtype():
    values, places = F.max_pool1d(INTS, 2, return_indices=True)
    assert (values.tolist(), values.dtype, places.tolist()) == ([[1, 7, 2]], tl.int64, [[0, 3, 4]])
    assert F.avg_pool1d(INTS, 2).tolist() == [[-2, 5, 2]]      # quotients are cut off
    exact = tl.tensor([[2**60 + 1, 3]])
    assert F.max_pool1d(exact, 2).tolist() == [[2**60 + 1]]


def test_a_mean_pool_divides_by_any_number_but_0():
    image = tl.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    assert F.avg_pool2d(image, 2, divisor_override=-2).tolist() == [[[-5.0]]]
    with pytest.raises(RuntimeError, match="divisor must not be 0"):
        F.avg_pool2d(image, 2, divisor_override=0)


def test_convolutions_of_integers_wrap_in_their_dtype():
    x, w = tl.tensor([[[100, 100, 3]]], dtype=tl.int8), tl.tensor([[[1, 1]]], dtype=tl.int8)
    assert F.conv1d(x, w).tolist() == [[[-56, 103]]]
    assert F.conv_transpose1d(x.long(), w.long()).tolist() == [[[100, 200, 103, 3]]]


def test_unfold_moves_elements_of_any_dtype():
    image = tl.tensor([[[[True, False], [True, True]]]])
    assert F.unfold(image, 1, padding=0).tolist() == [[[True, False, True, True]]]
    assert F.unfold(tl.tensor([[[[2**60 + 1]]]]), 2, padding=1)[0, 0].tolist() == [
        0, 0, 0, 2**60 + 1]


def test_thresholds_and_bounds_keep_integers():
    assert F.threshold(INTS, 2, 9).tolist() == [[9, 9, 3, 7, 9, 9]]
    bounded = F.hardtanh(INTS, -1.0, 3.0)
    assert (bounded.tolist(), bounded.dtype) == ([[1, -1, 3, 3, 2, 2]], tl.int64)


@pytest.mark.parametrize("reduce, wanted", [("sum", [True, False]), ("prod", [False, False]),
                                            ("amax", [True, False]), ("amin", [False, False])])
def test_bools_are_reduced_as_and_and_or(reduce, wanted):
    src, index = tl.tensor([True, False, False]), tl.tensor([0, 0, 1])
    out = tl.zeros(2, dtype=tl.bool).scatter_reduce(0, index, src, reduce, include_self=False)
    assert out.tolist() == wanted and out.dtype == tl.bool


def test_losses_and_norms_compute_integers_in_floats():
    a, b = tl.tensor([[1, 5]], dtype=tl.uint8), tl.tensor([[4, 1]], dtype=tl.uint8)
    assert F.pairwise_distance(a, b, eps=0).tolist() == [5.0]
    assert F.margin_ranking_loss(a, b, tl.tensor([[1, 1]])).tolist() == 1.5


def test_means_of_integers_around_a_channel_are_integers():
    found = F.local_response_norm(tl.full((1, 2, 1), 3), 2)      # means of 9 and 18 by 2: 4 and 9
    wanted = tl.tensor([4e-4, 9e-4]).add(1).pow(-0.75).mul(3).reshape(1, 2, 1)
    assert tl.allclose(found, wanted, rtol=1e-6)


def test_addr_of_bools_is_or_and_and():
    x, v = tl.tensor([[True, False]]), tl.tensor([False, True])
    assert tl.addr(x, tl.tensor([True]), v).tolist() == [[True, True]]
    assert tl.addr(x, tl.tensor([True]), v, beta=0).tolist() == [[False, True]]


def test_tensordot_sums_beside_a_size_of_1():
    a, b = tl.ones(1, 1, 1), tl.arange(4.0).reshape(2, 1, 2)
    assert tl.tensordot(a, b, [[0, 1], [2, 0]]).tolist() == [[6.0]]


def test_what_is_empty_has_rank_0_and_norm_0():
    assert tl.linalg.matrix_rank(tl.ones(0, 3)).item() == 0
    assert tl.linalg.matrix_rank(tl.ones(2, 3, 0)).tolist() == [0, 0]
    assert tl.linalg.norm(tl.ones(0, 0), float("inf")).item() == 0


def test_no_differences_are_taken_of_what_is_joined():
    assert tl.diff(tl.ones(3), 0, prepend=tl.ones(2)).shape == (3,)


@pytest.mark.parametrize("function", [
    lambda x: tl.norm(x, 0), lambda x: tl.linalg.norm(x, 0, 1), lambda x: tl.cdist(x, x, 0),
    lambda x: tl.pdist(x, 0.0), lambda x: tl.matrix_power(x, 0),
    lambda x: tl.linalg.householder_product(x, tl.ones(0, dtype=tl.float64))])
def test_what_is_constant_between_its_steps_has_a_gradient_of_zero(function):
    x = tl.tensor([[1.0, 2.0], [0.0, 4.0]], dtype=tl.float64, requires_grad=True)
    out = function(x)
    assert out.requires_grad
    out.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_random_integers_take_their_bounds_in_every_order():
    for args, kwargs in (((5, (9,)), {}), ((5,), {"size": (9,)}), ((0, 5), {"size": (9,)}),
                         ((0,), {"high": 5, "size": (9,)}), ((), {"size": (9,), "high": 5}),
                         ((), {"size": (9,), "high": 5, "low": 0})):
        x = tl.randint(*args, **kwargs)
        assert x.shape == (9,) and 0 <= x.min() <= x.max() < 5


def test_a_histogram_has_100_bins_by_default():
    found = tl.histogram(tl.arange(10.0), density=True)
    assert found.hist.shape == (100,)
    assert np.isclose((found.hist * found.bin_edges.diff()).sum().item(), 1)


def test_the_nuclear_norm_is_a_norm():
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    np.testing.assert_allclose(tl.norm(tl.tensor(x), "nuc").item(), np.linalg.norm(x, "nuc"))


@pytest.mark.parametrize("name, two", [("max", tl.maximum), ("min", tl.minimum)])
def test_a_tensor_is_a_dim_by_keyword_or_before_keepdim(name, two):
    reduce, x, dim = getattr(tl, name), INTS.reshape(2, 3), tl.tensor(1)
    for call, keepdim in (
            (lambda: reduce(x, dim=dim), False), (lambda: reduce(x, axis=dim), False),
            (lambda: reduce(x, dim, True), True), (lambda: reduce(x, dim, keepdim=False), False),
            (lambda: getattr(x, name)(dim=dim, keepdim=True), True)):
        found, wanted = call(), reduce(x, 1, keepdim)
        assert found.values.equal(wanted.values) and found.indices.equal(wanted.indices)
    assert reduce(x, dim).equal(two(x, dim)) and reduce(x, other=dim).equal(two(x, dim))


@pytest.mark.parametrize("call", [
    lambda: tl.max(INTS, 0, False, 1), lambda: tl.max(INTS, 0, dim=0),
    lambda: tl.max(INTS, dim=INTS), lambda: tl.max(INTS, 0, other=INTS),
    lambda: tl.max(INTS, dim=0, other=INTS),
    lambda: tl.max(INTS, 0, True, keepdim=True)])
def test_forms_of_max_are_not_mixed(call):
    with pytest.raises(TypeError):
        call()


def test_a_loss_of_one_row_has_the_dims_of_its_target():
    row = tl.tensor([1.0, 2.0])
    assert F.multi_margin_loss(row, tl.tensor([1]), reduction="none").shape == (1,)
    assert F.multi_margin_loss(row, tl.tensor(1), reduction="none").shape == ()
    assert F.multi_margin_loss(row, tl.tensor([1]), weight=row, reduction="none").shape == (1,)


@pytest.mark.parametrize("dtype", [tl.bool, tl.int32])
def test_whole_numbers_are_summed_to_no_dims_in_int64(dtype):
    for shape, size, wanted in (
            ((), (), tl.int64), ((1,), (), tl.int64), ((1,), (1,), dtype), ((2,), (1,), tl.int64)):
        found = tl.ones(shape, dtype=dtype).sum_to_size(size)
        assert found.shape == size and found.dtype is wanted


@pytest.mark.parametrize("dtype, weights, wanted", [
    (tl.float16, tl.float32, tl.float32), (tl.float32, tl.float64, tl.float64),
    (tl.float64, tl.float32, tl.float64), (tl.float16, tl.float16, tl.float16)])
def test_weights_decide_on_the_dtype_of_a_covariance(dtype, weights, wanted):
    x, w = tl.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]]), tl.tensor([0.5, 0.25, 1.0])
    found = tl.cov(x.to(dtype), aweights=w.to(weights))
    assert found.dtype is wanted and tl.allclose(found.float(), tl.cov(x, aweights=w), atol=1e-2)


@pytest.mark.parametrize("pool, size", [
    (F.adaptive_avg_pool2d, (2, 2)), (F.adaptive_max_pool2d, (None, 2)),
    (F.adaptive_avg_pool3d, (2, 2, 2)), (F.adaptive_max_pool3d, [2, 2, 2])])
def test_too_few_dims_for_several_sizes_are_a_value_error(pool, size):
    with pytest.raises(ValueError, match="sizes, got shape"):
        pool(tl.ones(2, 2), size)
    with pytest.raises(RuntimeError):
        pool(tl.ones(2, 2), 2)


def test_forms_of_methods():
    x = tl.ones(3)
    assert x.cpu(memory_format=tl.contiguous_format) is x and x.cpu() is x
    for dims in ((0, 1), ((0, 1),)):
        assert tl.ones(1, 3, 1).squeeze_(*dims).shape == (3, 1)
