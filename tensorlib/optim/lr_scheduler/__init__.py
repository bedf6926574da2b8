"""Schedules: how the rates of an optimiser change, after `torch.optim.lr_scheduler`."""

from tensorlib._core.base.explained import explain
from tensorlib.optim.lr_scheduler.base import LRScheduler, _LRScheduler
from tensorlib.optim.lr_scheduler.multiplicative import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from tensorlib.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from tensorlib.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from tensorlib.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tensorlib.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]

explain(vars(), __all__)


def __dir__():
    return sorted(__all__)
