from tensorlib._core.base.dtypes cimport N_DTYPES
from tensorlib._core.tiles.loops cimport MAX_ARITY, Loop

cdef enum:
    MAX_INPUTS = 5
    MAX_CONSTANTS = 5
    MAX_STEPS = 14
    MAX_SLOTS = MAX_INPUTS + MAX_CONSTANTS + MAX_STEPS

# One loop over a tile: slots are numbered inputs first, then constants, then results of the steps.
cdef struct Step:
    Loop loop
    int inputs[MAX_ARITY]
    int buffer                         # where its result lies beside those that are still needed

# The loops of one dtype, in the order in which they run on each tile.
cdef struct TileLoops:
    int n_inputs
    int n_constants
    int n_steps
    int itemsize                       # of the widest slot
    int first_aside                    # after the buffers of inputs, constants and results
    int dtypes[MAX_SLOTS]              # of each slot
    double constants[MAX_CONSTANTS]
    Step steps[MAX_STEPS]

cdef class TileProgram:
    cdef readonly int n_inputs
    cdef readonly tuple steps          # (loop name, slots) of each step
    cdef readonly tuple constants
    cdef readonly tuple boolean_inputs # slots of inputs that are bool whatever the dtype
    cdef readonly bint one_loop        # over the inputs as they come
    cdef bint ready[N_DTYPES]
    cdef TileLoops compiled[N_DTYPES]
    cdef const TileLoops* at(self, int dtype) except NULL
    cdef int compile(self, int dtype) except -1
    cdef int assign_buffers(self, TileLoops* program) except -1


cdef inline int result_dtype(const TileLoops* program) noexcept nogil:
    if program.n_steps == 0:
        return program.dtypes[0]
    return program.dtypes[program.n_inputs + program.n_constants + program.n_steps - 1]
