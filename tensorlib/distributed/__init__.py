"""Processes that compute together, over MPI, under the names of `torch.distributed`.

    mpiexec -n 2 python train.py
    python -m tensorlib.distributed.run -n 2 train.py

`pip install "tensorlib[mpi]"` brings what is needed. Nothing of MPI is imported before
`init_process_group()`; docs/distributed.md has the description.

>>> tensorlib.distributed.is_initialized()
False
"""

from tensorlib._core.base.importing import later as _later
from tensorlib._core.base.importing import on_first_use as _on_first_use
from tensorlib._core.base.importing import parts_of as _parts_of
from tensorlib.distributed.collectives import (
    ReduceOp,
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from tensorlib.distributed.errors import (
    DistBackendError,
    DistError,
    DistTimeoutError,
    NoGroupError,
)
from tensorlib.distributed.group import (
    Backend,
    GroupMember,
    ProcessGroup,
    _rank_not_in_group,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_nccl_available,
    is_torchelastic_launched,
)
from tensorlib.distributed.mpi import is_available, is_launched, is_mpi_available
from tensorlib.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    scatter_object_list,
)
from tensorlib.distributed.point_to_point import (
    P2POp,
    barrier,
    batch_isend_irecv,
    irecv,
    isend,
    monitored_barrier,
    recv,
    send,
)
from tensorlib.distributed.subgroups import new_group, new_subgroups
from tensorlib.distributed.work import Work
from tensorlib.distributed.work import WorkFuture as Future

_LATE = {name: name for name in ("algorithms", "autograd", "checkpoint", "device_mesh", "elastic",
                                 "fsdp", "nn", "optim", "rpc", "tensor")}

__all__ = [
    "Backend", "DistBackendError", "DistError", "DistTimeoutError", "Future", "GroupMember",
    "NoGroupError", "P2POp", "ProcessGroup", "ReduceOp", "Work", "algorithms", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "checkpoint",
    "destroy_process_group", "device_mesh", "fsdp", "gather", "gather_object", "get_backend",
    "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size",
    "init_process_group", "irecv", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_launched", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "new_subgroups", "nn",
    "optim", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "rpc", "scatter",
    "scatter_object_list", "send", "tensor",
]

_parts_of(__name__, "constants", "distributed_c10d")
_composable = _later("tensorlib.distributed.fsdp")         # older homes of names
_tensor = _later("tensorlib.distributed.tensor")

__getattr__, __dir__ = _on_first_use(__name__, _LATE)
