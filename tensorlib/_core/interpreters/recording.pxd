from cpython.object cimport PyObject

from tensorlib._core.graph.op cimport Op

cdef object apply_general(Op op, tuple args, dict kwargs)
cdef int record(Op op, PyObject** args, int n, object outputs, object attributes) except -1
