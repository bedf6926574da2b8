"""`pad` of larger planes, in all dtypes and layouts, against NumPy's."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.ops.shape.padding import bordered, framed

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}
SHAPES = {  # of a tensor, with its margins, the last dim first
    (3, 50, 70): (3, 5, 1, 0), (2, 3, 9, 8): (7, 7, 8, 8), (4, 600): (0, 9), (2, 3, 4, 5, 6): (
        1, 2, 3, 0, 2, 1), (2, 2, 40, 300): (1, 1, 1, 1)}


def in_numpy(x, sizes, mode):
    pairs = [(0, 0)] * (x.ndim - len(sizes) // 2)
    return np.pad(x, pairs + [sizes[k:k + 2] for k in range(len(sizes) - 2, -2, -2)], MODES[mode])


@each("dtype", ["bool", "int16", "float16", "float32", "float64", "int64"])
@each("mode", MODES)
@each("shape", SHAPES, ids=str)
def test_margins_are_those_of_numpy(shape, mode, dtype):
    x = (np.random.default_rng(0).random(shape) * 9).astype(dtype)
    wanted = in_numpy(x, SHAPES[shape], mode)
    for array in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2], x[..., ::-1].copy()[
            ..., ::-1]):
        found = F.pad(tl.from_numpy(array), SHAPES[shape], mode)
        assert found.is_contiguous() and found.numpy().dtype == x.dtype
        np.testing.assert_array_equal(found.numpy(), wanted)


@each("mode", MODES)
@each("shape", SHAPES, ids=str)
def test_each_gradient_is_the_sum_of_what_shows_it(shape, mode):
    x = tl.zeros(shape, dtype=tl.float64, requires_grad=True)
    out = F.pad(x, SHAPES[shape], mode)
    g = np.random.default_rng(0).integers(-9, 9, tuple(out.shape)).astype(float)
    out.backward(tl.from_numpy(g))
    shown = in_numpy(np.arange(1, x.numel() + 1).reshape(shape), SHAPES[shape], mode)
    wanted = np.bincount(shown.ravel(), g.ravel(), x.numel() + 1)[1:]      # 0 is the constant
    np.testing.assert_array_equal(x.grad.numpy().ravel(), wanted)


@pytest.mark.parametrize("mode", MODES)
def test_negative_margins_cut_off(mode):
    x = tl.arange(60.0).reshape(3, 4, 5)
    np.testing.assert_array_equal(F.pad(x, (-1, 2, 1, -2), mode).numpy(), {
        "reflect": lambda: x[:, :, [1, 2, 3, 4, 3, 2]][:, [1, 0, 1]],
        "replicate": lambda: x[:, :, [1, 2, 3, 4, 4, 4]][:, [0, 0, 1]],
        "circular": lambda: x[:, :, [1, 2, 3, 4, 1, 2]][:, [1, 0, 1]],
        "constant": lambda: F.pad(x[:, :2, 1:], (0, 2, 1, 0))}[mode]().numpy())
    assert F.pad(x, (-2, -3)).shape == (3, 4, 0) and F.pad(x[:0], (1, 1)).shape == (0, 4, 7)


@pytest.mark.parametrize("mode", MODES)
def test_two_threads_give_the_same_bits(mode):
    rng = np.random.default_rng(0)
    values, g = (rng.standard_normal(shape).astype("float32")
                 for shape in ((6, 5, 90, 100), (6, 5, 96, 103)))
    before, found = tl.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            tl.set_num_threads(n_threads)
            x = tl.from_numpy(values).requires_grad_()
            out = F.pad(x, (1, 2, 3, 3), mode)
            out.backward(tl.from_numpy(g))
            found.append((out.detach().numpy(), x.grad.numpy()))
    finally:
        tl.set_num_threads(before)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_the_operations_themselves_check_what_they_are_given():
    x = tl.ones(2, 3, 4)
    for arguments in (((3, 5), (1, 1, 1, 1), "reflect", False), ((4,), (1, 1), "mirror", False),
                      ((4,), (1,), "reflect", False), ((4,), (9, 0), "reflect", False),
                      ((4,), (-3, -3), "circular", False), ((4,), (2**62, 0), "replicate", False),
                      ((), (), "reflect", False), ((3, 4), (1, 1, 1, 1), "reflect", True)):
        with pytest.raises(RuntimeError, match="pad: "):
            bordered(x, *arguments)
    for pad in ((1,), (1,) * 8, (-3, -2), (2**62, 0)):
        with pytest.raises(RuntimeError, match="pad: "):
            framed(x, pad, 0)
    with pytest.raises(RuntimeError, match="no gradient of"):
        bordered(tl.ones(2, 6).long(), (4,), (1, 1), "reflect", True)


def test_nothing_is_read_on_meta():
    x = tl.empty(2, 300, 400, device="meta")
    for mode in MODES:
        assert F.pad(x, (1, 2), mode).shape == (2, 300, 403)
