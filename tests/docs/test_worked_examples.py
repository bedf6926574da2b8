"""Models whose gradients are known in closed form, derived by hand and computed with NumPy."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, tolerance

F64 = tolerance("float64", "gradient")


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def leaf(values):
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


@pytest.mark.parametrize("decay", [0.0, 0.25])
@pytest.mark.parametrize("x, t, w, b", [(2.0, 1.0, 0.3, -0.5), (-1.5, 0.0, 1.2, 0.4)])
def test_univariate_logistic_least_squares(x, t, w, b, decay):
    """z = w x + b, y = sigmoid(z), L = (y - t)^2 / 2 + decay w^2 / 2."""
    weight, bias = leaf(w), leaf(b)
    y = (weight * x + bias).sigmoid()
    loss = (y - t) ** 2 / 2 + decay * weight**2 / 2
    loss.backward()

    y_known = sigmoid(w * x + b)
    dz = (y_known - t) * y_known * (1 - y_known)
    assert_close(loss, (y_known - t) ** 2 / 2 + decay * w**2 / 2, **F64)
    assert_close(weight.grad, dz * x + decay * w, **F64)
    assert_close(bias.grad, dz, **F64)


def test_second_derivative_of_logistic_least_squares():
    """d2L/dw2 = x^2 (s'^2 + (y - t) s''), with s' = y (1 - y) and s'' = s' (1 - 2 y)."""
    x, t, w = 2.0, 1.0, 0.3
    weight = leaf(w)
    loss = ((weight * x).sigmoid() - t) ** 2 / 2
    (first,) = tl.autograd.grad(loss, weight, create_graph=True)
    (second,) = tl.autograd.grad(first, weight)

    y = sigmoid(w * x)
    slope = y * (1 - y)
    assert_close(second, x**2 * (slope**2 + (y - t) * slope * (1 - 2 * y)), **F64)


def multiclass(rng):
    """N examples with D features in C classes: x (N, D), labels (N,), weight (D, C), bias (C,)."""
    x = rng.normal(size=(6, 4))
    labels = rng.integers(0, 3, size=6)
    return x, labels, rng.normal(size=(4, 3)), rng.normal(size=3)


@pytest.mark.parametrize("form", ["softmax", "log_softmax", "logsumexp"])
def test_multiclass_logistic_regression(form):
    """L = -mean log y[label], y = softmax(x W + b): dz = (y - one_hot) / N, W' = x^T dz."""
    x, labels, w, b = multiclass(np.random.default_rng(1))
    weight, bias = leaf(w), leaf(b)
    z = tl.tensor(x) @ weight + bias
    rows = tl.arange(len(labels))
    chosen = tl.tensor(labels)
    if form == "softmax":
        log_y = tl.softmax(z, dim=1).log()
    elif form == "log_softmax":
        log_y = tl.log_softmax(z, dim=1)
    else:
        log_y = z - tl.logsumexp(z, dim=1, keepdim=True)
    loss = -log_y[rows, chosen].mean()
    loss.backward()

    powers = np.exp(x @ w + b)
    y = powers / powers.sum(axis=1, keepdims=True)
    dz = (y - np.eye(3)[labels]) / len(labels)
    assert_close(loss, -np.log(y[np.arange(6), labels]).mean(), **F64)
    assert_close(weight.grad, x.T @ dz, **F64)
    assert_close(bias.grad, dz.sum(axis=0), **F64)


def test_two_layer_perceptron():
    """h = s(W1 x + b1), y = W2 h + b2, L = |y - t|^2 / 2, with the gradients of each value."""
    rng = np.random.default_rng(2)
    x, t = rng.normal(size=(4, 1)), rng.normal(size=(2, 1))
    values = [rng.normal(size=size) for size in [(5, 4), (5, 1), (2, 5), (2, 1)]]
    w1, b1, w2, b2 = (leaf(value) for value in values)
    z = w1 @ tl.tensor(x) + b1
    h = z.sigmoid()
    y = w2 @ h + b2
    for value in (z, h, y):
        value.retain_grad()
    loss = ((y - tl.tensor(t)) ** 2).sum() / 2
    loss.backward()

    w1_known, b1_known, w2_known, b2_known = values
    h_known = sigmoid(w1_known @ x + b1_known)
    dy = w2_known @ h_known + b2_known - t
    dh = w2_known.T @ dy
    dz = dh * h_known * (1 - h_known)
    assert_close(y.grad, dy, **F64)
    assert_close(w2.grad, dy @ h_known.T, **F64)
    assert_close(b2.grad, dy, **F64)
    assert_close(h.grad, dh, **F64)
    assert_close(z.grad, dz, **F64)
    assert_close(w1.grad, dz @ x.T, **F64)
    assert_close(b1.grad, dz, **F64)


def test_logistic_regression_by_gradient_descent():
    """Predictions p = (tanh(x.w) + 1) / 2 of a true label: the gradient of -sum log is known.

    For a label l, p(l) = p l + (1 - p)(1 - l), and d(-log p(l))/d(x.w) = 2 (p - l).
    """
    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30],
                       [0.74, -2.49, 1.39]])
    labels = np.array([True, True, False, True])
    x, is_true = tl.tensor(inputs), tl.tensor(labels)
    weights = tl.zeros(3, dtype=tl.float64, requires_grad=True)
    known = np.zeros(3)
    losses = []
    for _ in range(100):
        p = 0.5 * ((x @ weights).tanh() + 1)
        loss = -tl.where(is_true, p, 1 - p).log().sum()
        (grad,) = tl.autograd.grad(loss, weights)

        p_known = 0.5 * (np.tanh(inputs @ known) + 1)
        grad_known = inputs.T @ (2 * (p_known - labels))
        assert_close(grad, grad_known, **F64)
        with tl.no_grad():
            weights -= 0.01 * grad
        known -= 0.01 * grad_known
        losses.append(loss.item())
    assert_close(weights, known, **F64)
    assert losses[0] == pytest.approx(4 * np.log(2))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.5 * losses[0]


def test_gradients_of_a_whole_model_match_finite_differences():
    x, labels, w, b = multiclass(np.random.default_rng(3))
    x, rows, labels = tl.tensor(x), tl.arange(6), tl.tensor(labels)

    def loss(weight, bias):
        return -tl.log_softmax((x @ weight).tanh() + bias, dim=1)[rows, labels].mean()

    assert gradcheck(loss, (leaf(w), leaf(b)))
