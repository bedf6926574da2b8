"""`cat` and `stack` of tensors of any layout, dtype and size."""

import numpy as np
import pytest
from cases import each
import tensorlib as tl

DTYPES = ("bool", "uint8", "int16", "float32", "float64")


def laid_out(x, layout):
    """The array in other memory."""
    if layout == "transposed":
        return np.ascontiguousarray(x.T).T
    if layout == "strided":
        return np.repeat(x, 2, 0)[::2] if x.ndim else x
    return x


@each("layout", ["plain", "transposed", "strided"])
@each("shape", [(), (3,), (0,), (2, 5), (2, 0), (0, 4), (3, 1, 2), (2, 0, 3)])
def test_as_numpy(shape, layout):
    rng = np.random.default_rng(len(shape))
    for dim in range(-len(shape) - 1, len(shape) + 1):
        for count in (1, 2, 5):
            for dtype in DTYPES:
                arrays = [laid_out((rng.random(shape) * 9).astype(dtype), layout)
                          if shape else np.asarray(rng.random() * 9).astype(dtype)
                          for _ in range(count)]
                tensors = [tl.from_numpy(x) for x in arrays]
                found = tl.stack(tensors, dim)
                assert (found.numpy() == np.stack(arrays, dim)).all()
                assert found.shape == np.stack(arrays, dim).shape
                if -len(shape) <= dim < len(shape):
                    assert tl.cat(tensors, dim).tolist() == np.concatenate(arrays, dim).tolist()


def test_pieces_of_many_sizes():
    x = np.random.default_rng(0).random((3, 400, 7))
    for bounds in ((0, 1, 2, 5, 13, 400), (0, 0, 399, 400)):
        for dim in range(3):
            last = x.shape[dim]
            parts = [x.take(range(min(a, last), min(b, last)), dim)
                     for a, b in zip(bounds, bounds[1:])]
            assert tl.cat([tl.from_numpy(part) for part in parts], dim).tolist() == x.tolist()


@pytest.mark.parametrize("n_threads", (1, 2))
def test_large_joins_with_threads(n_threads):
    before = tl.get_num_threads()
    x = np.random.default_rng(0).random((2, 300, 1000), dtype=np.float32)
    tl.set_num_threads(n_threads)
    try:
        for dim in (0, 1, 2, -1):
            parts = [tl.from_numpy(x[0]), tl.from_numpy(x[1])]
            assert (tl.stack(parts, dim).numpy() == np.stack(list(x), dim)).all()
            if dim < 2:
                assert (tl.cat(parts, dim).numpy() == np.concatenate(list(x), dim)).all()
    finally:
        tl.set_num_threads(before)


def test_dtypes_are_promoted():
    whole, real = tl.tensor([[1, 2]]), tl.tensor([[0.5, 1.5]])
    assert tl.stack([whole, real]).dtype is tl.float32
    assert tl.cat([whole, real], 1).tolist() == [[1.0, 2.0, 0.5, 1.5]]


def test_gradients_of_a_stack():
    x, y = (tl.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    stacked = tl.stack([x, y, x], -1)
    assert stacked.grad_fn.name() == "StackBackward0"
    (stacked * tl.tensor([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])).sum().backward()
    assert x.grad.tolist() == [101.0, 202.0] and y.grad.tolist() == [10.0, 20.0]


@pytest.mark.parametrize("tensors, dim, error, message", [
    ([], 0, RuntimeError, "non-empty"), ([tl.ones(2), tl.ones(3)], 0, RuntimeError, "entry 1"),
    ([tl.ones(2), 1.0], 0, TypeError, "float"), ([tl.ones(2)], 2, IndexError, "stack"),
])
def test_what_is_no_stack(tensors, dim, error, message):
    with pytest.raises(error, match=message):
        tl.stack(tensors, dim)


@each("name", ["stack", "cat"])
@each("place", [0, 1, 2])
def test_none_among_the_tensors_is_refused_by_the_forward_functions(name, place):
    """None passes where a Tensor is declared, and its memory is no tensor's."""
    given = [tl.ones(2, 3) for _ in range(3)]
    given[place] = None
    with pytest.raises(TypeError):
        tl.ops.registry[name].forward(tuple(given), 0)


@each("dim", [0, 1, -3])
def test_vectors_of_nothing_join_to_nothing_along_any_dim(dim):
    nothing = tl.empty(0, requires_grad=True)
    joined = tl.cat([nothing, nothing], dim)
    joined.sum().backward()
    assert joined.shape == nothing.grad.shape == (0,)
    assert tl.cat([nothing, tl.ones(2, 3, 4), nothing], dim).shape == (2, 3, 4)
