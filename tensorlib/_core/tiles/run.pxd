from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport TileLoops

cdef int run_program(const TileLoops* program, PyObject** inputs, Tensor out) except -1
