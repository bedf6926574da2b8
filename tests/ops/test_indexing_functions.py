"""Functions that pick or fill by positions and masks: what does not follow from the registry."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import vmap
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

X = tl.arange(12.0).reshape(3, 4)
ZERO, TRUE = tl.tensor([0]), tl.ones(1, dtype=tl.bool)


def real(*shape):
    values = np.random.default_rng(sum(shape)).uniform(-1, 1, shape)
    return tl.tensor(values, requires_grad=True)


# ---- dtypes of positions and masks ---------------------------------------------------------------

CALLS = {
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i),
    "take_along_dim": lambda x, i: x.take_along_dim(i, 0),
    "index_copy": lambda x, i: x.index_copy(0, i, tl.ones(i.numel())),
    "index_add": lambda x, i: x.index_add(0, i, tl.ones(i.numel())),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "scatter": lambda x, i: x.scatter(0, i, 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i, tl.ones(i.numel())),
}


@each("name", CALLS)
@each("dtype", [tl.bool, tl.uint8, tl.float32])
def test_positions_are_no_bools_bytes_or_reals(name, dtype):
    message = f"{name}: index must be int64, .*got {dtype}"
    with pytest.raises(RuntimeError, match=message):
        CALLS[name](tl.ones(3), tl.ones(3, dtype=dtype))
    with pytest.raises(RuntimeError, match=message):
        vmap(lambda i: CALLS[name](tl.ones(3), i))(tl.ones(2, 3, dtype=dtype))


@each("name", CALLS)
def test_narrow_integers_are_positions(name):
    wide = CALLS[name](X[0], tl.tensor([2, 0, -1]))
    for dtype in (tl.int8, tl.int16, tl.int32):
        assert_close(CALLS[name](X[0], tl.tensor([2, 0, -1], dtype=dtype)), wide)


@each("name", CALLS)
def test_a_position_out_of_range_is_refused(name):
    for place in (4, -5):
        with pytest.raises(IndexError, match=f"{name}: index {place} is out of bounds for dim"):
            CALLS[name](X[0], tl.tensor([0, place]))


@pytest.mark.parametrize("name, call", {
    "masked_select": lambda x, m: x.masked_select(m),
    "masked_fill": lambda x, m: x.masked_fill(m, 1),
}.items())
def test_a_mask_is_bool_and_broadcasts(name, call):
    for dtype in (tl.int64, tl.uint8, tl.float32):
        with pytest.raises(RuntimeError, match=f"{name}: mask must be bool, got {dtype}"):
            call(X, tl.ones(3, 4, dtype=dtype))
    with pytest.raises(RuntimeError, match=r"\w+: shapes .* do not broadcast"):
        call(X, tl.ones(5, dtype=tl.bool))


# ---- tensors without dims ------------------------------------------------------------------------

def test_the_positions_of_a_tensor_without_dims():
    for value, rows in ((5.0, 1), (0.0, 0)):
        x = tl.tensor(value)
        assert tuple(x.nonzero().shape) == (rows, 0)
        (places,) = x.nonzero(as_tuple=True)
        assert places.tolist() == [0] * rows
    assert tl.tensor([0, 1]).nonzero(as_tuple=True)[0].tolist() == [1]


def test_a_tensor_without_dims_has_one_slice():
    x = tl.tensor(5.0, requires_grad=True)
    for index in (ZERO, tl.tensor(0), tl.tensor([-1])):
        out = x.index_select(0, index)
        assert out.shape == () and out.item() == 5
        assert tl.autograd.grad(out, x)[0].item() == 1
    for index in (tl.tensor([0, 0]), ZERO[:0]):
        with pytest.raises(RuntimeError, match="index_select: a 0-d tensor takes one position"):
            x.index_select(0, index)
    with pytest.raises(IndexError, match="1 is out of bounds"):
        x.index_select(0, tl.tensor([1]))


def test_gather_counts_what_has_no_dims_as_a_vector_of_one():
    x, v = tl.tensor(5.0, requires_grad=True), tl.tensor([1.0, 2.0], requires_grad=True)
    assert x.gather(0, tl.tensor([0, 0])).tolist() == [5, 5]
    assert x.gather(-1, tl.tensor(0)).shape == ()
    assert v.gather(0, tl.tensor(1)).item() == 2 and v.gather(0, tl.tensor(1)).shape == ()
    assert tl.autograd.grad(x.gather(0, tl.tensor([0, 0])).sum(), x)[0].tolist() == 2
    assert tl.autograd.grad(v.gather(0, tl.tensor(1)), v)[0].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="gather: index must have the same number of dim"):
        x.gather(0, tl.tensor([[0]]))


def test_scatter_counts_what_has_no_dims_as_a_vector_of_one():
    v = tl.tensor([1.0, 2.0])
    assert v.scatter(0, tl.tensor(1), 9.0).tolist() == [1, 9]
    assert v.scatter(0, tl.tensor(1), tl.tensor(9.0)).tolist() == [1, 9]
    assert v.scatter_add(0, tl.tensor(1), tl.tensor([9.0, 7.0])).tolist() == [1, 11]


# ---- masked_fill ---------------------------------------------------------------------------------

@each("dtype, value, filled", [
    (tl.int64, 2.5, 2), (tl.int64, tl.tensor(2.5), 2), (tl.int64, True, 1), (tl.bool, 0.5, True),
    (tl.bool, tl.tensor(5), True), (tl.float16, 1 / 3, 0.333251953125),
    (tl.float32, tl.tensor(2.5, dtype=tl.float64), 2.5), (tl.float32, -float("inf"), -float("inf")),
])
def test_filling_keeps_the_dtype(dtype, value, filled):
    x, mask = tl.zeros(2, dtype=dtype), tl.tensor([True, False])
    for out in (x.masked_fill(mask, value), x.clone().masked_fill_(mask, value),
                x.index_fill(0, ZERO, value), x.clone().index_fill_(0, ZERO, value)):
        assert out.dtype is dtype and out.tolist() == [filled, 0]


@each("dtype, value", [
    (tl.uint8, 300), (tl.uint8, -300), (tl.int8, 200), (tl.int64, float("inf")), (tl.float16, 1e6),
    (tl.float32, 1e300), (tl.uint8, tl.tensor(300)), (tl.int64, 2**70), (tl.float32, 10**400),
])
def test_a_value_that_the_dtype_cannot_hold_is_refused(dtype, value):
    x = tl.zeros(1, dtype=dtype)
    calls = {"masked_fill": lambda: x.masked_fill(TRUE, value),
             "masked_fill_": lambda: x.masked_fill_(TRUE, value),
             "index_fill": lambda: x.index_fill(0, ZERO, value)}
    if not isinstance(value, tl.Tensor):
        calls["scatter"] = lambda: x.scatter(0, ZERO, value)
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=f"{name.rstrip('_')}: .* does not fit in {dtype}"):
            call()
    assert x.tolist() == [0]


def test_a_value_to_fill_with_is_one_number():
    for value in (tl.ones(1), tl.ones(2)):
        with pytest.raises(RuntimeError, match="masked_fill: value must be a number or a 0-d"):
            X.masked_fill(X > 4, value)
    for value in ("1", None, [1.0]):
        with pytest.raises(TypeError, match="masked_fill: value must be a number"):
            X.masked_fill(X > 4, value)


def test_a_tensor_to_fill_with_has_a_gradient():
    mask = tl.tensor([[True, False, True], [False, False, True]])
    value = tl.tensor(0.5, dtype=tl.float64, requires_grad=True)
    for function in (lambda x, v: x.masked_fill(mask, v),
                     lambda x, v: x.index_fill(1, tl.tensor([2, 0]), v)):
        assert gradcheck(function, (real(2, 3), value))
        assert gradgradcheck(function, (real(2, 3), value))
    values = tl.tensor([1.0, 2.0], dtype=tl.float64)
    x = real(2, 3).detach()
    assert_close(vmap(lambda v: x.masked_fill(mask, v))(values),
                 tl.stack([x.masked_fill(mask, 1.0), x.masked_fill(mask, 2.0)]))


# ---- take_along_dim ------------------------------------------------------------------------------

def test_take_along_dim_broadcasts_the_other_dims():
    columns = tl.tensor([[0], [1], [2]])
    assert tl.take_along_dim(X, columns, 1).tolist() == [[0], [5], [10]]
    assert tl.take_along_dim(X, tl.tensor([[0, 1, 2, 0]]), 0).tolist() == [[0, 5, 10, 3]]
    assert tl.take_along_dim(X, tl.tensor([[-1, 0]]), 1).tolist() == [[3, 0], [7, 4], [11, 8]]
    assert tl.take_along_dim(X[:1], tl.zeros(5, 4, dtype=tl.int64), 1).shape == (5, 4)
    assert gradcheck(lambda x: tl.take_along_dim(x, tl.tensor([[1, 0, 1]]), 1), real(2, 3))
    assert gradcheck(lambda x: tl.take_along_dim(x, tl.tensor([[1], [0]]), 1), real(1, 3))


def test_take_along_dim_without_a_dim_takes_both_as_vectors():
    assert tl.take_along_dim(X, tl.tensor([[5], [11]])).tolist() == [5, 11]
    assert X.take_along_dim(tl.tensor(3)).tolist() == [3]
    assert gradcheck(lambda x: tl.take_along_dim(x, tl.tensor([[5, 0]])), real(2, 3))


def test_take_along_dim_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match="take_along_dim: shapes .* do not broadcast"):
        tl.take_along_dim(X, tl.zeros(2, 2, dtype=tl.int64), 1)
    with pytest.raises(RuntimeError, match="take_along_dim: .* same number of dims"):
        tl.take_along_dim(X, ZERO, 1)


def test_take_along_dim_of_each_example():
    x, places = real(2, 3).detach(), tl.tensor([[2], [0]])
    assert_close(vmap(lambda row, i: tl.take_along_dim(row, i))(x, places), x.gather(1, places))
    assert_close(vmap(lambda i: tl.take_along_dim(x, i[None], 1))(places),
                 tl.stack([tl.take_along_dim(x, i[None], 1) for i in places]))


def test_no_positions_may_have_any_dtype():
    assert X[0].gather(0, tl.tensor([])).tolist() == []
