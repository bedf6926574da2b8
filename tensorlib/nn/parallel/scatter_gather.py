"""Tensors in parts for several devices, and put together again."""

from typing import Any

from tensorlib import cat
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """A part for each device: tensors are cut along `dim`, what is not a tensor is in each part."""
    count = len(target_gpus)
    leaves, structure = tree_flatten(inputs)
    parts = [x.chunk(count, dim) if isinstance(x, Tensor) else [x] * count for x in leaves]
    made = [tree_unflatten(list(part), structure) for part in zip(*parts)]
    return tuple(made) if isinstance(inputs, Tensor) else made


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """The parts of positional arguments and of those by keyword."""
    args = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(args), len(named))
    return (tuple([*args, *([()] * (count - len(args)))]),
            tuple([*named, *({} for _ in range(count - len(named)))]))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The outputs of all devices, joined along `dim`; numbers in a vector."""
    columns, structures = zip(*map(tree_flatten, outputs))
    joined = [cat([x.reshape(1) if x.ndim == 0 else x for x in xs], dim) for xs in zip(*columns)]
    return tree_unflatten(joined, structures[0])
