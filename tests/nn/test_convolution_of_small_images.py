"""Convolutions of small images by large weights, whose images are multiplied together."""

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib._core.base import pool


@pytest.fixture(autouse=True)
def restore_threads():
    before = pool.get_num_threads()
    yield
    pool.set_num_threads(before)


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


def check(images, ins, outs, size, kernel, stride, padding, dilation, groups, dtype, seed):
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
    check(*case, dtype, 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 20), st.tuples(st.integers(1, 9), st.integers(1, 9)),
       st.tuples(st.integers(1, 4), st.integers(1, 4)), st.tuples(*[st.integers(1, 4)] * 2),
       st.tuples(*[st.integers(0, 3)] * 2), st.tuples(*[st.integers(1, 2)] * 2), st.integers(0, 99))
def test_windows_of_every_kind(images, size, kernel, stride, padding, dilation, seed):
    for d in range(2):
        if size[d] + 2 * padding[d] < (kernel[d] - 1) * dilation[d] + 1:
            return
    ins = -(-(1 << 18) // (128 * kernel[0] * kernel[1]))
    check(images, ins, 128, size, kernel, stride, padding, dilation, 1, "float32", seed)


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
