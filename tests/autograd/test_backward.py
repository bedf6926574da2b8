"""`backward` and `autograd.grad`: accumulation, repetition, higher derivatives, saved values."""

import math

import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, gradgradcheck


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    for count in (1, 2, 3):
        (x * x).sum().backward()
        assert_close(x.grad, [2.0 * count, 4.0 * count])


def test_a_gradient_that_a_user_holds_is_accumulated_into():
    """As in PyTorch: `held = x.grad` sees later sums while no graph of the gradient is made."""
    x = leaf(1.0)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    assert held is x.grad
    assert_close(held, [5.0])


def test_backward_takes_a_gradient_of_the_result():
    x = leaf(1.0, 2.0)
    (x * x).backward(tl.tensor([10.0, 100.0], dtype=tl.float64))
    assert_close(x.grad, [20.0, 400.0])
    y = leaf(3.0)
    (y * y).backward(gradient=tl.tensor([1.0], dtype=tl.float64))
    assert_close(y.grad, [6.0])


def test_backward_runs_again_with_retain_graph():
    x = leaf(2.0)
    y = (x**3).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert_close(x.grad, [36.0])
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_a_shared_part_of_a_swept_graph_is_refused():
    x = leaf(2.0)
    hidden = x.exp()
    (hidden * 2).sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        (hidden * 3).sum().backward()


def test_a_part_that_saved_nothing_runs_again():
    x = leaf(2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert_close(x.grad, [2.0])


def test_backward_with_inputs_fills_those_only():
    x, w = leaf(2.0), leaf(3.0)
    y = (x * w).sum()
    y.backward(inputs=[w])
    assert x.grad is None
    assert_close(w.grad, [2.0])


def test_grad_returns_without_accumulating():
    x, w = leaf(2.0), leaf(3.0)
    gx, gw = tl.autograd.grad((x * w).sum(), [x, w])
    assert_close([gx, gw], [[3.0], [2.0]])
    assert x.grad is None and w.grad is None


def test_grad_of_a_value_inside_the_graph():
    x = leaf(2.0)
    hidden = x.exp()
    (g,) = tl.autograd.grad((hidden * hidden).sum(), hidden)
    assert_close(g, 2 * hidden.detach())


def test_grad_of_several_outputs_with_their_gradients():
    x = leaf(2.0)
    g = tl.tensor([10.0], dtype=tl.float64)
    (total,) = tl.autograd.grad([x * 3, x * x], [x], grad_outputs=[g, g])
    assert_close(total, [30.0 + 40.0])


def test_grad_of_an_unused_input():
    x, unused = leaf(2.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="allow_unused"):
        tl.autograd.grad((x * x).sum(), [x, unused])
    gx, nothing = tl.autograd.grad((x * x).sum(), [x, unused], allow_unused=True)
    assert_close(gx, [4.0])
    assert nothing is None


def test_grad_of_an_input_that_requires_none():
    x, plain = leaf(2.0), tl.ones(1, dtype=tl.float64)
    with pytest.raises(RuntimeError, match="grad"):
        tl.autograd.grad((x * plain).sum(), [plain])


def test_the_gradient_of_a_leaf_with_respect_to_itself_is_one():
    x = leaf(2.0)
    (g,) = tl.autograd.grad(x.sum(), x)
    assert_close(g, [1.0])
    tl.autograd.backward(x.sum())
    assert_close(x.grad, [1.0])


@pytest.mark.parametrize(
    "fn, derivatives",
    [
        (lambda x: x.sin(), [math.sin, math.cos, lambda v: -math.sin(v), lambda v: -math.cos(v)]),
        (lambda x: x**4, [lambda v: v**4, lambda v: 4 * v**3, lambda v: 12 * v**2,
                          lambda v: 24 * v]),
        (lambda x: x.exp(), [math.exp] * 4),
        (lambda x: x.tanh(), [
            math.tanh,
            lambda v: 1 - math.tanh(v) ** 2,
            lambda v: -2 * math.tanh(v) * (1 - math.tanh(v) ** 2),
            lambda v: (6 * math.tanh(v) ** 2 - 2) * (1 - math.tanh(v) ** 2),
        ]),
        (lambda x: x.log(), [math.log, lambda v: 1 / v, lambda v: -(v**-2), lambda v: 2 * v**-3]),
    ],
)
def test_derivatives_to_the_third_order(fn, derivatives):
    value = 0.7
    x = tl.tensor(value, dtype=tl.float64, requires_grad=True)
    y = fn(x)
    for derivative in derivatives:
        assert_close(y, derivative(value), rtol=1e-12, atol=1e-12)
        (y,) = tl.autograd.grad(y, x, create_graph=True)


def test_without_create_graph_a_gradient_is_a_constant():
    x = leaf(2.0)
    (g,) = tl.autograd.grad((x**3).sum(), x)
    assert not g.requires_grad
    (g,) = tl.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad


def test_backward_with_create_graph_differentiates_the_gradient():
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.sum().backward()
    assert_close(x.grad, [12.0])


def test_a_gradient_penalty():
    """|dL/dx|^2 with L = sum(w x^2): its gradient in w is 8 w x^2."""
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (g,) = tl.autograd.grad((w * x * x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert_close(w.grad, 8 * w.detach() * x.detach() ** 2)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: (a @ b).tanh(),
        lambda a, b: (a.exp() * b.t()).sum(0),
        lambda a, b: tl.softmax(a, dim=1) @ b,
        lambda a, b: tl.cat([a, b.t()]).log_softmax(0),
        lambda a, b: (a[:, 1:] / (b[1:].t() ** 2 + 1), a.std(1) + b.var(0)),
    ],
)
def test_gradients_match_finite_differences(fn):
    a = tl.linspace(-1, 1, 6, dtype=tl.float64).reshape(2, 3).clone().requires_grad_()
    b = tl.linspace(0.2, 1, 6, dtype=tl.float64).reshape(2, 3).t().requires_grad_()
    assert not b.is_contiguous()
    assert gradcheck(fn, (a, b))
    assert gradgradcheck(fn, (a, b))


@pytest.mark.parametrize(
    "operation, saves",
    [
        (lambda x: x.tanh(), "output"),
        (lambda x: x.exp(), "output"),
        (lambda x: x.sin(), "input"),
        (lambda x: x * x, "input"),
        (lambda x: x.log(), "input"),
    ],
)
def test_a_saved_value_overwritten_before_backward_is_noticed(operation, saves):
    x = leaf(0.5, 0.25)
    hidden = x * 1
    y = operation(hidden)
    loss = y.sum()
    (y if saves == "output" else hidden).add_(1)
    with pytest.raises(RuntimeError, match="(?i)in-?place"):
        loss.backward()


@pytest.mark.parametrize("operation, slopes", [
    (lambda x: x.tanh(), [1 - math.tanh(0.5) ** 2, 1 - math.tanh(0.25) ** 2]),
    (lambda x: x + 1, [1, 1]), (lambda x: x.sum(), [1, 1]),
])
def test_overwriting_what_was_not_saved_is_allowed(operation, slopes):
    x = leaf(0.5, 0.25)
    hidden = x * 1
    loss = operation(hidden).sum()
    hidden.zero_()
    loss.backward()
    assert x.grad.tolist() == pytest.approx(slopes)


def test_overwriting_through_a_view_is_noticed():
    x = leaf(0.5, 0.25)
    y = x.exp()
    loss = y.sum()
    with tl.no_grad():
        y[0] = 7.0
    with pytest.raises(RuntimeError, match="(?i)in-?place"):
        loss.backward()


def test_overwriting_through_a_detached_tensor_is_noticed():
    x = leaf(0.5, 0.25)
    y = x.exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="(?i)in-?place"):
        y.sum().backward()


def test_the_gradient_may_stand_in_a_list():
    for gradient, expected in (([tl.tensor(3.0)], 6), ((tl.tensor(2.0),), 4), ([None], 2)):
        x = tl.tensor(1.0, requires_grad=True)
        (x * x).backward(gradient)
        assert x.grad == expected
    nested = [[tl.tensor(1.0)]]
    for wrong in (nested, [], [tl.tensor(1.0)] * 2):
        with pytest.raises(TypeError, match="either Tensors or None, but got list"):
            (x * x).backward(wrong)
