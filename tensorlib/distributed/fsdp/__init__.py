"""Parameters sharded among ranks, and gathered while a module runs."""

from tensorlib._core.base.importing import parts_of as _parts_of
from tensorlib.distributed.fsdp.fully_shard import ShardedParameter, fully_shard, unsharded
from tensorlib.distributed.fsdp import fully_sharded_data_parallel as _older

__all__ = ["ShardedParameter", "fully_shard", "unsharded"]

_parts_of(__name__, "_composable", "api", "fsdp", "fully_sharded_data_parallel",
          "sharded_grad_scaler", "wrap")


def __getattr__(name: str) -> object:
    if name.startswith("__") or not hasattr(_older, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_older, name)
