from tensorlib._core.graph.node cimport Node

cdef int run_tensor_hooks(Node node) except -1
cdef int run_before_hooks(Node node) except -1
cdef int run_accumulated_hooks(Node node) except -1
cdef list run_after_hooks(Node node, list grads, object g)
