"""Names that older scripts call: what does not follow from the registry."""

import numpy as np
import pytest

import tensorlib as tl


def test_the_gradient_of_fill_is_that_of_the_value():
    x, v = tl.ones(2, 3, requires_grad=True), tl.tensor(2.0, requires_grad=True)
    tl.fill(x, v).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2 and v.grad.item() == 6.0


@pytest.mark.parametrize("shape", [(3, 4), (7, 3), (8, 3), (2, 2, 2), (1, 1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape, wrap):
    expected = np.zeros(shape)
    if expected.size:
        np.fill_diagonal(expected, 5, wrap=wrap)
    x = tl.zeros(shape)
    assert x.fill_diagonal_(5, wrap) is x
    assert x.tolist() == expected.tolist()
    y = tl.zeros(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))      # not contiguous
    assert y.fill_diagonal_(5, wrap=wrap).tolist() == expected.tolist()


def test_functions_of_elements():
    x, y = tl.arange(6).reshape(2, 3), tl.ones(3, dtype=tl.int64)
    assert x.t().apply_(lambda v: 2 * v).tolist() == [[0, 6], [2, 8], [4, 10]]
    assert x.map_(y, lambda a, b: a + b).tolist() == [[1, 3, 5], [7, 9, 11]]
    assert tl.ones(0).apply_(lambda v: v).shape == (0,)


def test_types():
    assert tl.ones(2).type() == "tensorlib.FloatTensor"
    assert tl.ones(2).type("torch.DoubleTensor").dtype is tl.float64
    assert tl.ones(2).type(tl.int8).dtype is tl.int8
    x = tl.ones(2, 3, dtype=tl.float64)
    assert x.new(4, 2).shape == (4, 2) and x.new([1, 2]).dtype is tl.float64
    assert x.new(x.size()).shape == (2, 3) and x.new().shape == (0,)
    assert x.ndimension() == 2 and x.pin_memory() is x and not x.is_pinned()


@pytest.mark.parametrize("call, error, message", [
    (lambda: tl.zeros(3).fill_diagonal_(1), RuntimeError, "takes two dims or more, got 1"),
    (lambda: tl.zeros(2, 2, 3).fill_diagonal_(1), RuntimeError, "must have the same size"),
    (lambda: tl.ones(2, requires_grad=True).apply_(abs), RuntimeError, "requires a gradient"),
    (lambda: tl.ones(2).map_(tl.ones(2).double(), max), TypeError, "must be of dtype"),
    (lambda: tl.ones(2).map_([1, 2], max), TypeError, "tensor must be a Tensor"),
    (lambda: tl.ones(2).apply_(lambda v: [v]), TypeError, "must return a number"),
    (lambda: tl.ones(2).apply_(lambda v: "a"), TypeError, ""),
    (lambda: tl.ones(2).type("torch.StrangeTensor"), ValueError, "invalid type"),
    (lambda: tl.ones(2).type(3), TypeError, ""),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
