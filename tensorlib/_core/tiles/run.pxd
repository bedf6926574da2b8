from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport Program

cdef int run_program(const Program* program, PyObject** inputs, Tensor out) except -1
