"""Optimisers: how parameters follow their gradients, after `torch.optim`."""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use
from tensorlib._core.base.explained import explain
from tensorlib.optim.adadelta import Adadelta
from tensorlib.optim.adafactor import Adafactor
from tensorlib.optim.adagrad import Adagrad
from tensorlib.optim.adam import Adam
from tensorlib.optim.adamax import Adamax
from tensorlib.optim.adamw import AdamW
from tensorlib.optim.asgd import ASGD
from tensorlib.optim.lbfgs import LBFGS
from tensorlib.optim.muon import Muon
from tensorlib.optim.nadam import NAdam
from tensorlib.optim.optimizer import Optimizer
from tensorlib.optim.radam import RAdam
from tensorlib.optim.rmsprop import RMSprop
from tensorlib.optim.rprop import Rprop
from tensorlib.optim.sgd import SGD
from tensorlib.optim.sparse_adam import SparseAdam

if TYPE_CHECKING:
    from tensorlib.optim import lr_scheduler, swa_utils

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler",
    "swa_utils",
]

explain(vars(), __all__)
__getattr__, __dir__ = on_first_use(
    __name__, {"lr_scheduler": "lr_scheduler", "swa_utils": "swa_utils"})
