"""Images whose channels lie beside each other, and maxima without their places."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

SHAPES = (2, 3, 9, 8), (1, 16, 7, 7), (3, 70, 5, 6), (2, 1, 6, 5)
OPTIONS = ((2,), (3, 2, 1), (3, 1, 1), ((3, 2), (2, 1)), ((2, 3), 2, (1, 0)))


def rising(shape, dtype="float32"):
    """Elements that all differ, so that each window has one largest."""
    n = int(np.prod(shape))
    return tl.tensor(np.random.default_rng(n).permutation(n).reshape(shape).astype(dtype) / n)


def with_gradient(function, x):
    """What `function` gives for `x`, and the gradient of a sum that tells all of it apart."""
    x = x.detach().requires_grad_()
    out = function(x)
    y = out[0] if isinstance(out, tuple) else out
    (y * tl.arange(1, y.numel() + 1).reshape(y.shape).to(y.dtype)).sum().backward()
    return [y.detach(), x.grad, *(out[1:] if isinstance(out, tuple) else ())]


def functions():
    for options in OPTIONS:
        yield lambda x, o=options: F.max_pool2d(x, *o, return_indices=True)
        yield lambda x, o=options: F.avg_pool2d(x, *o)
        yield lambda x, o=options: F.avg_pool2d(x, *o, count_include_pad=False, ceil_mode=True)
    yield lambda x: F.max_pool2d(x, 2, 2, 1, 2, ceil_mode=True, return_indices=True)
    yield lambda x: F.avg_pool2d(x, 3, 1, 1, divisor_override=4)
    for sizes in 3, (2, 5), 1:
        yield lambda x, s=sizes: F.adaptive_avg_pool2d(x, s)
        yield lambda x, s=sizes: F.adaptive_max_pool2d(x, s, return_indices=True)


@each("shape", SHAPES)
@each("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_channels_last_are_pooled_as_they_lie(dtype, shape):
    x = rising(shape).to(getattr(tl, dtype))
    lying = x.to(memory_format=tl.channels_last)
    for function in functions():
        found, wanted = with_gradient(function, lying), with_gradient(function, x)
        for mine, other in zip(found, wanted, strict=True):
            tl.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5 if "float3" in dtype else
                                    1e-12 if dtype == "float64" else 1e-2)
        if shape[1] > 1:
            assert found[0].is_contiguous(memory_format=tl.channels_last)


# Planes of which several are widened together, and some of which one is.
@each("shape", [*SHAPES, (2, 5, 90, 60)])
@each("dtype", [tl.float16, tl.bfloat16])
@each("arrange", [lambda x: x, lambda x: x.contiguous(memory_format=tl.channels_last)])
def test_half_types_are_pooled_in_float32_and_rounded_once(dtype, shape, arrange):
    x = arrange(rising(shape).to(dtype))
    for function in functions():
        found, wanted = function(x), function(x.float())
        for mine, other in zip(*([y] if isinstance(y, tl.Tensor) else y for y in (found, wanted)),
                               strict=True):
            assert tl.equal(mine, other.to(mine.dtype)) and mine.stride() == other.stride()


@each("dtype", ["float32", "float64", "float16"])
@each("shape", [*SHAPES, (2, 6, 1, 1), (1, 4, 3, 1)])
def test_channels_last_are_resampled_joined_and_mixed_as_they_lie(shape, dtype):
    x = rising(shape).to(getattr(tl, dtype))
    lying = x.to(memory_format=tl.channels_last)
    weight = rising((4, shape[1], 1, 1)).to(x.dtype)
    functions = [lambda y, m=m: F.interpolate(y, size=(7, 11), mode=m) for m in (
        "nearest", "bilinear", "bicubic", "area")]
    functions += [lambda y, d=d: tl.cat([y, y * 2, y[:]], d) for d in range(4)]
    if shape[3] > 1:
        functions += [lambda y: F.interpolate(y, scale_factor=0.5, mode="bilinear", antialias=True),
                      lambda y: F.interpolate(y, scale_factor=2)]
    rows = x.detach()[0, :, 0, 0].clone()
    functions += [lambda y: F.batch_norm(y, rows, rows.abs() + 1, rows, rows),
                  lambda y: F.pad(y, (1, 0, 2, 1), value=3.0), lambda y: F.pad(y, (-1, 1, 1, 1))]
    kept = len(functions)
    functions += [lambda y: F.conv2d(y, weight), lambda y: F.conv2d(y, weight, stride=2),
                  lambda y: tl.cat([y, x.detach()]), lambda y: tl.stack([y, y])]
    if shape[1] % 2 == 0:
        functions += [lambda y: F.conv2d(y, weight[:, ::2], groups=2)]
    for i, function in enumerate(functions):
        found, wanted = with_gradient(function, lying), with_gradient(function, x)
        for mine, other in zip(found, wanted, strict=True):
            tl.testing.assert_close(mine, other, rtol=1e-2 if dtype == "float16" else 1e-4,
                                    atol=1e-2 if dtype == "float16" else 1e-3)
        if i < kept and shape[1] > 1 and max(shape[2:]) > 1:
            assert found[0].is_contiguous(memory_format=tl.channels_last)


def test_sequences_volumes_and_unpooling_of_channels_last():
    x = rising((2, 5, 12)).mT.contiguous().mT
    tl.testing.assert_close(F.max_pool1d(x, 3, 2, 1), F.max_pool1d(x.contiguous(), 3, 2, 1))
    tl.testing.assert_close(F.avg_pool1d(x, 3, 2, 1), F.avg_pool1d(x.contiguous(), 3, 2, 1))
    x = rising((2, 5, 4, 6, 5)).to(memory_format=tl.channels_last_3d)
    for pool in F.max_pool3d, F.avg_pool3d:
        found, wanted = (with_gradient(lambda y, pool=pool: pool(y, 3, 2, 1), y)
                         for y in (x, x.contiguous()))
        tl.testing.assert_close(found, wanted)
        assert found[0].is_contiguous(memory_format=tl.channels_last_3d)
    x = rising((2, 5, 4, 6)).to(memory_format=tl.channels_last)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    tl.testing.assert_close(F.max_unpool2d(values.contiguous(), places, 2),
                            F.max_unpool2d(values, places.contiguous(), 2))
    gathered = tl.nn.Sequential(tl.nn.MaxPool2d(2), tl.nn.AvgPool2d(2))
    images = tl.stack([x, x * 2])
    tl.testing.assert_close(tl.vmap(gathered)(images), tl.stack([gathered(x), gathered(x * 2)]))


@each("shape", [(40,), (3, 2100), (2, 5, 9), (2, 3, 4, 5, 7), (2, 0, 5, 5), (1, 2, 3, 1500)])
@each("kernel, stride, padding, dilation", [
    (1, 1, 0, 1), (2, 2, 0, 1), (2, 1, 1, 1), (3, 2, 1, 1), (3, 1, 1, 1), (5, 3, 2, 1),
    (2, 4, 0, 3), (4, 2, 1, 1)])
def test_maxima_without_places_are_those_with_them(kernel, stride, padding, dilation, shape):
    n = max(1, min(3, len(shape) - 2))
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
    x = rising(shape if len(shape) > n else (1, *shape))
    spoilt = x.clone()
    spoilt[x > 0.9], spoilt[x < 0.3] = float("nan"), float("-inf")
    for y in x, spoilt, x.double(), x.half():
        for ceil_mode in False, True:
            options = kernel, stride, padding, dilation, ceil_mode
            try:
                wanted = pool(y, *options, return_indices=True)[0]
            except RuntimeError:                     # there is no window of this size
                continue
            assert tl.testing.assert_close(pool(y, *options), wanted, rtol=0, atol=0,
                                           equal_nan=True) is None


def test_wide_windows_and_gradients_of_maxima_without_places():
    x = rising((2, 3000))
    for kernel in 1024, 1025, 2000:
        wanted = F.max_pool1d(x, kernel, 7, return_indices=True)[0]
        assert tl.equal(F.max_pool1d(x, kernel, 7), wanted)
    x = rising((2, 3, 6, 6), "float64").requires_grad_()
    maxima = tl.ops.registry["max_values"].function          # what runs where nothing is recorded
    assert tl.testing.gradcheck(lambda y: maxima(y, (3, 3), (2, 2), (1, 1), (1, 1), (3, 3)), x)


def test_threads_pool_to_the_same_bits():
    x = rising((1, 24, 90, 80)).to(memory_format=tl.channels_last)
    before, bits = tl.get_num_threads(), set()
    try:
        for threads in 1, 2, 3:
            tl.set_num_threads(threads)
            bits.add(b"".join(y.contiguous().numpy().tobytes() for y in (
                *with_gradient(lambda y: F.avg_pool2d(y, 3, 1, 1), x),
                *with_gradient(lambda y: F.max_pool2d(y, 3, 1, 1, return_indices=True), x),
                F.max_pool2d(x.contiguous(), 3, 1, 1))))
    finally:
        tl.set_num_threads(before)
    assert len(bits) == 1
