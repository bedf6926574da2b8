"""Data for training: datasets, samplers, and the `DataLoader` that makes batches of them.

The same as `tensorlib.utils.data`, where PyTorch has it.
"""

from tensorlib.data.collate import default_collate, default_convert
from tensorlib.data.dataloader import DataLoader
from tensorlib.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tensorlib.data.distributed import DistributedSampler
from tensorlib.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tensorlib.data.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
    "default_collate", "default_convert", "get_worker_info", "random_split"]


def __dir__() -> list[str]:
    return sorted(__all__)
