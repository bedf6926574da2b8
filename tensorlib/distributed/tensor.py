"""Distributed tensors, which are not supported: `isinstance` returns False.

What only describes how one would be spread can be made and compared; what spreads it raises
NotImplementedError.

>>> Shard(0) == Shard(dim=0), Shard(0).is_shard(1)
(True, False)
"""

from dataclasses import dataclass

from tensorlib._core.base.importing import parts_of
from tensorlib.distributed.unsupported_settings import absent, described
from tensorlib.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard",
           "distribute_module", "distribute_tensor", "init_device_mesh"]

parts_of(__name__, "_utils", "experimental", "parallel", "placement_types")


class DTensor(DeviceMesh):
    """The type of nothing. Raises: NotImplementedError when it is called."""


class Placement:
    """How a tensor would lie along one dim of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it would be cut, along this dim if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process would have all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process would have a term of it."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Partial(Placement):
    """Each process would have a term of the tensor."""

    reduce_op: str = "sum"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process would have the whole tensor."""


@dataclass(frozen=True)
class Shard(Placement):
    """Each process would have a piece of the tensor along `dim`."""

    dim: int


ParallelStyle = described("ParallelStyle")               # how a module would be spread
ColwiseParallel = described("ColwiseParallel", ParallelStyle)
RowwiseParallel = described("RowwiseParallel", ParallelStyle)
SequenceParallel = described("SequenceParallel", ParallelStyle)

_StridedShard = absent("_StridedShard", "Shard says along which dim a tensor would be cut")
distribute_tensor = distribute_module = parallelize_module = init_device_mesh
compute_local_shape_and_global_offset = implicit_replication = init_device_mesh
