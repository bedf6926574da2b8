"""Gradients of inputs that are convolutions by the weight turned around, against sums of taps."""

import itertools

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn import functional as F


def put_back(g, weight, spatial, padding, dilation, groups):
    """The adjoint of a convolution of stride 1 for its input: element by element of a window."""
    images, ins = len(g), weight.shape[1]
    padded = [s + 2 * p for s, p in zip(spatial, padding)]
    found = np.zeros((images, groups, ins, *padded))
    parts = g.reshape(images, groups, -1, *g.shape[2:])
    weight = weight.reshape(groups, -1, *weight.shape[1:])
    for place in itertools.product(*map(range, weight.shape[3:])):
        to = tuple(slice(k * d, k * d + s) for k, d, s in zip(place, dilation, g.shape[2:]))
        found[(..., *to)] += np.einsum("bgo...,goc->bgc...", parts,
                                       weight[(slice(None), slice(None), slice(None), *place)])
    inner = tuple(slice(p, p + s) for p, s in zip(padding, spatial))
    return found[(..., *inner)].reshape(images, groups * ins, *spatial)


@st.composite
def adjoints(draw):
    n, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    kernel = draw(st.tuples(*[st.integers(1, 5)] * n))
    dilation = draw(st.tuples(*[st.integers(1, 2)] * n))
    padding = tuple(draw(st.integers(0, (k - 1) * d)) for k, d in zip(kernel, dilation))
    most = (600, 30, 12)[n - 1]         # so large that some have places enough, and others not
    spatial = tuple(draw(st.integers(max(1, (k - 1) * d + 1 - 2 * p), most))
                    for k, d, p in zip(kernel, dilation, padding))
    ins, outs = draw(st.integers(7, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    out = [s + 2 * p - (k - 1) * d for s, p, k, d in zip(spatial, padding, kernel, dilation)]
    weight = rng.integers(-3, 4, (groups * outs, ins, *kernel)).astype(float)
    g = rng.integers(-3, 4, (draw(st.integers(1, 3)), groups * outs, *out)).astype(float)
    return g, weight, spatial, padding, dilation, groups


@settings(max_examples=60, deadline=None)
@given(adjoints(), st.sampled_from(["float32", "float64"]))
def test_gradients_of_inputs(case, dtype):
    g, weight, spatial, padding, dilation, groups = case
    x = tl.zeros((len(g), weight.shape[1] * groups, *spatial), dtype=getattr(tl, dtype))
    function = (F.conv1d, F.conv2d, F.conv3d)[len(spatial) - 1]
    y = function(x.requires_grad_(), tl.tensor(weight.astype(dtype)), None, 1, padding, dilation,
                 groups)
    found, = tl.autograd.grad(y, x, tl.tensor(g.astype(dtype)))
    np.testing.assert_array_equal(found.numpy(), put_back(*case))        # whole numbers


@each("value", [np.inf, np.nan])
def test_an_infinite_weight_meets_no_zeros_beside_the_image(value):
    rng = np.random.default_rng(0)
    g, weight = rng.standard_normal((2, 4, 500)), rng.standard_normal((4, 9, 5))
    weight[1, 2, 0] = value
    x = tl.zeros(2, 9, 500, dtype=tl.float64, requires_grad=True)
    found, = tl.autograd.grad(F.conv1d(x, tl.tensor(weight), padding=2), x, tl.tensor(g))
    wanted = put_back(g, weight, (500,), (2,), (1,), 1)
    assert np.isfinite(wanted[:, 2, -2:]).all()
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-13)


@each("shape", [(7,), (4, 4), (5, 3), (2, 3, 4), (1, 1)])
@each("dtype", ["float32", "float64", "bfloat16"])
def test_images_that_are_one_window(shape, dtype):
    rng = np.random.default_rng(0)
    x, weight = rng.integers(-2, 3, (6, 8, *shape)), rng.integers(-2, 3, (9, 8, *shape))
    g = rng.integers(-2, 3, (6, 9))
    tensors = [tl.tensor(a, dtype=getattr(tl, dtype), requires_grad=True) for a in (x, weight)]
    y = (F.conv1d, F.conv2d, F.conv3d)[len(shape) - 1](*tensors)
    assert y.shape == (6, 9, *[1] * len(shape)) and y.is_contiguous()
    found = [y.detach(), *tl.autograd.grad(y, tensors, tl.tensor(g).to(y.dtype).view(y.shape))]
    rows, columns = x.reshape(6, -1), weight.reshape(9, -1)
    wanted = [rows @ columns.T, g @ columns, g.T @ rows]
    for one, other in zip(found, wanted):
        other = tl.tensor(other, dtype=tl.float32).to(y.dtype)
        assert tl.equal(one, other.view(one.shape))


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    x = tl.zeros(3, 16, 20, 20, requires_grad=True)
    weight = tl.tensor(rng.standard_normal((24, 16, 5, 5), np.float32))
    y = F.conv2d(x, weight, padding=2)
    g = tl.tensor(rng.standard_normal(y.shape, np.float32))
    before, found = tl.get_num_threads(), []
    try:
        for threads in (1, 2):
            tl.set_num_threads(threads)
            found.append(tl.autograd.grad(y, x, g, retain_graph=True)[0])
    finally:
        tl.set_num_threads(before)
    assert tl.equal(*found)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}])
def test_gradients_of_convolutions_as_functions(n, options):
    conv = getattr(nn.functional, f"conv{n}d")
    groups = options.get("groups", 1)
    x = tl.randn(2, 4, *(9, 8, 7)[:n], dtype=tl.float64, requires_grad=True)
    w = tl.randn(6, 4 // groups, *(3, 2, 2)[:n], dtype=tl.float64, requires_grad=True)
    out = conv(x, w, **options)
    g = tl.randn(*out.shape, dtype=tl.float64)
    for_x, for_w = tl.autograd.grad(out, (x, w), g)
    assert tl.equal(getattr(nn.grad, f"conv{n}d_input")(x.shape, w, g, **options), for_x)
    assert tl.equal(getattr(nn.grad, f"conv{n}d_weight")(x, w.shape, g, **options), for_w)
    with pytest.raises(RuntimeError, match=f"conv{n}d_input: expected grad_output of shape"):
        getattr(nn.grad, f"conv{n}d_input")(x.shape, w, g[:1], **options)
