"""Escaping tensors: those that a captured function stored somewhere, as no replay would do."""

import gc
import sys
import weakref
from collections import Counter
from collections.abc import Set
from types import FrameType
from typing import Any

from tensorlib._core.graph.node import Node
from tensorlib._core.graph.saved import Counted
from tensorlib._core.sweep.graph_reader import ids_of_held, was_made_since
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.function import FunctionCtx
from tensorlib.program.capture.results import things_in
from tensorlib.program.ir.model import Variable
from tensorlib.program.reads.read_log import vars_of


def escaped(recorder: Any, result: list[Any], objects: Set[int],
            leaves: list[Any]) -> Variable | None:
    """A variable whose tensor is still referenced, other than by the result, or None.

    result: in a list, so that no frame holds it. objects, leaves: of the result. The recorder's
    references to tensors are released.
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
        # the graphs of results hold values, views their bases, leaves their gradients
        if id(holder) not in allowed and not is_graph(holder, allowed):
            kept = set(map(id, gc.get_referents(holder)))
            for tensor, x in zip(tensors, variables):
                if id(tensor) in kept:
                    recorder.reads.at = recorder.reads.at or (
                        recorder.reads.line_that_stored(tensor, holder))
                    return x
    return None


def counts(things: list[Any]) -> list[int]:
    """The reference count of each object in a list, without the list's own."""
    (alone,) = [sys.getrefcount(x) for x in [object()]]
    return [sys.getrefcount(x) - alone for x in things]


def holders(leaves: list[Any], grads: list[Any], since: int) -> dict[int, int]:
    """How many references to tensors the library and the result have, by the tensor's id."""
    tensors = [x for x in (*leaves, *grads) if isinstance(x, Tensor)]
    nodes = [x.grad_fn for x in leaves if isinstance(x, Tensor) and x.grad_fn is not None]
    # in the result and its leaves; in `.grad`; in the graph of the result, and as bases of views
    return Counter((*map(id, leaves), *map(id, leaves), *map(id, grads),
                    *ids_of_held(tensors, nodes, since)))


def is_graph(holder: Any, allowed: set[int]) -> bool:
    """Whether the holder of a tensor is part of a graph, or a frame that is about to end."""
    if isinstance(holder, (Node, Tensor, FrameType)):
        return True
    if type(holder) not in (tuple, dict, Counted, FunctionCtx):
        return False
    around = gc.get_referrers(holder)          # of the attributes of a node, or of a key
    for x in around:                           # a generator expression would hold references
        if id(x) not in allowed and not is_graph(x, {*allowed, id(around)}):
            return False
    return True
