"""Layers on images whose channels lie beside each other: how what they give lies, and its values.

As in PyTorch: where the strides of an image say that its channels come last in memory, be it cut
out of a larger one, those of the result do, too; of a convolution also where its weight says it.
The gradient of a leaf lies as the leaf does, or row by row where that has gaps.
"""

import warnings

import numpy as np
import pytest
from cases import each
from image_layouts import (
    CONVOLUTIONS, LAYERS, cases, images, lies_last, strides_of, told_apart, weights,
)

import tensorlib as tl
from tensorlib.nn import functional as F


def given(shape, form, last, sizes, device="cpu"):
    """The arguments of a layer."""
    taken = [images(tl, shape, form), *([] if sizes is None else [weights(tl, sizes, last)])]
    if device == "meta":
        return [tl.empty_strided(x.shape, x.stride(), device="meta") for x in taken]
    return [x.requires_grad_() for x in taken]


def wanted_last(layer, args):
    return any(lies_last(x.shape, x.stride())
               for x in (args if layer in CONVOLUTIONS else args[:1]))


@each("layer", LAYERS)
def test_results_and_gradients_lie_as_those_of_pytorch(layer):
    function, _ = LAYERS[layer]
    for case in cases(layer):
        args = given(*case)
        plain = [x.detach().clone(memory_format=tl.contiguous_format).requires_grad_()
                 for x in args]
        out, other = function(tl, *args), function(tl, *plain)
        assert told_apart(out.shape, out.stride()) == strides_of(
            out.shape, wanted_last(layer, args)), (case, out.stride())
        tl.testing.assert_close(out, other, rtol=1e-4, atol=1e-5)
        g = tl.arange(1.0, 1.0 + out.numel()).reshape(out.shape).sin()
        out.backward(g)
        other.backward(g)
        for x, y in zip(args, plain):
            dense = x.stride() == tl.empty_like(x).stride()
            assert told_apart(x.shape, x.grad.stride()) == (
                told_apart(x.shape, x.stride()) if dense else strides_of(x.shape, False)), case
            tl.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-4)


@each("layer", LAYERS)
def test_captured_layers_and_those_on_meta_lay_out_the_same(layer):
    function, _ = LAYERS[layer]
    for case in cases(layer):
        captured = tl.compile(lambda *args: function(tl, *args))
        if case[1] in ("last, some channels", "last, some images"):
            continue
        args, others = given(*case), given(*case)
        out, replayed = function(tl, *args), captured(*others)
        on_meta = function(tl, *given(*case, device="meta"))
        assert out.stride() == replayed.stride(), case
        assert told_apart(out.shape, out.stride()) == told_apart(out.shape, on_meta.stride()), case
        assert tl.equal(out, replayed)
        out.sum().backward()
        replayed.sum().backward()
        for x, y in zip(args, others):
            assert x.grad.stride() == y.grad.stride() and tl.equal(x.grad, y.grad), case


# What joins or pads more than images, or normalises groups, is laid out row by row in a batch.
UNBATCHED = {"cat", "pad", "group_norm", "group_norm, each"}


@each("layer", [layer for layer in LAYERS if layer not in UNBATCHED])
def test_examples_of_a_batch_are_laid_out_as_one(layer):
    function, sizes = LAYERS[layer]
    for shape in (2, 4, 5, 6), (2, 4, 3, 4, 5):
        x = tl.stack([images(tl, shape, "rows") * k for k in (1, 2, 3)]).movedim(2, -1)
        x = x.contiguous().movedim(-1, 2)
        rest = [] if sizes is None else [weights(tl, sizes(shape), False)]
        found = tl.vmap(lambda y: function(tl, y, *rest))(x)
        for got, wanted in zip(found, [function(tl, y, *rest) for y in x]):
            tl.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
            assert told_apart(got.shape, got.stride()) == told_apart(
                wanted.shape, wanted.stride())


SIZES = (
    # images, outs, groups, kernel, then stride, padding, dilation
    ((2, 16, 9, 7), 16, 16, 3, (1, 1, 1)), ((2, 24, 12, 12), 24, 24, 3, (2, 1, 1)),
    ((1, 20, 11, 30), 20, 20, 5, (1, 2, 1)), ((2, 24, 9, 13), 24, 24, 3, (2, 0, 2)),
    ((2, 24, 9, 13), 24, 24, 4, (3, 2, 1)), ((2, 70, 3, 3), 70, 70, 3, (1, 2, 1)),
    ((2, 16, 9, 9), 32, 16, 3, (1, 1, 1)), ((2, 32, 10, 10), 40, 1, 3, (1, 1, 1)),
    ((3, 33, 10, 11), 19, 1, 3, (1, 1, 1)), ((3, 17, 10, 11), 19, 1, 3, (2, 1, 1)),
    ((2, 32, 10, 10), 32, 2, 3, (1, 1, 1)), ((2, 3, 20, 20), 16, 1, 7, (2, 3, 1)),
    ((2, 130, 14, 14), 36, 1, 3, (1, 1, 1)), ((40, 3, 8, 8), 6, 1, 3, (1, 1, 1)),
    ((2, 32, 10, 10), 64, 4, 1, (1, 0, 1)), ((2, 8, 3, 3), 9, 1, 3, (1, 0, 1)),
    ((1, 8, 120, 9), 9, 1, 3, (1, 1, 2)), ((2, 16, 4, 5, 6), 16, 16, 3, (2, 1, 1)),
    ((2, 6, 4, 5, 6), 16, 1, 2, (1, 1, 1)),
    ((2, 6, 8, 10), 9, 1, 2, (2, 0, 1)), ((1, 5, 4, 6, 8), 7, 1, 2, (2, 0, 1)),
    ((2, 16, 9, 8), 24, 1, 1, (2, 0, 1)), ((2, 5, 4, 7, 6), 3, 1, 1, (3, 0, 1)),
    ((1, 17, 3, 530), 17, 17, 3, (1, 1, 1)), ((1, 32, 40, 20), 32, 32, 3, (1, 1, 1)),
)


def passes(case, last, dtype, weight_of=None):
    """The result of a convolution with a bias, and its gradients."""
    shape, outs, groups, kernel, (stride, padding, dilation) = case
    rng, n = np.random.default_rng(len(shape) + outs), len(shape) - 2
    x = tl.tensor(rng.normal(size=shape)).to(dtype)
    w = tl.tensor(rng.normal(size=(outs, shape[1] // groups, *(kernel,) * n))).to(dtype)
    if weight_of is not None:
        weight_of(w)
    b = tl.tensor(rng.normal(size=outs)).to(dtype)
    if last:
        x = x.contiguous(memory_format=tl.channels_last if n == 2 else tl.channels_last_3d)
    args = [a.requires_grad_() for a in (x, w, b)]
    out = (F.conv2d if n == 2 else F.conv3d)(*args, stride, padding, dilation, groups)
    g = tl.tensor(np.random.default_rng(1).normal(size=out.shape)).to(dtype)
    out.backward(tl.empty_like(out).copy_(g))
    return [out.detach(), *(a.grad for a in args)]


@each("case", SIZES, ids=str)
def test_convolutions_have_the_values_of_planes(case):
    for dtype, close in ((tl.float32, 1e-4), (tl.float64, 1e-11), (tl.float16, 2e-2)):
        for found, wanted in zip(passes(case, True, dtype), passes(case, False, dtype)):
            scale = wanted.float().abs().max().item()
            tl.testing.assert_close(found.contiguous(), wanted, rtol=close, atol=close * scale)


@each("case", SIZES, ids=str)
def test_zeros_around_images_meet_what_is_not_finite_as_in_planes(case):
    """Zero times infinity is NaN."""
    def spoil(w):
        w.view(-1)[0] = float("inf")
    for found, wanted in zip(passes(case, True, tl.float32, spoil),
                             passes(case, False, tl.float32, spoil)):
        assert tl.equal(found.isnan(), wanted.isnan())
        assert tl.equal(found.isinf(), wanted.isinf())


def test_threads_convolve_to_the_same_bits():
    before, bits = tl.get_num_threads(), set()
    try:
        for threads in 1, 2, 3:
            tl.set_num_threads(threads)
            bits.add(b"".join(y.contiguous().numpy().tobytes() for case in SIZES
                              for y in passes(case, True, tl.float32)))
    finally:
        tl.set_num_threads(before)
    assert len(bits) == 1


@pytest.mark.parametrize("twice, halves", [(False, False), (True, False), (False, True)])
def test_a_captured_training_step_has_the_bits_and_layouts_of_an_eager_one(twice, halves):
    def model():
        tl.manual_seed(0)
        return tl.nn.Sequential(
            tl.nn.Conv2d(4, 16, 1, bias=False), tl.nn.BatchNorm2d(16), tl.nn.ReLU6(),
            tl.nn.Conv2d(16, 16, 3, padding=1, groups=16), tl.nn.BatchNorm2d(16), tl.nn.ReLU6(),
            tl.nn.Conv2d(16, 4, 3, padding=1)).to(memory_format=tl.channels_last)

    def step(m, optimizer, x):
        optimizer.zero_grad()
        for _ in range(1 + twice):
            with tl.autocast("cpu", tl.bfloat16, enabled=halves):
                loss = (x + m(x)).square().mean()
            loss.backward()
        tl.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        optimizer.step()

    x, found = images(tl, (3, 4, 7, 6), "last"), []
    for run in step, tl.compile(step):
        m = model()
        optimizer = tl.optim.SGD(m.parameters(), 0.1, momentum=0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                run(m, optimizer, x)
        found.append([*(p.detach() for p in m.parameters()), *(p.grad for p in m.parameters())])
    for eager, captured in zip(*found):
        assert tl.equal(eager, captured) and eager.stride() == captured.stride()


def test_a_module_gives_its_weights_a_format_and_these_give_it_to_results():
    model = tl.nn.Sequential(tl.nn.Conv2d(4, 6, 3), tl.nn.BatchNorm2d(6), tl.nn.Conv2d(6, 5, 2))
    x = images(tl, (2, 4, 7, 6), "rows")
    assert model(x).is_contiguous()
    model(x).sum().backward()
    model.to(memory_format=tl.channels_last)
    for p in model.parameters():
        assert p.is_contiguous() if p.ndim == 1 else p.stride(1) == p.grad.stride(1) == 1
    assert model(x).is_contiguous(memory_format=tl.channels_last)
    model.to(tl.float64, memory_format=tl.contiguous_format)
    assert model(x.double()).is_contiguous() and model(x.double()).dtype is tl.float64
    with pytest.raises(RuntimeError, match="required rank 4"):
        tl.nn.Conv3d(1, 1, 2).to(memory_format=tl.channels_last)


@each("function", [F.silu, F.gelu, F.hardswish, tl.sigmoid, lambda x: F.avg_pool2d(x, 2),
                   lambda x: F.batch_norm(x, None, None, None, None, True)])
def test_gradients_of_half_types_lie_as_what_they_are_gradients_of(function):
    x, found = images(tl, (2, 4, 6, 8), "last").bfloat16().requires_grad_(), []
    y = x * 2
    y.register_hook(lambda g: found.append((g.dtype, g.stride())))
    out = function(y)
    out.backward(tl.ones_like(out))
    assert found == [(tl.bfloat16, y.stride())] and lies_last(y.shape, y.stride())


def test_gradients_grow_in_place_in_the_layout_of_their_leaf():
    w = weights(tl, (6, 4, 3, 3), True).requires_grad_()
    (w * 2).sum().backward()
    kept = w.grad
    assert kept.stride() == w.stride() and kept.eq(2).all()
    (w * tl.ones(6, 4, 3, 3)).sum().backward()
    assert w.grad is kept and kept.eq(3).all() and kept.stride() == w.stride()
    turned = tl.ones(3, 4).mT.requires_grad_()
    (turned * 2).sum().backward()
    assert turned.grad.stride() == (1, 4)
    broad = tl.ones(4, 1).expand(4, 3).requires_grad_()
    (broad * 2).sum().backward()
    assert broad.grad.is_contiguous()


def test_the_first_input_says_the_order_of_dims_and_where_it_is_broadcast_the_next():
    x, rows = images(tl, (2, 4, 5, 6), "last"), images(tl, (2, 4, 5, 6), "rows")
    assert (x + rows).stride() == x.stride() and (rows + x).stride() == rows.stride()
    for few in tl.ones(6), tl.ones(4, 1, 1), tl.ones(()):
        assert (few * x).stride() == (x * few).stride() == x.stride()
        assert (few * rows).stride() == (rows * few).stride() == rows.stride()
    assert tl.addcmul(tl.ones(1), x, rows).stride() == x.stride()
