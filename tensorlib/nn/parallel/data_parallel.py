"""`DataParallel`, for models on several devices, with the one device that there is: the CPU."""

from collections.abc import Sequence
from typing import Any

from tensorlib.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module around another, `module`, which it calls: all of a batch goes to the CPU.

    PyTorch does the same where there is no GPU. States have the prefix `module.`.
    Raises: RuntimeError for devices: there are none.

    >>> DataParallel(Linear(2, 1))(tensorlib.ones(3, 2)).shape
    tensorlib.Size([3, 1])
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None,
                 output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        refuse_devices("DataParallel", device_ids)
        self.module = module
        self.device_ids: list[Any] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None,
                  output_device: Any = None, dim: int = 0, module_kwargs: Any = None) -> Any:
    """What a module gives for all inputs, on the CPU. Raises: RuntimeError for devices."""
    refuse_devices("data_parallel", device_ids)
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def refuse_devices(name, device_ids):
    """Raises RuntimeError where devices are named."""
    if device_ids:
        raise RuntimeError(f"{name}: there are no GPUs, got device_ids={list(device_ids)}; "
                           "leave them out")
