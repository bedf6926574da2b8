"""`default_collate`: a list of examples as a batch, with tensors stacked and containers kept."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor
from tensorlib._core.base.registry import Registry

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile("[SaUO]")      # kinds of arrays that no tensor is made of

# a type, or several, and how a batch of its instances is made
default_collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] = Registry()


def collate(
    batch: Sequence[Any], *,
    collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None,
) -> Any:
    """The batch of some examples, made by the first function of the map whose type fits.

    The function is called with the list and `collate_fn_map`. Mappings, named tuples and sequences
    are gone into. Raises: TypeError for other types, RuntimeError for sequences that differ in
    length.

    >>> tensorlib.utils.data.collate.collate([3, 5], collate_fn_map={int: lambda b, **_: max(b)})
    5
    """
    first = batch[0]
    for kind, function in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return like_mapping(first, {
            key: collate([example[key] for example in batch], collate_fn_map=collate_fn_map)
            for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map)
                             for column in columns(batch)))
    if isinstance(first, Sequence):
        made = [collate(column, collate_fn_map=collate_fn_map) for column in columns(batch)]
        return made if isinstance(first, tuple) else like_sequence(first, made)
    raise TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                    f"lists; found {type(first)}")


def columns(batch: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The first elements of all examples, the second ones, and so on."""
    lengths = {len(example) for example in batch}
    if len(lengths) > 1:
        raise RuntimeError("default_collate: each element in list of batch should be of equal "
                           f"size, got lengths {', '.join(map(str, sorted(lengths)))}")
    return list(zip(*batch))


def like_mapping(first: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """The values in a mapping of the type of `first`, or a dict if that takes none."""
    try:
        if isinstance(first, MutableMapping):
            out = copy.copy(first)
            out.update(made)
            return out
        return type(first)(made)  # type: ignore[call-arg]
    except TypeError:
        return made


def like_sequence(first: Sequence[Any], made: list[Any]) -> Any:
    """The values in a sequence of the type of `first`, or a list if that takes none."""
    try:
        if isinstance(first, MutableSequence):
            out = copy.copy(first)
            for i, value in enumerate(made):
                out[i] = value
            return out
        return type(first)(made)  # type: ignore[call-arg]
    except TypeError:
        return made


def stacked(batch: Sequence[Tensor], *, collate_fn_map: Any = None) -> Tensor:
    """The tensors stacked along a new first dim.

    Raises: RuntimeError for tensors of several shapes.
    """
    shapes = {tuple(example.shape) for example in batch}
    if len(shapes) > 1:
        raise RuntimeError(
            "default_collate: tensors are stacked, so they must have one shape, got "
            f"{' and '.join(map(str, sorted(shapes)[:4]))}; pad them in a collate_fn")
    return tl.stack(list(batch))


def stacked_arrays(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """The arrays stacked as tensors.

    Raises: TypeError for arrays of texts, dates or objects.
    """
    if np.asarray(batch[0]).dtype.kind not in "biuf":
        raise TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts "
                        f"or lists; found an array of {np.asarray(batch[0]).dtype}")
    return stacked([tl.as_tensor(array) for array in batch])


def numbers(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """A tensor of numbers: floats in float64, ints in int64."""
    dtype = tl.float64 if isinstance(batch[0], float) else None
    return tl.tensor(list(batch), dtype=dtype)


def as_they_are(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """The batch itself."""
    return batch


default_collate_fn_map.update({
    Tensor: stacked, np.ndarray: stacked_arrays, (np.bool_, np.number, np.object_): stacked_arrays,
    float: numbers, int: numbers, str: as_they_are, bytes: as_they_are})


def default_collate(batch: Sequence[Any]) -> Any:
    """The batch that a list of examples makes.

    Tensors and NumPy arrays are stacked along a new first dimension; numbers make an int64 or
    float64 tensor; strings and bytes stay in a list. Mappings, named tuples and sequences are gone
    into: a batch of tuples is the list of the batches of their elements.

    Raises: TypeError for other types; RuntimeError for tensors that differ in shape and for
    sequences that differ in length.

    >>> tensorlib.utils.data.default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    >>> examples = [{"x": tensorlib.ones(2)}, {"x": tensorlib.zeros(2)}]
    >>> tensorlib.utils.data.default_collate(examples)["x"]
    tensor([[1., 1.],
            [0., 0.]])
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """NumPy arrays inside containers as tensors, all else as it is: for loaders without batches.

    >>> tensorlib.utils.data.default_convert({"x": numpy.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=tensorlib.float64), 'name': 'a'}
    """
    if isinstance(data, (np.ndarray, np.bool_, np.number)):
        return tl.as_tensor(data) if np.asarray(data).dtype.kind in "biuf" else data
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, Mapping):
        return like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence):
        return like_sequence(data, [default_convert(value) for value in data])
    return data
