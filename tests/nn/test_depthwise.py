"""Convolutions in which each channel is seen alone, against those of one channel at a time."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
import tensorlib.nn.functional as F

CONVS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def one_by_one(x, w, b, **options):
    """The same of each channel, which has one group."""
    conv, each = CONVS[x.ndim - 2], w.shape[0] // x.shape[1]
    return tl.cat([conv(x[:, i:i + 1], w[i * each:(i + 1) * each], b[i * each:(i + 1) * each],
                        **options) for i in range(x.shape[1])], 1)


def numbers(*shapes, dtype=tl.float32):
    rng = np.random.default_rng(len(shapes[0]))
    return [tl.tensor(rng.standard_normal(shape)).to(dtype).requires_grad_() for shape in shapes]


def with_gradients(function, xs, **options):
    out = function(*xs, **options)
    g = tl.tensor(np.random.default_rng(1).standard_normal(out.shape)).to(out.dtype)
    return [out, *tl.autograd.grad(out, xs, g)]


def assert_agree(x, w, groups, tolerance=1e-5, dtype=tl.float32, **options):
    b = (w[0],)
    given = numbers(x, w, b, dtype=dtype)
    wide = [t.detach().double().requires_grad_() for t in given]
    found = with_gradients(CONVS[len(x) - 2], given, groups=groups, **options)
    for a, c in zip(found, with_gradients(one_by_one, wide, **options)):
        a, c = a.detach().double().numpy(), c.detach().numpy()
        np.testing.assert_allclose(a, c, rtol=tolerance, atol=tolerance * np.abs(c).max())


SIZES = [(1, 1), (2, 3), (7, 5), (8, 16), (9, 17), (15, 31), (33, 32), (6, 70), (5, 129), (40, 64)]


@each("size", SIZES)
@each("kernel, padding", [
    ((1, 1), 0), ((3, 3), 1), ((3, 3), 3), ((2, 5), (1, 2))])
@each("stride", [1, 2, (2, 1), (1, 2)])
def test_images_of_all_sizes(size, kernel, padding, stride):
    assert_agree((2, 3, *size), (3, 1, *kernel), 3, padding=padding, stride=stride)


@each("size", [(3, 1), (20, 1), (31, 2), (14, 14), (9, 33), (6, 130)])
@each("tall", [3, 5, 6, 7])
@each("stride", [1, (1, 2), (2, 1)])
def test_windows_of_several_rows(size, tall, stride):
    assert_agree((2, 2, *size), (2, 1, tall, 3), 2, padding=(tall // 2, 1), stride=stride)


@each("options", [
    {}, {"dilation": 2}, {"dilation": 2, "stride": 2, "padding": 1}, {"dilation": (1, 3)},
    {"stride": 3, "padding": 2}, {"dilation": 2, "padding": 4}])
@each("outs", [1, 2, 3])
def test_dilations_and_several_results_of_a_channel(options, outs):
    assert_agree((2, 4, 11, 13), (4 * outs, 1, 3, 3), 4, **options)


@pytest.mark.parametrize("shape, kernel, options", [
    ((2, 3, 50), (5,), {"padding": 2}), ((1, 2, 7), (7,), {}), ((2, 3, 51), (4,), {"stride": 2}),
    ((2, 2, 3, 4, 5), (2, 3, 2), {"padding": 1}),
    ((1, 2, 5, 6, 7), (3, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 2, 4, 5, 18), (2, 2, 2), {"stride": (1, 2, 1)})])
def test_sequences_and_volumes(shape, kernel, options):
    assert_agree(shape, (shape[1], 1, *kernel), shape[1], **options)


@pytest.mark.parametrize("dtype, tolerance", [
    (tl.float64, 1e-12), (tl.float16, 5e-3), (tl.bfloat16, 4e-2)])
def test_other_dtypes(dtype, tolerance):
    for stride, size in itertools.product((1, 2), ((9, 17), (16, 8))):
        assert_agree((2, 3, *size), (3, 1, 3, 3), 3, tolerance, dtype, padding=1, stride=stride)


def test_long_and_large_planes():
    assert_agree((1, 2, 3, 9000), (2, 1, 3, 3), 2, padding=1)
    assert_agree((1, 2, 300, 3), (2, 1, 3, 3), 2, padding=1)        # rows too short for vectors
    assert_agree((1, 2, 4, 4), (2, 1, 3, 3), 2, padding=60, dilation=60)    # mostly zeros
    assert_agree((1, 2, 200, 210), (2, 1, 5, 5), 2, tolerance=1e-4, padding=2)


@pytest.mark.parametrize("stride", [1, 2])
def test_any_number_of_threads_gives_the_same_bits(stride):
    xs, before, found = numbers((8, 16, 33, 35), (16, 1, 3, 3), (16,)), tl.get_num_threads(), []
    try:
        for n_threads in (1, 2, 3):
            tl.set_num_threads(n_threads)
            found.append(with_gradients(F.conv2d, xs, groups=16, padding=1, stride=stride))
    finally:
        tl.set_num_threads(before)
    assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other))


def test_layouts_give_the_same_bits():
    x, w, b = (t.detach() for t in numbers((2, 6, 9, 11), (6, 1, 3, 3), (6,)))
    wanted = F.conv2d(x, w, b, padding=1, groups=6)
    for other in (x.transpose(1, 3).contiguous().transpose(1, 3),
                  tl.from_numpy(x.numpy()[..., ::-1].copy()[..., ::-1])):
        assert F.conv2d(other, w, b, padding=1, groups=6).equal(wanted)


@each("bad", [float("nan"), float("inf")])
@each("which", ["input", "weight", "gradient"])
@each("stride", [1, 2])
def test_what_is_not_finite_is_where_it_belongs(bad, which, stride):
    x, w, b = numbers((1, 2, 6, 7), (2, 1, 2, 2), (2,))
    g = tl.ones_like(F.conv2d(x, w, b, stride, groups=2))
    with tl.no_grad():
        {"input": x, "weight": w, "gradient": g}[which].view(-1)[-1] = bad
    out, same = F.conv2d(x, w, b, stride, groups=2), one_by_one(x, w, b, stride=stride)
    for found, wanted in zip((out, *tl.autograd.grad(out, (x, w), g)),
                             (same, *tl.autograd.grad(same, (x, w), g))):
        assert found.isfinite().equal(wanted.isfinite())


def test_no_images():
    x, w, b = numbers((0, 3, 5, 5), (3, 1, 3, 3), (3,))
    out = F.conv2d(x, w, b, groups=3)
    out.sum().backward()
    assert out.shape == (0, 3, 3, 3) and not w.grad.any() and x.grad.shape == x.shape


def test_transposed_convolutions():
    x, w, b = numbers((2, 3, 5, 6), (3, 1, 4, 4), (3,))
    options = {"stride": 2, "padding": 1}
    found = F.conv_transpose2d(x, w, b, groups=3, **options)
    wanted = tl.cat([F.conv_transpose2d(x[:, i:i + 1], w[i:i + 1], b[i:i + 1], **options)
                     for i in range(3)], 1)
    assert found.allclose(wanted, atol=1e-5)
