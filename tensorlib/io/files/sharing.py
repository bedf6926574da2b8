"""Tensors that share memory, and what is written so that they share it again when loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorlib import Tensor

__all__ = ["dense", "joined_memory"]


def extent(x: Tensor) -> tuple[int, int]:
    """The addresses of the first byte of a tensor with elements, and of the end of the last."""
    steps = [(size - 1) * step * x.itemsize for size, step in zip(x.shape, x.stride())]
    low = x.data_ptr() + sum(step for step in steps if step < 0)
    return low, x.data_ptr() + sum(step for step in steps if step > 0) + x.itemsize


def groups(tensors: dict[str, Tensor]) -> Iterator[tuple[int, int, list[str]]]:
    """Names of tensors whose memory overlaps, two or more, and the memory that they span."""
    spans = sorted((extent(x), str(x.dtype), name) for name, x in tensors.items()
                   if x.numel() and min(x.stride(), default=0) >= 0)   # files have no others
    open_spans: dict[str, tuple[int, int, list[str]]] = {}
    for (low, high), dtype, name in spans:
        start, end, names = open_spans.get(dtype, (0, 0, []))
        if low < end:
            open_spans[dtype] = start, max(end, high), [*names, name]
            continue
        if len(names) > 1:
            yield start, end, names
        open_spans[dtype] = low, high, [name]
    for start, end, names in open_spans.values():
        if len(names) > 1:
            yield start, end, names


def joined_memory(
    tensors: dict[str, Tensor], new_name: Any,
) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """The tensors to write, by name, and for those that lie in others, how they do.

    A tensor that spans the memory of its group is written as it is; otherwise the memory that the
    group spans is, as a vector under a new name.
    """
    written, views = dict(tensors), {}
    places = {name: place for place, name in enumerate(tensors)}
    for low, high, names in groups(tensors):
        order = sorted(names, key=places.__getitem__)
        owner = next((name for name in order if tensors[name].is_contiguous()
                      and extent(tensors[name]) == (low, high)), None)
        if owner is None:
            whole = spanning(tensors[order[0]], low, high)
            if whole is None:         # arrays of others, each of which knows its part alone
                continue
            owner = new_name(f"{order[0]}.memory")
            written[owner] = whole
        for name in order:
            if name != owner:
                x = written.pop(name)
                views[name] = {
                    "view": owner, "key": name, "shape": list(x.shape), "stride": list(x.stride()),
                    "offset": (x.data_ptr() - low) // x.itemsize}
    return written, views


def spanning(x: Tensor, low: int, high: int) -> Tensor | None:
    """The memory from low to high as a vector, if it is that of the tensor's storage."""
    offset = x.storage_offset() - (x.data_ptr() - low) // x.itemsize
    try:
        return x.detach().as_strided(((high - low) // x.itemsize,), (1,), offset)
    except (RuntimeError, ValueError):
        return None


def dense(x: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Memory that has the elements of a tensor and no more, and the strides that it has there."""
    if x.numel() and not x.is_contiguous() and min(x.stride()) > 0:
        low, high = extent(x)
        whole = spanning(x, low, high) if high - low == x.numel() * x.itemsize else None
        if whole is not None:
            return whole, x.stride()
    x = x.detach().contiguous()
    return x, x.stride()
