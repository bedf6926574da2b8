"""Convolutions of bfloat16 beside those of float64, with gradients: whatever the sizes, the results
are rounded once, with the same bits for any number of threads."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

CASES = {
    "odd channels": ((2, 5, 9, 11), (9, 5, 3, 3), {"padding": 1}),
    "strides": ((2, 8, 12, 7), (33, 8, 3, 5), {"padding": (1, 2), "stride": (2, 1)}),
    "volumes": ((1, 7, 6, 7, 8), (16, 7, 3, 3, 3), {"padding": 1}),
    "sequences": ((3, 64, 20), (17, 64, 4), {"stride": 3, "padding": 2, "dilation": 2}),
    "groups": ((2, 12, 14, 14), (16, 6, 5, 5), {"groups": 2, "padding": 4}),
    "strips": ((2, 64, 40, 40), (40, 64, 3, 3), {"padding": 1}),
    "parts of taps": ((2, 300, 5, 5), (9, 300, 3, 3), {}),
    "a large weight": ((3, 130, 12, 12), (64, 130, 5, 5), {"padding": 2}),
    "one element": ((2, 40, 6, 6), (24, 40, 1, 1), {}),
    "planes in parts": ((3, 20, 13, 16), (40, 20, 3, 4), {"padding": (2, 1), "stride": (2, 3)}),
    "dilated groups": ((2, 34, 9, 12), (66, 17, 2, 3), {"groups": 2, "dilation": (2, 1)}),
    "images in turns": ((9, 64, 32, 32), (16, 64, 3, 3), {"padding": 1}),
    "places of many images": ((33, 48, 4, 4), (33, 48, 3, 3), {"padding": 1, "stride": 2}),
    "short windows": ((2, 33, 30), (16, 33, 2), {"padding": 1}),
    "rows of sixteen windows": ((2, 20, 6, 40), (12, 20, 3, 3), {"padding": 1}),
    "every other window": ((1, 64, 5, 70), (50, 64, 3, 3), {"padding": 1, "stride": (1, 2)}),
    "dilated taps of few channels": ((2, 4, 8, 36), (40, 4, 5, 5), {"dilation": 2, "padding": 4}),
    "volumes in parts": ((2, 16, 5, 6, 7), (16, 16, 3, 3, 3), {"padding": 1, "stride": 2}),
}


def drawn(shape, seed):
    return tl.tensor(np.random.default_rng(seed).standard_normal(shape)).bfloat16()


def with_gradients(function, x, w, b, options, g=None):
    x, w, b = (y.detach().requires_grad_() for y in (x, w, b))
    y = function(x, w, b, **options)
    g = drawn(y.shape, 4).to(y.dtype) if g is None else g
    return [y.detach(), *tl.autograd.grad(y, (x, w, b), g)]


def assert_rounded_once(function, x, w, b, options):
    """Results and gradients of bfloat16 are those of float64, rounded once, for any threads."""
    found = with_gradients(function, x, w, b, options)
    wanted = with_gradients(function, x.double(), w.double(), b.double(), options)
    for rounded, exact in zip(found, wanted):
        assert rounded.dtype == tl.bfloat16
        rounded, exact = rounded.double().numpy(), exact.numpy()
        assert (np.abs(rounded - exact)
                <= np.abs(exact) * 2.0 ** -8 + np.abs(exact).max() * 2.0 ** -16).all()
    before = tl.get_num_threads()
    try:
        tl.set_num_threads(before + 1)
        again = with_gradients(function, x, w, b, options)
    finally:
        tl.set_num_threads(before)
    assert all(map(tl.equal, found, again))


@each("case", CASES)
def test_convolutions_round_once(case):
    sizes, weight, options = CASES[case]
    assert_rounded_once(getattr(F, f"conv{len(sizes) - 2}d"), drawn(sizes, 1), drawn(weight, 2),
                        drawn(weight[:1], 3), options)


@each("case", [case for case in CASES if len(CASES[case][0]) == 4])
def test_channels_that_lie_beside_each_other_give_the_same_bits(case):
    sizes, weight, options = CASES[case]
    beside = {"memory_format": tl.channels_last}
    x, w, b = drawn(sizes, 1), drawn(weight, 2), drawn(weight[:1], 3)
    found = with_gradients(F.conv2d, x.contiguous(**beside), w.contiguous(**beside), b, options)
    assert found[0].is_contiguous(**beside)
    assert all(map(tl.equal, found, with_gradients(F.conv2d, x, w, b, options)))


@each("value", [np.inf, -np.inf, np.nan])
@each("place, width, stride", [
    ((0, 0), 7, 2), ((4, 6), 7, 2), ((6, 6), 7, 2), ((3, 17), 40, 1)])
def test_a_number_that_is_not_finite_reaches_the_elements_that_see_it(value, place, width, stride):
    x, w, b = drawn((2, 20, 7, width), 1), drawn((18, 20, 3, 3), 2), drawn((18,), 3)
    x[1, 3][place] = value
    options = {"padding": 1, "stride": stride}
    found = with_gradients(F.conv2d, x, w, b, options)
    wanted = with_gradients(F.conv2d, x.double(), w.double(), b.double(), options)
    for rounded, exact in zip(found, wanted):
        tl.testing.assert_close(rounded.double(), exact, rtol=0.02, atol=0.2, equal_nan=True)


@pytest.mark.parametrize("sizes, weight, options", [
    ((2, 24, 7, 7), (24, 20, 4, 4), {"stride": 2, "padding": 1}),
    ((1, 33, 5, 6), (33, 8, 3, 3), {"padding": 1}),
    ((2, 8, 4, 4, 4), (8, 6, 2, 2, 2), {"stride": 2, "groups": 2}),
])
def test_transposed_convolutions_round_once(sizes, weight, options):
    outs = weight[1] * options.get("groups", 1)
    assert_rounded_once(getattr(F, f"conv_transpose{len(sizes) - 2}d"), drawn(sizes, 1),
                        drawn(weight, 2),
                        drawn((outs,), 3), options)


@pytest.mark.parametrize("dtype", [tl.bfloat16, tl.float16])
def test_captured_convolutions_with_a_bias_are_those_that_run_eagerly(dtype):
    module = tl.nn.Conv2d(8, 20, 3, padding=1).to(dtype)
    x = drawn((2, 8, 9, 9), 1).to(dtype)
    compiled = tl.compile(module)
    found = [compiled(x) for _ in range(3)]
    assert all(tl.equal(y, module(x)) for y in found)
    found[-1].sum().backward()
    captured = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module(x).sum().backward()
    assert all(map(tl.equal, captured, (p.grad for p in module.parameters())))


@pytest.mark.parametrize("dtype", [tl.bfloat16, tl.float16])
def test_convolutions_with_a_bias_map_and_move_forward(dtype):
    x, w, b = drawn((3, 2, 4, 7), 1).to(dtype), drawn((5, 4, 3), 2).to(dtype), drawn((5,), 3)
    b = b.to(dtype)
    mapped = tl.func.vmap(F.conv1d, (0, None, None))(x, w, b)
    assert all(map(tl.equal, mapped, (F.conv1d(each, w, b) for each in x)))
    moved = tl.func.jvp(lambda *a: F.conv1d(x[0], *a), (w, b), (w, b))[1]
    tl.testing.assert_close(moved, F.conv1d(x[0], w, b), rtol=0.02, atol=0.02)
    moved = tl.func.jvp(lambda *a: F.linear(x[0].mT, *a), (w[..., 0], b), (w[..., 0], b))[1]
    assert moved.dtype == dtype
