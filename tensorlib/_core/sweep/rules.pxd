from tensorlib._core.graph.node cimport Edge, Node
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.tensor.tensor cimport Tensor

cdef object run_rule(Node node, Op op, int i, object g, bint recorded)
cdef object run_joint(Node node, Op op, object g, bint recorded)
cdef object fit(Node node, int i, object grad, bint recorded)
cdef Tensor zeros_for(Edge* edge)
cdef object call_rule(Op op, int i, Rule rule, tuple arguments)
cdef tuple rule_arguments(Rule rule, Node node, object g, bint as_recorded)
cdef Tensor run_tiles(Node node, Rule rule, Tensor g)
