"""Tensors in groups of one dtype each, as optimisers outside of the library ask for them."""

from collections.abc import Sequence
from typing import Any

from tensorlib._core.tensor.tensor import Tensor

__all__ = ["_group_tensors_by_device_and_dtype"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False,
) -> dict[tuple[Any, Any], tuple[list[list[Tensor | None]], list[int]]]:
    """For each device and dtype in the first list the places of such tensors, in all of the lists.

    with_indices: whether the places are given, too; else their list is empty.
    """
    groups: dict[tuple[Any, Any], list[int]] = {}
    for place, x in enumerate(tensorlistlist[0]):
        if x is not None:
            groups.setdefault((x.device, x.dtype), []).append(place)
    return {key: ([[xs[place] for place in places] for xs in tensorlistlist if xs],
                  places if with_indices else [])
            for key, places in groups.items()}
