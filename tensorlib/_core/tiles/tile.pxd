from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport N_DTYPES
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport Loop
from tensorlib._core.tiles.plan cimport Program

cdef enum:
    GRAIN = 32768            # elements of one parallel chunk
    RELEASE_GIL = 16384      # elements from which on the GIL is released

cdef class TileProgram:
    cdef readonly int n_inputs
    cdef readonly tuple steps          # (loop name, slots) of each step
    cdef readonly tuple constants
    cdef readonly tuple boolean_inputs # slots of inputs that are bool whatever the dtype
    cdef bint ready[N_DTYPES]
    cdef Program compiled[N_DTYPES]
    cdef const Program* at(self, int dtype) except NULL
    cdef int compile(self, int dtype) except -1

cdef int run_program(const Program* program, PyObject** inputs, Tensor out) except -1
