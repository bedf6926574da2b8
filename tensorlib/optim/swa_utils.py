"""Averages of models over the steps of their training, after `torch.optim.swa_utils`."""

from copy import deepcopy
from itertools import chain
from math import cos, pi

from tensorlib import float32, int64, no_grad, tensor
from tensorlib.nn import Module
from tensorlib.nn.modules.batchnorm import _BatchNorm
from tensorlib.optim.lr_scheduler.base import LRScheduler, for_groups

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def __dir__():
    return sorted(__all__)
