"""Functional transforms: gradients of each example, and Jacobians of few and many outputs."""

import math
from functools import partial

from benchmarks.case import case, uniform

EXAMPLES = 256
SIZES = (32, 64, 64, 10)


def perceptron(lib):
    """The weights of a network, a batch of inputs and targets, and the loss of one example."""
    params = {}
    for k, (inputs, outputs) in enumerate(zip(SIZES, SIZES[1:])):
        params[f"w{k}"] = uniform(lib, outputs, inputs, seed=k) / math.sqrt(inputs)
        params[f"b{k}"] = uniform(lib, outputs, seed=10 + k)

    def loss(params, x, y):
        for k in range(len(SIZES) - 2):
            x = (params[f"w{k}"] @ x + params[f"b{k}"]).tanh()
        last = len(SIZES) - 2
        return ((params[f"w{last}"] @ x + params[f"b{last}"] - y) ** 2).sum()
    return params, uniform(lib, EXAMPLES, SIZES[0]), uniform(lib, EXAMPLES, SIZES[-1]), loss


@case("transforms", "gradients of 256 examples, in a loop")
def gradients_in_a_loop(lib):
    params, xs, ys, loss = perceptron(lib)
    gradient = lib.func.grad(loss)

    def run():
        found = [gradient(params, xs[i], ys[i]) for i in range(EXAMPLES)]
        return {name: lib.stack([g[name] for g in found]) for name in params}["w1"]
    return run


@case("transforms", "gradients of 256 examples, by vmap", target=1,
      no_slower_than="gradients of 256 examples, in a loop")
def gradients_by_vmap(lib):
    params, xs, ys, loss = perceptron(lib)
    gradients = lib.func.vmap(lib.func.grad(loss), (None, 0, 0))
    return lambda: gradients(params, xs, ys)["w1"]


def derivative(transform, n, lib):
    """The matrix of derivatives of a function of n numbers, as the function to time."""
    w, x = uniform(lib, n, n) / math.sqrt(n), uniform(lib, n, seed=1)

    def function(x):
        return (w @ (w @ x).tanh() + x).sin()
    if transform == "hessian":
        matrix = lib.func.hessian(lambda x: function(x).sum())
    else:
        matrix = getattr(lib.func, transform)(function)
    return lambda: matrix(x)


for _transform, _sizes in {"jacrev": (10, 100, 1000), "jacfwd": (10, 100, 1000),
                           "hessian": (10, 100)}.items():
    for _n in _sizes:
        case("transforms", f"{_transform}, {_n}x{_n}", target=1)(
            partial(derivative, _transform, _n))
