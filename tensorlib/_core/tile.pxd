from cpython.object cimport PyObject

from tensorlib._core.dtypes cimport N_DTYPES
from tensorlib._core.loops cimport Loop
from tensorlib._core.tensor cimport Tensor

cdef enum:
    MAX_INPUTS = 5
    MAX_CONSTANTS = 5
    MAX_STEPS = 14
    MAX_SLOTS = MAX_INPUTS + MAX_CONSTANTS + MAX_STEPS
    TILE = 512               # elements; a slot of a tile takes at most 4 KiB
    GRAIN = 32768            # elements of one parallel chunk
    RELEASE_GIL = 16384      # elements from which on the GIL is released

# One loop over a tile: slots are numbered inputs first, then constants, then results of the steps.
cdef struct Step:
    Loop loop
    int inputs[3]

cdef struct Program:
    int n_inputs
    int n_constants
    int n_steps
    int dtypes[MAX_SLOTS]              # of each slot
    double constants[MAX_CONSTANTS]
    Step steps[MAX_STEPS]

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
