"""Numbers in the place of tensors where an operation has an option, as in PyTorch."""

import numpy as np
import pytest
from cases import each

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


@each("dtype", INTEGERS, ids=str)
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


def test_a_factor_has_a_dtype_that_no_term_has():
    few, signed = tl.tensor([5], dtype=tl.uint8), tl.tensor([2], dtype=tl.int8)
    found = tl.addcmul(few, signed, few, value=-1)
    assert found.item() == -5 and found.dtype is tl.int16
    assert tl.compile(lambda *xs: tl.addcmul(*xs, value=-1))(few, signed, few).item() == -5
    complexes, wide = tl.ones(1, dtype=tl.complex64), tl.ones(1, dtype=tl.float64)
    assert tl.addcmul(complexes, wide, wide, value=0.1).item() == 1.1


@pytest.mark.parametrize("input, dividend, other, value, wanted", [
    ([5], [2.0], [4.0], 0.5, [5.25]), ([5], [2], [4.0], 0.5, [5.25]), ([5], [2.0], [4], 1, [5.5]),
    ([True], [2.0], [4.0], 2, [2.0]), (5, 2.0, 4.0, 0.5, 5.25), ([5], [2j], [4], 1, [5 + 0.5j]),
    ([5.0], [2], [4.0], 0.5, [5.25])])
def test_quotients_are_added_to_any_dtype(input, dividend, other, value, wanted):
    given = [tl.tensor(x) for x in (input, dividend, other)]
    assert tl.addcdiv(*given, value=value).tolist() == wanted
    assert tl.compile(lambda *xs: tl.addcdiv(*xs, value=value))(*given).tolist() == wanted
    if not given[0].is_floating_point():
        with pytest.raises(RuntimeError, match="addcdiv_: result type .* can't be cast"):
            given[0].addcdiv_(*given[1:], value=value)


@pytest.mark.parametrize("input, factor, other, value, wanted", [
    ([5], [2.0], [3.0], 0.5, [8.0]), ([True], [2.0], [3.0], 0.5, [4.0]),
    ([True], [2], [3], 2, [13]), ([True], [2], [True], 1, [3])])
def test_products_are_added_to_any_dtype(input, factor, other, value, wanted):
    given = [tl.tensor(x) for x in (input, factor, other)]
    assert tl.addcmul(*given, value=value).tolist() == wanted
    assert tl.compile(lambda *xs: tl.addcmul(*xs, value=value))(*given).tolist() == wanted


@pytest.mark.parametrize("input", [[5], [5.0]])
def test_integers_are_not_divided(input):
    x, whole = tl.tensor(input), tl.tensor([2])
    for call in (tl.addcdiv, tl.Tensor.addcdiv_):
        for other in (whole, tl.tensor(2), tl.tensor([True])):
            with pytest.raises(RuntimeError, match="expects floating-point tensors to divide"):
                call(x, whole, other)
    with pytest.raises(RuntimeError, match="addcmul: not implemented for bools"):
        tl.addcmul(*[tl.tensor([True])] * 3)


INTS, BOOLS, FLOATS = tl.tensor([1, 2]), tl.tensor([True, False]), tl.tensor([1.0, 2.0])


@each("a, b", [
    (INTS, BOOLS), (BOOLS, INTS), (FLOATS, BOOLS), (BOOLS, FLOATS), (FLOATS.half(), BOOLS),
    (BOOLS, BOOLS), (INTS, True), (True, INTS), (FLOATS, True), (True, FLOATS), (BOOLS, 1),
    (1, BOOLS), (BOOLS, 1.5), (BOOLS, True), (True, BOOLS), (INTS, BOOLS[0]), (BOOLS[0], FLOATS),
    (FLOATS, np.bool_(1))], ids=repr)
def test_differences_with_bools_are_refused(a, b):
    both = all(getattr(x, "dtype", type(x)) in (tl.bool, bool, np.bool_) for x in (a, b))
    match = "with two bool tensors" if both else "with a bool tensor"
    calls = [lambda: a - b, lambda: tl.sub(a, b), lambda: tl.sub(a, b, alpha=2),
             lambda: tl.sub(a, b, out=tl.empty(0))]
    if isinstance(b, tl.Tensor):
        calls.append(lambda: tl.rsub(b, a))
    if isinstance(a, tl.Tensor) and a.ndim:
        calls += [lambda: a.sub(b), lambda: a.clone().sub_(b), lambda: a.clone().__isub__(b)]
    for call in calls:
        with pytest.raises(RuntimeError, match=f"Subtraction, the `-` operator, {match}"):
            call()


def test_negatives_of_bools_are_refused():
    for call in (lambda: -BOOLS, lambda: tl.neg(BOOLS), lambda: BOOLS.clone().neg_()):
        with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
            call()


BYTES, HALVES = tl.tensor([1, 2], dtype=tl.uint8), FLOATS.half()


@each("call", [
    lambda: tl.add(BYTES, BYTES, alpha=300), lambda: tl.add(BYTES, 1, alpha=-300),
    lambda: tl.sub(BYTES, BYTES, alpha=256), lambda: BYTES.clone().add_(BYTES, alpha=300),
    lambda: tl.rsub(BYTES, BYTES, alpha=300), lambda: tl.add(BYTES.char(), BYTES.char(), alpha=128),
    lambda: tl.add(HALVES, HALVES, alpha=1e6), lambda: tl.add(HALVES, 1.0, alpha=-1e6),
    lambda: tl.sub(FLOATS, FLOATS, alpha=1e40),
    lambda: tl.add(FLOATS.cfloat(), FLOATS.cfloat(), alpha=1e40),
    lambda: tl.addcmul(BYTES, BYTES, BYTES, value=300),
    lambda: BYTES.index_add(0, tl.tensor([0]), BYTES[:1], alpha=300),
    lambda: BYTES.clone().index_add_(0, tl.tensor([0]), BYTES[:1], alpha=300),
    lambda: tl.addmm(BYTES[None], BYTES[None, :1], BYTES[None], beta=300)])
def test_a_factor_that_overflows_the_dtype_is_refused(call):
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        call()


def test_a_factor_of_another_kind_than_the_result_is_refused():
    with pytest.raises(RuntimeError, match="must not be a complex number"):
        tl.add(FLOATS, FLOATS, alpha=2j)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        tl.add(INTS, INTS, alpha=True)


def test_factors_that_wrap_or_are_infinite_are_taken():
    assert tl.add(BYTES, BYTES, alpha=-1).tolist() == [0, 0]
    assert tl.add(BYTES.char(), BYTES.char(), alpha=-128).tolist() == [-127, 2]
    assert tl.add(FLOATS, FLOATS, alpha=float("inf")).isinf().all()
    assert tl.add(BOOLS, True, alpha=2).tolist() == [True, True]


def test_a_factor_of_bools():
    a, b = tl.tensor([True, False, False]), tl.tensor([False, True, False])
    assert tl.add(a, b, alpha=3).tolist() == [True, True, False]
    assert tl.add(a, b, alpha=0).tolist() == [True, False, False]
    found = tl.add(tl.ones(3, dtype=tl.int32), b, alpha=3)
    assert found.tolist() == [1, 4, 1] and found.dtype is tl.int32
    with pytest.raises(RuntimeError, match="add: result type .* can't be cast"):
        tl.ones(3, dtype=tl.int32).add_(tl.ones(3), alpha=2)
