"""Tensors that are spread over processes, which are not here: `isinstance` says no."""

from tensorlib.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DTensor", "DeviceMesh", "Replicate", "Shard", "distribute_tensor"]


class DTensor(DeviceMesh):
    """The type of nothing. Raises: NotImplementedError when it is called."""


class Replicate(DeviceMesh):
    """As `DTensor`."""


class Shard(DeviceMesh):
    """As `DTensor`."""


distribute_tensor = init_device_mesh
