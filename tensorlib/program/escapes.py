"""Tensors that a captured function made and left somewhere: a replay would not put them there."""

import gc
import weakref
from types import FrameType
from typing import Any

from tensorlib._core.graph.node import Node
from tensorlib._core.sweep.graph_reader import was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.model import Variable


def escaped(recorder: Any, result: Any, leaves: list[Any]) -> Variable | None:
    """A variable whose tensor outlives the function elsewhere than in its result, or None.

    leaves: those of the result. What a recorder knew of tensors is let go of.
    """
    held = [(weakref.ref(tensor), x) for tensor, x in recorder.known.values()
            if x.value is None and was_made_since(tensor, recorder.epoch)]
    for known in (recorder.known, recorder.by_memory, recorder.by_storage, recorder.constants):
        known.clear()
    tensors, variables = [], []
    for ref, x in held:
        tensor = ref()
        if tensor is not None:
            tensors.append(tensor)
            variables.append(x)
    tensor = None
    if not tensors:
        return None
    allowed = {id(tensors), id(leaves), *containers_in(result)}
    for holder in gc.get_referrers(*tensors):
        # the graph of what is returned holds values, a view its base, a leaf its gradient
        if id(holder) not in allowed and not is_graph(holder):
            kept = set(map(id, gc.get_referents(holder)))
            for tensor, x in zip(tensors, variables):
                if id(tensor) in kept:
                    return x
    return None


def is_graph(holder: Any) -> bool:
    """Whether what holds a tensor is part of a graph, or a frame that is about to go."""
    if isinstance(holder, (Node, Tensor, FrameType)):
        return True
    return type(holder) in (tuple, dict) and all(
        isinstance(x, (Node, FrameType)) for x in gc.get_referrers(holder))


def containers_in(value: Any) -> list[int]:
    """The ids of a container and of those in it."""
    if isinstance(value, dict):
        return [id(value), *containers_in(tuple(value.values()))]
    if isinstance(value, (tuple, list)):
        return [id(value), *(i for x in value for i in containers_in(x))]
    return []
