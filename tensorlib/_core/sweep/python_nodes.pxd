from tensorlib._core.graph.node cimport Node
from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor

cpdef Node custom_node(Op op, tuple inputs, tuple saved, int n_outputs, payload)
cpdef set_history(Node node, int slot, Tensor out)
cpdef Tensor view_of_input(Tensor x, Tensor source)
cpdef tuple saved_tensors(Node node)
cpdef payload_of(Node node)
