"""Models on several devices or in several processes."""

from tensorlib._core.base.importing import on_first_use as _on_first_use
from tensorlib.nn.parallel.data_parallel import DataParallel, data_parallel

_LATE = {"DistributedDataParallel": "distributed", "distributed": "distributed",
         "scatter_gather": "scatter_gather"}

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

__getattr__, __dir__ = _on_first_use(__name__, _LATE)
