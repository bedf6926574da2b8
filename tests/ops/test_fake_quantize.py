"""Numbers rounded to what few bits can hold, with the gradient of what is not cut off."""

import numpy as np
import pytest

import tensorlib as tl

VALUES = np.random.default_rng(0).uniform(-2, 2, (4, 5)).astype("float32")
SCALES = np.array([0.1, 0.2, 0.3, 0.4], "float32")


def wanted(scale, zero_point, low, high):
    places = np.rint(VALUES * (np.float32(1) / scale)) + zero_point
    return ((np.clip(places, low, high) - zero_point) * scale,
            (places >= low) & (places <= high))


@pytest.mark.parametrize("scale, zero_point", [(0.1, 2), (tl.tensor(0.1), tl.tensor(2))])
def test_one_scale_for_all(scale, zero_point):
    x = tl.tensor(VALUES, requires_grad=True)
    y = tl.fake_quantize_per_tensor_affine(x, scale, zero_point, -8, 7)
    y.sum().backward()
    values, kept = wanted(np.float32(0.1), 2, -8, 7)
    np.testing.assert_array_equal(y.detach(), values)
    np.testing.assert_array_equal(x.grad, kept)


def test_a_scale_for_each_channel():
    x = tl.tensor(VALUES, requires_grad=True)
    y = tl.fake_quantize_per_channel_affine(x, tl.tensor(SCALES), tl.zeros(4, dtype=tl.int32), 0,
                                            -8, 7)
    y.sum().backward()
    values, kept = wanted(SCALES[:, None], 0, -8, 7)
    np.testing.assert_array_equal(y.detach(), values)
    np.testing.assert_array_equal(x.grad, kept)
    other = tl.fake_quantize_per_channel_affine(x.detach().t(), tl.tensor(SCALES),
                                                tl.zeros(4, dtype=tl.int32), -1, -8, 7)
    assert other.t().equal(y) and x.detach().half().dtype == tl.fake_quantize_per_tensor_affine(
        x.detach().half(), 0.1, 0, -8, 7).dtype


@pytest.mark.parametrize("call, error, text", [
    (lambda x: tl.fake_quantize_per_tensor_affine(x, 0.1, 0, 7, -8), RuntimeError, "quant_min"),
    (lambda x: tl.fake_quantize_per_tensor_affine(x, 0.1, 9, -8, 7), RuntimeError, "zero_point"),
    (lambda x: tl.fake_quantize_per_tensor_affine(x.int(), 0.1, 0, -8, 7), NotImplementedError,
     "floating"),
    (lambda x: tl.fake_quantize_per_channel_affine(x, tl.ones(3), tl.zeros(3), 0, -8, 7),
     RuntimeError, "4 places"),
    (lambda x: tl.fake_quantize_per_channel_affine(x, tl.ones(4), tl.zeros(4), 7, -8, 7),
     IndexError, "range")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(tl.tensor(VALUES))
