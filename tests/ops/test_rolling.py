"""Tensors shifted along dims: rows of all lengths, any strides, threads, graphs and programs."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func

CASES = [((7,), (3,), (0,)), ((5, 1), (2,), (1,)), ((4, 6), (1, -2), (0, 1)),
         ((4, 6), (1, 5, 2), (1, 0, 1)), ((3, 4, 5), (2,), (1,)), ((3, 4, 5), (1, 1), (2, 0)),
         ((2, 3, 4, 5), (1, 2), (1, 3)), ((2, 3, 4, 5), (7, -9), (0, 2)), ((3, 4), (0,), (1,)),
         ((3, 4), (4, 3), (1, 0)), ((0, 3), (1, 1), (0, 1)), ((2, 1, 33, 3), (5,), (2,)),
         ((90, 131), (17,), (1,)), ((3, 70001), (123,), (1,)), ((40000, 3), (1, 1), (0, 1))]


@each("dtype", [tl.float64, tl.float32, tl.bfloat16, tl.int16, tl.bool])
@each("shape, shifts, dims", CASES)
def test_values_of_every_width(shape, shifts, dims, dtype):
    whole = np.arange(int(np.prod(shape))).reshape(shape) % 251
    x = tl.tensor(whole).to(dtype)
    found = x.roll(shifts, dims)
    wanted = tl.tensor(np.roll(whole, shifts, dims)).to(dtype)
    assert found.dtype == dtype and found.is_contiguous() and found.equal(wanted)
    flat = tl.tensor(np.roll(whole, 3)).to(dtype)
    assert x.roll(3).equal(flat) and x.roll(3, ()).equal(flat)


@each("arrange", [
    lambda a: a.transpose(2, 0, 1), lambda a: a[::-1, :, ::-2], lambda a: a[:, 1:3],
    lambda a: np.broadcast_to(a[:1], (4, *a.shape[1:]))])
@each("shifts, dims", [((2,), (0,)), ((1,), (2,)), ((1, 2), (0, 2)), ((5,), ())])
def test_any_strides(arrange, shifts, dims):
    array = arrange(np.arange(120.0).reshape(4, 5, 6))
    found = tl.from_numpy(array.copy()) if not array.flags.writeable else tl.from_numpy(array)
    if not array.flags.writeable:
        found = found[:1].expand(array.shape)
    np.testing.assert_array_equal(found.roll(shifts, dims).numpy(),
                                  np.roll(array, shifts, dims or None))


@pytest.mark.parametrize("shape, shifts, dims", CASES[-3:])
def test_any_number_of_threads(shape, shifts, dims):
    array = np.arange(float(np.prod(shape))).reshape(shape)
    before = tl.get_num_threads()
    try:
        for n_threads in (1, 2, 3):
            tl.set_num_threads(n_threads)
            np.testing.assert_array_equal(tl.tensor(array).roll(shifts, dims).numpy(),
                                          np.roll(array, shifts, dims))
    finally:
        tl.set_num_threads(before)


def test_what_is_no_number_moves_too():
    x = tl.tensor([float("nan"), float("-inf"), -0.0, 1.0])
    assert str(x.roll(1).tolist()) == "[1.0, nan, -inf, -0.0]"


def test_a_gradient_is_shifted_back():
    x = tl.arange(6.0).reshape(2, 3).requires_grad_()
    out = x.roll((1, 2), (0, 1))
    assert out.grad_fn.operation == "roll" and out.grad_fn.saved_values == {}
    g = tl.arange(6.0).reshape(2, 3)
    assert tl.autograd.grad(out, x, g)[0].equal(g.roll((-1, -2), (0, 1)))


def test_shifts_beyond_any_size():
    x = tl.arange(5)
    assert x.roll(10**30 + 2).equal(x.roll(2)) and x.roll(-10**30 - 1, 0).equal(x.roll(-1))


def test_shapes_alone():
    x = tl.empty(2, 3, device="meta")
    assert x.roll(1).device.type == x.roll((1, 1), (0, 1)).device.type == "meta"
    with pytest.raises(IndexError):
        x.roll(1, 2)


def test_examples_without_dims():
    x = tl.arange(3.0)
    assert func.vmap(lambda one: one.roll(1))(x).equal(x)
    with pytest.raises(IndexError):
        tl.tensor(1.0).roll(1, 0)
    with pytest.raises(RuntimeError, match="align"):
        x.roll((), ())
