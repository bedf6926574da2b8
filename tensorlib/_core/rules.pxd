from tensorlib._core.node cimport Node
from tensorlib._core.op cimport Op

cdef object run_rule(Node node, Op op, int i, object g, bint recorded)
cdef object run_joint(Node node, Op op, object g, bint recorded)
cdef object fit(Node node, int i, object grad, bint recorded)
