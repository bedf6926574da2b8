from tensorlib._core.tiles.loops cimport MAX_ARITY, Loop
from tensorlib._core.tiles.plan cimport Plan
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileLoops

cdef enum:
    MAX_OPERANDS = MAX_INPUTS + 1
    MAX_NUMBERS = 24
    MAX_STEPS = 48
    MAX_VALUES = MAX_OPERANDS + MAX_NUMBERS + MAX_STEPS

# A loop that does the whole update: operands and numbers in the order of the update's values, after
# the tag of its kind, which is NULL.
ctypedef void (*fused_loop)(void* tag, char** operands, const double* numbers,
                            Py_ssize_t n) noexcept nogil

cdef struct UpdateStep:
    Loop loop
    int inputs[MAX_ARITY]
    int number               # the place of an input that the loop takes as a number, or -1
    int operand              # the operand whose memory takes the result, or -1
    int buffer               # otherwise the tile that does

# The update for parameters that are computed in one dtype. Values are numbered: the operands (the
# gradient, the states, the parameter), the numbers, the results of the steps.
cdef struct Compiled:
    int dtype
    int n_operands
    int n_numbers
    int n_steps
    fused_loop fused
    bint written[MAX_OPERANDS]
    int results[MAX_OPERANDS]          # the value to copy into an operand at the end, or -1
    int number_buffers[MAX_NUMBERS]    # the tile in which a number is repeated, or -1
    UpdateStep steps[MAX_STEPS]

cdef struct Job:
    const Compiled* program
    const double* numbers
    Py_ssize_t numel
    Plan plan                # its operands in the order of the update's

# A parameter of which each operand is one run of the dtype that is computed in, by one loop.
cdef struct Whole:
    const Compiled* program
    const double* numbers
    Py_ssize_t numel
    char* operands[MAX_OPERANDS]

cdef class Update:
    cdef readonly str name             # of the optimiser, for messages
    cdef readonly tuple states         # names
    cdef readonly tuple numbers
    cdef readonly tuple steps
    cdef readonly tuple results
    cdef readonly bint counts          # whether there is a state `step`, a tensor of one number
    cdef readonly tuple each           # numbers in the state on which those of a step depend
    cdef readonly str fused
    cdef bint ready[2]
    cdef Compiled compiled[2]          # float32 and float64
    cdef TileLoops frame                 # tells `make_plan` how many operands there are
    cdef const Compiled* at(self, int dtype) except NULL

ctypedef fused work:
    Job
    Whole

cdef int run_jobs(work* jobs, Py_ssize_t n) except -1
