"""Data for training: datasets, samplers, and the `DataLoader` that makes batches of them.

The same as `tensorlib.data`, an older name of it.
"""

from tensorlib._core.base.explained import explain
from tensorlib._core.base.importing import later, parts_of
from tensorlib.utils.data.collate import default_collate, default_convert
from tensorlib.utils.data.dataloader import DataLoader
from tensorlib.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tensorlib.utils.data.distributed import DistributedSampler
from tensorlib.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tensorlib.utils.data.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
    "default_collate", "default_convert", "get_worker_info", "random_split"]

explain(vars(), __all__)

datasets = later("tensorlib.utils.data.datasets")
transforms = later("tensorlib.utils.data.transforms")
__all__ += ["datasets", "transforms"]
parts_of(__name__, "_utils")               # `torch.utils.data._utils.collate` is here


def __dir__() -> list[str]:
    return sorted(__all__)
