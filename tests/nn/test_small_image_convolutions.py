"""Convolutions of small images: by large weights, whose images are multiplied together, and of many
images, which lie along the vectors."""

import numpy as np
import pytest
from cases import each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib._core.base import pool

pytestmark = pytest.mark.usefixtures("restore_threads")


def windows(x, kernel, stride, padding, dilation):
    """The elements of all windows of x (N, C, H, W), with NumPy: (N, C, KH, KW, OH, OW)."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    sizes = [(x.shape[d + 2] - (kernel[d] - 1) * dilation[d] - 1) // stride[d] + 1
             for d in range(2)]
    found = np.empty((*x.shape[:2], *kernel, *sizes), x.dtype)
    for i, j in np.ndindex(*kernel):
        rows, cols = (slice(at * dilation[d], at * dilation[d] + (sizes[d] - 1) * stride[d] + 1,
                            stride[d]) for d, at in enumerate((i, j)))
        found[:, :, i, j] = x[:, :, rows, cols]
    return found


def assert_exact(images, ins, outs, size, kernel, stride, padding, dilation, groups, dtype, seed):
    """Results and gradients are those of the definition, exactly, for small integers."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (images, groups * ins, *size)).astype(dtype)
    w = rng.integers(-3, 4, (groups * outs, ins, *kernel)).astype(dtype)
    parts = windows(x, kernel, stride, padding, dilation)
    parts = parts.reshape(images, groups, ins, *parts.shape[2:])
    expected = np.einsum("ngcijhw,gocij->ngohw", parts, w.reshape(groups, outs, ins, *kernel))
    g = rng.integers(-3, 4, (images, groups * outs, *expected.shape[3:])).astype(dtype)
    x, w = (tl.tensor(a, requires_grad=True) for a in (x, w))
    y = tl.conv2d(x, w, None, stride, padding, dilation, groups)
    gx, gw = tl.autograd.grad(y, (x, w), tl.tensor(g))
    # whole numbers, whose sums have no rounding
    assert np.array_equal(y.detach().numpy(), expected.reshape(g.shape))
    slopes = np.einsum("ngcijhw,ngohw->gocij", parts, g.reshape(expected.shape))
    assert np.array_equal(gw.numpy(), slopes.reshape(w.shape))
    # <y, g> is linear in x, so that the gradient of x times x is it
    assert (gx * x.detach()).sum().item() == (y.detach() * tl.tensor(g)).sum().item()
    probe = tl.tensor(rng.integers(-3, 4, x.shape).astype(dtype))
    assert (gx * probe).sum().item() == (
        tl.conv2d(probe, w.detach(), None, stride, padding, dilation, groups)
        * tl.tensor(g)).sum().item()


@each("case", [
    # images, ins, outs, size, kernel, stride, padding, dilation, groups
    (5, 190, 160, (4, 5), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 128, 256, (9, 8), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    (2, 130, 130, (7, 7), (4, 4), (2, 2), (1, 1), (1, 1), 1),
    (70, 64, 96, (8, 8), (4, 4), (2, 2), (1, 1), (1, 1), 1),
    (2, 70, 80, (9, 11), (5, 3), (3, 1), (2, 0), (1, 2), 1),
    (4, 66, 130, (6, 6), (3, 3), (1, 1), (2, 2), (2, 2), 2),
    (40, 256, 300, (2, 3), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (9, 300, 256, (5, 5), (2, 2), (2, 2), (0, 0), (1, 1), 1),
    (3, 40, 500, (16, 16), (4, 4), (1, 1), (2, 2), (1, 1), 1),
    (3, 130, 130, (3, 4), (1, 17), (1, 1), (0, 9), (1, 1), 1),
])
@each("dtype", ["float32", "float64"])
def test_values_and_gradients(case, dtype):
    assert_exact(*case, dtype, 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.tuples(st.integers(1, 9), st.integers(1, 9)),
       st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(*[st.integers(1, 4)] * 2),
       st.tuples(*[st.integers(0, 3)] * 2), st.tuples(*[st.integers(1, 2)] * 2), st.integers(0, 99))
def test_windows_of_every_kind(images, size, kernel, stride, padding, dilation, seed):
    assume(all(size[d] + 2 * padding[d] > (kernel[d] - 1) * dilation[d] for d in range(2)))
    ins = -(-(1 << 18) // (128 * kernel[0] * kernel[1]))
    assert_exact(images, ins, 128, size, kernel, stride, padding, dilation, 1, "float32", seed)


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    x, w = (tl.tensor(rng.standard_normal(shape, np.float32), requires_grad=True)
            for shape in ((12, 160, 7, 7), (200, 160, 3, 3)))
    found = []
    for threads in (1, 3):
        pool.set_num_threads(threads)
        y = tl.conv2d(x, w, padding=1)
        found.append((y.detach(), *tl.autograd.grad((y * y).sum(), (x, w))))
    assert all(tl.equal(a, b) for a, b in zip(*found))


@each("case", [
    (4096, 1, 1, (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    (100, 3, 8, (8, 8), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    (65, 3, 5, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (33, 2, 3, (9, 7), (2, 5), (2, 1), (1, 2), (2, 1), 1),
    (129, 8, 16, (10, 10), (5, 5), (1, 1), (0, 0), (1, 1), 1),
    (64, 1, 2, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1), 3),
    (200, 2, 2, (5, 1), (3, 1), (1, 1), (2, 0), (1, 1), 2),
])
@each("dtype", ["float32", "float64"])
def test_many_images(case, dtype):
    assert_exact(*case, dtype, 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(31, 140), st.integers(1, 4), st.integers(1, 5), st.integers(1, 2),
       st.tuples(*[st.integers(1, 9)] * 2), st.tuples(*[st.integers(1, 4)] * 2),
       st.tuples(*[st.integers(1, 3)] * 2), st.tuples(*[st.integers(0, 3)] * 2),
       st.tuples(*[st.integers(1, 2)] * 2), st.integers(0, 99))
def test_windows_of_every_kind_over_many_images(images, ins, outs, groups, size, kernel, stride,
                                                padding, dilation, seed):
    assume(all(size[d] + 2 * padding[d] > (kernel[d] - 1) * dilation[d] for d in range(2)))
    assert_exact(images, ins, outs, size, kernel, stride, padding, dilation, groups, "float32",
                 seed)


@each("dims", [1, 3])
def test_rows_and_volumes_of_many_images(dims):
    rng = np.random.default_rng(4)
    x = tl.tensor(rng.integers(-3, 4, (50, 2, *(4,) * dims)).astype("float32"))
    w = tl.tensor(rng.integers(-3, 4, (3, 2, *(2,) * dims)).astype("float32"))
    convolve = tl.conv1d if dims == 1 else tl.conv3d
    together = convolve(x, w, padding=1)
    assert tl.equal(together, tl.cat([convolve(part, w, padding=1) for part in x.split(10)]))


@each("value", [float("inf"), float("nan")])
def test_what_is_not_finite_in_many_images_is_where_it_is_in_a_few(value):
    """An infinity times the zeros around an image is NaN, and an image sees no other."""
    rng = np.random.default_rng(5)
    for which in range(3):
        x, w, g = (tl.tensor(rng.integers(-3, 4, shape).astype("float32")) for shape in (
            (40, 2, 5, 5), (3, 2, 3, 3), (40, 3, 5, 5)))
        (x, w, g)[which].view(-1)[7] = value
        x.requires_grad_(), w.requires_grad_()
        y = tl.conv2d(x, w, padding=1)
        few = [tl.conv2d(part, w, padding=1) for part in x.split(8)]
        assert tl.equal(y.isnan(), tl.cat(few).isnan())
        assert tl.equal(y.isinf(), tl.cat(few).isinf())
        (gx,) = tl.autograd.grad(y, x, g, retain_graph=True)
        apart = tl.cat([tl.autograd.grad(few[i], x, part, retain_graph=True)[0][8 * i:8 * i + 8]
                        for i, part in enumerate(g.split(8))])
        assert tl.equal(gx.isnan(), apart.isnan()) and tl.equal(gx.isinf(), apart.isinf())
        (gw,) = tl.autograd.grad(y, w, g)
        assert tl.equal(gw.isfinite(), sum(
            tl.autograd.grad(few[i], w, part)[0] for i, part in enumerate(g.split(8))).isfinite())


def test_many_images_give_the_same_bits_with_any_number_of_threads():
    x = tl.randn(1000, 3, 6, 6).requires_grad_()
    w = tl.randn(5, 3, 3, 3).requires_grad_()
    found = []
    for threads in (1, 2, 3):
        tl.set_num_threads(threads)
        y = tl.conv2d(x, w, padding=1)
        found.append([y, *tl.autograd.grad(y, (x, w), tl.ones_like(y))])
    assert all(tl.equal(a, b) for one in found[1:] for a, b in zip(found[0], one))
