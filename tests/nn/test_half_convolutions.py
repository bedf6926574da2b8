"""Convolutions of half types: each result is rounded once, however it is computed."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F


def whole(rng, *shape):
    """Whole numbers of which all products and sums are exact in float32."""
    return tl.tensor(rng.integers(-4, 5, shape).astype("float32"))


@each("dtype", [tl.bfloat16, tl.float16])
@each("kernel, stride, padding", [(1, 1, 0), (1, 2, 0), (3, 1, 1)])
@each("bias", [False, True])
@each("channels_last", [False, True])
def test_results_and_gradients_are_those_of_float32_rounded(dtype, kernel, stride, padding, bias,
                                                            channels_last):
    rng = np.random.default_rng(kernel)
    x, w = whole(rng, 3, 40, 9, 8), whole(rng, 48, 40, kernel, kernel)
    b = whole(rng, 48) + 0.125 if bias else None
    wide = [t.requires_grad_() for t in (x, w)]
    x = x.detach().to(dtype)
    if channels_last:
        x = x.contiguous(memory_format=tl.channels_last)
    half = [t.requires_grad_() for t in (x, w.detach().to(dtype))]
    y = F.conv2d(*wide, b, stride, padding)
    found = F.conv2d(*half, None if b is None else b.to(dtype), stride, padding)
    assert found.dtype == dtype
    assert tl.equal(found.detach(), y.detach().to(dtype))
    g = whole(rng, *y.shape)
    for one, other in zip(tl.autograd.grad(found, half, g.to(dtype)),
                          tl.autograd.grad(y, wide, g)):
        assert one.dtype == dtype
        assert tl.equal(one, other.to(dtype))
