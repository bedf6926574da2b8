from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport Loop
from tensorlib._core.tiles.program cimport Program

cdef int run_loop(const Loop* loop, char** inputs, const bint* is_scalar, char* output,
                  Py_ssize_t n) except -1
cdef int run_program(const Program* program, PyObject** inputs, Tensor out) except -1
