"""Whole training steps."""

import math

from benchmarks.case import case, uniform


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
