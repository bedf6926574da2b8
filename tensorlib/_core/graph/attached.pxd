from libc.stdint cimport int64_t

from tensorlib._core.graph.node cimport Node
from tensorlib._core.tensor.tensor cimport Tensor

# Kinds of hooks of a node, in the order in which they run.
cdef enum HookKind:
    ON_TENSOR            # with the gradient of one output
    RETAINS              # the same, for retain_grad: after all others
    BEFORE               # with the gradients of all outputs, before the node runs
    ACCUMULATED          # with the leaf, after its .grad was computed
    AFTER                # with the gradients of the inputs and outputs

cdef object hook_node(Node node, HookKind kind, int slot, object hook)
cdef int track_held(Tensor holder, object held) except -1
cdef int track_all(object held, int64_t since) except -1
