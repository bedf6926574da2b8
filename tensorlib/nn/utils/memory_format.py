"""The memory format of the weights of convolutions, for a model whose inputs have it."""

from typing import TypeVar

from tensorlib import memory_format as MemoryFormat
from tensorlib.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from tensorlib.nn.modules.module import Module

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """The module, with the weights of its two-dimensional convolutions in a memory format.

    Other parameters stay as they are. Raises: as `Tensor.to`.

    >>> layer = convert_conv2d_weight_memory_format(Conv2d(2, 3, 3), tensorlib.channels_last)
    >>> layer.weight.stride()
    (18, 1, 6, 2)
    """
    return converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """As `convert_conv2d_weight_memory_format`, for three-dimensional convolutions."""
    return converted(module, (Conv3d, ConvTranspose3d), memory_format)


def converted(module: M, kinds: tuple[type[Module], ...], memory_format: MemoryFormat) -> M:
    """The module, with the weights of modules of these kinds in a memory format."""
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().to(memory_format=memory_format)
    return module
