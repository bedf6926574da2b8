"""Convolutions of images that are split by the stride, or cut into strips, against sums of taps."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.convolutions import convolution
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close


def by_taps(x, weight, stride, padding, dilation):
    """The convolution as a sum over the elements of a window."""
    top, left = padding
    x = np.pad(x, ((0, 0), (0, 0), (top, top), (left, left)))
    high, wide = [(x.shape[2 + d] - (weight.shape[2 + d] - 1) * dilation[d] - 1) // stride[d] + 1
                  for d in range(2)]
    found = 0.0
    for i in range(weight.shape[2]):
        for j in range(weight.shape[3]):
            rows = slice(i * dilation[0], None, stride[0])
            columns = slice(j * dilation[1], None, stride[1])
            part = x[:, :, rows, columns][:, :, :high, :wide]
            found = found + np.tensordot(part, weight[:, :, i, j], (1, 1))
    return np.moveaxis(found, 3, 1)


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, shape).astype(float) for shape in shapes]


CASES = [
    # image, kernel, stride, padding, dilation
    ((9, 11), (3, 3), 2, 1, 1), ((8, 12), (3, 3), 2, 0, 1), ((13, 7), (2, 3), 2, 1, 2),
    ((13, 14), (3, 4), 3, 2, 1), ((20, 21), (8, 8), 4, 0, 1), ((17, 19), (5, 4), 4, 3, 1),
    ((3, 3), (3, 3), 2, 3, 1), ((1, 5), (3, 3), 2, 1, 1), ((6, 6), (2, 2), 2, 0, 1),
    ((12, 12), (3, 3), (2, 1), 1, 1), ((12, 12), (5, 5), 5, 2, 1), ((4, 40), (3, 3), 1, 0, 1),
    ((7, 35), (3, 3), 1, (0, 5), 1), ((40, 33), (3, 3), 1, 1, 1), ((90, 90), (3, 3), 2, 1, 1),
    ((95, 101), (5, 5), 2, 2, 1), ((70, 66), (3, 3), 1, (0, 1), (3, 2)), ((70, 3), (5, 3), 1, 4, 1),
    ((200, 7), (3, 3), (3, 1), (5, 1), 1),
]


@each("ins, outs", [(6, 5), (35, 41)])       # by columns, and where they lie
@each("size, kernel, stride, padding, dilation", CASES, ids=str)
def test_windows_of_any_step_see_what_they_should(size, kernel, stride, padding, dilation, ins,
                                                  outs):
    x, weight = drawn((2, ins, *size), (outs, ins, *kernel))
    pairs = [n if isinstance(n, tuple) else (n, n) for n in (stride, padding, dilation)]
    wanted = by_taps(x, weight, *pairs)                                         # whole numbers
    for dtype in "float32", "float64":
        found = F.conv2d(tl.from_numpy(x.astype(dtype)), tl.from_numpy(weight.astype(dtype)), None,
                         stride, padding, dilation)
        np.testing.assert_array_equal(found.numpy(), wanted)


@each("size, kernel, stride, padding, dilation", CASES, ids=str)
def test_unfolded_windows_see_the_same(size, kernel, stride, padding, dilation):
    x, weight = drawn((2, 6, *size), (5, 6, *kernel))
    pairs = [n if isinstance(n, tuple) else (n, n) for n in (stride, padding, dilation)]
    columns = F.unfold(tl.from_numpy(x), kernel, dilation, padding, stride)
    wanted = by_taps(x, weight, *pairs)
    np.testing.assert_array_equal(
        (tl.from_numpy(weight.reshape(5, -1)) @ columns).numpy(), wanted.reshape(2, 5, -1))


@each("ins", [6, 40])                        # columns of all channels at once, and of some
@each("size, kernel, stride, padding, dilation", CASES, ids=str)
def test_windows_go_back_to_where_they_were_seen(size, kernel, stride, padding, dilation, ins):
    x, weight = drawn((2, ins, *size), (5, ins, *kernel))
    pairs = [n if isinstance(n, tuple) else (n, n) for n in (stride, padding, dilation)]
    turned = x, np.roll(x, 1, 3)
    seen = [by_taps(y, weight, *pairs) for y in turned]
    g, = drawn(seen[0].shape)
    more = [(s + 2 * p - d * (k - 1) - 1) % t for s, k, t, p, d in zip(size, kernel, *pairs)]
    for dtype in "float32", "float64":
        back = F.conv_transpose2d(
            tl.from_numpy(g.astype(dtype)), tl.from_numpy(weight.astype(dtype)), None, stride,
            padding, more, 1, dilation).double().numpy()
        for y, seen_of_y in zip(turned, seen):                                  # whole numbers
            assert (back * y).sum() == (seen_of_y * g).sum()


def test_plans_of_sizes_are_told_apart_by_type():
    x, weight = tl.ones(1, 1, 5, 5), tl.ones(1, 1, 2, 2)
    for stride in 2, (2, 2), [2, 2]:
        assert F.conv2d(x, weight, stride=stride).shape == (1, 1, 2, 2)
        assert F.conv_transpose2d(x, weight, stride=stride).shape == (1, 1, 10, 10)
    for stride in 2.0, (2.0, 2), "2":
        for function in F.conv2d, F.conv_transpose2d, F.max_pool2d:
            with pytest.raises(TypeError):
                function(x, weight if function is not F.max_pool2d else 2, stride=stride)
    bias = tl.ones(1)
    out = F.conv2d(x, weight, bias)
    assert bias.item() == 1 and out.unique().tolist() == [5.0] and not out.requires_grad
    assert F.conv2d(x, weight, bias.requires_grad_()).requires_grad


@pytest.mark.parametrize("ins, outs", [(2, 3), (13, 17)])
def test_strips_of_groups_and_images_lie_side_by_side(ins, outs):
    x, weight = drawn((3, 2 * ins, 61, 67), (2 * outs, ins, 3, 3))
    found = F.conv2d(tl.from_numpy(x), tl.from_numpy(weight), None, 1, 1, 1, 2)
    for group in range(2):
        first, last = slice(group * ins, (group + 1) * ins), slice(group * outs, (group + 1) * outs)
        wanted = by_taps(x[:, first], weight[last], (1, 1), (1, 1), (1, 1))
        np.testing.assert_array_equal(found[:, last].numpy(), wanted)


@each("dtype", ["float32", "float64"])
@each("outs", [1, 2, 6, 7, 13, 32])          # rows that meet a run together
@each("wide", [2, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 47, 64, 100])
def test_runs_of_any_length_are_whole(wide, outs, dtype):
    for padding, dilation in (((0, 0), (1, 1)), ((2, 1), (1, 2)), ((0, 40), (3, 1))):
        x, weight = drawn((2, 3, 6, wide + 2), (outs, 3, 2, 3))
        x[:, :, 3, 1], x[:, :, :, -1] = np.inf, np.nan
        found = F.conv2d(tl.from_numpy(x.astype(dtype)), tl.from_numpy(weight.astype(dtype)),
                         None, (3, 1), padding, dilation)
        with np.errstate(invalid="ignore"):
            wanted = by_taps(x, weight, (3, 1), padding, dilation)
        np.testing.assert_array_equal(found.numpy(), wanted)        # whole numbers


@each("dtype", ["float32", "float64"])
@each("places", [15, 16, 32, 61])            # in a row of the result
@each("stride", [1, 2, 3])
def test_runs_of_wide_windows_with_strides_are_whole(stride, places, dtype):
    for kernel, padding, dilation in (((7, 7), 3, 1), ((2, 5), 0, 2), ((4, 6), 9, 1)):
        wide = (places - 1) * stride + (kernel[1] - 1) * dilation + 1 - 2 * padding
        if wide < 1:
            wide, padding = wide + 2 * padding, 0
        x, weight = drawn((2, 3, 13, wide), (20, 3, *kernel))
        x[:, :, 3, wide // 2], x[:, :, :, -1] = np.inf, np.nan
        found = F.conv2d(tl.from_numpy(x.astype(dtype)), tl.from_numpy(weight.astype(dtype)),
                         None, stride, padding, dilation)
        with np.errstate(invalid="ignore"):
            wanted = by_taps(x, weight, *[(n, n) for n in (stride, padding, dilation)])
        np.testing.assert_array_equal(found.numpy(), wanted)        # whole numbers


@pytest.mark.parametrize("padding", [0, 1, (2, 0, 3)])
@pytest.mark.parametrize("stride", [1, (2, 3, 1)])
def test_volumes_and_sequences_are_the_same(stride, padding):
    x, weight = drawn((2, 11, 7, 9, 8), (19, 11, 2, 3, 2))
    found = F.conv3d(tl.from_numpy(x), tl.from_numpy(weight), None, stride, padding)
    depth, top, left = padding if isinstance(padding, tuple) else (padding,) * 3
    steps = stride if isinstance(stride, tuple) else (stride,) * 3
    planes = np.pad(x, ((0, 0), (0, 0), (depth, depth), (0, 0), (0, 0)))
    for i in range(found.shape[2]):
        wanted = sum(by_taps(planes[:, :, i * steps[0] + a], weight[:, :, a], steps[1:],
                             (top, left), (1, 1)) for a in range(2))
        np.testing.assert_array_equal(found[:, :, i].numpy(), wanted)
    sequence = F.conv1d(tl.from_numpy(x[:, :, 0, 0]), tl.from_numpy(weight[:, :, 0, 0]), padding=1)
    np.testing.assert_array_equal(sequence.numpy(), by_taps(
        x[:, :, :1, 0], weight[:, :, :1, 0], (1, 1), (0, 1), (1, 1))[:, :, 0])


def test_what_lies_beside_an_infinity_or_nan_is_as_without_it():
    x = np.zeros((1, 1, 20, 20))
    x[0, 0, 7, 9], x[0, 0, 12, 2] = np.inf, np.nan
    for stride, padding in ((1, 0), (2, 1), (3, 0)):
        found = F.conv2d(tl.from_numpy(x), tl.ones(1, 1, 3, 3, dtype=tl.float64), None, stride,
                         padding)
        wanted = by_taps(x, np.ones((1, 1, 3, 3)), (stride,) * 2, (padding,) * 2, (1, 1))
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("stride", [1, 2])
def test_one_large_image_has_the_same_bits_on_two_threads(stride):
    rng = np.random.default_rng(1)
    x, weight = (tl.from_numpy(rng.standard_normal(shape).astype("float32"))
                 for shape in ((1, 16, 90, 90), (24, 16, 3, 3)))
    before, found = tl.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            tl.set_num_threads(n_threads)
            found.append(F.conv2d(x, weight, None, stride, 1).numpy())
    finally:
        tl.set_num_threads(before)
    np.testing.assert_array_equal(*found)
    assert_close(found[0], by_taps(x.numpy().astype(float), weight.numpy(), (stride,) * 2,
                                   (1, 1), (1, 1)).astype("float32"), rtol=1e-4, atol=1e-4)


def test_passes_are_adjoint_for_sizes_that_no_convolution_has_too():
    """Results may be larger than windows fit, in which case these see zeros."""
    rng = np.random.default_rng(7)

    def pick(*choices):
        return choices[rng.integers(len(choices))]

    for _ in range(300):
        dims, groups = pick(1, 2, 2, 3), pick(1, 1, 2)
        images, ins, outs = pick(1, 2, 3), pick(1, 3, 16, 24), pick(1, 8, 17, 33)
        size, kernel, stride, padding, dilation, out = [
            tuple(pick(*choices) for _ in range(dims)) for choices in (
                (1, 2, 5, 8, 11), (1, 2, 3, 3, 4), (1, 1, 2, 5), (0, 0, 1, 2, 5, 20), (1, 1, 2, 7),
                (0, 1, 4, 9, 16))]
        options = (stride, padding, dilation, groups)
        x, weight, g = (tl.from_numpy(rng.standard_normal(shape)) for shape in (
            (images, ins * groups, *size), (outs * groups, ins, *kernel),
            (images, outs * groups, *out)))
        for dtype, factor in ((tl.float64, 1e-12), (tl.float32, 1e-5)):
            a, b, c = (tensor.to(dtype) for tensor in (x, weight, g))
            y = convolution.convolve(a, b, out, options).double()
            for wanted, found in (
                    (x, convolution.convolve_input(c, b, size, options)),
                    (weight, convolution.convolve_weight(c, a, kernel, options))):
                scale = 1 + (y.abs() * g.abs()).sum().item()
                gap = (y * g).sum() - (wanted * found.double()).sum()
                assert abs(gap.item()) < factor * scale, (size, kernel, out, options)


@each("size, kernel, stride, padding", [
    ((20, 30, 31), (3, 3, 3), 1, 1), ((20, 30, 31), (3, 3, 3), 2, 1),
    ((1, 200, 60), (1, 5, 5), 1, 2),
    ((50, 9, 9), (3, 1, 2), 1, 0)])
@each("dtype", ["float32", "float64"])
def test_volumes_and_large_images_are_cut_into_strips(size, kernel, stride, padding, dtype):
    rng = np.random.default_rng(1)
    padding = tuple(padding if k > 1 else 0 for k in kernel)
    x, weight = (rng.integers(-3, 4, shape).astype(dtype) for shape in (
        (2, 5, *size), (7, 5, *kernel)))
    x, weight = (tl.from_numpy(a).requires_grad_() for a in (x, weight))
    y = F.conv3d(x, weight, None, stride, padding)
    g = tl.from_numpy(rng.integers(-3, 4, y.shape).astype(dtype))
    wide = np.pad(x.detach().numpy(), [(0, 0)] * 2 + [(p, p) for p in padding])
    windows = np.lib.stride_tricks.sliding_window_view(wide, kernel, (2, 3, 4))
    windows = windows[:, :, ::stride, ::stride, ::stride]
    np.testing.assert_array_equal(
        y.detach().numpy(), np.einsum("bcdhwijk,ocijk->bodhw", windows, weight.detach().numpy(),
                                      optimize=True))
    found, = tl.autograd.grad(y, weight, g)
    for tap in np.ndindex(*kernel):
        np.testing.assert_array_equal(found[(..., *tap)].numpy(), np.einsum(
            "bcdhw,bodhw->oc", windows[(..., *tap)], g.numpy()))
