"""Whole training steps."""

import math

from benchmarks.case import case, prepared, uniform


def perceptron_step(lib, batch=32, inputs=64, hidden=256, classes=10, lr=0.01, momentum=0.9):
    """The step of examples/digits.py, on a fixed batch: a function that returns the loss."""
    x = uniform(lib, batch, inputs, low=0.0)
    digits = lib.arange(batch) % classes
    rows = lib.arange(batch)
    params = [
        uniform(lib, inputs, hidden, seed=1) / math.sqrt(inputs), lib.zeros(hidden),
        uniform(lib, hidden, classes, seed=2) / math.sqrt(hidden), lib.zeros(classes),
    ]
    w1, b1, w2, b2 = [param.requires_grad_() for param in params]
    velocities = [lib.zeros(param.shape) for param in params]

    def step():
        log_p = ((x @ w1 + b1).relu() @ w2 + b2).log_softmax(1)
        loss = -log_p[rows, digits].mean()
        loss.backward()
        with lib.no_grad():
            for param, velocity in zip(params, velocities):
                velocity *= momentum
                velocity += param.grad
                param -= lr * velocity
                param.grad = None
        return loss
    return step


@case("training", "perceptron 64-256-10, batch 32")
def digits_step(lib):
    return perceptron_step(lib)


@case("training", "perceptron 4-16-2, batch 8")
def small_step(lib):
    return perceptron_step(lib, batch=8, inputs=4, hidden=16, classes=2)


# ---- modules and optimisers ----------------------------------------------------------------------

def module_step(lib, model, optimizer, x, classes=10, **options):
    """A step of an optimiser on one batch, which returns the loss."""
    model = prepared(lib, model)
    optimizer = getattr(lib.optim, optimizer)(model.parameters(), lr=0.0, **options)
    y = lib.arange(len(x)) % classes

    def step():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)     # stays the same without a rate
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def perceptron(lib, *sizes):
    """Linear layers with `ReLU` between them."""
    layers = [layer for n, m in zip(sizes, sizes[1:])
              for layer in (lib.nn.Linear(n, m), lib.nn.ReLU())]
    return lib.nn.Sequential(*layers[:-1])


@case("training", "nn 64-128-64-10 with Adam, batch 64", target=5)
def with_adam(lib):
    return module_step(lib, perceptron(lib, 64, 128, 64, 10), "Adam", uniform(lib, 64, 64))


@case("training", "nn 64-128-64-10 with SGD, batch 32", target=4)
def with_descent(lib):
    return module_step(lib, perceptron(lib, 64, 128, 64, 10), "SGD", uniform(lib, 32, 64))


@case("training", "nn 784-512-10 with Adam, batch 128", target=1.3)
def wide_with_adam(lib):
    return module_step(lib, perceptron(lib, 784, 512, 10), "Adam", uniform(lib, 128, 784))


@case("training", "nn two convolutions, 28 x 28, batch 64", target=1.2)
def convolutional(lib):
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10))
    return module_step(lib, model, "Adam", uniform(lib, 64, 1, 28, 28))
