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


INTEGERS = (tl.uint8, tl.int8, tl.int16, tl.int32, tl.int64)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_factor_of_integers_wraps_as_products_do(dtype):
    x, y = tl.tensor([100, 7, 0], dtype=dtype), tl.tensor([[100], [3]], dtype=dtype)
    for alpha in (3, -2):
        assert tl.add(x, y, alpha=alpha).equal(x + y * alpha)
        assert tl.sub(x, y, alpha=alpha).equal(x - y * alpha)
        assert tl.rsub(x, y, alpha=alpha).equal(y - x * alpha)
        assert x.clone().add_(y[0], alpha=alpha).equal(x + y[0] * alpha)


def test_a_factor_has_the_dtype_of_the_result():
    narrow, wide = tl.ones(2), tl.ones(2, dtype=tl.float64)
    assert tl.add(narrow, wide, alpha=0.1).equal(wide + 0.1)
    assert tl.add(wide[0], narrow, alpha=0.1).equal(narrow + 0.1)
    assert tl.addcmul(narrow, wide, wide, value=0.1).equal(wide + 0.1)
    assert tl.addcdiv(narrow, wide, wide, value=0.1).equal(wide + 0.1)
    few, many = tl.ones(2, dtype=tl.uint8), tl.ones(2, dtype=tl.int64)
    assert tl.add(few, many, alpha=2**33).tolist() == [2**33 + 1] * 2
    assert tl.sub(few, many, alpha=300).tolist() == [-299] * 2
    assert tl.add(few, narrow, alpha=2.5).tolist() == [3.5] * 2


def test_a_factor_of_bools():
    a, b = tl.tensor([True, False, False]), tl.tensor([False, True, False])
    assert tl.add(a, b, alpha=3).tolist() == [True, True, False]
    assert tl.add(a, b, alpha=0).tolist() == [True, False, False]
    found = tl.add(tl.ones(3, dtype=tl.int32), b, alpha=3)
    assert found.tolist() == [1, 4, 1] and found.dtype is tl.int32
    with pytest.raises(RuntimeError, match="sub: not implemented for tensorlib.bool"):
        tl.sub(a, b, alpha=3)
    with pytest.raises(RuntimeError, match="add: result type .* can't be cast"):
        tl.ones(3, dtype=tl.int32).add_(tl.ones(3), alpha=2)
