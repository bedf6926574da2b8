"""Optimisers with options, and what is trained with them, for the tests here."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import optim

# Options of each optimiser that a formula defines, all its branches among them.
OPTIONS = [
    (optim.SGD, {}), (optim.SGD, {"weight_decay": 0.1}), (optim.SGD, {"momentum": 0.9}),
    (optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "dampening": 0.2}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (optim.SGD, {"momentum": 0.9, "maximize": True}),
    (optim.Adam, {}), (optim.Adam, {"weight_decay": 0.1}), (optim.Adam, {"amsgrad": True}),
    (optim.Adam, {"amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    (optim.AdamW, {}), (optim.AdamW, {"amsgrad": True}), (optim.AdamW, {"weight_decay": 0}),
    (optim.NAdam, {}), (optim.NAdam, {"weight_decay": 0.1}),
    (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    (optim.RAdam, {"betas": (0.8, 0.9)}), (optim.RAdam, {"weight_decay": 0.1}),
    (optim.RAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.Adamax, {}), (optim.Adamax, {"weight_decay": 0.1}),
    (optim.Adagrad, {}), (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.Adadelta, {"lr": 0.5}), (optim.Adadelta, {"weight_decay": 0.1, "maximize": True}),
    (optim.RMSprop, {}), (optim.RMSprop, {"weight_decay": 0.1}), (optim.RMSprop, {"momentum": 0.9}),
    (optim.RMSprop, {"centered": True}), (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (optim.Rprop, {}), (optim.Rprop, {"step_sizes": (1e-3, 0.02)}),
    (optim.ASGD, {}), (optim.ASGD, {"t0": 2, "lambd": 0.01, "weight_decay": 0.1}),
]


def shown(value):
    return getattr(value, "__name__", str(value))


EVERY = pytest.mark.parametrize("kind, options", OPTIONS, ids=shown)
USED_MOST = pytest.mark.parametrize("kind, options", [
    (optim.SGD, {"momentum": 0.9}), (optim.Adam, {}), (optim.Adam, {"amsgrad": True}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9}), (optim.Rprop, {})],
    ids=shown)


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def trajectory(kind, options, params, gradients, **how):
    """The parameters and their states after a step for each of several lists of gradients."""
    optimizer = kind(params, **{"lr": 0.05, **options, **how})
    with tl.no_grad():
        for of_step in gradients:
            for p, g in zip(params, of_step):
                p.grad = g
            optimizer.step()
    return optimizer


def results(optimizer):
    """All tensors that the optimiser has written."""
    found = []
    for p in optimizer.param_groups[0]["params"]:
        found += [p.detach(), *(x for x in optimizer.state[p].values() if isinstance(x, tl.Tensor))]
    return found


def given_tensors(*shapes, steps=4, dtype="float64"):
    """Parameters, and gradients for some steps."""
    params = [tl.tensor(numbers(*shape), dtype=getattr(tl, dtype)).requires_grad_()
              for shape in shapes]
    gradients = [[tl.tensor(numbers(*shape, seed=step + 1), dtype=getattr(tl, dtype))
                  for shape in shapes] for step in range(steps)]
    return params, gradients
