"""Rare arguments of NumPy's functions on Tensors: arrays where only some operand is one."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.io.arrays import argument_out
from tensorlib.io.table import COUNTERPARTS, counterpart

ROWS = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
X = tl.tensor(ROWS)
LEAF = tl.tensor(ROWS, requires_grad=True)


@each("call", [
    lambda x: np.concatenate([x, x], dtype=np.float32), lambda x: np.concatenate([x, x], axis=None),
    lambda x: np.take_along_axis(x, np.array([4, 0, 5]), None),
    lambda x: np.take_along_axis(x, np.array([[2], [0]]), -1),
    lambda x: np.clip(x, None, 2.5), lambda x: np.clip(x, 1.5, None), lambda x: np.clip(x, 1, 2),
    lambda x: np.where(x > 2, 1, 0), lambda x: np.where(x > 2, x, 0.0),
    lambda x: np.add.reduce(x, axis=()), lambda x: np.multiply.reduce(x, axis=(0, 1)),
    lambda x: np.diag(x[0], -1), lambda x: np.diag(x, 1),
], ids=range(13))
def test_arguments_mean_what_they_mean_to_numpy(call):
    wanted = call(ROWS)
    for found in (call(X), call(LEAF)):
        assert isinstance(found, tl.Tensor)
        assert found.numpy(force=True).dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(force=True), wanted)


def test_what_is_not_changed_is_a_copy():
    for call in (lambda x: np.clip(x, None, None), lambda x: np.add.reduce(x, axis=())):
        for own in (tl.tensor(ROWS), tl.tensor(ROWS, requires_grad=True)):
            found = call(own)
            assert (found == own).all() and found.requires_grad == own.requires_grad
            found.detach().zero_()
            assert own.sum() == 15.0


def test_only_the_result_is_a_tensor():
    out = tl.zeros(3, dtype=tl.float64)
    assert np.add(ROWS[0], 1.0, out=out) is out
    assert out.tolist() == [4.0, 2.0, 3.0]
    grown = LEAF[0] * 1
    with pytest.raises(RuntimeError, match="numpy.add: out= does not support automatic differen"):
        np.add(ROWS[1], 1.0, out=grown)
    assert grown.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("function, ndim", [(np.atleast_1d, 1), (np.atleast_2d, 2),
                                            (np.atleast_3d, 3)])
def test_more_dims_are_arrays_outside_of_graphs(function, ndim):
    several, alone = function(X[0, 0], X), function(X[0, 0])
    assert type(alone) is np.ndarray and alone.ndim == ndim and alone.item() == 3.0
    assert isinstance(several, tuple) and [type(x) for x in several] == [np.ndarray] * 2
    assert several[1].shape == function(ROWS).shape
    found = function(LEAF[0, 0])
    assert isinstance(found, tl.Tensor) and found.ndim == ndim and found.requires_grad
    with tl.no_grad():
        assert type(function(LEAF)) is np.ndarray
        assert [type(x) for x in function(X, LEAF)] == [np.ndarray] * 2
    both = function(X, LEAF)
    assert [type(x) for x in both] == [tl.Tensor] * 2


def test_refusals():
    with pytest.raises(ValueError, match=r"numpy\.diag: takes 1 or 2 dims, got shape \(1, 2, 3\)"):
        np.diag(X.reshape(1, 2, 3))
    with pytest.raises((ValueError, RuntimeError), match="at least one|non-empty|no tensors"):
        np.concatenate([], out=tl.ones(1))


def test_texts_of_tensors():
    assert np.array_str(X[0]) == str(X[0]) and np.array2string(X[0]) == str(X[0])


def test_a_function_of_numpy_has_one_counterpart():
    known = dict(COUNTERPARTS)
    with pytest.raises(ValueError, match=r"counterpart: numpy\.diag has one already, diag"):
        counterpart(np.diag)(lambda v: v)
    assert known == COUNTERPARTS


def test_where_a_function_is_told_to_write():
    array = np.zeros(3)

    def by_place(a, b, out=None):
        return out

    assert argument_out(by_place, (1, 2, array), {}) is array
    assert argument_out(by_place, (), {"out": array}) is array
    assert argument_out(by_place, (1,), {"out": array}) is array
    assert argument_out(by_place, (1, 2), {}) is None
    assert argument_out(by_place, (1,), {}) is None              # which the call itself will refuse
    assert argument_out(type.__call__, (1, 2, array), {}) is None
