"""Names around `FullyShardedDataParallel`, which is not supported: `fully_shard` shards parameters.

Libraries import them where they may be used. Settings can be made, and `isinstance` says no.
"""

from typing import Any

from tensorlib.distributed.unsupported_settings import absent, choices, described

INSTEAD = "fully_shard shares the parameters of a module out among the ranks of a group"

BackwardPrefetch = choices("BackwardPrefetch", "BACKWARD_PRE BACKWARD_POST")
OptimStateKeyType = choices("OptimStateKeyType", "PARAM_NAME PARAM_ID")
ShardingStrategy = choices("ShardingStrategy",
                           "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2")
StateDictType = choices("StateDictType", "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT")

FSDPModule = absent("FSDPModule", INSTEAD)
FlatParameter = absent("FlatParameter", INSTEAD)
FullyShardedDataParallel = absent("FullyShardedDataParallel", INSTEAD)
ShardedGradScaler = absent("ShardedGradScaler", INSTEAD)
ModuleWrapPolicy = absent("ModuleWrapPolicy", INSTEAD)
CustomPolicy = absent("CustomPolicy", INSTEAD)
enable_wrap = absent("enable_wrap", INSTEAD)
transformer_auto_wrap_policy = absent("transformer_auto_wrap_policy", INSTEAD)
size_based_auto_wrap_policy = absent("size_based_auto_wrap_policy", INSTEAD)
lambda_auto_wrap_policy = absent("lambda_auto_wrap_policy", INSTEAD)


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """True: each part of a model would be sharded by itself."""
    return True


def wrap(module: Any, **options: Any) -> Any:
    """The module as it is, as outside of `enable_wrap` in PyTorch."""
    return module


CPUOffload = described("CPUOffload")
CPUOffloadPolicy = described("CPUOffloadPolicy")
OffloadPolicy = described("OffloadPolicy")
MixedPrecision = described("MixedPrecision")
MixedPrecisionPolicy = described("MixedPrecisionPolicy")
StateDictConfig = described("StateDictConfig")
FullStateDictConfig = described("FullStateDictConfig", StateDictConfig)
ShardedStateDictConfig = described("ShardedStateDictConfig", StateDictConfig)
FullOptimStateDictConfig = described("FullOptimStateDictConfig", StateDictConfig)
ShardedOptimStateDictConfig = described("ShardedOptimStateDictConfig", StateDictConfig)
