"""Meshes of devices, which are not supported: groups of processes are made by `new_group`."""

from typing import Any, NoReturn

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The type of nothing. Raises: NotImplementedError when it is called."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        init_device_mesh()


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there are groups of processes, and no meshes of them."""
    raise NotImplementedError("DeviceMesh: there are no meshes here; tensorlib.distributed has "
                              "groups of processes, by new_group")
