"""The graphs inside composed operations, where they are reached in two ways."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import autograd, ops
from tensorlib.testing import assert_close, gradgradcheck


def layer(x, w):
    return (x @ w).tanh() * w


def real(seed):
    values = np.random.default_rng(seed).uniform(-1, 1, (3, 3))
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


def test_a_second_derivative_through_what_nested_operations_saved():
    """A part's graph is reached by the part itself and by what its gradient is made of.

    So the sweep of the part must not release what the other way needs.
    """
    inner = ops.compose("composed_graph_layer", layer)
    net = ops.compose("composed_graph_net", lambda x, w: inner(inner(x, w), w) * x.sin())
    x, w = real(0), real(1)
    y = net(x, w).sum()
    y.backward(retain_graph=True)
    (g,) = autograd.grad(y, x, create_graph=True)
    wanted = autograd.grad(g.sum(), (x, w), retain_graph=True)
    for a, b in zip(wanted, autograd.grad(g.sum(), (x, w))):
        assert_close(a, b)
    with pytest.raises(RuntimeError, match="released"):
        g.sum().backward()
    plain = layer(layer(x, w), w) * x.sin()
    (again,) = autograd.grad(plain.sum(), x, create_graph=True)
    for a, b in zip(wanted, autograd.grad(again.sum(), (x, w))):
        assert_close(a, b)
    assert gradgradcheck(net, (x, w))
