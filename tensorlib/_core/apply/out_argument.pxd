from tensorlib._core.graph.op cimport Op

cdef object apply_out(Op op, tuple args, object out)
