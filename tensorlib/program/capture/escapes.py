"""Escaping tensors: those that a captured function stored outside, which a replay would not."""

import gc
import sys
import weakref
from collections import Counter
from collections.abc import Set
from types import FrameType
from typing import Any

from tensorlib._core.graph.node import Node
from tensorlib._core.graph.saved import Counted
from tensorlib._core.sweep.graph_reader import saved_ids, was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import FunctionCtx
from tensorlib.program.capture.results import things_in
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads.read_log import vars_of


def escaped(recorder: Any, result: list[Any], objects: Set[int],
            leaves: list[Any]) -> Variable | None:
    """A variable whose tensor outlives the function elsewhere than in its result, or None.

    result: in a list, so that no frame holds it. objects, leaves: of the result. What a recorder
    knew of tensors is released.
    """
    params = [x.value for x in recorder.grads if x.value is not None]
    held = [(weakref.ref(tensor), x) for tensor, x in recorder.known.values()
            if x.value is None and was_made_since(tensor, recorder.epoch)]
    for known in (recorder.known, recorder.by_memory, recorder.by_storage, recorder.constants,
                  recorder.keys, recorder.uncounted, recorder.branched, recorder.shown,
                  recorder.put_hooks.all, recorder.put_hooks.cells):
        known.clear()
    tensors, variables = [], []
    for ref, x in held:
        tensor = ref()
        if tensor is not None:
            tensors.append(tensor)
            variables.append(x)
    del held, known
    tensor = None
    own = holders(leaves, [x.grad for x in params], recorder.begun)
    if all(count <= own.get(id(x), 0) for x, count in zip(tensors, counts(tensors))):
        return None                        # the search through all objects takes milliseconds
    around = gc.get_referrers(*tensors)
    inside = things_in(result, objects)
    allowed = {id(tensors), id(leaves), id(around), id(inside), *map(id, inside),
               *(id(vars_of(x)) for x in inside if id(x) in objects)}
    del inside
    for holder in around:
        # the graph of what is returned holds values, a view its base, a leaf its gradient
        if id(holder) not in allowed and not is_graph(holder, allowed):
            kept = set(map(id, gc.get_referents(holder)))
            for tensor, x in zip(tensors, variables):
                if id(tensor) in kept:
                    return x
    return None


def counts(things: list[Any]) -> list[int]:
    """How many hold each thing in a list, beside the list."""
    (alone,) = [sys.getrefcount(x) for x in [object()]]
    return [sys.getrefcount(x) - alone for x in things]


def holders(leaves: list[Any], grads: list[Any], since: int) -> dict[int, int]:
    """How many of the library's own, and of what is returned, hold a tensor, by its id."""
    nodes = [x.grad_fn for x in leaves if isinstance(x, Tensor) and x.grad_fn is not None]
    # in the result and among its leaves; in `.grad`; in the graph of what is returned
    return Counter((*map(id, leaves), *map(id, leaves), *map(id, grads),
                    *saved_ids(nodes, since)))


def is_graph(holder: Any, allowed: set[int]) -> bool:
    """Whether what holds a tensor is part of a graph, or a frame that is about to go."""
    if isinstance(holder, (Node, Tensor, FrameType)):
        return True
    if type(holder) not in (tuple, dict, Counted, FunctionCtx):
        return False
    around = gc.get_referrers(holder)          # of what a node keeps by name, or in a key
    for x in around:                           # a generator would hold what it looks at
        if id(x) not in allowed and not is_graph(x, {*allowed, id(around)}):
            return False
    return True
