"""Elements picked along a dim: `gather`, and its gradient."""

import numpy as np
import pytest
from cases import each
import tensorlib as tl
from tensorlib.testing import assert_close


@each("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
@each("shape, dim, length", [
    ((5,), 0, 9), ((3, 40), 1, 7), ((40, 3), 0, 1), ((2, 3, 4), -1, 6), ((2, 3, 4), 1, 1),
    ((2, 0, 4), 0, 3), ((300, 200), 0, 150), ((200, 300), 1, 151), ((4, 1), 1, 0)])
def test_as_numpy(shape, dim, length, dtype):
    rng = np.random.default_rng(0)
    x = (rng.random(shape) * 9).astype(dtype)
    sizes = list(shape)
    sizes[dim] = length
    places = rng.integers(-shape[dim], shape[dim], sizes)
    wanted = np.take_along_axis(x, places, dim)
    for array in (x, np.asfortranarray(x)):
        for index in (places, np.asfortranarray(places)):
            found = tl.from_numpy(array).gather(dim, tl.from_numpy(index))
            assert found.shape == wanted.shape and (found.numpy() == wanted).all()


def test_a_shorter_index_uses_the_first_places_of_other_dims():
    x = tl.arange(12).reshape(3, 4)
    assert x.gather(1, tl.tensor([[3, 0], [1, 1]])).tolist() == [[3, 0], [5, 5]]
    assert x.gather(0, tl.tensor([[2, 0, 1]])).tolist() == [[8, 1, 6]]


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32, tl.float64])
def test_gradients_add_up_where_places_are_picked_again(dtype):
    x = tl.zeros(2, 3, dtype=dtype, requires_grad=True)
    index = tl.tensor([[0, 0, -1, 0], [1, 2, 1, 1]])
    out = x.gather(1, index)
    index.zero_()                                 # positions are copied where they are needed again
    out.backward(tl.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], dtype=dtype))
    assert x.grad.tolist() == [[7.0, 0.0, 3.0], [0.0, 20.0, 6.0]] and x.grad.dtype is dtype


def test_second_derivatives():
    x = tl.tensor([[0.5, 1.0, 2.0]], dtype=tl.float64, requires_grad=True)
    y = (x.gather(1, tl.tensor([[2, 2, 0]])) ** 3).sum()
    (g,) = tl.autograd.grad(y, x, create_graph=True)
    (h,) = tl.autograd.grad(g.sum(), x)
    assert_close(h, tl.tensor([[3.0, 0.0, 24.0]], dtype=tl.float64))


@pytest.mark.parametrize("index, error, message", [
    (tl.tensor([[3]]), IndexError, "out of bounds"), (tl.tensor([[-4]]), IndexError, "bounds"),
    (tl.tensor([0]), RuntimeError, "same number of dimensions"),
    (tl.zeros(3, 1).long(), RuntimeError, "exceeds"), ([[0]], TypeError, "must be a Tensor"),
])
def test_what_cannot_be_gathered(index, error, message):
    with pytest.raises(error, match=message):
        tl.ones(2, 3).gather(1, index)


@each("dim", [0, 1])
@each("dtype", ["int8", "int16", "float32", "float64"])
def test_what_is_scattered_in_rows_and_in_columns(dtype, dim):
    rng = np.random.default_rng(0)
    x, values = ((rng.random((70, 80)) * 9).astype(dtype) for _ in range(2))
    places = rng.permuted(np.indices(x.shape)[dim], axis=dim)
    negative = places - x.shape[dim] * (rng.random(places.shape) < 0.1)
    wanted = x.copy()
    np.put_along_axis(wanted, places, values, dim)
    sums = x.copy()
    np.add.at(sums, (places, np.indices(x.shape)[1]) if dim == 0 else (
        np.indices(x.shape)[0], places), values)
    for index in (places, negative):
        taken = (tl.from_numpy(x), dim, tl.from_numpy(index), tl.from_numpy(values))
        np.testing.assert_array_equal(tl.scatter(*taken).numpy(), wanted)
        np.testing.assert_array_equal(tl.scatter_add(*taken).numpy(), sums)
    with pytest.raises(IndexError, match="out of bounds"):
        tl.scatter(taken[0], dim, tl.from_numpy(places + x.shape[dim]), taken[3])
