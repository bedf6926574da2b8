"""Hooks of tensors and nodes, and the reference cycles that hooks and metadata may close."""

from libc.stdint cimport int64_t

from tensorlib._core.base.locks cimport Lock, drop, hold
from tensorlib._core.graph.node cimport (
    Node, accumulator_of, gradient_node, recorded_so_far, track,
)
from tensorlib._core.tensor.tensor cimport Tensor, track_tensor

from tensorlib._core.graph.handles import PLAIN, RemovableHandle, tensors_and_nodes


# ---- cycles --------------------------------------------------------------------------------------
#
# A hook or metadata may hold tensors that were computed from the node or tensor that it is set on.
# Then these, and the nodes between, are tracked by the garbage collector.

cdef int track_newer(Node root, int64_t since) except -1:
    """Tracks the nodes on paths from `root` to nodes of at least the sequence number `since`."""
    cdef list stack = [root]
    cdef set seen = {root}
    cdef Node node, target
    cdef int i
    while stack:
        node = stack.pop()
        if node.sequence < since:
            continue
        track(node)
        for i in range(node.n_edges):
            if node.edges[i].target != NULL:
                target = <Node>node.edges[i].target
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
    return 0


cdef int track_all(object held, int64_t since) except -1:
    """Tracks the tensors in an object, and their graphs from the sequence number `since` on."""
    cdef Tensor x
    if type(held) in PLAIN:
        return 0
    for found in (held,) if type(held) is Tensor else tensors_and_nodes(held, Node):
        if isinstance(found, Node):
            track_newer(found, since)
            continue
        x = found
        track_tensor(x)
        if x.grad_node is not None:
            track_newer(x.grad_node, since)
    return 0


cdef int track_held(Tensor holder, object held) except -1:
    """Tracks an object that a tensor is about to hold: see `track_all`."""
    cdef int64_t since = recorded_so_far()
    if holder.grad_node is not None:
        since = (<Node>holder.grad_node).sequence
    elif holder.accumulator != NULL:
        since = 0                      # this node is newer than the first one found on the path
    if type(held) not in PLAIN:
        track_tensor(holder)
        track_all(held, since)
    return 0


# ---- hooks ---------------------------------------------------------------------------------------

cdef Lock hooking             # a node's first hook


cdef object hook_node(Node node, HookKind kind, int slot, object hook):
    """Records a hook of a node. Those of a leaf live on the tensor, which its nodes share."""
    cdef Tensor leaf
    fresh = {} if node.hooks is None else None
    hold(&hooking)
    if node.hooks is None:
        node.hooks = fresh
        if node.is_leaf:
            leaf = <Tensor>node.saved[0].tensor
            leaf.hooks = node.hooks
    drop(&hooking)
    track(node)
    if kind != RETAINS:                # that one holds its tensor weakly
        track_all(hook, 0 if node.is_leaf else node.sequence)
    key = object()
    node.hooks[key] = (<int>kind, slot, hook)
    return RemovableHandle(node.hooks, key)


def add_hook(Tensor x, hook):
    """Registers `hook`, called with the gradient of `x`; returns its handle."""
    track_tensor(x)
    return hook_node(gradient_node(x), ON_TENSOR, x.slot, hook)


def add_accumulated_hook(Tensor leaf, hook):
    """Registers `hook`, called with a leaf after its `.grad` was computed; returns its handle."""
    track_tensor(leaf)
    return hook_node(accumulator_of(leaf), ACCUMULATED, 0, hook)


def add_retaining_hook(Tensor x, hook):
    """Registers once the hook that stores the gradient of `x`, its attribute."""
    if not x.keeps_grad:
        x.keeps_grad = True
        hook_node(gradient_node(x), RETAINS, x.slot, hook)
