"""Logs of a training: `SummaryWriter` for TensorBoard, and `CSVWriter`, which needs nothing.

>>> from tensorlib.utils.tensorboard import CSVWriter
>>> with CSVWriter("losses.csv") as log:
...     for step in range(2):
...         log.add_scalar("loss", 1.0 / (step + 1), step)
>>> print(open("losses.csv").read(), end="")
step,loss
0,1.0
1,0.5
"""

from tensorlib._core.base.explained import explain
from tensorlib.utils.tensorboard import summaries as summary
from tensorlib.utils.tensorboard.table import CSVWriter
from tensorlib.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["CSVWriter", "FileWriter", "SummaryWriter"]

explain(vars(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
