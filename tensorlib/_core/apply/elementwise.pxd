from cpython.object cimport PyObject

from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport TileLoops

cdef object bind_watched(Op op, PyObject** args)
cdef Tensor run_elementwise(Op op, PyObject** args)

cdef inline object bind_elementwise(Op op, PyObject** args):
    """The entry point of element-wise operations, with a C array of tensors."""
    return bind_watched(op, args) if watched else run_elementwise(op, args)

cdef tuple tuple_of(PyObject** args, int n)
cdef bint has_own_loop(Op op, PyObject** args, int dtype) noexcept
cdef const TileLoops* program_for(Op op, PyObject** args, int promoted) except NULL
cdef int result_dtype(Op op, PyObject** args) except -1
cdef int apply_into(Op op, PyObject** args, Tensor out) except -1
cdef object apply_unary(Op op, object x)
cdef object apply_binary(Op op, object a, object b)
cdef bint is_dense(Tensor x) noexcept
cdef bint has_dims(Tensor x, const Py_ssize_t* dims) noexcept
