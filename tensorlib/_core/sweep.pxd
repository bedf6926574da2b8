from tensorlib._core.node cimport Node
from tensorlib._core.tensor cimport Tensor

cdef object run_rules(Node node, object g, bint recorded)
cpdef tuple run_backward(tuple roots, tuple grads, bint retain_graph, bint create_graph,
                         tuple inputs, bint accumulate_grads)
