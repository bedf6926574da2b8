"""`tensorlib.data`, where PyTorch has it: this module and its parts are that one's."""

import sys

from tensorlib import data
from tensorlib.data import *  # noqa: F403
from tensorlib.data import collate, dataloader, dataset, distributed, sampler

for module in (data, collate, dataloader, dataset, distributed, sampler):
    sys.modules[module.__name__.replace("tensorlib.data", __name__, 1)] = module
