"""Laws of element-wise work on 1,000 to 100,000 elements in odd layouts, against NumPy.

See tests/large.py for the layouts.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from large import POOLS, assert_equal, layouts, shapes, tensor

import tensorlib as tl

pytestmark = pytest.mark.usefixtures("two_threads")     # chunks begin in the middle of rows

NUMBERS = st.sampled_from(sorted(set(POOLS) - {"bool"}))
FLOATS = st.sampled_from(["float32", "float64"])
# Of one size and of several: a move of bits must not pass for a cast.
CASTS = st.one_of(
    st.sampled_from([("float32", "int32"), ("int64", "float64"), ("float16", "int16"),
                     ("uint8", "bool"), ("int8", "uint8")]),
    st.tuples(*[st.sampled_from(sorted(POOLS))] * 2))
BINARY = {"add": np.add, "maximum": np.maximum, "lt": np.less, "eq": np.equal}
SMOOTH = ["sqrt", "tanh", "reciprocal", "atan", "log1p"]


def operands(n):
    """n layouts whose shapes broadcast to one, each of any dtype of numbers."""
    return st.tuples(shapes(), *[NUMBERS] * n).flatmap(
        lambda drawn: st.tuples(*[layouts(drawn[0], dtype) for dtype in drawn[1:]]))


@given(st.sampled_from(sorted(BINARY)), operands(2))
def test_operations_of_two_tensors(name, both):
    x, y = (layout.array() for layout in both)
    expected = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    assert_equal(getattr(tl, name)(tensor(x), tensor(y)), expected)


@given(operands(3), st.sampled_from([15, 30, 45]))
def test_a_choice_between_tensors(three, bound):
    x, y, z = (layout.array() for layout in three)
    expected = np.where(x > bound, y.astype(np.float64), z.astype(np.float64))
    assert_equal(tl.where(tensor(x > bound), tensor(y), tensor(z)), expected)


@given(st.data())
def test_sums_in_place_and_into_out(data):
    shape = data.draw(shapes())
    target = data.draw(layouts(shape, "float32", repeats=False)).array()
    other = data.draw(layouts(shape, "float32")).array()
    expected = target + other
    assert_equal(tl.add(tensor(target), tensor(other), out=tensor(np.zeros_like(target))), expected)
    tensor(target).add_(tensor(other))
    np.testing.assert_array_equal(target, expected)


@given(st.tuples(shapes(), NUMBERS).flatmap(lambda drawn: layouts(*drawn)))
def test_numbers_beside_tensors(layout):
    x = layout.array()
    wide = x.astype(np.float64)
    assert_equal(tensor(x) + 2, wide + 2)
    assert_equal(tl.where(tensor(x) > 30, tensor(x), 1.5), np.where(wide > 30, wide, 1.5))


@given(st.tuples(shapes(), CASTS).flatmap(lambda drawn: st.tuples(
    layouts(drawn[0], drawn[1][0]), layouts(drawn[0], drawn[1][1], repeats=False))))
def test_copies_and_casts(both):
    (source, target), other = (layout.array() for layout in both), both[1].dtype
    expected = np.broadcast_to(source.astype(other), target.shape)
    tensor(target).copy_(tensor(source))
    np.testing.assert_array_equal(target, expected)
    x = tensor(np.broadcast_to(source, target.shape))
    assert_equal(x.to(getattr(tl, other)), expected)
    assert_equal(x.contiguous(), x.numpy())


@given(st.sampled_from(SMOOTH), st.tuples(shapes(), FLOATS).flatmap(
    lambda drawn: st.tuples(*[layouts(*drawn)] * 2)))
def test_derivatives(name, both):
    """A program with constants gives in any two layouts what it gives on packed operands."""
    x, g = (np.broadcast_to(layout.array(), layout.shape) for layout in both)
    slopes = []
    for laid_out in (np.asarray, np.ascontiguousarray):
        leaf = tensor(laid_out(x)).requires_grad_()
        slopes += tl.autograd.grad(getattr(leaf, name)(), leaf, tensor(laid_out(g)))
    np.testing.assert_allclose(slopes[0].numpy(), slopes[1].numpy(), rtol=1e-5)


def test_one_element_for_all_in_chunks_that_begin_inside_of_rows():
    """What a thread's last operation left in a tile is another value than this one's."""
    x = np.resize(POOLS["float32"], (40_000, 200))[::2, ::2]     # two million, so that both work
    for value in range(6):
        assert_equal(tensor(x) + tensor(np.full((1, 1), value, dtype="int16")), x + float(value))
