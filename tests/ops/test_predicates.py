"""What is asked of whole tensors: closeness, equality, kind."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

inf, nan = tl.inf, tl.nan


@each("equal_nan", [False, True])
@each("dtype", ["float64", "float32", "int64", "int8"])
def test_isclose_is_numpys(dtype, equal_nan):
    values = [0, 1, -1, 100] + [inf, -inf, nan, 1 + 1e-6, 1e-9] * (dtype[0] == "f")
    grid = np.array(values, dtype=dtype)
    with np.errstate(all="ignore"):
        expected = np.isclose(grid[:, None], grid, rtol=1e-5, equal_nan=equal_nan)
    x = tl.from_numpy(grid)
    assert np.array_equal(tl.isclose(x[:, None], x, equal_nan=equal_nan).numpy(), expected)
    assert tl.allclose(x, x, equal_nan=True) and not x.allclose(x + 1, equal_nan=True)


def test_integers_are_close_by_differences_that_their_dtype_does_not_hold():
    """They wrapped round: 1 - 2 is 255 in uint8, and 100 - -100 is -56 in int8."""
    x, y = tl.tensor([1], dtype=tl.uint8), tl.tensor([2], dtype=tl.uint8)
    assert tl.isclose(x, y, atol=1).tolist() == [True]
    x, y = tl.tensor([100], dtype=tl.int8), tl.tensor([-100], dtype=tl.int8)
    assert tl.isclose(x, y, atol=60).tolist() == [False]
    assert tl.isclose(y - 28, y - 28 + 1, rtol=0.5).tolist() == [True]       # -128


def test_isclose_of_bools():
    x = tl.tensor([True, False])
    assert tl.isclose(x, x.logical_not()).tolist() == [False, False]
    for bounds in ({"rtol": 2.0}, {"atol": 1.0}, {"rtol": 0.5, "atol": 0.5}):      # as 0 and 1
        found = tl.isclose(x, x.logical_not(), **bounds)
        assert found.tolist() == np.isclose(x.numpy(), ~x.numpy(), **{"atol": 0, **bounds}).tolist()


def test_isclose_is_outside_the_graph():
    x = tl.ones(2, requires_grad=True)
    assert not tl.isclose(x, x * 2).requires_grad


@pytest.mark.parametrize("call, message", [
    (lambda x: tl.isclose(x, x.double()), "isclose: .*did not match"),
    (lambda x: tl.allclose(x, x, rtol=-1), "allclose: rtol must be"),
    (lambda x: tl.isclose(x, x, atol=nan), "isclose: atol must be"),
    (lambda x: tl.isclose(x, tl.ones(3)), "broadcast"),
])
def test_what_isclose_refuses(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(tl.ones(2))


def test_equal():
    x = tl.ones(2)
    assert tl.equal(x, x.clone()) and x.equal(tl.ones(2, dtype=tl.int64))
    assert not tl.equal(x, tl.ones(2, 1)) and not tl.equal(x, tl.tensor([1, nan]))
    with pytest.raises(TypeError, match="equal: other must be a Tensor"):
        tl.equal(x, 1)


def test_kinds():
    x = tl.ones(2, 3, requires_grad=True)
    assert tl.is_tensor(x) and not tl.is_tensor(np.ones(2))
    assert tl.is_floating_point(x) and not tl.is_floating_point(x.int())
    assert tl.numel(x) == 6 and not tl.is_complex(x) and not tl.detach(x).requires_grad
    with pytest.raises(TypeError, match="numel: input must be a Tensor"):
        tl.numel([1])
