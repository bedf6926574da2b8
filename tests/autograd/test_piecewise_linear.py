"""Second derivatives through what is linear between its kinks: zeros that belong to the graph."""

import pytest
from cases import each

import tensorlib as tl

F = tl.nn.functional
PIECES = {
    "relu": F.relu, "leaky_relu": F.leaky_relu, "hardtanh": F.hardtanh, "relu6": F.relu6,
    "hardsigmoid": F.hardsigmoid, "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 0.0), "rrelu": F.rrelu, "abs": tl.abs,
    "clamp": lambda x: x.clamp(-1, 1), "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "max_pool2d": lambda x: F.max_pool2d(x.view(1, 1, 2, 2), 2), "max": lambda x: x.max(-1)[0],
    "adaptive": lambda x: F.adaptive_max_pool1d(x, 2), "median": lambda x: x.median(-1)[0],
    "l1_loss": lambda x: F.l1_loss(x, tl.zeros_like(x)),
    "prelu": lambda x: F.prelu(x, tl.tensor([0.2], dtype=tl.float64)),
}


def slope(f):
    """A leaf, and the gradient of f there as a part of the graph."""
    x = tl.tensor([[[-0.5, 0.3, 1.7, -2.0]]], dtype=tl.float64, requires_grad=True)
    return x, tl.autograd.grad(f(x).sum(), x, create_graph=True)[0]


@each("name", PIECES)
def test_a_second_derivative_between_kinks_is_zero_and_no_error(name):
    x, first = slope(PIECES[name])
    second, = tl.autograd.grad(first.sum(), x, create_graph=True)
    assert second.shape == x.shape and not second.any()


@pytest.mark.parametrize("f", [lambda x: x * 2, lambda x: x.sum(), lambda x: x.view(4)[1:],
                               lambda x: F.avg_pool1d(x, 2), lambda x: x @ tl.ones(4).double()])
def test_a_linear_function_has_a_gradient_that_depends_on_nothing(f):
    assert not slope(f)[1].requires_grad


def test_the_gradients_of_pieces_keep_their_elements():
    """The link adds nothing, and what is not linked is left as it was."""
    x, first = slope(F.leaky_relu)
    assert first.tolist() == [[[0.01, 1.0, 1.0, 0.01]]]
    plain, = tl.autograd.grad(F.leaky_relu(x).sum(), x)
    assert not plain.requires_grad and plain.tolist() == first.tolist()


def test_curvature_of_a_network_with_kinks():
    """As in physics-informed training: u_xx of a network that is linear in pieces is zero."""
    net = tl.nn.Sequential(tl.nn.Linear(1, 8), tl.nn.LeakyReLU(), tl.nn.Linear(8, 1))
    x = tl.randn(5, 1, requires_grad=True)
    ux, = tl.autograd.grad(net(x).sum(), x, create_graph=True)
    uxx, = tl.autograd.grad(ux.sum(), x, create_graph=True)
    assert not uxx.any()
    (uxx.square().mean() + ux.square().mean()).backward()
    assert net[0].weight.grad.any()


@pytest.mark.parametrize("f", [F.leaky_relu, F.hardtanh, lambda x: F.max_pool1d(x[None], 2)])
def test_every_order_of_modes_gives_the_same_second_derivative(f):
    func, x = tl.func, tl.tensor([0.3, -0.7, 1.9, -2.0], dtype=tl.float64)

    def total(x):
        return (f(x) ** 2).sum()
    found = func.hessian(total)(x)
    assert found.any()
    for other in (func.jacrev(func.jacrev(total)), func.jacfwd(func.jacfwd(total)),
                  func.jacrev(func.jacfwd(total)),
                  lambda x: tl.autograd.functional.hessian(total, x)):
        assert found.allclose(other(x))
    assert not func.jvp(func.grad(lambda x: f(x).sum()), (x,), (x,))[1].any()
