"""Tensors of positions that broadcast to one another: as many dims and sizes as they like, in any
order, are NumPy's in reading, writing, adding, and in programs."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import program

SHAPES = [(1,), (3,), (2, 1), (2, 3), (1, 3), (4, 1, 1), (4, 2, 3), (1, 1, 1, 3)]
X = np.arange(360.0).reshape(3, 4, 5, 6)


def positions(shape, size, seed):
    return np.random.default_rng(seed).integers(-size, size, shape)


def keys(a, b):
    """Side by side in front, in the middle and in the end, and apart."""
    yield positions(a, 3, 1), positions(b, 4, 2)
    yield slice(None), positions(a, 4, 1), positions(b, 5, 2)
    yield slice(None), slice(None, None, 2), positions(a, 5, 1), positions(b, 6, 2)
    yield positions(a, 3, 1), slice(None), positions(b, 5, 2)


def ours(key):
    return tuple(tl.from_numpy(part) if isinstance(part, np.ndarray) else part for part in key)


@each("a, b", list(itertools.product(SHAPES, SHAPES)))
def test_two_tensors_of_positions(a, b):
    for key in keys(a, b):
        wanted = X[key]
        assert tl.from_numpy(X)[ours(key)].shape == wanted.shape
        assert np.array_equal(tl.from_numpy(X)[ours(key)].numpy(), wanted)
        values = np.arange(float(wanted.size)).reshape(wanted.shape)
        target = np.zeros(X.shape)
        np.add.at(target, key, values)
        if all(isinstance(part, np.ndarray) for part in key):
            added = tl.zeros(*X.shape, dtype=tl.float64)
            added.index_put_(ours(key), tl.from_numpy(values), accumulate=True)
            assert np.array_equal(added.numpy(), target)
        written = tl.zeros(*X.shape, dtype=tl.float64)
        written[ours(key)] = 7.0
        target = np.zeros(X.shape)
        target[key] = 7.0
        assert np.array_equal(written.numpy(), target)


@pytest.mark.parametrize("shapes", list(
    itertools.permutations([(3,), (2, 1), (4, 1, 1)])))
def test_three_tensors_of_positions(shapes):
    key = tuple(positions(shape, size, 3) for shape, size in zip(shapes, X.shape))
    x = tl.from_numpy(X).clone().requires_grad_()
    found = x[ours(key)]
    assert found.shape == (4, 2, 3, 6) and np.array_equal(found.detach().numpy(), X[key])
    found.sum().backward()
    counts = np.zeros(X.shape)
    np.add.at(counts, key, 1.0)
    assert np.array_equal(x.grad.numpy(), counts)
    p = program.trace(lambda x, *key: x[key], tl.from_numpy(X), *ours(key))
    assert np.array_equal(p(tl.from_numpy(X), *ours(key)).numpy(), X[key])


def test_those_that_do_not_broadcast_are_refused():
    with pytest.raises(IndexError, match=r"broadcast together with shapes \[3\], \[2, 2\]"):
        tl.from_numpy(X)[tl.tensor([0, 1, 2]), tl.tensor([[0, 1], [1, 0]])]
