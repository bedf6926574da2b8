"""The class itself as a function: `Tensor(2, 3)`, `Tensor([1.0, 2.0])`."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.shape import Size
from tensorlib._core.tensor.tensor import Tensor

float32 = BY_NAME["float32"]


def test_the_class_takes_sizes_or_data():
    assert Tensor(2, 3).shape == Tensor(Size([2, 3])).shape == (2, 3)
    assert Tensor(3).shape == (3,) and Tensor().shape == (0,) and Tensor(2, 3).dtype == float32
    for data in ([1, 2], (1, 2), np.array([1, 2]), np.array([1.0, 2.0])):
        assert Tensor(data).dtype == float32 and Tensor(data).tolist() == [1.0, 2.0]
    assert Tensor([1, 2], dtype=BY_NAME["int64"]).tolist() == [1, 2]
    assert Tensor(np.array(2.5)).item() == Tensor(tensor(2.5)).item() == 2.5
    assert Tensor([1.0], requires_grad=True).requires_grad


@each("make, error, message", [
    (lambda: Tensor(2.5), TypeError, "Tensor: takes sizes, or a sequence, .* got 2.5"),
    (lambda: Tensor(True), TypeError, "Tensor: takes sizes"),
    (lambda: Tensor(np.float32(1)), TypeError, "Tensor: takes sizes"),
    (lambda: Tensor("ab"), TypeError, "expected numbers, got str"),
    (lambda: Tensor(-1), RuntimeError, "sizes must be 0 or more"),
    (lambda: Tensor(2, 2.5), TypeError, "Tensor: "),
    (lambda: Tensor([1], [2]), TypeError, "Tensor: "),
    (lambda: Tensor(2**62, 4), RuntimeError, "has too many elements"),
    (lambda: Tensor([1.0], dtyp=float32), TypeError, r"Tensor\(\) .* 'dtyp'; did you mean 'dtype'"),
])
def test_what_the_class_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_shape_has_the_items_and_the_errors_of_a_tuple():
    shape = Tensor(2, 3, 4).shape
    assert [shape[k] for k in (-3, -1, 0, 2, True)] == [2, 4, 2, 4, 3]
    assert type(shape[:2]) is Size and shape[::-1] == (4, 3, 2)
    for key in (3, -4, 2**70, -2**70, 1.0, "0"):
        with pytest.raises((IndexError, TypeError)) as wanted:
            (2, 3, 4)[key]
        with pytest.raises(wanted.type, match=str(wanted.value)):
            shape[key]


def test_data_of_another_dtype():
    p = tl.nn.Parameter(tl.ones(2))
    y = (p * p).sum()
    p.data = p.data.half()
    assert p.dtype is tl.float16 and p.is_leaf and p.requires_grad
    (p * 3).sum().backward()
    assert p.grad.dtype is tl.float16 and p.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="data was set"):
        y.backward()                   # of what it was before
    p.data = p.data.to(tl.complex64)
    assert p.dtype is tl.complex64
    with pytest.raises(RuntimeError, match="floating point or complex"):
        p.data = tl.ones(2, dtype=tl.int64)
    with pytest.raises(RuntimeError, match="expected dtype"):
        (p * 2).data = tl.ones(2)
    x = tl.ones(2)
    x.data = tl.arange(3)
    assert x.tolist() == [0, 1, 2]


def test_the_class_of_tensors_as_a_type_is_the_default_dtype():
    found = (tl.tensor([1, -1]) > 0).type(tl.Tensor)
    assert found.dtype is tl.float32 and found.tolist() == [1.0, 0.0]
