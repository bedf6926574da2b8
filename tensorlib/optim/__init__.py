"""Optimisers: how parameters follow their gradients."""

from tensorlib.optim.adam import Adam
from tensorlib.optim.adamw import AdamW
from tensorlib.optim.optimizer import Optimizer
from tensorlib.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD"]


def __dir__():
    return sorted(__all__)
