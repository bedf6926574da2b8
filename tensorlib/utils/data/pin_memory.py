"""Batches in memory that a GPU copies from faster, of which there is none here.

Libraries call it for batches of types of their own: `torch.utils.data._utils.pin_memory`.
"""

from typing import Any

from tensorlib.utils._pytree import tree_map

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch of what the methods `pin_memory` of its parts give: tensors stay as they are.

    >>> from tensorlib.utils.data.pin_memory import pin_memory
    >>> pin_memory({"x": tensorlib.ones(2), "name": "a"})
    {'x': tensor([1., 1.]), 'name': 'a'}
    """
    return tree_map(pinned, data)


def pinned(part: Any) -> Any:
    """What its method gives, where it has one."""
    own = getattr(part, "pin_memory", None)
    return part if own is None else own()
