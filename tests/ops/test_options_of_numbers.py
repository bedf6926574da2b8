"""Numbers in the place of tensors where an operation has an option, as in PyTorch."""

import pytest

import tensorlib as tl


@pytest.mark.parametrize("given, mode, wanted, dtype", [
    ((7, 2), "trunc", 3, "int64"), ((-7, 2), "floor", -4, "int64"),
    ((-7.5, 2), "trunc", -3, "float32"),
    ((-7, 2), None, -3.5, "float32"), ((True, 2), "floor", 0, "int64")])
def test_quotients_of_two_numbers(given, mode, wanted, dtype):
    found = tl.div(*given, rounding_mode=mode)
    assert found.item() == wanted and found.dtype is getattr(tl, dtype)


def test_a_number_and_a_tensor():
    x = tl.tensor([1.0, 2.0], dtype=tl.float64)
    found = tl.div(7, x, rounding_mode="floor")
    assert found.tolist() == [7.0, 3.0] and found.dtype is tl.float64
    assert tl.add(7, 2, alpha=3).item() == 13
    assert tl.sub(7, x, alpha=2).tolist() == [5.0, 3.0]
