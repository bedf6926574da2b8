from cpython.object cimport PyObject

from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.loops cimport Loop

cdef enum:
    MAX_INPUTS = 5
    MAX_CONSTANTS = 5
    MAX_STEPS = 14
    MAX_SLOTS = MAX_INPUTS + MAX_CONSTANTS + MAX_STEPS

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

cdef struct Operand:
    char* data
    int dtype
    bint linear              # contiguous in the walker's order
    bint scalar              # one element for all
    Py_ssize_t steps[MAX_NDIM]     # bytes


cdef struct Walk:
    const Program* program
    int ndim
    Py_ssize_t dims[MAX_NDIM]
    Operand operands[MAX_INPUTS + 1]   # the output comes last

cdef void plan(Walk* walk, PyObject** inputs, Tensor out) noexcept

cdef inline char* place(const Operand* operand, int ndim, const Py_ssize_t* index) noexcept nogil:
    cdef char* pointer = operand.data
    cdef int d
    for d in range(ndim):
        pointer += index[d] * operand.steps[d]
    return pointer


cdef inline void advance(const Walk* walk, Py_ssize_t* index, Py_ssize_t count) noexcept nogil:
    """Moves the index on by `count` elements, at most to the start of the next row."""
    cdef int d = walk.ndim - 1
    index[d] += count
    while d > 0 and index[d] == walk.dims[d]:
        index[d] = 0
        d -= 1
        index[d] += 1


cdef inline int result_dtype(const Program* program) noexcept nogil:
    if program.n_steps == 0:
        return program.dtypes[0]
    return program.dtypes[program.n_inputs + program.n_constants + program.n_steps - 1]
