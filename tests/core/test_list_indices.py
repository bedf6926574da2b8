"""Keys that PyTorch reads otherwise than NumPy, and warns of: lists of sequences as tuples, and
uint8 tensors as masks."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

READ = "is read as a tuple"
AS_TUPLES = [
    [slice(0, 1)], [slice(None), 0], [None, slice(0, 1)], [..., 1], [[0, 1], [1, 2]],
    [(0, 1), 1], [1, [0, 1]], [[[0, 1], [1, 0]]], [tl.tensor([0, 1]), tl.tensor([1, 2])],
    [tl.tensor(0), tl.tensor(1)], [range(2), range(2)], [np.array([0, 1])], [[True, False], 1],
    [0, None], [tl.tensor([True, False])]]


@each("key", AS_TUPLES, ids=str)
def test_a_list_that_holds_a_sequence_is_a_tuple(key):
    x = tl.arange(24.0).reshape(2, 3, 4)
    with pytest.warns(UserWarning, match=READ):
        assert tl.equal(x[key], x[tuple(key)])
    written, wanted = x.clone(), x.clone()
    wanted[tuple(key)] = -1.0
    with pytest.warns(UserWarning, match=READ):
        written[key] = -1.0
    assert tl.equal(written, wanted)


@each("key", [[0, 1], [True, False], [], [[0]] * 40, [np.int64(1)]], ids=str)
def test_other_lists_are_positions(key):
    x = tl.arange(24.0).reshape(2, 3, 4)
    assert tl.equal(x[key], x[tl.tensor(key, dtype=None if key else tl.int64)])


def test_a_view_and_its_gradient():
    x = tl.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    with pytest.warns(UserWarning, match=READ):
        assert x[[slice(None), 1]]._base is x
    with pytest.warns(UserWarning, match=READ):
        x[[[0, 1], [1, 2]]].sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_a_captured_function():
    f = tl.compile(lambda x: x[[slice(None), 1]] * 2)
    x = tl.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match=READ):
        assert f(x).tolist() == [2, 8]
    assert f(x + 1).tolist() == [4, 10]


def test_too_many_parts():
    with pytest.raises(IndexError, match="too many indices"), pytest.warns(UserWarning):
        tl.zeros(3)[[[0], [0, 1]]]


@pytest.mark.parametrize("mask", [[1, 0], [[1, 0, 2], [0, 0, 1]], 1, 0], ids=str)
def test_a_uint8_tensor_is_a_mask(mask):
    x = tl.arange(6.0).reshape(2, 3)
    wanted, written = x.clone(), x.clone()
    keys = [tl.tensor(mask, dtype=tl.uint8), np.array(mask, "u1")]
    for key in keys[:1] if mask in (0, 1) else keys:          # an array of one number is an int
        with pytest.warns(UserWarning, match="uint8"):
            assert tl.equal(x[key], x[tl.tensor(mask).bool()])
        with pytest.warns(UserWarning, match="uint8"):
            written[key] = 9.0
        wanted[tl.tensor(mask).bool()] = 9.0
        assert tl.equal(written, wanted)
    with pytest.raises(IndexError, match="mask"), pytest.warns(UserWarning):
        x[tl.ones(3, dtype=tl.uint8)]
