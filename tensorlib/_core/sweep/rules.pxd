from tensorlib._core.graph.op cimport Op

cdef object joint_gradients(object source, Op op, object g, bint recorded)
cdef object gradient(object source, Op op, int i, object g, object joint, bint recorded)
cdef object value_of(object source, int place, bint recorded)
cdef tuple facts_of(object source, int i)
