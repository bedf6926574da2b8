"""Convolutions with windows of 3 x 3 and many channels, which go by fewer multiplications."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib.nn import functional as F


def passes(x, weight, g, padding, groups=1):
    """The result for x, and the gradients of x and of the weight for g."""
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = F.conv2d(x, weight, None, 1, padding, 1, groups)
    y.backward(g)
    return y.detach(), x.grad, weight.grad


@st.composite
def convolutions(draw):
    """Whole numbers so small that float32 holds all sums, and halves and quarters of them."""
    groups, images = draw(st.integers(1, 3)), draw(st.integers(1, 20))
    ins, outs = draw(st.integers(15, 34)), draw(st.integers(15, 50))
    padding = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    size = [draw(st.integers(max(1, 3 - 2 * pad), 19)) for pad in padding]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    out = [size[d] + 2 * padding[d] - 2 for d in range(2)]
    shapes = [(images, groups * ins, *size), (groups * outs, ins, 3, 3),
              (images, groups * outs, *out)]
    tensors = [tl.from_numpy(rng.integers(-4, 5, shape).astype("float32")) for shape in shapes]
    return *tensors, padding, groups


@settings(max_examples=60)
@given(convolutions())
def test_all_passes_equal_those_of_float64(case):
    *tensors, padding, groups = case
    found = passes(*tensors, padding, groups)
    wanted = passes(*(x.double() for x in tensors), padding, groups)
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("size, ins, outs", [
    ((1, 200), 40, 70), ((64, 65), 40, 70), ((150, 3), 40, 70), ((9, 8), 150, 290)])
def test_large_images_are_cut_into_rows_of_tiles_and_many_channels_into_parts(size, ins, outs):
    rng = np.random.default_rng(3)
    tensors = [tl.from_numpy(rng.integers(-4, 5, shape).astype("float32")) for shape in (
        (3, ins, *size), (outs, ins, 3, 3), (3, outs, *size))]
    found, wanted = passes(*tensors, 1), passes(*(x.double() for x in tensors), 1)
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def normal(*shapes, dtype=tl.float32):
    rng = np.random.default_rng(0)
    return [tl.from_numpy(rng.standard_normal(shape)).to(dtype) for shape in shapes]


@pytest.mark.parametrize("images, channels, size", [(4, 64, 16), (4, 256, 14), (8, 256, 4)])
def test_these_sizes_go_by_tiles(images, channels, size):
    x, weight = normal((images, channels, size, size), (channels, channels, 3, 3))
    defined = F.conv2d(F.pad(x, (1, 2, 1, 1)), F.pad(weight, (0, 1)))      # windows of 3 x 4
    assert not tl.equal(F.conv2d(x, weight, padding=1), defined)           # in the last digits


@pytest.mark.parametrize("dtype, factor", [(tl.float32, 1e-6), (tl.float16, 1e-3),
                                           (tl.bfloat16, 8e-3)], ids=str)
def test_the_error_is_that_of_a_sum(dtype, factor):
    tensors = normal((4, 64, 16, 16), (64, 64, 3, 3), (4, 64, 16, 16), dtype=dtype)
    found, wanted = passes(*tensors, 1), passes(*(x.double() for x in tensors), 1)
    for one, other in zip(found, wanted):
        assert one.dtype == dtype
        assert ((one.double() - other).abs().max() < factor * other.abs().max()).item()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_spreads_no_further(value):
    x, weight, g = normal((2, 16, 14, 14), (20, 16, 3, 3), (2, 20, 14, 14))
    for changed in range(3):
        tensors = [x.clone(), weight.clone(), g.clone()]
        tensors[changed][1, 3, 1, 2] = value
        found, wanted = passes(*tensors, 1), passes(*(x.double() for x in tensors), 1)
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one.numpy(), other.float().numpy(), rtol=1e-4, atol=1e-4)


def test_sums_near_the_largest_number_do_not_overflow_before_the_result_does():
    x, weight, g = tl.full((4, 16, 8, 8), 3e38), tl.full((16, 16, 3, 3), 1e-3), tl.ones(4, 16, 8, 8)
    for one, other in zip(passes(x, weight, g * 1e-4, 1),
                          passes(x.double(), weight.double(), g.double() * 1e-4, 1)):
        assert one.isfinite().all()
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_bits_do_not_depend_on_the_other_images_or_on_threads():
    x, weight, g = normal((9, 32, 21, 13), (48, 32, 3, 3), (9, 48, 21, 13))
    before, found = tl.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            tl.set_num_threads(n_threads)
            found.append(passes(x, weight, g, 1))
    finally:
        tl.set_num_threads(before)
    for one, other in zip(*found):
        assert tl.equal(one, other)
    for first in range(9):
        y, back, _ = passes(x[first:first + 1], weight, g[first:first + 1], 1)
        assert tl.equal(y, found[0][0][first:first + 1])
        assert tl.equal(back, found[0][1][first:first + 1])
