from tensorlib._core.node cimport Node
from tensorlib._core.tensor cimport Tensor

cdef object run_rules(Node node, object g, bint recorded)
