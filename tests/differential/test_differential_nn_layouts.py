"""The order in memory of what layers on images give, and of gradients, here and in PyTorch."""

import numpy as np
import pytest
from cases import each
from image_layouts import LAYERS, cases, images, told_apart, weights

import tensorlib as tl

torch = pytest.importorskip("torch")

# What PyTorch computes for volumes by other libraries than most, or by none: row by row.
OTHERWISE = {"avg_pool", "conv", "conv of one", "conv with steps", "conv to one", "conv, dilated",
             "conv of many", "conv of one with steps", "groups", "groups of one", "transposed",
             "transposed with steps", "transposed of one"}


def layouts(lib, function, shape, form, last, sizes):
    """The strides of a result and of gradients, and the values of all."""
    args = [images(lib, shape, form), *([] if sizes is None else [weights(lib, sizes, last)])]
    args = [x.requires_grad_() for x in args]
    out = function(lib, *args)
    out.backward(lib.ones_like(out))
    found = [out.detach(), *(x.grad for x in args)]
    return [told_apart(x.shape, x.stride()) for x in found], [
        np.asarray(x.contiguous()) for x in found]


@each("layer", LAYERS)
def test_layouts_and_values_are_the_same(layer):
    function, _ = LAYERS[layer]
    for case in cases(layer):
        if len(case[0]) == 5 and layer in OTHERWISE:
            continue
        (ours, mine), (theirs, others) = (
            layouts(lib, function, *case) for lib in (tl, torch))
        assert ours == theirs, case
        for a, b in zip(mine, others):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * max(1, np.abs(b).max()))
