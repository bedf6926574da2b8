"""Parameters shared out among ranks, gathered while a module runs."""

from tensorlib.distributed.fsdp.fully_shard import ShardedParameter, fully_shard, unsharded

__all__ = ["ShardedParameter", "fully_shard", "unsharded"]
