"""What the training scripts that both libraries run have in common: data, models, the comparison.

A script takes the library as `torch`, and gives its losses. The parameters at the start are the
same in both, and what is drawn while it runs is drawn by NumPy.
"""

from collections import OrderedDict

import numpy as np

import tensorlib as tl
from tensorlib.testing import assert_close


class Scripts(list):
    """The scripts of a file; as a decorator it enters one more."""

    def __call__(self, function):
        self.append(function)
        return function


def assert_same_losses(script, torch):
    """A script has the losses that it has in PyTorch."""
    mine, theirs = script(tl), script(torch)
    assert len(mine) > 5 and np.isfinite(mine).all() and mine[0] != mine[-1]
    assert_close(np.array(mine), np.array(theirs), rtol=2e-3, atol=1e-4)


def start(torch, *modules):
    """Parameters that are the same in both libraries, of the sizes that layers begin with."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                bound = 1 / np.sqrt(p[0].numel() if p.dim() > 1 else p.numel())
                p.copy_(torch.tensor(rng.uniform(-bound, bound, tuple(p.shape)).tolist()))
    return modules if len(modules) > 1 else modules[0]


def draw(torch, rng, *shape):
    return torch.tensor(rng.normal(size=shape).astype(np.float32))


def digits(torch, count=48, size=12):
    """Images of bars, which lie or stand, and their classes."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, count)
    images = rng.normal(0, 0.3, (count, 1, size, size)).astype(np.float32)
    for image, label, place in zip(images, labels, rng.integers(0, size, count)):
        image[0][(place, slice(None)) if label else (slice(None), place)] += 1.5
    return torch.tensor(images), torch.tensor(labels)


def small_net(torch, inner=144, classes=2):
    nn = torch.nn
    return start(torch, nn.Sequential(OrderedDict([
        ("flatten", nn.Flatten()), ("fc1", nn.Linear(inner, 16)), ("act", nn.ReLU()),
        ("fc2", nn.Linear(16, classes))])))


def curve(torch, count=64):
    x = torch.linspace(-2, 2, count).unsqueeze(1)
    return x, torch.sin(2 * x) + 0.3 * x
