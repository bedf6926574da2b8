"""Masks and positions, dtypes of results, numbers that do not fit, writes into expanded tensors."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import vmap

MATRIX = tl.arange(6.0).reshape(2, 3)
HALF = tl.tensor([True, False])


# ---- masks and positions -------------------------------------------------------------------------

def test_masked_select_takes_masks_alone():
    with pytest.raises(RuntimeError, match="masked_select: mask must be bool"):
        MATRIX.masked_select(tl.tensor([0, 1, 1]))
    with pytest.raises(RuntimeError, match="masked_select: .*do not broadcast"):
        MATRIX.masked_select(HALF)


def test_take_along_dim_broadcasts_also_for_numpy_and_in_batches():
    places = tl.tensor([[0, 1, 1]])
    assert tl.take_along_dim(MATRIX, places, 0).tolist() == [[0, 4, 5]]
    assert np.take_along_axis(MATRIX, places, 0).tolist() == [[0, 4, 5]]
    assert tl.take_along_dim(MATRIX, tl.tensor([5, 0])).tolist() == [5, 0]
    found = vmap(lambda x, i: tl.take_along_dim(x, i, 0))(
        tl.arange(12.0).reshape(2, 2, 3), tl.tensor([[[1]], [[0]]]))
    assert found.tolist() == [[[3, 4, 5]], [[6, 7, 8]]]


@pytest.mark.parametrize("function", [
    lambda index: MATRIX.index_select(1, index), lambda index: MATRIX.index_fill(1, index, 0.0),
    lambda index: MATRIX.gather(1, index.reshape(2, 1))])
def test_bools_are_no_positions(function):
    with pytest.raises(RuntimeError, match="index must be int64"):
        function(HALF)


def test_tensors_without_dims_have_one_position():
    x = tl.tensor(3.0)
    assert x.nonzero().shape == (1, 0) and x.nonzero(as_tuple=True)[0].tolist() == [0]
    assert x.index_select(0, tl.tensor([0])).shape == ()


# ---- numbers and dtypes --------------------------------------------------------------------------

def test_masked_fill_keeps_the_dtype():
    filled = tl.zeros(2, dtype=tl.int64).masked_fill(HALF, 2.5)
    assert filled.dtype is tl.int64 and filled.tolist() == [2, 0]


@pytest.mark.parametrize("value", [300, -1])
def test_a_number_that_does_not_fit_is_not_wrapped(value):
    x = tl.zeros(2, dtype=tl.uint8)
    for write in (lambda: x.masked_fill(HALF, value), lambda: tl.where(HALF, x, value),
                  lambda: x.where(HALF, value), lambda: tl.where(HALF, value, x)):
        with pytest.raises(tl.OutOfRangeError, match=f"{value} does not fit in tensorlib.uint8"):
            write()
    assert tl.where(HALF, x, 200).tolist() == [0, 200]
    assert tl.where(HALF, x.float(), 300).tolist() == [0, 300]


def test_products_and_a_sum_keep_integers_integers():
    m = tl.ones(2, 2, dtype=tl.int64)
    for function, args in ((tl.addmm, (m, m, m)), (tl.addmv, (m[0], m, m[0])),
                           (tl.baddbmm, (m[None], m[None], m[None]))):
        found = function(*args, beta=2, alpha=3)
        assert found.dtype is tl.int64 and (found == 8).all()
        for factor in ("beta", "alpha"):
            with pytest.raises(RuntimeError, match=f"argument {factor} must not be a floating"):
                function(*args, **{factor: 0.5})
    with pytest.raises(RuntimeError, match="add: .*argument alpha must not be a floating"):
        tl.add(m, m, alpha=0.5)
    assert tl.add(m, m.float(), alpha=0.5).tolist() == [[1.5, 1.5]] * 2


@pytest.mark.parametrize("beta", [1, 0.3])
def test_products_and_a_sum_round_once_with_alpha(beta):
    m, v, b = tl.randn(8, 8), tl.randn(8), tl.randn(2, 8, 8)
    for found, product, other in (
            (tl.addmm(m, m, m, beta=beta, alpha=0.7), m @ m, m),
            (tl.addmv(v, m, v, beta=beta, alpha=0.7), m @ v, v),
            (tl.addr(m, v, v, beta=beta, alpha=0.7), tl.outer(v, v), m),
            (tl.baddbmm(b, b, b, beta=beta, alpha=0.7), b @ b, b)):
        assert found.equal((other * beta).add(product, alpha=0.7))


@each("p", [-1, 0.5, 1, 1.5, 2, 3, float("inf")])
def test_the_gradient_of_a_norm_is_finite_at_its_corners(p):
    for values in ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0]):
        x = tl.tensor(values, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.isfinite().all() and x.grad[:2].tolist() == [0, 0]


# ---- writes --------------------------------------------------------------------------------------

def test_a_region_that_does_not_overlap_itself_is_written_through_an_expanded_tensor():
    base = tl.zeros(3, 1)
    e = base.expand(3, 4)
    e[:, 0] = tl.tensor([1.0, 2.0, 3.0])
    assert base.reshape(-1).tolist() == [1, 2, 3] and e[:, 3].tolist() == [1, 2, 3]
    rows = tl.zeros(3).expand(2, 3)
    rows[0] = 5.0
    rows[1, [0, 2]] = tl.tensor([7.0, 8.0])
    rows[0][tl.tensor([False, True, False])] = 6.0
    assert rows.tolist() == [[7, 6, 8]] * 2
    rows[0] += 1
    assert rows.tolist() == [[8, 7, 9]] * 2


@pytest.mark.parametrize("key", [slice(None), (slice(None), 1), ..., tl.tensor([0])])
def test_a_region_that_overlaps_itself_is_refused_and_stays(key):
    rows = tl.zeros(3).expand(2, 3)
    with pytest.raises(RuntimeError, match="setitem: .*single memory location"):
        rows[key] = 1.0
    assert rows.tolist() == [[0, 0, 0]] * 2


def test_a_write_through_an_expanded_tensor_is_recorded():
    x = tl.ones(3, requires_grad=True)
    value = tl.tensor(2.0, requires_grad=True)
    base = x * 3
    rows = base.expand(2, 3)
    rows[0, 1] = value                        # the memory of rows[1, 1] too
    (rows * tl.tensor([[1.0], [10.0]])).sum().backward()
    assert x.grad.tolist() == [33, 0, 33] and value.grad.item() == 11
    assert base.tolist() == [3, 2, 3]


# ---- as PyTorch has it ---------------------------------------------------------------------------

def test_powers_of_infinite_order_are_the_largest_magnitude():
    x = tl.tensor([[[1.0, -5.0], [2.0, 3.0]]])
    assert tl.nn.functional.lp_pool2d(x, float("inf"), 2).tolist() == [[[5.0]]]
    assert tl.nn.functional.lp_pool2d(x, -float("inf"), 2).tolist() == [[[1.0]]]


def test_channels_that_move_are_copied():
    functional = tl.nn.functional
    for call, shape in ((lambda x: functional.channel_shuffle(x, 3), (2, 3, 1, 1)),
                        (lambda x: functional.pixel_shuffle(x, 2), (4, 1, 1)),
                        (lambda x: functional.pixel_unshuffle(x, 2), (1, 2, 2)),
                        (tl.ravel, (4, 2))):
        x = tl.zeros(*shape) if call is not tl.ravel else tl.zeros(4, 4)[:, ::2]
        call(x).add_(1)
        assert (x == 0).all()


def test_sums_to_a_size_of_integers_are_int64():
    x = tl.full((2, 3), 200, dtype=tl.uint8)
    assert x.sum_to_size(3).tolist() == [400] * 3
    assert x.sum_to_size(3).dtype is tl.int64 and x.sum_to_size(2, 3).dtype is tl.uint8


def test_integers_have_softsign_and_tanhshrink():
    functional, x = tl.nn.functional, tl.tensor([1, -3])
    assert functional.softsign(x).tolist() == [0.5, -0.75]
    assert functional.tanhshrink(x).dtype is tl.float32


def test_infinite_variance_and_norms_of_nothing():
    x, one = tl.zeros(2), tl.ones(2)
    assert tl.nn.functional.gaussian_nll_loss(x, one, tl.tensor([1.0, tl.inf])) == tl.inf
    assert tl.linalg.matrix_norm(tl.ones(3, 0), 2) == 0
    assert tl.cov(tl.rand(1, 4)).shape == ()
    assert tl.linalg.solve_ex(tl.eye(2), tl.ones(4, 2, 3)).info.shape == ()
